"""Early results, kept: a table of what is applied, from the changes that an engine tells."""

from specstream.early.latest import KEY, latest

__all__ = ["KEY", "latest"]
