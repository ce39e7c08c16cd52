"""Top-k under locks: hashing and emitting outside, the sketch and the list inside.

Fine-grained locks are one for each counter of the sketch, and one for the list. An event holds one
lock at a time then, so there is no order to keep. What it holds them for is short; the price is
that the estimates of one event may come from sketches of different moments.
"""

import specstream as ss
from specstream.operators.top_k import hash_constants

MASK = 0xFFFFFFFF


def top_k(k: int, rows: int, width: int, fine: bool = False) -> ss.Operator:
    """As :func:`specstream.operators.top_k` with an item of type int."""
    hashes = hash_constants(rows)
    middle = rows // 2
    of_list = rows * width if fine else 0

    class TopKState(ss.State):
        locks = ss.locks(of_list + 1)
        sketch = ss.array(int, (rows, width))
        items = ss.array(int, k, fill=-1)
        counts = ss.array(int, k)
        columns = ss.scratch(int, rows)
        signs = ss.scratch(int, rows)
        estimates = ss.scratch(int, rows)

    @ss.operator(
        state=TopKState,
        event={"item": int},
        emits={"item": int, "count": int},
        name="top_k_fine" if fine else "top_k_locked",
    )
    def process(state, event, emit):  # type: ignore[no-untyped-def]
        item = event.item
        low = item & MASK
        high = (item >> 32) & MASK
        for row, (a, b, c) in enumerate(hashes):
            h = (a + high) * (b + low) + c
            state.signs[row] = (h >> 63) | 1
            state.columns[row] = (((h >> 31) & MASK) * width) >> 32

        if not fine:
            state.locks[0].acquire()
        for row in range(rows):
            column = state.columns[row]
            if fine:
                state.locks[row * width + column].acquire()
            counter = state.sketch[row, column] + state.signs[row]
            state.sketch[row, column] = counter
            if fine:
                state.locks[row * width + column].release()
            state.estimates[row] = counter * state.signs[row]
            for at in range(row, 0, -1):
                above = state.estimates[at]
                below = state.estimates[at - 1]
                if below <= above:
                    break
                state.estimates[at] = below
                state.estimates[at - 1] = above
        if fine:
            state.locks[of_list].acquire()
        emitted = 0
        smallest = 0
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
        state.locks[of_list].release()

        if emitted > 0:
            emit(item, emitted)

    return process
