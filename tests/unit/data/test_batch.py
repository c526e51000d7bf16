"""Padding and shifting."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.data.batch import collate, encode_source, pad_rows, shift_right
from nmt.tokens import BOS, EOS, PAD

rows = st.lists(st.lists(st.integers(4, 50), max_size=6), min_size=1, max_size=6)


@settings(deadline=None)
@given(rows)
def test_rows_are_padded_on_the_right(ids: list[list[int]]) -> None:
    padded, lengths = pad_rows(ids)
    assert lengths.tolist() == [len(row) for row in ids]
    assert padded.shape == (len(ids), max(map(len, ids)))
    for row, length, expected in zip(padded, lengths, ids, strict=True):
        assert row[:length].tolist() == expected
        assert row[length:].eq(PAD).all()


@settings(deadline=None)
@given(rows)
def test_the_target_goes_in_behind_bos_without_its_end(ids: list[list[int]]) -> None:
    target_out, lengths = pad_rows([[*row, EOS] for row in ids])
    before = target_out.clone()
    shifted = shift_right(target_out, lengths)
    assert torch.equal(shifted, pad_rows([[BOS, *row] for row in ids])[0])
    assert torch.equal(target_out, before)


def test_a_source_ends_in_exactly_one_eos() -> None:
    source, lengths = encode_source([[5, 6], []])
    assert source.tolist() == [[5, 6, EOS], [EOS, PAD, PAD]]
    assert lengths.tolist() == [3, 1]


def test_an_empty_batch() -> None:
    batch = collate([], [], [])
    assert batch.source.shape == (0, 0)
    assert batch.target_in.shape == (0, 0)
    assert batch.indices.tolist() == []
