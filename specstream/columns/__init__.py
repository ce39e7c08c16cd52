"""Arrow tables to numbers and back: events in, rows out, strings, rejected rows, Python values."""
