"""Arms of an experiment, each trained with several seeds; ``reproduce_reversal.py`` and ``compare_models.py`` share it.

Each training is a process of its own (``python -m nmt.train ...``), several at once share out the cores. Nothing is
done twice: a finished run is taken as it is, an interrupted one goes on where it stopped, here or by its own command.
"""

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO, NamedTuple

from nmt.checkpoint import load_config
from nmt.cli import CommandParser
from nmt.composition import composed
from nmt.config import TrainConfig
from nmt.device import cores
from nmt.training.resume import changes, may_differ
from nmt.training.summary import SUMMARY_FILE

TRAIN = ("-m", "nmt.train")


class Arm(NamedTuple):
    """One recipe."""

    tag: str  # name of its runs, without the seed
    overrides: tuple[str, ...]  # as for nmt.train: experiment=..., and what this arm changes


class Training(NamedTuple):
    """An arm with one seed."""

    arm: Arm
    seed: int
    config: TrainConfig
    arguments: tuple[str, ...]  # of nmt.train

    @property
    def run(self) -> Path:
        """Its folder."""
        return self.config.run_dir

    @property
    def is_finished(self) -> bool:
        """Whether a run of this configuration is there and has come to its end."""
        if not (self.run / SUMMARY_FILE).is_file():
            return False
        differing = changes(load_config(self.run), self.config)
        # Where a run should stop may differ on resume: then it goes on, or nmt.train says that it is at its end.
        return all(may_differ(key) and not key.startswith(("optim.", "training.max_")) for key in differing)


def add_arguments(parser: CommandParser) -> None:
    """Options that every script of arms has."""
    add = parser.add_argument
    add("--seeds", type=int, nargs="+", metavar="S", help="one run of every arm for each (default: see --data)")
    add("--jobs", type=int, metavar="N", help="runs at once, which share the cores (default: 2, where there are two)")
    add("--runs", type=Path, metavar="FOLDER", help="where runs lie (default: runs/<data>)")
    add("--output", type=Path, metavar="FOLDER", help="of the report (default: in --runs)")
    add("overrides", nargs="*", metavar="KEY=VALUE", help="for every run, after --: -- data.folder=PATH")


def check_arguments(arguments: argparse.Namespace) -> None:
    """Fill in defaults; raises ValueError for what cannot be."""
    if arguments.jobs is None:
        arguments.jobs = min(2, cores())
    if arguments.jobs < 1:
        raise ValueError(f"--jobs: expected 1 or more, found {arguments.jobs}")
    if arguments.seeds is not None and len(set(arguments.seeds)) < len(arguments.seeds):
        raise ValueError(f"--seeds: each once, found {' '.join(map(str, arguments.seeds))}")


def trainings(arms: Sequence[Arm], seeds: Sequence[int], runs: Path, overrides: Sequence[str]) -> list[Training]:
    """Every arm with every seed; all arms of the first seed first, so that a job that is stopped leaves what is whole.

    Args:
        arms: what to train.
        seeds: of each.
        runs: the folder that runs go to.
        overrides: for all of them; they come last.

    Raises:
        ConfigError: one of them does not compose.
    """
    found = []
    for seed in seeds:
        for arm in arms:
            arguments = (*arm.overrides, f"tag={arm.tag}", f"seed={seed}", f"runs={runs}", *overrides)
            found.append(Training(arm, seed, composed(arguments), arguments))
    return found


def train_all(wanted: Sequence[Training], jobs: int) -> None:
    """Train what is not finished; returns when all is.

    Ctrl-C and SIGTERM reach every training, which saves and stops. If one fails, the others save and stop, too, and the
    script ends with its status.
    """
    due = [training for training in wanted if not training.is_finished]
    _say(f"{len(wanted)} runs, {len(wanted) - len(due)} finished before; {min(jobs, max(1, len(due)))} at once")
    if due:
        _Trainings(due, jobs).run()


class _Running(NamedTuple):
    training: Training
    process: "subprocess.Popen[bytes]"
    log: IO[bytes]
    started: float


class _Trainings:
    """Processes at work, and what is to be done when one of them ends."""

    def __init__(self, due: Sequence[Training], jobs: int) -> None:
        self.waiting = list(due)
        self.jobs = jobs
        self.running: list[_Running] = []
        self.minutes: list[float] = []  # of those that have ended well
        self.stopping = False
        self.failed: list[tuple[Training, int]] = []

    def run(self) -> None:
        """Until all have ended."""
        signal.signal(signal.SIGTERM, lambda *_: self._stop())
        while self.running or (self.waiting and not self.stopping):
            try:
                while self.waiting and len(self.running) < self.jobs and not self.stopping:
                    self._start(self.waiting.pop(0))
                time.sleep(0.1)
                for each in [each for each in self.running if each.process.poll() is not None]:
                    self._end(each)
            except KeyboardInterrupt:  # they got the same Ctrl-C, and save
                self.stopping = True
        if self.failed:
            training, status = self.failed[0]
            _say(f"\n{training.run}: stopped with status {status}; the end of {_log_file(training)}:")
            _say("".join(f"    {line}\n" for line in _last_lines(_log_file(training))))
            sys.exit(status if status > 0 else 128 - status)
        if self.stopping:
            _say("stopped; the same command goes on from here")
            sys.exit(130)

    def _start(self, training: Training) -> None:
        threads = {"OMP_NUM_THREADS": str(max(1, cores() // self.jobs))}
        _log_file(training).parent.mkdir(parents=True, exist_ok=True)
        log = open(_log_file(training), "ab")  # noqa: SIM115 (closed when the process ends)
        command = [sys.executable, *TRAIN, *training.arguments]
        process = subprocess.Popen(command, stdout=log, stderr=log, env=threads | dict(os.environ))
        self.running.append(_Running(training, process, log, time.monotonic()))
        _say(f"{time.strftime('%H:%M:%S')} {training.run} begins{self._left()}")

    def _left(self) -> str:
        """How long it may take, when that can be told."""
        if not self.minutes:
            return ""
        runs = len(self.waiting) + len(self.running)
        minutes = sum(self.minutes) / len(self.minutes) * -(-runs // self.jobs)
        return f" ({len(self.waiting)} more wait, about {minutes:.0f} minutes to go)"

    def _end(self, each: _Running) -> None:
        self.running.remove(each)
        each.log.close()
        status = each.process.returncode
        minutes = (time.monotonic() - each.started) / 60
        if status == 0:
            self.minutes.append(minutes)
            _say(f"{time.strftime('%H:%M:%S')} {each.training.run} done in {minutes:.1f} minutes")
        elif not self.stopping:
            self.failed.append((each.training, status))
            self._stop()

    def _stop(self) -> None:
        self.stopping = True
        for each in self.running:
            with contextlib.suppress(ProcessLookupError):
                each.process.terminate()


def _log_file(training: Training) -> Path:
    """What a process prints; train.log in its run is the same with the time of each line."""
    return training.run.parent / "logs" / f"{training.run.name}.log"


def _last_lines(path: Path, count: int = 5) -> list[str]:
    return path.read_text(encoding="utf-8", errors="replace").rstrip().split("\n")[-count:]


def _say(message: str) -> None:
    print(message, file=sys.stderr, flush=True)
