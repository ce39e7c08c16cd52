"""pdb in an operator: it stops in the user's own lines, and not in those that lead there."""

from __future__ import annotations

import pdb
import types

from specstream.compiler.frontend.program import Program

__all__ = ["Debugger"]

# The wrappers of state and event, the phases of a pipeline, and the loop around them.
_OURS = [
    *(f"specstream.{room}.*" for room in ("columns", "compiler", "declarations", "pipelines")),
    f"{__package__}.*",
    *("contextlib", "dataclasses", "functools"),  # that they call
]


class Debugger(pdb.Pdb):
    """pdb for the plain function of an operator."""

    def __init__(self) -> None:
        super().__init__(skip=_OURS)

    def post_mortem(self, error: BaseException, program: Program) -> None:
        """The line of the operator that raised, or that called what raised."""
        files = {function.__code__.co_filename for function in program.written}
        frames = []
        traceback = error.__traceback__
        while traceback is not None:
            frames.append(traceback)
            traceback = traceback.tb_next
        while len(frames) > 1 and frames[-1].tb_frame.f_code.co_filename not in files:
            frames.pop()
        # pdb begins at the last frame of a traceback: this one ends where the user's code does.
        shown = None
        for frame in reversed(frames):
            shown = types.TracebackType(shown, frame.tb_frame, frame.tb_lasti, frame.tb_lineno)
        self.reset()
        self.interaction(None, shown)
