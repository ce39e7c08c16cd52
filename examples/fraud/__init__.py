"""Card payments become decisions, by what is known of card and merchant: see README.md."""
