"""The evaluation of Brito 2010, chapter 4, again: one experiment per figure and table."""
