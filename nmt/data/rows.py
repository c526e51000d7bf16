"""A side of a split on disk, read row by row: ids, and the text they were cut from.

Rows are read with ``pread``, not through a map of the file: pages of a map count as the process's memory once they were
touched, and after an epoch that would be the whole corpus. What stays in memory of ids is the length of each row, two
bytes, and the place of every 32nd; of text nothing.
"""

import os
import weakref
from functools import cached_property
from itertools import repeat
from pathlib import Path

import numpy as np

from nmt.data.corpus import DataError
from nmt.tokens import PAD

_OFFSET = np.dtype("<i8")
_BLOCK = 32  # rows; where the first one begins is kept
_CHUNK = 1 << 18  # offsets read at once


class Rows:
    """Rows of ids: ``<folder>/<name>.ids`` one after the other, and ``.offsets``, int64, where each begins and the last
    ends.

    Args:
        folder: of the split.
        name: of the files without their endings: ``train.source``.
        dtype: of the ids on disk.
    """

    def __init__(
        self, folder: Path, name: str, dtype: np.dtype[np.unsignedinteger] | np.dtype[np.signedinteger]
    ) -> None:
        self._type = dtype
        self._ids = _File(folder / f"{name}.ids")
        self._offsets = _File(folder / f"{name}.offsets")

    def __len__(self) -> int:
        return self._offsets.size // _OFFSET.itemsize - 1

    @cached_property
    def lengths(self) -> np.ndarray:
        """[rows], EOS included: uint16, or int32 where a row is longer than that counts. Reads all offsets, once."""
        return np.asarray(self._table.reshape(-1)[: len(self)])

    @cached_property
    def _table(self) -> np.ndarray:
        """[blocks, _BLOCK], the lengths, with zeros behind the last."""
        lengths = np.zeros(-(-len(self) // _BLOCK) * _BLOCK, np.uint16)
        for start in range(0, len(self), _CHUNK):
            part = np.diff(self._offsets.numbers(start, min(_CHUNK, len(self) - start) + 1))
            if part.max() > np.iinfo(lengths.dtype).max:
                lengths = lengths.astype(np.int32)
            lengths[start : start + len(part)] = part
        return np.asarray(lengths.reshape(-1, _BLOCK))

    @cached_property
    def _blocks(self) -> np.ndarray:
        """[blocks] int64, where the first row of each begins."""
        sums = self._table.sum(axis=1, dtype=np.int64)
        return np.asarray(np.cumsum(sums) - sums)

    def _begins(self, rows: np.ndarray) -> np.ndarray:
        """[len(rows)] int64, where each begins: its block, and what is before it there."""
        block, place = np.divmod(rows, _BLOCK)
        before = self._table[block] * (np.arange(_BLOCK) < place[:, None])
        return np.asarray(self._blocks[block] + before.sum(axis=1, dtype=np.int64))

    def __getitem__(self, row: int) -> np.ndarray:
        begin, end = self._offsets.numbers(row, 2).tolist()
        size = self._type.itemsize
        return np.frombuffer(self._ids.read(begin * size, (end - begin) * size), self._type)

    def padded(self, rows: np.ndarray) -> np.ndarray:
        """Rows as one right-padded table, [len(rows), longest] int64."""
        lengths = self.lengths[rows].astype(np.int64)
        table = np.full((len(rows), lengths.max(initial=0)), PAD, np.int64)
        if len(rows):
            size = self._type.itemsize
            data = self._ids.pieces((self._begins(rows) * size).tolist(), (lengths * size).tolist())
            table[np.arange(table.shape[1]) < lengths[:, None]] = np.frombuffer(data, self._type)
        return table


class TextRows:
    """Lines of text: ``<folder>/<name>.txt``, and ``.lines``, int64, the byte at which each begins and the last ends.

    Raises:
        DataError: this split keeps no text by rows.
    """

    def __init__(self, folder: Path, name: str) -> None:
        if not (folder / f"{name}.lines").exists():
            raise DataError(f"{folder / name}.lines: no text is kept here (data.tokenizer.subword_regularization=null)")
        self._lines = _File(folder / f"{name}.lines")
        self._text = _File(folder / f"{name}.txt")

    def __len__(self) -> int:
        return self._lines.size // _OFFSET.itemsize - 1

    def __getitem__(self, row: int) -> str:
        if not 0 <= row < len(self):
            raise IndexError(row)
        begin, end = self._lines.numbers(row, 2).tolist()
        return self._text.read(begin, end - begin - 1).decode("utf-8")


class _File:
    """A file that stays open, read at any place."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor = os.open(path, os.O_RDONLY)
        weakref.finalize(self, os.close, self._descriptor)
        self.size = os.fstat(self._descriptor).st_size
        """In bytes."""

    def read(self, begin: int, count: int) -> bytes:
        """``count`` bytes from ``begin`` on."""
        return self.pieces([begin], [count])

    def pieces(self, begins: list[int], counts: list[int]) -> bytes:
        """Several, one after the other.

        Raises:
            DataError: the file is shorter than it was when it was opened.
        """
        data = b"".join(map(os.pread, repeat(self._descriptor), counts, begins))
        if len(data) != sum(counts):
            raise DataError(f"{self._path}: has become shorter; remove its folder and prepare again")
        return data

    def numbers(self, first: int, count: int) -> np.ndarray:
        """``count`` int64 from number ``first`` on."""
        return np.frombuffer(self.read(first * _OFFSET.itemsize, count * _OFFSET.itemsize), _OFFSET)
