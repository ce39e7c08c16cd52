"""Blocks of the state that operators allocate and release.

A heap is a two-dimensional field. Row 0 is its own: the first of the released blocks, how many
were ever handed out, how many are in use. Every other row is a block, whose column 0 is the heap's
as well: -1 while the block is in use, else the next of the released ones.

All of this is state. So what a dropped run has allocated is free again, what it has released is
still in use, and both come true with the commit and not before (Brito 2010, 4.2.2, where the same
takes lists of what to free on either occasion).
"""

from __future__ import annotations

from typing import Any

from specstream.declarations.options import integer, refuses_unknown
from specstream.declarations.state_layout import array
from specstream.errors import DeclarationError

__all__ = ["allocate", "heap", "release"]


@refuses_unknown
def heap(blocks: int, words: int) -> Any:
    """A field of ``blocks`` blocks with ``words`` integers each, in columns 1 to ``words``.

    Raises:
        DeclarationError: a size is not at least 1.

    >>> import specstream as ss
    >>> from specstream.structures import allocate, release
    >>> class Stack(ss.State):
    ...     nodes = ss.heap(blocks=1000, words=2)
    ...     top = ss.scalar(int)
    >>> @ss.operator(state=Stack, event={"push": int}, emits={"popped": int})
    ... def stack(state, event, emit):
    ...     if event.push != 0:
    ...         node = allocate(state.nodes)
    ...         state.nodes[node, 1] = event.push
    ...         state.nodes[node, 2] = state.top
    ...         state.top = node
    ...     elif state.top != 0:
    ...         node = state.top
    ...         emit(state.nodes[node, 1])
    ...         state.top = state.nodes[node, 2]
    ...         release(state.nodes, node)
    >>> with ss.Engine(stack) as engine:
    ...     engine.process({"push": [3, 4, 0, 5, 0, 0, 0]})["popped"].to_pylist()
    ...     int(engine.state.nodes[0, 2])  # blocks in use
    [4, 5, 3]
    0
    """
    blocks = integer("heap: blocks", blocks, 1, error=DeclarationError)
    words = integer("heap: words", words, 1, error=DeclarationError)
    return array(int, (blocks + 1, max(words + 1, 3)))


def allocate(blocks: Any) -> Any:
    """Inside an operator: a block of a heap, all zero, as the number of its row.

    Raises:
        MemoryError: all blocks are in use.
    """
    block = blocks[0, 0]
    if block == 0:
        block = blocks[0, 1] + 1
        if block == len(blocks):
            raise MemoryError("all blocks of the heap are in use: declare more")
        blocks[0, 1] = block
    else:
        blocks[0, 0] = blocks[block, 0]
    blocks[block, 0] = -1
    for column in range(1, blocks.shape[1]):
        blocks[block, column] = 0
    blocks[0, 2] += 1
    return block


def release(blocks: Any, block: Any) -> Any:
    """Inside an operator: gives a block back to ``blocks``.

    Raises:
        ValueError: it is not in use.
    """
    if block < 1 or block >= len(blocks) or blocks[block, 0] != -1:
        raise ValueError("the block is not in use: it was released before, or never allocated")
    blocks[block, 0] = blocks[0, 0]
    blocks[0, 0] = block
    blocks[0, 2] -= 1
