"""Where the conflicts are (Brito 2010, 4.3.2, 4.6): words, lines, and what may help."""
