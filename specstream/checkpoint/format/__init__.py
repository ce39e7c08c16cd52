"""What lies in the directory of a checkpoint: files, their chains, the store, the lease.

``file_format`` says what a file holds; ``chain`` and ``restart`` how several make an engine.
"""
