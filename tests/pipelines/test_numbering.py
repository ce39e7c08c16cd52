"""Numbers of vertices, after Zimmerman and Chandy (rule PL-2)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specstream.pipelines.numbering import known_after, numbered


@st.composite
def graphs(draw: st.DrawFn) -> dict[str, list[str]]:
    """Acyclic, with vertices in any order."""
    count = draw(st.integers(1, 12))
    before = {
        f"v{n}": draw(st.lists(st.sampled_from([f"v{m}" for m in range(n)]), max_size=4))
        if n
        else []
        for n in range(count)
    }
    order = draw(st.permutations(list(before)))
    return {name: before[name] for name in order}


def sets(numbers: dict[str, int], before: dict[str, list[str]]) -> list[set[int]]:
    """S(v) for v from 0 to N, by equation (1)."""
    return [
        {numbers[w] for w in before if all(numbers[u] <= v for u in before[w])}
        for v in range(len(before) + 1)
    ]


@given(graphs())
def test_every_acyclic_graph_gets_numbers_whose_sets_are_sequential(
    before: dict[str, list[str]],
) -> None:
    order = numbered(before)
    assert sorted(order) == sorted(before)
    numbers = {name: at for at, name in enumerate(order, start=1)}
    assert all(numbers[u] < numbers[w] for w in before for u in before[w])
    found = sets(numbers, before)
    assert found == [set(range(1, len(one) + 1)) for one in found]
    assert known_after([[numbers[u] for u in before[w]] for w in order]) == list(map(len, found))


@given(graphs(), st.randoms())
def test_topological_numbers_of_another_kind_are_refused(
    before: dict[str, list[str]], random: object
) -> None:
    left, order = dict(before), []
    while left:  # any topological order
        ready = [name for name in left if not set(left[name]) & set(left)]
        order.append(random.choice(ready))  # type: ignore[attr-defined]
        del left[order[-1]]
    numbers = {name: at for at, name in enumerate(order, start=1)}
    found = sets(numbers, before)
    is_sequential = found == [set(range(1, len(one) + 1)) for one in found]
    given_numbers = [[numbers[u] for u in before[w]] for w in order]
    if is_sequential:
        known_after(given_numbers)
    else:
        with pytest.raises(ValueError, match=r"S\(\d+\) has vertex"):
            known_after(given_numbers)


def test_the_sets_of_the_paper() -> None:
    # Predecessors that give the sets of Figure 2: the text has those, and not the edges.
    satisfactory: list[list[int]] = [[], [], [], [2], [1, 3], [3, 5], [5]]
    assert known_after(satisfactory) == [3, 3, 4, 5, 5, 7, 7, 7]
    with pytest.raises(ValueError, match=r"S\(2\) has vertex 5, and not vertex 4"):
        known_after([[], [], [], [1, 3], [2], [4], [6]])


def test_numbers_that_are_not_topological_are_refused() -> None:
    with pytest.raises(ValueError, match="vertex 1 has predecessor 2: not topological"):
        known_after([[2], []])


def test_what_is_on_a_cycle_has_no_number() -> None:
    assert numbered({"s": [], "a": ["s", "b"], "b": ["a"], "c": ["s"]}) == ["s", "c"]
