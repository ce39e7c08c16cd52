"""Names and numbers that the rewritten source, the native code and the oracle agree on."""

# Columns that every event has, in front of those of its schema.
RESERVED_COLUMNS = ("timestamp", "source")
