"""Files: Arrow streams, errors of writing that name the file, and content that nobody has to trust."""
