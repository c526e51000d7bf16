"""How a prepared split lies on disk: flat ids, read by rows, and the text beside them.

For a split S and each side X (``source``, ``target``):

    S.X.ids        all rows one after the other, uint16 or int32 by vocabulary size; every row ends in EOS
    S.X.offsets    int64, rows + 1 of them: row i is ids[offsets[i]:offsets[i + 1]]
    S.X.txt        the lines as read (validation and test); of training the cleaned text of its rows, where it is kept
    S.X.lines      int64, rows + 1 of them: line i of training's text is the bytes from lines[i] up to lines[i + 1]
    S.alignment    gold word alignments, a Pharaoh line a pair (demo)
"""

import re
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, Literal, NamedTuple

import numpy as np

from nmt.data.corpus import DataError
from nmt.data.rows import Rows, TextRows
from nmt.tokens import EOS

Side = Literal["source", "target"]
SIDES: tuple[Side, Side] = ("source", "target")

_OFFSET = np.dtype("<i8")


def id_type(vocabulary_size: int) -> np.dtype[np.unsignedinteger] | np.dtype[np.signedinteger]:
    """The narrowest type on disk that holds every id."""
    return np.dtype("<u2") if vocabulary_size <= 1 << 16 else np.dtype("<i4")


class FlatRows(NamedTuple):
    """Rows of ids one after the other, each with its EOS."""

    ids: np.ndarray  # of all rows
    lengths: np.ndarray  # [rows]


def flat_rows(rows: Sequence[Sequence[int]], dtype: np.dtype[Any]) -> FlatRows:
    """Rows without EOS as they are stored, with it."""
    lengths = np.fromiter((len(row) + 1 for row in rows), _OFFSET, len(rows))
    return FlatRows(np.fromiter(chain.from_iterable((*row, EOS) for row in rows), dtype, int(lengths.sum())), lengths)


class RowWriter:
    """Appends rows of ids to ``<folder>/<split>.<side>.ids`` and ``.offsets``; nothing is kept in memory."""

    def __init__(self, folder: Path, split: str, side: Side, vocabulary_size: int) -> None:
        self._type = id_type(vocabulary_size)
        self._ids: BinaryIO = (folder / f"{split}.{side}.ids").open("wb")
        self._offsets: BinaryIO = (folder / f"{split}.{side}.offsets").open("wb")
        self._offsets.write(np.zeros(1, _OFFSET).tobytes())
        self.tokens = 0
        """Ids written so far, EOS included."""

    def write(self, rows: Sequence[Sequence[int]]) -> None:
        """Append rows (without EOS), adding EOS to each."""
        self.append(flat_rows(rows, self._type))

    def append(self, rows: FlatRows) -> None:
        """Append rows that end in EOS."""
        # Through the file object: ndarray.tofile hides a full disk behind an error without errno.
        self._ids.write(rows.ids.astype(self._type, copy=False).tobytes())
        self._offsets.write((self.tokens + np.cumsum(rows.lengths)).astype(_OFFSET).tobytes())
        self.tokens += len(rows.ids)

    def close(self) -> None:
        """Flush and close both files."""
        self._ids.close()
        self._offsets.close()


class LineWriter:
    """Appends lines of text to ``<folder>/<split>.<side>.txt`` and where they begin to ``.lines``."""

    def __init__(self, folder: Path, split: str, side: Side) -> None:
        self._text: BinaryIO = (folder / f"{split}.{side}.txt").open("wb")
        self._lines: BinaryIO = (folder / f"{split}.{side}.lines").open("wb")
        self._lines.write(np.zeros(1, _OFFSET).tobytes())
        self._size = 0

    def write(self, lines: Sequence[bytes]) -> None:
        """Append UTF-8 lines, each with its ``\\n``."""
        self._text.write(b"".join(lines))
        lengths = np.fromiter(map(len, lines), _OFFSET, len(lines))
        self._lines.write((self._size + np.cumsum(lengths)).astype(_OFFSET).tobytes())
        self._size += int(lengths.sum())

    def close(self) -> None:
        """Flush and close both files."""
        self._text.close()
        self._lines.close()


class RowRange(NamedTuple):
    """The rows of training that come from one part of its text."""

    name: str  # of the part
    weight: float  # how often a pair of it occurs in an epoch
    first: int
    end: int  # behind the last row


class PairDataset:
    """One prepared split."""

    def __init__(self, folder: Path, name: str, vocabulary_sizes: tuple[int, int]) -> None:
        self.name = name
        """``train``, ``validation`` or ``test``."""
        self.folder = folder
        self.source = Rows(folder, f"{name}.source", id_type(vocabulary_sizes[0]))
        self.target = Rows(folder, f"{name}.target", id_type(vocabulary_sizes[1]))

    def __len__(self) -> int:
        return len(self.source)

    @property
    def source_lengths(self) -> np.ndarray:
        """[pairs] uint16 (int32 where one is longer), subwords of each source, EOS included."""
        return self.source.lengths

    @property
    def target_lengths(self) -> np.ndarray:
        """[pairs] uint16 (int32 where one is longer), subwords of each target, EOS included."""
        return self.target.lengths

    def pair(self, index: int) -> tuple[np.ndarray, np.ndarray]:
        """Ids of source and target of one pair, both ending in EOS."""
        return self.source[index], self.target[index]

    def sources(self) -> list[str]:
        """Source lines as read, in the order of the file (validation and test only)."""
        return read_text(self.folder / f"{self.name}.source.txt")

    def text(self, side: Side) -> TextRows:
        """Text of training, where it is kept (``data.tokenizer.subword_regularization``)."""
        return TextRows(self.folder, f"{self.name}.{side}")

    def references(self) -> list[str]:
        """Target lines as read, in the order of the file (validation and test only)."""
        return read_text(self.folder / f"{self.name}.target.txt")

    def alignments(self) -> list[list[tuple[int, int]]] | None:
        """Gold word alignments, pairs of 0-based (source word, target word), or None where the data has none."""
        path = self.folder / f"{self.name}.alignment"
        return [parse_pharaoh(line) for line in read_text(path)] if path.exists() else None


def read_text(path: Path) -> list[str]:
    """Lines of one of our own text files: exactly what stands between its ``\\n``."""
    if not path.exists():
        raise DataError(f"{path}: this split keeps no text")
    return path.read_bytes().decode("utf-8").split("\n")[:-1]


def parse_pharaoh(line: str) -> list[tuple[int, int]]:
    """``0-0 1-2`` as pairs of 0-based word positions (source, target)."""
    return [(int(i), int(j)) for i, j in re.findall(r"(\d+)-(\d+)", line)]


def write_lines(stream: BinaryIO, lines: Iterable[str]) -> bytes:
    """Append lines, each ended by ``\\n``; returns the bytes written, for a hash."""
    data = "".join(f"{line}\n" for line in lines).encode("utf-8")
    stream.write(data)
    return data
