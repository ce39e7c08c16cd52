"""Graphs of operators, drawn at random and by hand, and a third witness of theirs."""
