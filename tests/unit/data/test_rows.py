"""Rows and lines on disk: what was written is what is read, at any place, and a file that has shrunk is said so."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.data.corpus import DataError
from nmt.data.rows import Rows, TextRows
from nmt.data.store import LineWriter, RowWriter, id_type
from nmt.tokens import EOS, PAD


def written(folder: Path, rows: list[list[int]], vocabulary: int = 300) -> Rows:
    writer = RowWriter(folder, "train", "source", vocabulary)
    writer.write(rows)
    writer.close()
    return Rows(folder, "train.source", id_type(vocabulary))


@settings(deadline=None, max_examples=60)
@given(st.lists(st.lists(st.integers(4, 299), max_size=9), max_size=150), st.data())
def test_rows_are_read_as_they_were_written(
    tmp_path_factory: pytest.TempPathFactory, rows: list[list[int]], data: st.DataObject
) -> None:
    """More of them than share a kept place, and files without a row."""
    found = written(tmp_path_factory.mktemp("rows"), rows)
    assert len(found) == len(rows)
    assert found.lengths.tolist() == [len(row) + 1 for row in rows]
    assert [found[i].tolist() for i in range(len(rows))] == [[*row, EOS] for row in rows]
    asked = data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=40)) if rows else []
    table = found.padded(np.array(asked, np.int32))
    longest = max((len(rows[i]) + 1 for i in asked), default=0)
    assert table.dtype == np.int64
    assert table.tolist() == [[*rows[i], EOS, *[PAD] * (longest - len(rows[i]) - 1)] for i in asked]


@pytest.mark.parametrize("vocabulary", [300, 1 << 17])
def test_a_row_longer_than_two_bytes_count(tmp_path: Path, vocabulary: int) -> None:
    long = [vocabulary - 1 - i % 200 for i in range(70_000)]
    found = written(tmp_path, [[5] * 3, long, [6]], vocabulary)
    assert found.lengths.tolist() == [4, 70_001, 2]
    assert found[1].tolist() == [*long, EOS]
    assert found.padded(np.array([2, 0])).tolist() == [[6, EOS, PAD, PAD], [5, 5, 5, EOS]]
    assert found.padded(np.array([1])).tolist() == [[*long, EOS]]


def test_rows_outlive_their_folder_and_a_file_that_shrank_is_named(tmp_path: Path) -> None:
    found = written(tmp_path, [[5, 6], [7]])
    (tmp_path / "train.source.ids").write_bytes(b"\0\0")
    with pytest.raises(DataError, match=r"train\.source\.ids: has become shorter"):
        found.padded(np.array([0]))
    found = written(tmp_path, [[5, 6], [7]])
    for path in tmp_path.iterdir():
        path.unlink()
    assert found[1].tolist() == [7, EOS]


def test_lines_are_read_as_they_were_written(tmp_path: Path) -> None:
    lines = ["eins", "", "zwei drei", "für \u2028 alle \U0001f600", "\t"]
    writer = LineWriter(tmp_path, "train", "target")
    writer.write([f"{line}\n".encode() for line in lines])
    writer.close()
    found = TextRows(tmp_path, "train.target")
    assert [found[i] for i in range(len(found))] == lines
    for row in (-1, len(lines)):
        with pytest.raises(IndexError):
            found[row]
    with pytest.raises(DataError, match="no text is kept"):
        TextRows(tmp_path, "train.source")
