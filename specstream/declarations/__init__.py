"""What an operator declares: its state, its schemas, their element types, limits and locks."""
