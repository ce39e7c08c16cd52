"""From the plan of a pipeline to the one function that runs a phase of it, in LLVM instructions.

``functions`` is the way in, ``phase_body`` the whole; each other file is one thing that lies in a
phase.
"""
