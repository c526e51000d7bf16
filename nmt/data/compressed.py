"""Compressed files as one stream of bytes: .gz, .xz and .zst, of one compressed stream or of several glued together.

The readers of ``gzip``, ``lzma`` and ``zstandard`` each take something broken for whole: an empty .gz, what stands
behind the first stream of an .xz if its own head is damaged, a .zst that ends early. Here all three are held to one
rule: every stream is complete and followed by another one, by padding (zero bytes, .gz and .xz) or by the end.
"""

import io
import lzma
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

COMPRESSIONS = (".gz", ".xz", ".zst")
"""Endings of compressed files this project reads."""

_PIECE = 1 << 12  # compressed bytes taken at a time: repeated text may be thousands of times as long


class DamagedError(Exception):
    """A compressed file is cut short, garbled or none at all."""


class _Form(NamedTuple):
    magic: bytes
    decompressor: Callable[[], Any]  # for one stream, with ``decompress``, ``eof`` and ``unused_data``
    error: Callable[[], type[Exception]]
    padded: bool  # whether zero bytes may follow a stream


def _zstandard() -> Any:
    import zstandard

    return zstandard


_FORMS = {
    ".gz": _Form(b"\x1f\x8b", lambda: zlib.decompressobj(16 + zlib.MAX_WBITS), lambda: zlib.error, True),
    ".xz": _Form(b"\xfd7zXZ\0", lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ), lambda: lzma.LZMAError, True),
    ".zst": _Form(
        b"", lambda: _zstandard().ZstdDecompressor().decompressobj(), lambda: _zstandard().ZstdError, False
    ),  # no magic: a frame to be skipped may come first
}


def open_bytes(path: Path) -> BinaryIO:
    """Open a file for reading bytes, uncompressing by its ending.

    Reading raises:
        DamagedError: a compressed file is not whole.
    """
    form = _FORMS.get(path.suffix.lower())
    if form is None:
        return path.open("rb")
    return cast(BinaryIO, io.BufferedReader(_Uncompressed(path, form), 1 << 17))


class _Uncompressed(io.RawIOBase):
    """What the streams of a compressed file hold, one after the other."""

    def __init__(self, path: Path, form: _Form) -> None:
        self._file = path.open("rb")
        self._form = form
        self._error = form.error()
        self._stream: Any = None
        self._first = True
        self._compressed = b""
        self._output, self._place = b"", 0  # what is uncompressed, and how much of it was given out

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while self._place == len(self._output):
            if not self._more():
                return 0
        size = min(len(buffer), len(self._output) - self._place)
        buffer[:size] = self._output[self._place : self._place + size]
        self._place += size
        return size

    def _more(self) -> bool:
        """Uncompress another piece; False at the end of the file."""
        self._compressed = self._compressed or self._file.read(_PIECE)
        if not self._compressed:
            if self._stream is not None or self._first:
                raise DamagedError("it ends before its end mark" if self._stream else "it is empty")
            return False
        if self._stream is None and not self._begin():
            return True
        try:
            self._output, self._place = self._stream.decompress(self._compressed), 0
        except self._error as error:
            raise DamagedError(str(error)) from None
        self._compressed = b""
        if self._stream.eof:
            self._compressed, self._stream = self._stream.unused_data, None
        return True

    def _begin(self) -> bool:
        """Begin another compressed stream; False where there is only padding."""
        if self._first and not self._compressed.startswith(self._form.magic):
            raise DamagedError("it does not begin like one")
        if self._form.padded and not self._first:
            self._compressed = self._compressed.lstrip(b"\0")
        if self._compressed:
            self._stream, self._first = self._form.decompressor(), False
        return bool(self._compressed)

    def close(self) -> None:
        self._file.close()
        super().close()
