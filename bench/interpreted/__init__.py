"""Interpreted operators: what they cost, and what several threads make of them."""
