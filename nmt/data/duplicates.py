"""Which pairs of a corpus repeat an earlier one, found on disk: memory does not grow with the corpus.

Text is known by a key of 128 bits (BLAKE2b): among n texts two different ones share a key with probability below
n^2 / 2^129, that is 3e-24 for 40 million. A key and the row that it belongs to are 24 bytes in one of 256 files, by the
key's first byte; each file is sorted in memory on its own (4 MB for 40 million rows). What repeats an earlier row is
written, as 16 bytes, to a file for every million rows, and read back in the order of the corpus.

On disk that is, for a corpus of n rows, 24 n bytes and 16 for every repeat (for ``either`` of two sides 48 n, 32 for
every repeat, and 2 n for marks); in memory at most 40 MB.
"""

import hashlib
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import numpy as np

Duplicates = Literal["keep", "pair", "source", "target", "either"]

BLOCK = 1 << 20
"""Rows that are looked at together."""

_BUFFERED = 1 << 17  # keys in memory before they go to their files
_FILES = 256

KEY = 16
"""Bytes of a key."""


def key(text: str) -> bytes:
    """Of a text, 128 bits."""
    return hashlib.blake2b(text.encode("utf-8"), digest_size=KEY).digest()


def pair_key(source: bytes, target: bytes) -> bytes:
    """Of a pair, from the keys of its sides."""
    return hashlib.blake2b(source + target, digest_size=KEY).digest()


def columns(kind: Duplicates) -> tuple[Literal["pair", "source", "target"], ...]:
    """The keys by which pairs are compared; for ``keep``, where repeats are only counted, by pair."""
    if kind == "keep":
        return ("pair",)
    return ("source", "target") if kind == "either" else (kind,)


class Repeats:
    """Finds the rows that repeat an earlier row which is not a repeat itself.

    With one column of keys, a row repeats an earlier one with the same key. With two, a row is a repeat when either of
    its keys is that of an earlier row that is none: so the first row with a text stays wherever it can.

    Args:
        folder: for scratch files; made here, and gone with :meth:`close`.
        width: columns of keys, 1 or 2.
    """

    def __init__(self, folder: Path, width: int) -> None:
        self._folder = folder
        self._width = width
        self._buffer: list[np.ndarray] = []
        self._buffered = 0
        self.rows = 0
        """Rows added so far."""
        folder.mkdir()

    def add(self, keys: bytes) -> None:
        """The next rows, each as its keys one after the other."""
        self._buffer.append(np.frombuffer(keys, "<u8").reshape(-1, self._width, 2))
        self._buffered += len(self._buffer[-1])
        if self._buffered >= _BUFFERED:
            self._flush()

    def blocks(self) -> Iterator[np.ndarray]:
        """For the rows added so far, in order and a block at a time: [rows of the block] whether each is a repeat.

        Rows can be added afterwards, and all be asked for again.
        """
        self._flush()
        columns = [self._firsts(column) for column in range(self._width)]
        if self._width == 1:
            for start, firsts in zip(range(0, self.rows, BLOCK), columns[0], strict=True):
                yield firsts != np.arange(start, start + len(firsts))
        else:
            yield from self._either(*columns)

    def close(self) -> None:
        """Remove the scratch files."""
        shutil.rmtree(self._folder)

    def _flush(self) -> None:
        """Deal the buffered keys to their files."""
        if not self._buffer:
            return
        keys = np.concatenate(self._buffer)
        self._buffer, self._buffered = [], 0
        rows = np.arange(self.rows, self.rows + len(keys), dtype="<u8")
        self.rows += len(keys)
        for column in range(self._width):
            records = np.column_stack([keys[:, column], rows])
            _deal(records, keys[:, column, 0] & np.uint64(_FILES - 1), self._folder, f"keys{column}")

    def _firsts(self, column: int) -> Iterator[np.ndarray]:
        """A block at a time: the first row that has the key of each row."""
        for path in self._folder.glob(f"repeats{column}.*"):
            path.unlink()
        for number in range(_FILES):
            repeats = _repeats(self._folder / f"keys{column}.{number}")
            _deal(repeats, repeats[:, 0] // np.uint64(BLOCK), self._folder, f"repeats{column}")
        for start in range(0, self.rows, BLOCK):
            firsts = np.arange(start, min(start + BLOCK, self.rows), dtype=np.int64)
            repeats = _read(self._folder / f"repeats{column}.{start // BLOCK}", 2).astype(np.int64)
            firsts[repeats[:, 0] - start] = repeats[:, 1]
            yield firsts

    def _either(self, *columns: Iterator[np.ndarray]) -> Iterator[np.ndarray]:
        """Row by row where something repeats: whether it counts depends on what became of the rows before."""
        taken = [self._marks(side) for side in range(2)]  # by the first row with a text: a row that stays has it
        for start, left, right in zip(range(0, self.rows, BLOCK), *columns, strict=True):
            rows = np.arange(start, start + len(left))
            repeated = (left != rows) | (right != rows)
            for marks in taken:  # no row before these can have their texts
                marks[start : start + len(left)] = ~repeated
            for place in np.flatnonzero(repeated):
                source, target = left[place], right[place]
                if taken[0][source] or taken[1][target]:
                    continue
                taken[0][source] = taken[1][target] = True
                repeated[place] = False
            yield repeated

    def _marks(self, side: int) -> np.ndarray:
        path = self._folder / f"marks{side}"
        return np.memmap(path, np.bool_, "w+", shape=self.rows) if self.rows else np.empty(0, np.bool_)


def _deal(records: np.ndarray, numbers: np.ndarray, folder: Path, name: str) -> None:
    """Append each record to the file of its number, ``<name>.<number>``, in the order they have."""
    if not len(records):
        return
    order = np.argsort(numbers, kind="stable")
    found, starts = np.unique(numbers[order], return_index=True)
    for number, part in zip(found.tolist(), np.split(order, starts[1:]), strict=True):
        with (folder / f"{name}.{number}").open("ab") as stream:
            stream.write(records[part].tobytes())


def _read(path: Path, width: int) -> np.ndarray:
    data = path.read_bytes() if path.exists() else b""
    return np.frombuffer(data, "<u8").reshape(-1, width)


def _repeats(path: Path) -> np.ndarray:
    """[repeats, 2]: rows of a file of keys that repeat an earlier one, and the first row with the same key."""
    records = _read(path, 3)
    order = np.lexsort((records[:, 1], records[:, 0]))  # stable: rows of one key keep their order
    keys, rows = records[order, :2], records[order, 2]
    begins = np.ones(len(keys), np.bool_)
    begins[1:] = (keys[1:] != keys[:-1]).any(axis=1)
    firsts = rows[np.maximum.accumulate(np.where(begins, np.arange(len(keys)), 0))]
    return np.column_stack([rows, firsts])[~begins]
