"""Symmetrisation against its definition walked through cell by cell."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.analysis.symmetrize import METHODS, Links, grow_diag, grow_diag_final, intersection, union

SIZE = 5
LINKS = st.frozensets(st.tuples(st.integers(0, SIZE - 1), st.integers(0, SIZE - 1)), max_size=12)


def slow_grow_diag(forward: Links, backward: Links) -> set[tuple[int, int]]:
    """Every cell of the matrix, target by target, as long as anything changes."""
    found = set(forward & backward)
    while True:
        before = set(found)
        for target in range(SIZE):
            for source in range(SIZE):
                if (source, target) not in before:
                    continue
                for down, right in ((-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1)):
                    new = (source + down, target + right)
                    free = all(i != new[0] for i, _ in found) or all(j != new[1] for _, j in found)
                    if new in forward | backward and free:
                        found.add(new)
        if found == before:
            return found


@given(LINKS, LINKS)
def test_growing_is_what_its_definition_says(forward: Links, backward: Links) -> None:
    grown = slow_grow_diag(forward, backward)
    assert grow_diag(forward, backward) == grown
    for links in (forward, backward):
        for target in range(SIZE):
            for source in range(SIZE):
                free = all(i != source for i, _ in grown) or all(j != target for _, j in grown)
                if (source, target) in links and free:
                    grown.add((source, target))
    assert grow_diag_final(forward, backward) == grown


@given(LINKS, LINKS)
def test_all_lie_between_intersection_and_union(forward: Links, backward: Links) -> None:
    found = [METHODS[name](forward, backward) for name in ("intersection", "grow-diag", "grow-diag-final", "union")]
    assert all(one <= other for one, other in pairwise(found))
    # whatever a word was linked to, grow-diag-final leaves no word of either direction without a link
    assert {i for i, _ in found[2]} == {i for i, _ in found[3]}
    assert {j for _, j in found[2]} == {j for _, j in found[3]}


def test_by_hand() -> None:
    forward = frozenset({(0, 0), (1, 1), (1, 2), (4, 4)})
    backward = frozenset({(0, 0), (2, 2), (1, 1), (3, 0)})
    assert intersection(forward, backward) == {(0, 0), (1, 1)}
    assert union(forward, backward) == forward | backward
    assert grow_diag(forward, backward) == {(0, 0), (1, 1), (1, 2), (2, 2)}  # (4, 4) and (3, 0) touch nothing
    assert grow_diag_final(forward, backward) == {(0, 0), (1, 1), (1, 2), (2, 2), (4, 4), (3, 0)}


@pytest.mark.parametrize("method", METHODS)
def test_two_equal_directions_stay_as_they_are(method: str) -> None:
    links = frozenset({(0, 1), (1, 0), (3, 3)})
    assert METHODS[method](links, links) == links
