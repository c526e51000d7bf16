"""Ctrl-C and SIGTERM: finish the update, save, stop."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType


class Interrupted(KeyboardInterrupt):
    """The run was asked to stop and has saved; ``status`` is what a shell expects: 130 (Ctrl-C) or 143 (SIGTERM)."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.status = 128 + number


class Signals:
    """While entered, the first SIGINT or SIGTERM is noted; a second one acts at once, as usual.

    In :meth:`breaking_off` the first one acts at once, too: right in a validation, which changes nothing and is made
    again after the resume; wrong in an update or while a checkpoint is written.
    """

    def __init__(self) -> None:
        self.at_once = False
        self._received: int | None = None
        self._handlers: dict[int, object] = {}

    def __enter__(self) -> "Signals":
        if threading.current_thread() is threading.main_thread():  # Python delivers signals there only
            for number in (signal.SIGINT, signal.SIGTERM):
                self._handlers[number] = signal.signal(number, self._note)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._restore()

    def _restore(self) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)  # type: ignore[arg-type]
        self._handlers.clear()

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._received = number
        self._restore()
        if self.at_once:
            raise Interrupted(number)

    @contextmanager
    def breaking_off(self) -> Iterator[None]:
        """While entered, a signal breaks off what is going on."""
        self.at_once = True
        try:
            yield
        finally:
            self.at_once = False

    @property
    def received(self) -> int:
        """Number of the signal that has come, 0 if none."""
        return self._received or 0
