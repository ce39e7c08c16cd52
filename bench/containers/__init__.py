"""How fast containers of the state are, and what they take."""
