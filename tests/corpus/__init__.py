"""Operators as people write them, by domain; tests/programs/test_corpus.py runs them all.

Each is a plain function at module level with a stream and, where there is one, another
implementation of the same (pandas, NumPy, the standard library) that never calls the function.
"""
