"""A database that rows go to, and a process that writes into it."""
