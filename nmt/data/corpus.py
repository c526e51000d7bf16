"""Parallel text as every reader delivers it: pairs of strings, with one rule for lines, bytes and control characters.

The rules, for files of every kind:

- Only ``\\n`` ends a line. U+2028, U+0085, form feeds and their like stay inside it (``str.splitlines`` cuts there).
- One ``\\r`` before the ``\\n`` goes, and a byte order mark at the start of a file.
- UTF-8, strictly: a bad byte is an error with file, line and offset.

What a reader yields is the text *as read*: references are scored against it. :func:`clean_line` is what stands between
it and a model.
"""

import gzip
import io
import lzma
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TypeVar, cast

Item = TypeVar("Item")

_BOM = b"\xef\xbb\xbf"
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_LINE_BREAK = re.compile("[\r\n]")
_LINE_BREAKS = re.compile("[\r\n]+")
_SURROGATE = re.compile("[\ud800-\udfff]")

COMPRESSIONS = (".gz", ".xz", ".zst")
"""Endings of compressed files this project reads."""


class DataError(ValueError):
    """Data that cannot be used as it is; the message names the file or key, what was found and what to do."""


class TextPair(NamedTuple):
    """A sentence and its translation as read, and the gold word alignment (Pharaoh ``i-j``) where there is one."""

    source: str
    target: str
    alignment: str | None = None


Reader = Callable[[], Iterator[TextPair]]
"""Opens a part of a split and yields its pairs in order."""


@dataclass(frozen=True)
class Part:
    """A piece of a split that is read as one: a pair of files, a file, a split of the Hub."""

    name: str  # for logs and reports: a path, a split
    read: Reader
    weight: float = 1.0  # training: how often a pair of it occurs in an epoch
    to_the_end: bool = False  # read on behind the last pair that is wanted: only the end shows that all lines match
    shuffled: bool = False  # its pairs come in a seeded order from all over the text: the first ones are a sample


@dataclass(frozen=True)
class Corpus:
    """The splits of a data set, each as the parts that it is read from one after the other."""

    splits: Mapping[str, tuple[Part, ...]]  # train, validation and, where there is one, test
    origin: dict[str, Any] = field(default_factory=dict)  # where the text comes from, for the report
    close: Callable[[], None] = lambda: None  # ends whatever the readers hold on to


# --- lines ------------------------------------------------------------------------------------------------------------


def read_lines(path: str | Path) -> Iterator[str]:
    """Lines of a UTF-8 file (plain, .gz, .xz or .zst) without their ends; a last line without ``\\n`` counts.

    Raises:
        DataError: the file is missing, no UTF-8 (with file, line and byte), or its compressed form is damaged.
    """
    path = Path(path)
    number = 0
    try:
        with open_bytes(path) as stream:
            for line in decode_lines(stream, str(path)):
                number += 1
                yield line
    except (EOFError, gzip.BadGzipFile, zlib.error, lzma.LZMAError) as error:
        raise DataError(f"{path}: damaged or cut short after line {number} ({error}); fetch the file again") from None
    except (FileNotFoundError, NotADirectoryError):
        raise DataError(f"{path}: no such file") from None
    except IsADirectoryError:
        raise DataError(f"{path}: is a folder, expected a text file") from None


def decode_lines(stream: Iterable[bytes], name: str) -> Iterator[str]:
    """Lines of a byte stream, each as soon as it is there; ``name`` stands for it in messages.

    Raises:
        DataError: a byte that is no UTF-8, with line and offset.
    """
    start = 0  # byte of the stream at which the line starts
    for number, raw in enumerate(stream, 1):
        if number == 1 and raw == _BOM:  # a byte order mark alone is an empty file
            return
        try:
            text = raw.decode("utf-8")
        except UnicodeDecodeError as error:
            raise _bad_byte(name, number, start, error) from None
        start += len(raw)
        text = text.removesuffix("\n").removesuffix("\r")
        yield text.removeprefix("\ufeff") if number == 1 else text


def _bad_byte(name: str, number: int, start: int, error: UnicodeDecodeError) -> DataError:
    byte = error.object[error.start]
    utf16 = number == 1 and error.start == 0 and byte in (0xFE, 0xFF)
    found = "looks like UTF-16" if utf16 else f"byte {error.start + 1} of the line (0x{byte:02x})"
    return DataError(
        f"{name}: line {number}: not UTF-8: {found}, offset {start + error.start} in the file; "
        f"convert it, for example: iconv -f {'UTF-16' if utf16 else 'LATIN1'} -t UTF-8"
    )


def in_step(left: Iterable[str], right: Iterable[str], left_name: str, right_name: str) -> Iterator[tuple[str, str]]:
    """Line n of one with line n of the other, read side by side.

    Raises:
        DataError: one has more lines; names both counts. The lines before have been given out by then.
    """
    left, right = iter(left), iter(right)
    for number, (one, other) in enumerate(zip_longest(left, right)):
        if one is None or other is None:
            longer = number + 1 + sum(1 for _ in (right if one is None else left))
            counts = (number, longer) if one is None else (longer, number)
            raise DataError(
                f"{left_name} has {counts[0]} lines but {right_name} has {counts[1]}: line n of one must go with line "
                "n of the other"
            )
        yield one, other


def buffered(items: Iterable[Item], size: int | None) -> Iterator[list[Item]]:
    """Lists of ``size`` items, the last one shorter; None: one of all. An error comes after what was read before it."""
    left = iter(items)
    while True:
        read: list[Item] = []
        try:
            for item in islice(left, size):
                read.append(item)
        except Exception:
            if read:
                yield read
            raise
        if not read:
            return
        yield read


def open_bytes(path: Path) -> BinaryIO:
    """Open a file for reading bytes, uncompressing by its ending."""
    if path.suffix == ".gz":
        return cast(BinaryIO, gzip.open(path, "rb"))
    if path.suffix == ".xz":
        return cast(BinaryIO, lzma.open(path, "rb"))
    if path.suffix == ".zst":
        return cast(BinaryIO, io.BufferedReader(_ZstdStream(path), 1 << 17))
    return path.open("rb")


class _ZstdStream(io.RawIOBase):
    """A .zst file of one or more frames. zstandard's own reader takes a truncated frame for a whole one."""

    def __init__(self, path: Path) -> None:
        import zstandard

        self._file = path.open("rb")
        self._decompressor = zstandard.ZstdDecompressor()
        self._error = zstandard.ZstdError
        self._frame: Any = None
        self._compressed = self._output = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._output:
            self._compressed = self._compressed or self._file.read(1 << 16)
            if not self._compressed:
                if self._frame is not None:
                    raise EOFError("compressed file ended before the end-of-stream marker was reached")
                return 0
            self._frame = self._frame or self._decompressor.decompressobj()
            try:
                self._output = self._frame.decompress(self._compressed)
            except self._error as error:
                raise EOFError(str(error)) from None
            self._compressed = b""
            if self._frame.eof:
                self._compressed, self._frame = self._frame.unused_data, None
        size = min(len(buffer), len(self._output))
        buffer[:size], self._output = self._output[:size], self._output[size:]
        return size

    def close(self) -> None:
        self._file.close()
        super().close()


# --- text -------------------------------------------------------------------------------------------------------------


def clean_line(text: str) -> tuple[str, int]:
    """A line as a model may read it, and how many control characters that cost.

    ``\\r`` and ``\\n`` are white space; the other control characters (NUL, C0, C1; the tab is none of them) go: those
    that separate (vertical tab, form feed, U+001C to U+001F, U+0085) leave a space. The normaliser does the rest.
    """
    if text.isprintable():  # most lines: no control character of any kind
        return text, 0
    text = _LINE_BREAK.sub(" ", text)
    return _CONTROL.subn(lambda match: " " if match[0].isspace() else "", text)


def record_text(value: Any, where: str) -> str:
    """The text of one side of a structured record: line breaks are white space, null is an empty side.

    Raises:
        DataError: it is no text, or holds half a character (a lone surrogate); ``where`` begins the message.
    """
    if value is None:
        return ""
    if not isinstance(value, str):
        raise DataError(f"{where}: expected text, found {value!r}")
    if _SURROGATE.search(value):
        raise DataError(f"{where}: holds half a character (a lone surrogate), which no UTF-8 text can: {value!r}")
    return _LINE_BREAKS.sub(" ", value.strip("\r\n")) if _LINE_BREAK.search(value) else value


def is_blank(text: str) -> bool:
    """Whether there is nothing in a line but white space."""
    return not text or text.isspace()


def pharaoh(links: Iterable[tuple[int, int]]) -> str:
    """Word alignment in Pharaoh format, ``source-target`` with words counted from 0: ``0-0 1-2``."""
    return " ".join(f"{source}-{target}" for source, target in links)
