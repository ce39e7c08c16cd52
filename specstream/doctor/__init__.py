"""What is missing on this machine: ``specstream doctor``.

Each check looks at one thing that has kept somebody's first run from working, and says what it
found and what to do. Whatever can be broken is tried in a process of its own, and imported by the
check that is about it only: so this room works where the rest of the package does not.
"""
