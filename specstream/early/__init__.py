"""Early results, used: a table of what is applied, and events of the next engine."""

from specstream.early.apply_changes import apply_changes
from specstream.early.latest import latest

__all__ = ["apply_changes", "latest"]
