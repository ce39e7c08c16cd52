"""Programs for the compiler, and what it makes of all that there are."""
