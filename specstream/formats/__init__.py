"""Rows out of texts: functions that make a list of named tuples of each text.

=================== ============================================================================
:func:`xml`         of XML, by a path of XPath
:func:`json`        of JSON, by a path of JMESPath
=================== ============================================================================

An operator calls such a function with a column of its event, and loops over the rows; a source
takes it as ``decode=``.
"""

from specstream.formats.json import json
from specstream.formats.xml import xml

__all__ = ["json", "xml"]
