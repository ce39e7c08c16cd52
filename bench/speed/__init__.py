"""The speed table: two threads against the log-free clone, in C and in compiled Python.

``python -m bench speed`` runs every load for both kinds in the same rounds, then shows what the
automatic setting makes of the same loads and of loads that change every second.
"""
