"""Verbs and rules beside what one would write by hand, and beside other monitors."""
