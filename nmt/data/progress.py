"""What a preparation shows while it works: a bar on a terminal, lines with seconds for every log."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Log = Callable[[str], None]
Advance = Callable[[int], object]


class Clock:
    """Logs a message with the seconds since the one before."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._last = time.monotonic()

    def __call__(self, message: str) -> None:
        now = time.monotonic()
        self._log(f"{message} ({now - self._last:.1f} s)")
        self._last = now


@contextmanager
def progress(what: str, total: int | None = None) -> Iterator[Advance]:
    """A bar on stderr for as long as the context lasts, where stderr is a terminal; takes the pairs done since."""
    if not sys.stderr.isatty():
        yield lambda pairs: None
        return
    from tqdm import tqdm

    with tqdm(desc=what, total=total, unit="pair", unit_scale=True, leave=False, file=sys.stderr) as bar:
        yield bar.update
