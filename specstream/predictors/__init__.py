"""What moves horizon and chunk."""
