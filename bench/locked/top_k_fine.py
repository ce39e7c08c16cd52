"""Top-k under fine-grained locks: one for each counter of the sketch, and one for the list.

An event holds one lock at a time, so there is no order to keep. What it holds them for is short;
the price is that the estimates of one event may come from sketches of different moments.
"""

import specstream as ss
from specstream.operators.top_k import hash_constants

MASK = 0xFFFFFFFF


def top_k_fine(k: int, rows: int, width: int) -> ss.Operator:
    """As :func:`specstream.operators.top_k` with an item of type int."""
    hashes = hash_constants(rows)
    middle = rows // 2

    class TopKState(ss.State):
        of_counters = ss.locks(rows * width)
        of_list = ss.locks(1)
        sketch = ss.array(int, (rows, width))
        items = ss.array(int, k, fill=-1)
        counts = ss.array(int, k)
        estimates = ss.scratch(int, rows)

    @ss.operator(
        state=TopKState,
        event={"item": int},
        emits={"item": int, "count": int},
        name="top_k_fine",
    )
    def process(state, event, emit):
        item = event.item
        low = item & MASK
        high = (item >> 32) & MASK
        for row, (a, b, c) in enumerate(hashes):
            h = (a + high) * (b + low) + c
            sign = (h >> 63) | 1
            column = (((h >> 31) & MASK) * width) >> 32
            with state.of_counters[row * width + column]:
                counter = state.sketch[row, column] + sign
                state.sketch[row, column] = counter
            state.estimates[row] = counter * sign
            for at in range(row, 0, -1):
                above = state.estimates[at]
                below = state.estimates[at - 1]
                if below <= above:
                    break
                state.estimates[at] = below
                state.estimates[at - 1] = above

        emitted = 0
        smallest = 0
        with state.of_list[0]:
            for i in range(k):
                count = state.counts[i]
                if count > 0 and state.items[i] == item:
                    emitted = count + 1
                    state.counts[i] = emitted
                    break
                if count < state.counts[smallest]:
                    smallest = i
            if emitted == 0 and state.counts[smallest] < state.estimates[middle]:
                emitted = state.estimates[middle]
                state.items[smallest] = item
                state.counts[smallest] = emitted

        if emitted > 0:
            emit(item, emitted)

    return process
