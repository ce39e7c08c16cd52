"""Top-k as Listing 2.6 has it: every event reads its estimate and the list as a whole.

The ready operator reads less, and has to emit the same rows and keep the same list and sketch.
"""

import specstream as ss
from specstream.operators.top_k import hash_constants

MASK = 0xFFFFFFFF


def whole_list(k: int, rows: int, width: int) -> ss.Operator:
    hashes = hash_constants(rows)

    class WholeList(ss.State):
        sketch = ss.array(int, (rows, width))
        items = ss.array(int, k, fill=-1)
        counts = ss.array(int, k)

    @ss.operator(state=WholeList, event={"item": int}, emits={"item": int, "count": int})
    def process(state, event, emit):  # type: ignore[no-untyped-def]
        item = event.item
        low = item & MASK
        high = (item >> 32) & MASK
        estimates = []
        for row, (a, b, c) in enumerate(hashes):
            h = (a + high) * (b + low) + c
            sign = (h >> 63) | 1
            column = (((h >> 31) & MASK) * width) >> 32
            counter = state.sketch[row, column] + sign
            state.sketch[row, column] = counter
            estimates.append(counter * sign)
        estimate = sorted(estimates)[rows // 2]

        smallest = 0
        for i in range(k):
            count = state.counts[i]
            if count > 0 and state.items[i] == item:
                state.counts[i] = count + 1
                emit(item, count + 1)
                return
            if count < state.counts[smallest]:
                smallest = i
        if state.counts[smallest] < estimate:
            state.items[smallest] = item
            state.counts[smallest] = estimate
            emit(item, estimate)

    return process
