"""Where a run is written down: lines on stderr and in ``train.log``, ``metrics.jsonl``, TensorBoard, a progress bar."""

import json
import math
import os
import sys
import threading
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from torch.utils.tensorboard import SummaryWriter
    from tqdm import tqdm

METRICS_FILE = "metrics.jsonl"


class RunLog:
    """The log of one run folder. Everything is appended to; :meth:`rewind` drops what a resume will do again."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self._text = open(  # noqa: SIM115 (closed in close())
            folder / "train.log",
            "a",
            encoding="utf-8",
            errors="backslashreplace",  # a file's name may be any bytes
        )
        self._board: SummaryWriter | None = None
        self._events = str(folder / "events.out.tfevents")  # as TensorBoard's files begin
        self._bar: tqdm[Any] | None = None

    def __enter__(self) -> "RunLog":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is None:
            self.close()
            return
        with suppress(OSError):  # a full disk, perhaps the very error that is on its way to the user
            self._write(f"stopped: {str(error) or type(error).__name__}")
        with suppress(OSError):
            self.close()

    def close(self) -> None:
        """Flush and close every file."""
        self.stop_bar()
        with naming(self._text.name):
            self._text.close()
        if self._board is not None:
            try:
                with naming(self._events):
                    self._board.flush()  # close() alone would not tell of an error in its thread
                    self._board.close()
            finally:
                threading.excepthook = threading.__excepthook__

    def say(self, message: str) -> None:
        """A line for people: on stderr, and with the time in ``train.log``."""
        if self._bar is not None:
            self._bar.write(message, file=sys.stderr)
        else:
            print(message, file=sys.stderr, flush=True)
        self._write(message)

    def _write(self, message: str) -> None:
        with naming(self._text.name):
            self._text.write(f"{datetime.now().isoformat(sep=' ', timespec='seconds')} {message}\n")
            self._text.flush()

    def rewind(self, step: int, again: Collection[str] = ()) -> None:
        """Begin, or go on after update ``step``: entries beyond it are dropped, curves do not run backwards.

        Args:
            step: updates made.
            again: events of this very step that are about to be recorded once more, after a stop in the middle of them.
        """
        path = self.folder / METRICS_FILE
        if path.exists():
            text = path.read_text(encoding="utf-8", errors="replace")
            kept = [line for line in text.split("\n") if _is_kept(line, step, again)]
            temporary = path.with_suffix(".tmp")
            temporary.write_text("".join(f"{line}\n" for line in kept), encoding="utf-8")
            os.replace(temporary, path)
        from torch.utils.tensorboard import SummaryWriter  # slow to import

        threading.excepthook = _leave_to_the_next_write
        self._board = SummaryWriter(str(self.folder), purge_step=step + 1)

    def record(self, event: str, step: int, values: Mapping[str, Any], times: Mapping[str, float]) -> None:
        """One line of ``metrics.jsonl``, and the numbers as TensorBoard curves ``<event>/<name>``.

        Args:
            event: ``train``, ``validation`` or ``average``.
            step: updates made.
            values: what two runs with one seed have in common.
            times: what they have not: seconds and speeds, set apart under ``time``.
        """
        line = {"event": event, "step": step, **_finite(values), "time": _finite(times)}
        path = self.folder / METRICS_FILE
        with naming(str(path)), open(path, "a", encoding="utf-8") as file:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
        if self._board is not None:
            with naming(self._events):
                for name, value in (*values.items(), *times.items()):
                    if isinstance(value, (int, float)) and not isinstance(value, bool):
                        self._board.add_scalar(f"{event}/{name}", value, step)

    def text(self, name: str, markdown: str, step: int) -> None:
        """A text for TensorBoard."""
        if self._board is not None:
            with naming(self._events):
                self._board.add_text(name, markdown, step)

    def figure(self, name: str, figure: "Figure", step: int) -> None:
        """A figure for TensorBoard."""
        if self._board is not None:
            with naming(self._events):
                self._board.add_figure(name, figure, step)

    def start_bar(self, step: int, total: int | None) -> None:
        """Show a progress bar with the time left, on a terminal only."""
        if sys.stderr.isatty():
            from tqdm import tqdm

            self._bar = tqdm(initial=step, total=total, unit="update", file=sys.stderr, dynamic_ncols=True)

    def advance_bar(self, note: str) -> None:
        """One update more; ``note`` stands behind the bar."""
        if self._bar is not None:
            self._bar.set_postfix_str(note, refresh=False)
            self._bar.update()

    def stop_bar(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None


class SilentLog(RunLog):
    """The log of a process that is not the one that writes: nothing is kept, nothing is shown."""

    def __init__(self) -> None:
        self._board = None
        self._bar = None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Nothing is open."""

    def close(self) -> None:
        """Nothing is open."""

    def say(self, message: str) -> None:
        """Rank 0 says it."""

    def rewind(self, step: int, again: Collection[str] = ()) -> None:
        """There are no entries to drop."""

    def record(self, event: str, step: int, values: Mapping[str, Any], times: Mapping[str, float]) -> None:
        """Rank 0 records it."""

    def start_bar(self, step: int, total: int | None) -> None:
        """Rank 0 shows one."""


def _is_kept(line: str, step: int, again: Collection[str]) -> bool:
    try:
        entry = json.loads(line)
        return bool(entry["step"] < step or (entry["step"] == step and entry["event"] not in again))
    except (ValueError, KeyError, TypeError):  # the last line of a killed process may be cut
        return False


def _leave_to_the_next_write(arguments: threading.ExceptHookArgs) -> None:
    """TensorBoard's thread hands its error (a full disk) to the next call: no need to print a traceback as well."""
    if not issubclass(arguments.exc_type, OSError):
        threading.__excepthook__(arguments)


@contextmanager
def naming(path: str) -> Iterator[None]:
    """While entered, an OSError that names no file (as of a write to a full disk) becomes one that names ``path``."""
    try:
        yield
    except OSError as error:
        if error.filename is not None or error.errno is None:
            raise
        raise OSError(error.errno, os.strerror(error.errno), path) from error


def _finite(values: Mapping[str, Any]) -> dict[str, Any]:
    """JSON has no infinity and no NaN: null."""
    return {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in values.items()}
