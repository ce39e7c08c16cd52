"""Early results, kept: a table of what is applied, from the changes that an engine tells."""

from specstream.early.latest import latest

__all__ = ["latest"]
