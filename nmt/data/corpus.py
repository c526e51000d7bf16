"""Parallel text as every reader delivers it: pairs of strings, with one rule for lines, bytes and control characters.

The rules, for files of every kind:

- Only ``\\n`` ends a line. U+2028, U+0085, form feeds and their like stay inside it (``str.splitlines`` cuts there).
- One ``\\r`` before the ``\\n`` goes, and a byte order mark at the start of a file.
- UTF-8, strictly: a bad byte is an error with file, line and offset.

What a reader yields is the text *as read*: references are scored against it. :func:`clean_line` is what stands between
it and a model.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TypeVar

from nmt.data.compressed import DamagedError, open_bytes

Item = TypeVar("Item")

_BOM = b"\xef\xbb\xbf"
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_LINE_BREAK = re.compile("[\r\n]")
_LINE_BREAKS = re.compile("[\r\n]+")
_SURROGATE = re.compile("[\ud800-\udfff]")
_OTHER_FORMS = {  # first bytes of what is no plain text: what it is, what to do
    b"\xff\xfe": ("UTF-16", "convert it: iconv -f UTF-16 -t UTF-8"),
    b"\xfe\xff": ("UTF-16", "convert it: iconv -f UTF-16 -t UTF-8"),
    b"\x1f\x8b": ("gzip", "give it the ending .gz"),
    b"\xfd7zXZ": ("xz", "give it the ending .xz"),
    b"\x28\xb5\x2f\xfd": ("Zstandard", "give it the ending .zst"),
    b"BZh91AY": ("bzip2", "uncompress it first: bunzip2"),
    b"PK\x03\x04": ("a ZIP archive or an Office document", "unpack it, or save it as plain text in UTF-8"),
    b"\xd0\xcf\x11\xe0": ("an Office document", "save it as plain text in UTF-8"),
    b"%PDF": ("a PDF", "save it as plain text in UTF-8"),
    b"PAR1": ("Parquet", "read its folder with data=multi30k data.dataset=FOLDER"),
}


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
    with reading(path, lambda: number) as stream:
        for line in decode_lines(stream, str(path)):
            number += 1
            yield line


@contextmanager
def reading(path: Path, lines: Callable[[], int]) -> Iterator[BinaryIO]:
    """The bytes of a file, uncompressed; ``lines`` tells how many of its lines were read, for messages.

    Raises:
        DataError: the file is missing, a folder, or its compressed form is damaged.
    """
    try:
        with open_bytes(path) as stream:
            yield stream
    except DamagedError as error:
        raise DataError(
            f"{path}: damaged or cut short after line {lines()}: no whole {path.suffix} file ({error}); fetch it again"
        ) from None
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
    first = b""
    for number, raw in enumerate(stream, 1):
        if number == 1:
            if raw == _BOM:  # a byte order mark alone is an empty file
                return
            first = raw[:8]
        try:
            text = raw.decode("utf-8")
        except UnicodeDecodeError as error:
            raise _bad_byte(name, number, start, error, first) from None
        start += len(raw)
        text = text.removesuffix("\n").removesuffix("\r")
        yield text.removeprefix("\ufeff") if number == 1 else text


def _bad_byte(name: str, number: int, start: int, error: UnicodeDecodeError, first: bytes) -> DataError:
    where = (
        f"byte {error.start + 1} of the line (0x{error.object[error.start]:02x}), offset {start + error.start} in the "
        "file"
    )
    for magic, (form, advice) in _OTHER_FORMS.items():
        if first.startswith(magic):
            return DataError(f"{name}: line {number}: not UTF-8: {where}; it looks like {form}: {advice}")
    return DataError(f"{name}: line {number}: not UTF-8: {where}; convert it, for example: iconv -f LATIN1 -t UTF-8")


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
        raise DataError(f"{where}: expected text, found {value!r:.80}")
    if _SURROGATE.search(value):
        raise DataError(f"{where}: holds half a character (a lone surrogate), which no UTF-8 text can: {value!r:.80}")
    return _LINE_BREAKS.sub(" ", value.strip("\r\n")) if _LINE_BREAK.search(value) else value


def is_blank(text: str) -> bool:
    """Whether there is nothing in a line but white space."""
    return not text or text.isspace()


def pharaoh(links: Iterable[tuple[int, int]]) -> str:
    """Word alignment in Pharaoh format, ``source-target`` with words counted from 0: ``0-0 1-2``."""
    return " ".join(f"{source}-{target}" for source, target in links)
