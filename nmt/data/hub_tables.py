"""Rows of a data set by number: Parquet files here or on the Hub, or what ``datasets`` keeps; cuts and samples of them.

A table is a list of files, each of row groups, each of neighbouring rows. A row group is the least that can be fetched
of a Parquet file, so a **sample** that downloads little more than itself is one of row groups: :func:`in_sampled_order`
visits them in an order of which every beginning takes from every file in proportion to its row groups, and within a
file each is as likely as any other; :func:`mixed` shuffles the rows of a few of them. What that gives is a sample of
clusters (1,000 neighbouring pairs in files as ``datasets`` wrote them until 2024): its mixture of sources is that of
the corpus, but two of its pairs stand closer together in it than two drawn alone would.

A **held-out cut** for data sets without validation or test is made of blocks of :data:`BLOCK` neighbouring rows, drawn
with a fixed seed by their number in the whole split: exact in size, disjoint, the same from files and from a cache.
"""

import io
import os
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from nmt.data.corpus import DataError

BLOCK = 100  # rows
HELD_OUT_SEED = 1
"""Of the held-out cut: part of the data set, so that another sample or another run has the same test set."""

_MIX_GROUPS = 16  # row groups of which the rows are shuffled together,
_MIX_ROWS = 20_000  # or fewer, once they have so many rows
_AHEAD = 4 << 20  # bytes fetched at a time where all is read in order

Record = dict[str, Any]


class Group(NamedTuple):
    """Neighbouring rows of a file that are fetched together."""

    file: int
    number: int  # in its file
    first: int  # row of the split at which it begins
    rows: int


class Segment(NamedTuple):
    """Some rows of a group."""

    group: Group
    rows: range  # counted from the group's first


class Table(Protocol):
    """Rows by groups."""

    files: list[str]

    def groups(self) -> Iterator[Group]:
        """All groups in order, found as they are asked for."""
        ...

    def read(self, group: Group, ahead: bool) -> list[Record]:
        """Rows of a group; ``ahead``: the next one will follow."""
        ...


# --- tables -----------------------------------------------------------------------------------------------------------


class Bytes(Protocol):
    """A file of which any stretch can be read."""

    size: int

    def fetch(self, start: int, end: int) -> bytes: ...


class LocalBytes:
    """A file on this machine."""

    def __init__(self, path: str) -> None:
        self._file = Path(path).open("rb")  # noqa: SIM115 (open as long as the table is)
        self.size = os.fstat(self._file.fileno()).st_size

    def fetch(self, start: int, end: int) -> bytes:
        self._file.seek(start)
        return self._file.read(end - start)


class RemoteBytes:
    """A file of an ``fsspec`` file system, every stretch in one request."""

    def __init__(self, file_system: Any, path: str) -> None:
        self._file = file_system.open(path, "rb", cache_type="none")
        self.size = int(self._file.size)

    def fetch(self, start: int, end: int) -> bytes:
        self._file.seek(start)
        return bytes(self._file.read(end - start))


class _Window(io.RawIOBase):
    """What pyarrow reads: a file of which one stretch is here already."""

    def __init__(self, source: Bytes) -> None:
        self._source = source
        self._start, self._data = 0, b""
        self._position = 0

    def hold(self, start: int, end: int, ahead: int) -> None:
        """Fetch a stretch, unless it is here, and with it so many bytes from its start on as there are, if more."""
        if not (self._start <= start and end <= self._start + len(self._data)):
            stop = max(end, min(start + ahead, self._source.size))
            self._start, self._data = start, self._source.fetch(start, stop)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._position = offset + {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._source.size}[whence]
        return self._position

    def readinto(self, buffer: Any) -> int:
        start = self._position
        end = min(start + len(buffer), self._source.size)
        if end <= start:
            return 0
        here = self._start <= start and end <= self._start + len(self._data)
        data = self._data[start - self._start : end - self._start] if here else self._source.fetch(start, end)
        buffer[: len(data)] = data
        self._position += len(data)
        return len(data)


class ParquetTable:
    """Parquet files, of which only some columns are read."""

    def __init__(self, files: list[str], open_bytes: Callable[[str], Bytes], columns: Sequence[str]) -> None:
        self.files = files
        self._open_bytes = open_bytes
        self._columns = list(columns)
        self._opened: dict[int, tuple[Any, _Window]] = {}

    def groups(self) -> Iterator[Group]:
        first = 0
        for file in range(len(self.files)):
            metadata = self._open(file)[0].metadata
            for number in range(metadata.num_row_groups):
                rows = metadata.row_group(number).num_rows
                yield Group(file, number, first, rows)
                first += rows

    def read(self, group: Group, ahead: bool) -> list[Record]:
        parquet, window = self._open(group.file)
        start, end, wanted = self._stretch(parquet.metadata.row_group(group.number))
        if end - start <= 2 * wanted:  # else other columns lie between: pyarrow asks for each of ours
            dense = wanted >= parquet.metadata.row_group(group.number).total_byte_size // 8
            window.hold(start, end, _AHEAD if ahead and dense else 0)
        records: list[Record] = parquet.read_row_group(
            group.number, columns=self._columns, use_threads=False
        ).to_pylist()
        return records

    def _stretch(self, metadata: Any) -> tuple[int, int, int]:
        """Where our columns of a row group begin and end in the file, and how many bytes they are."""
        starts, ends, size = [], [], 0
        for number in range(metadata.num_columns):
            column = metadata.column(number)
            if column.path_in_schema.split(".")[0] in self._columns:
                start = column.dictionary_page_offset or column.data_page_offset
                starts.append(min(start, column.data_page_offset))
                ends.append(starts[-1] + column.total_compressed_size)
                size += column.total_compressed_size
        return min(starts), max(ends), size

    def _open(self, file: int) -> tuple[Any, _Window]:
        if file not in self._opened:
            import pyarrow.parquet  # type: ignore[import-untyped]

            window = _Window(self._open_bytes(self.files[file]))
            parquet = pyarrow.parquet.ParquetFile(window, pre_buffer=False)
            names = parquet.schema_arrow.names
            for column in self._columns:
                if column not in names:
                    raise MissingColumnError(column, names)
            self._opened[file] = parquet, window
        return self._opened[file]


class MissingColumnError(Exception):
    """A file lacks a column that is wanted."""

    def __init__(self, column: str, found: Sequence[str]) -> None:
        super().__init__(f"no column {column!r}; found {', '.join(found) or 'none'}")
        self.column = column
        self.found = list(found)


class CachedTable:
    """A split that ``datasets`` keeps on disk, memory-mapped."""

    _ROWS = 1000

    def __init__(self, dataset: Any, name: str) -> None:
        self.files = [name]
        self._dataset = dataset

    def groups(self) -> Iterator[Group]:
        total = len(self._dataset)
        for number, first in enumerate(range(0, total, self._ROWS)):
            yield Group(0, number, first, min(self._ROWS, total - first))

    def read(self, group: Group, ahead: bool) -> list[Record]:
        columns = self._dataset[group.first : group.first + group.rows]
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


# --- cuts and samples -------------------------------------------------------------------------------------------------


def held_out_rows(total: int, pairs: int, parts: int) -> list[list[range]]:
    """Rows of a split to hold out: ``parts`` sets of ``pairs`` rows each, in order.

    Raises:
        DataError: that would be more than half of the split.
    """
    needed = -(-pairs // BLOCK)
    blocks = total // BLOCK
    if 2 * needed * parts > blocks:
        raise DataError(
            f"data.held_out_pairs: {parts} x {pairs:,} pairs are more than half of the {total:,} of the training "
            f"split (in blocks of {BLOCK}): at most {blocks // (2 * parts) * BLOCK:,} can be held out"
        )
    drawn = _shuffled(range(blocks), random.Random(HELD_OUT_SEED))
    cut = []
    for part in range(parts):
        starts = [block * BLOCK for block in sorted(drawn[part * needed : (part + 1) * needed])]
        ranges = [range(start, start + BLOCK) for start in starts]
        ranges[-1] = range(starts[-1], starts[-1] + pairs - BLOCK * (needed - 1))
        cut.append(ranges)
    return cut


def rows_between(ranges: Iterable[range], total: int) -> list[range]:
    """All rows below ``total`` that are in none of the ranges."""
    left, first = [], 0
    for taken in sorted(ranges, key=lambda rows: rows.start):
        left.append(range(first, taken.start))
        first = taken.stop
    left.append(range(first, total))
    return [rows for rows in left if rows]


def segments(groups: Iterable[Group], wanted: Sequence[range]) -> Iterator[Segment]:
    """Those parts of the groups, which are in order, that hold wanted rows, which are in order too."""
    left = iter(wanted)
    rows = next(left, None)
    for group in groups:
        while rows is not None and rows.start < group.first + group.rows:
            start, stop = max(rows.start, group.first), min(rows.stop, group.first + group.rows)
            if start < stop:
                yield Segment(group, range(start - group.first, stop - group.first))
            if rows.stop > group.first + group.rows:
                break
            rows = next(left, None)


def in_sampled_order(pieces: Sequence[Segment], seed: int) -> list[Segment]:
    """The pieces in an order drawn with ``seed``, every beginning of which takes from each file in proportion.

    Those of a file are shuffled and spread evenly over the whole, from a starting point drawn for the file.
    """
    draw = random.Random(seed)
    by_file: dict[int, list[Segment]] = {}
    for piece in pieces:
        by_file.setdefault(piece.group.file, []).append(piece)
    placed = []
    for file, of_file in sorted(by_file.items()):
        start = draw.random()
        for rank, piece in enumerate(_shuffled(of_file, draw)):
            placed.append(((rank + start) / len(of_file), file, piece))
    return [piece for _, _, piece in sorted(placed)]


def mixed(table: Table, pieces: Iterable[Segment], seed: int) -> Iterator[tuple[Record, int]]:
    """Records of the pieces and the files they are from; the rows of a few pieces at a time are shuffled."""
    draw = random.Random(seed)
    rows: list[tuple[Record, int]] = []
    count = 0
    for piece in pieces:
        records = table.read(piece.group, ahead=False)
        rows += [(records[row], piece.group.file) for row in piece.rows]
        count += 1
        if count == _MIX_GROUPS or len(rows) >= _MIX_ROWS:
            yield from _shuffled(rows, draw)
            rows, count = [], 0
    yield from _shuffled(rows, draw)


def in_order(table: Table, pieces: Iterable[Segment]) -> Iterator[tuple[Record, int]]:
    """Records of the pieces and the files they are from."""
    for piece in pieces:
        records = table.read(piece.group, ahead=True)
        for row in piece.rows:
            yield records[row], piece.group.file


def _shuffled(items: Sequence[Any], draw: random.Random) -> list[Any]:
    """A shuffled copy, by ``random()`` alone: Python promises that its numbers stay the same."""
    keys = [draw.random() for _ in items]
    return [items[i] for i in sorted(range(len(items)), key=keys.__getitem__)]
