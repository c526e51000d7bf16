"""What training was not given, with the reason: ``preparation/dropped.tsv.gz`` in the prepared folder.

A header, then a line a dropped pair in the order of the corpus: reason, part, line, source, target, between tabs. The
line is counted from 1 in the part (blank lines of JSON Lines are not counted). The text is the cleaned one that the
filters saw; in all fields a tab is written ``\\t``, line breaks ``\\n`` and ``\\r``, a backslash ``\\\\``. The bytes
follow from the pairs alone: no time stamp.
"""

import gzip
import re
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

FOLDER = "preparation"
"""Folder in the prepared one for what explains it and is not needed to train."""

FILE = "dropped.tsv.gz"

COLUMNS = ("reason", "part", "line", "source", "target")

_ESCAPES = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"}
_TO_ESCAPE = re.compile(r"[\\\t\n\r]")


class Record(NamedTuple):
    """A pair that training was not given."""

    number: int  # of the pair in the corpus, from 0
    reason: str
    text: bytes  # :func:`sides`


def escape(text: str) -> str:
    """A field that holds no tab and no line break."""
    return _TO_ESCAPE.sub(lambda match: _ESCAPES[match[0]], text)


def sides(source: str, target: str) -> bytes:
    """The last two fields of a line."""
    return f"{escape(source)}\t{escape(target)}".encode()


def pack(record: Record) -> bytes:
    """A line of a scratch file; :func:`unpack` reads them."""
    return f"{record.number}\t{escape(record.reason)}\t".encode() + record.text + b"\n"


def unpack(path: Path) -> Iterator[Record]:
    """What :func:`pack` has made."""
    with path.open("rb") as stream:
        for line in stream:
            number, reason, text = line[:-1].split(b"\t", 2)
            yield Record(int(number), reason.decode("utf-8"), text)


class Quarantine:
    """Writes the file, as a stream.

    Args:
        folder: the prepared folder that is being built.
        parts: names of the corpus' parts.
        ends: numbers of the pairs behind the last one of each part.
        earlier: records in order, among which those that are written take their places.
    """

    def __init__(self, folder: Path, parts: list[str], ends: list[int], earlier: Iterator[Record]) -> None:
        (folder / FOLDER).mkdir()
        self._file: BinaryIO = (folder / FOLDER / FILE).open("wb")
        self._stream = gzip.GzipFile(filename="", mode="wb", fileobj=self._file, compresslevel=6, mtime=0)
        self._stream.write("\t".join(COLUMNS).encode() + b"\n")
        self._parts, self._ends = [escape(name) for name in parts], ends
        self._part = 0
        self._earlier = earlier
        self._next = next(earlier, None)

    def write(self, record: Record) -> None:
        """Append a record, behind the earlier ones with smaller numbers."""
        while self._next is not None and self._next.number < record.number:
            self._append(self._next)
            self._next = next(self._earlier, None)
        self._append(record)

    def close(self) -> None:
        """Append the earlier records that are left, and finish the file."""
        while self._next is not None:
            self._append(self._next)
            self._next = next(self._earlier, None)
        self._stream.close()
        self._file.close()

    def _append(self, record: Record) -> None:
        while record.number >= self._ends[self._part]:
            self._part += 1
        line = record.number + 1 - (self._ends[self._part - 1] if self._part else 0)
        place = f"{record.reason}\t{self._parts[self._part]}\t{line}\t"
        self._stream.write(place.encode("utf-8", "backslashreplace") + record.text + b"\n")  # a name may be any bytes
