"""Repeats found on disk against repeats found by looking."""

import hashlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.data import duplicates
from nmt.data.duplicates import Repeats, columns, key, pair_key


@pytest.fixture(autouse=True)
def small_pieces() -> Iterator[None]:
    """So that a handful of rows goes through several files, blocks and flushes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(duplicates, "BLOCK", 3)
        patch.setattr(duplicates, "_BUFFERED", 4)
        yield


def by_looking(rows: list[tuple[str, ...]]) -> list[bool]:
    """A row repeats when one of its texts is, in the same column, that of an earlier row that does not."""
    taken: list[set[str]] = [set() for _ in rows[0]] if rows else []
    found = []
    for row in rows:
        found.append(any(text in seen for text, seen in zip(row, taken, strict=True)))
        if not found[-1]:
            for text, seen in zip(row, taken, strict=True):
                seen.add(text)
    return found


def on_disk(rows: list[tuple[str, ...]], width: int, pieces: list[int]) -> list[list[bool]]:
    """What is found after each piece of so many rows, and at the end."""
    answers = []
    with tempfile.TemporaryDirectory() as folder:
        repeats = Repeats(Path(folder) / "scratch", width)
        left = list(rows)
        for size in [*pieces, len(rows)]:
            repeats.add(b"".join(key(text) for row in left[:size] for text in row))
            del left[:size]
            answers.append([bool(each) for block in repeats.blocks() for each in block])
        repeats.close()
        assert list(Path(folder).iterdir()) == []
    return answers


texts = st.sampled_from(["a", "b", "c", "d", "e", "f g", ""])


@settings(max_examples=60, deadline=None)
@given(st.data(), st.integers(1, 2), st.lists(st.integers(0, 7), max_size=3))
def test_repeats_are_those_that_one_finds_by_looking(data: st.DataObject, width: int, pieces: list[int]) -> None:
    rows = data.draw(st.lists(st.tuples(*[texts] * width), max_size=25))
    answers = on_disk(rows, width, pieces)
    for count, answer in zip([*np.cumsum(pieces).tolist(), len(rows)], answers, strict=True):
        assert answer == by_looking(rows[:count])


def test_the_first_with_a_text_stays_wherever_it_can() -> None:
    """The third has the target of the second only, which goes itself."""
    rows = [("a", "x"), ("a", "y"), ("b", "y"), ("b", "z"), ("c", "z")]
    assert on_disk(rows, 2, [])[-1] == [False, True, False, True, False]


def test_keys_are_of_128_bits_and_a_pair_is_not_its_text_joined() -> None:
    assert key("häuser") == hashlib.blake2b("häuser".encode(), digest_size=16).digest()
    assert len({pair_key(key(a), key(b)) for a, b in [("ab", "c"), ("a", "bc"), ("c", "ab"), ("abc", "")]}) == 4


def test_columns() -> None:
    assert [columns(kind) for kind in ("keep", "pair", "source", "target", "either")] == [
        ("pair",),
        ("pair",),
        ("source",),
        ("target",),
        ("source", "target"),
    ]
