"""The values that the text of an exception is made of, in Numba's terms."""

# Numba's internals are only partly typed.
# mypy: allow-untyped-calls

from __future__ import annotations

from typing import Any

from numba.core import types
from numba.extending import intrinsic

from specstream.compiler.backend.none_types import present
from specstream.compiler.language.text import TEXT
from specstream.compiler.language.typing_refusals import refuse, without_literals

__all__ = ["formatted"]

_SAMPLES: dict[types.Type, Any] = {
    types.int64: 1,
    types.uint64: 1,
    types.float64: 1.0,
    types.boolean: True,
    TEXT: "",
}


@intrinsic(prefer_literal=True)
def formatted(typing_context: Any, value: Any, spec: Any) -> Any:
    """A value that is formatted for an exception, whose text is made elsewhere: what is left here
    is that the format is one for such values. The first letter tells of a conversion to text."""
    if not isinstance(spec, types.StringLiteral):
        raise without_literals()
    of, given = spec.literal_value[0], spec.literal_value[1:]
    # A null that a name keeps is formatted as the 0 that it reads.
    shown = types.unliteral(present(value))
    sample = "" if of == "s" else _SAMPLES.get(shown)
    try:
        known = sample is not None and format(sample, given) is not None and given[-1:] != "c"
    except ValueError:
        known = False
    if not known:
        raise refuse(f"{shown} may not be formatted by {given!r}; write a format for its type")
    return types.void(value, spec), lambda context, builder, sig, args: context.get_dummy_value()
