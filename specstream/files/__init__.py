"""Files: Arrow streams, errors of writing that name them, content that nobody has to trust."""
