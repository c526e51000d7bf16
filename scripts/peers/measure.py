"""Start one side, watch its log until it has trained long enough, end it, and reckon its speed."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .environments import PeerError, tail

START_SECONDS = 600  # until the first update: imports, reading the data, building the model
STALL_SECONDS = 300  # between two updates
POLL_SECONDS = 0.25
WARM_UPDATES = 3  # left out however long they take


@dataclass(frozen=True)
class Update:
    """One update of the optimizer, all processes together."""

    time: float  # seconds of a clock that all processes share, when it was made
    tokens: int  # real target tokens, EOS counted
    slots: int  # places of the padded target table
    unknown: int  # tokens that are unknown words


@dataclass(frozen=True)
class Log:
    """What ``runner.py`` wrote in one process."""

    pid: int
    threads: int
    niceness: int
    parameters: int
    updates: list[Update]


@dataclass(frozen=True)
class Speed:
    """Steady training of one side."""

    tokens_per_second: float
    updates: int
    tokens_per_update: float
    padding: float  # share of the target table
    unknown: int
    seconds: float
    parameters: int
    threads: int
    niceness: int


def parse_log(text: str) -> Log | None:
    """A log that may still be growing: its last line may be cut. None before the first line is whole."""
    head: dict[str, Any] = {"parameters": 0}
    updates: list[Update] = []
    for line in text.split("\n")[:-1]:
        fields = json.loads(line)
        if "time" in fields:
            updates.append(Update(**fields))
        else:
            head |= fields
    return Log(updates=updates, **head) if "pid" in head else None


def merge(logs: Sequence[Log]) -> list[Update]:
    """The updates that all processes have made: what they hold together, made when the last process has made it."""
    return [
        Update(
            max(part.time for part in parts),
            sum(part.tokens for part in parts),
            sum(part.slots for part in parts),
            sum(part.unknown for part in parts),
        )
        for parts in zip(*(log.updates for log in logs), strict=False)  # some may be one update ahead
    ]


def steady(updates: Sequence[Update], warm_up: float, seconds: float) -> tuple[Update, list[Update]] | None:
    """The update at which the clock starts, and the ones it measures: ``seconds`` or a little more.

    The clock starts with the first update that is ``warm_up`` seconds after the first of all and has at least
    :data:`WARM_UPDATES` up to it. None if that was not long enough ago.
    """
    begin = next(
        (i for i, u in enumerate(updates) if i + 1 >= WARM_UPDATES and u.time >= updates[0].time + warm_up), None
    )
    if begin is None:
        return None
    start = updates[begin]
    end = next((i for i in range(begin + 1, len(updates)) if updates[i].time >= start.time + seconds), None)
    return (start, list(updates[begin + 1 : end + 1])) if end is not None else None


def speed(logs: Sequence[Log], warm_up: float, seconds: float) -> Speed | None:
    """Speed of a run, from the logs of all of its processes; None if it has not run long enough."""
    window = steady(merge(logs), warm_up, seconds) if logs else None
    if window is None:
        return None
    start, updates = window
    tokens, slots, taken = sum(u.tokens for u in updates), sum(u.slots for u in updates), updates[-1].time - start.time
    return Speed(
        tokens_per_second=tokens / taken,
        updates=len(updates),
        tokens_per_update=tokens / len(updates),
        padding=1 - tokens / slots,
        unknown=sum(u.unknown for u in updates),
        seconds=taken,
        parameters=logs[0].parameters,
        threads=sum(log.threads for log in logs),
        niceness=logs[0].niceness,
    )


def measure(
    command: list[str], log: Path, processes: int, cwd: Path, env: dict[str, str], warm_up: float, seconds: float
) -> Speed:
    """Run a side's command until it has trained for ``warm_up`` and ``seconds`` more.

    Args:
        command: writes ``<log>.<rank>`` for each of its processes (``runner.py``).
        log: that name; what the command prints goes to ``<log>.txt``.
        processes: how many there are.
        cwd: folder to run in.
        env: environment of the processes.
        warm_up: seconds of training that do not count.
        seconds: seconds of training that do.

    Raises:
        PeerError: the command ended by itself, did not begin, or stood still.
    """
    printed = log.with_suffix(".txt")
    paths = [Path(f"{log}.{rank}") for rank in range(processes)]
    with printed.open("wb") as stream:
        process = subprocess.Popen(
            command, stdout=stream, stderr=stream, stdin=subprocess.DEVNULL, cwd=cwd, env=env, start_new_session=True
        )
    try:
        latest, made = time.monotonic(), 0
        while True:
            ended = process.poll() is not None  # before the logs are read: nothing comes after
            logs = _read(paths)
            if len(logs) == processes and (result := speed(logs, warm_up, seconds)) is not None:
                return result
            if ended:
                raise PeerError(f"ended with status {process.returncode}\n{tail(printed)}")
            count = min((len(one.updates) for one in logs), default=0)
            if count > made:
                latest, made = time.monotonic(), count
            limit = STALL_SECONDS if made else START_SECONDS
            if time.monotonic() - latest > limit:
                raise PeerError(f"no update for {limit} seconds, {made} in all\n{tail(printed)}")
            time.sleep(POLL_SECONDS)
    finally:
        _end(process, _read(paths))


def _read(paths: list[Path]) -> list[Log]:
    """The logs that have begun."""
    logs = [parse_log(path.read_text(encoding="utf-8")) for path in paths if path.exists()]
    return [log for log in logs if log is not None]


def _end(process: "subprocess.Popen[bytes]", logs: list[Log]) -> None:
    """Kill the command, and then what it started: torchrun's processes are in sessions of their own."""
    for group in (process.pid, *(log.pid for log in logs)):
        try:
            os.killpg(group, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            continue
    process.wait()
