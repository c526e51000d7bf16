"""What fails in passing is asked for again: a bounded number of times, with growing pauses and a log line each.

Passing are the answers 408, 425, 429, 500, 502, 503 and 504, a connection that is reset or goes silent, and a body that
is shorter or longer than what was asked for. Everything else (no such file, no access) is final at once.
"""

import time
from collections.abc import Callable
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar

from nmt.data.corpus import DataError

Result = TypeVar("Result")
Tell = Callable[[str, float], None]
"""Takes a log line and the seconds that nothing else will be heard for."""

ATTEMPTS = 6
"""How often a request is made before it is given up."""

FIRST_PAUSE = 1.0  # seconds before the second attempt; doubled before each further one
LONGEST_PAUSE = 300.0  # seconds: the Hub counts its rate limits in windows of five minutes

PASSING = {408, 425, 429, 500, 502, 503, 504}
"""Answers (HTTP status codes) that may be others the next time."""

_TRANSPORT = {"TransportError", "RequestException"}  # what httpx and requests call a failed connection


class ShortAnswerError(Exception):
    """Another number of bytes than was asked for."""


class GaveUpError(Exception):
    """A request failed on every attempt."""


def patiently(what: str, attempt: Callable[[], Result], tell: Tell) -> Result:
    """Result of ``attempt``, which is called again while it fails in passing; ``what`` begins the log lines.

    Raises:
        GaveUpError: the last of :data:`ATTEMPTS` attempts failed too, or the Hub wants us to stay away for too long.
        Exception: anything that does not pass, as it is.
    """
    pause = FIRST_PAUSE
    for number in range(1, ATTEMPTS + 1):
        try:
            return attempt()
        except Exception as error:
            if not _is_passing(error):
                raise
            found = _in_words(error)
            wait = max(_retry_after(error), pause)
        if number == ATTEMPTS:
            raise GaveUpError(f"{what}: {found}, at the last of {ATTEMPTS} attempts")
        if wait > LONGEST_PAUSE:
            raise GaveUpError(f"{what}: {found}, to be tried again in {wait:.0f} s")
        tell(f"{what}: {found}: attempt {number} of {ATTEMPTS}, the next in {wait:g} s", wait)
        time.sleep(wait)
        pause *= 2
    raise AssertionError("the last attempt returns or raises")


def file_system(timeout: float, tell: Tell) -> Any:
    """A file system for ``hf://`` paths (a class for ``fsspec``) whose files are read patiently.

    Args:
        timeout: seconds of silence after which a connection is given up.
        tell: hears of every failed attempt.
    """
    import huggingface_hub.utils
    from huggingface_hub import HfFileSystem
    from huggingface_hub.hf_file_system import HfFileSystemFile

    utils: Any = huggingface_hub.utils

    class PatientFile(HfFileSystemFile):
        def _fetch_range(self, start: int, end: int) -> bytes:
            def attempt() -> bytes:
                headers = utils.build_hf_headers(token=self.fs.token) | {"range": f"bytes={start}-{end - 1}"}
                response = utils.http_backoff("GET", self.url(), headers=headers, timeout=timeout, max_retries=0)
                utils.hf_raise_for_status(response)
                data: bytes = response.content
                if response.status_code == 200:  # a server that knows no ranges sends the whole file
                    data = data[start:end]
                if len(data) != end - start:
                    raise ShortAnswerError(f"{len(data):,} bytes came where {end - start:,} were asked for")
                return data

            return patiently(self.path.partition("@")[2].partition("/")[2] or self.path, attempt, tell)

        def read(self, length: int = -1) -> bytes:
            if length < 0:  # the parent class opens another connection for that, which is not patient
                length = self.size - self.loc
            data: bytes = super().read(length)  # type: ignore[no-untyped-call]
            return data

    class PatientFileSystem(HfFileSystem):
        def _open(
            self,
            path: str,
            mode: str = "rb",
            block_size: int | None = None,
            revision: str | None = None,
            **options: Any,  # of fsspec: cache_type and the like
        ) -> PatientFile:
            return PatientFile(self, path, mode=mode, revision=revision, block_size=block_size or 1 << 20, **options)

    return PatientFileSystem


def _is_passing(error: Exception) -> bool:
    status = _status(error)
    if status is not None:
        return status in PASSING
    if isinstance(error, DataError):
        return False
    names = {base.__name__ for base in type(error).__mro__}
    return isinstance(error, (ShortAnswerError, ConnectionError, TimeoutError)) or not names.isdisjoint(_TRANSPORT)


def _status(error: Exception) -> int | None:
    return getattr(getattr(error, "response", None), "status_code", None)


def _in_words(error: Exception) -> str:
    status = _status(error)
    return f"HTTP {status}" if status is not None else f"{type(error).__name__}: {one_line(error)}"


def _retry_after(error: Exception) -> float:
    """Seconds that the server asks us to wait, 0 where it does not: a number, or a date (RFC 9110, section 10.2.3)."""
    headers = getattr(getattr(error, "response", None), "headers", None) or {}
    value = str(headers.get("Retry-After", "")).strip()
    if value.isdigit():
        return float(value)
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except ValueError:
        return 0.0


def one_line(error: BaseException) -> str:
    """What an exception says, on one line of bearable length."""
    return " ".join(str(error).split())[:400] or type(error).__name__
