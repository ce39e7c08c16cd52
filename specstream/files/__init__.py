"""Files: Arrow streams, errors of writing that name the file, content that need not be trusted."""
