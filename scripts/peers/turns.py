"""What the comparisons of training and of translation have in common: who runs when, in which environment."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from .corpus import our_environment
from .environments import PeerError, environment

PROBE = Path(__file__).with_name("probe.py")
PROBE_SECONDS = 120

Side = TypeVar("Side")


def turns(rounds: int, sides: Sequence[Side]) -> Iterator[tuple[int, int, Side]]:
    """(round, place among the sides, side): every side once in a round, in even rounds backwards."""
    for number in range(1, rounds + 1):
        entries = list(enumerate(sides))
        for order, side in entries if number % 2 else reversed(entries):
            yield number, order, side


def torch_version() -> str:
    """The release that runs us, without the build behind the plus sign: CPU and GPU builds are called the same."""
    from importlib.metadata import version

    return version("torch").split("+")[0]


def install(names: Sequence[str], work: Path) -> tuple[dict[str, str], dict[str, str]]:
    """The interpreter of every toolkit that could be installed, ours among them, and every other's message."""
    pythons, failures = {"nmt": sys.executable}, {}
    for name in names:
        say(f"environment of {name}")
        try:
            pythons[name] = str(environment(name, work, torch_version()))
        except PeerError as error:
            failures[name] = str(error)
            say(str(error))
    return pythons, failures


def probe(threads: int) -> dict[str, Any]:
    """GFLOP/s of a matrix product by precision, as a part of a record; nothing if there is no telling."""
    command, env = [sys.executable, str(PROBE), str(threads)], child_environment(threads)
    try:
        done = subprocess.run(command, env=env, stdout=subprocess.PIPE, timeout=PROBE_SECONDS, check=True)
    except subprocess.SubprocessError as error:
        say(f"no probe: {error}")
        return {}
    return {"probe": json.loads(done.stdout)}


def child_environment(threads: int) -> dict[str, str]:
    """Environment of everything that is timed: ours, with the number of threads."""
    return {**our_environment(), "OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads)}


def say(message: str) -> None:
    """A line of progress on stderr."""
    print(f"{time.strftime('%H:%M:%S')} {message}", file=sys.stderr, flush=True)
