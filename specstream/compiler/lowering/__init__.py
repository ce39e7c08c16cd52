"""From the checked syntax tree to one that Numba compiles, whose calls are the library's.

``rewrite_native`` is the whole; each other file is what it does with one construct of the language.
"""
