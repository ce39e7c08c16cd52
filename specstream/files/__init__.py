"""Files: errors of writing that name them, and content that nobody has to trust."""
