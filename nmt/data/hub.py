"""Public data sets from the Hugging Face Hub through ``datasets``, streamed: N pairs download little more.

The libraries that talk to the Hub wait and try again for minutes where the network is bad, and their threads can
neither be stopped nor survive the end of the program. So they run in a process of their own (``hub_worker``), which is
told what to send and is waited for no longer than we want to: a Hub that does not answer is an error within
``data.timeout`` seconds. If ``datasets`` keeps a copy of the data set from an earlier download, that is used instead.
"""

import json
import os
import select
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import nmt
from nmt.config import HubData, to_tree
from nmt.data.corpus import Corpus, DataError, Part, TextPair
from nmt.data.hub_sets import check_hub, is_sampled

PATIENCE = 6
"""A stream may be silent for this many times ``data.timeout``: an answer may be megabytes, a lost one is asked anew."""

_START = 300.0  # seconds the worker may take to import its libraries


def open_hub(config: HubData, log: Callable[[str], None]) -> Corpus:
    """The splits of a Hub data set, or of a local folder of Parquet or JSON files; read when a split is.

    A part is read to its end, or until its reader is closed: then the download stops at once.

    Raises:
        ConfigError: keys that contradict each other.

    Reading raises:
        DataError: the Hub cannot be reached; no such data set, revision, configuration, split or column (naming those
            that exist); the stream ended early. Never a part of a split as if it were whole.
    """
    check_hub(config)
    if config.dataset.startswith("~"):
        config = replace(config, dataset=str(Path(config.dataset).expanduser()))
    local = Path(config.dataset)
    origin: dict[str, Any] = {"hub": config.dataset}
    if local.is_dir():
        origin["files"] = {"local": sorted(str(path) for path in local.rglob("*") if path.is_file())}
    worker = _Worker(config, log, origin)
    parts = {
        role: (Part(role, partial(worker.read, role), shuffled=role == "train" and is_sampled(config)),)
        for role in ("validation", "test", "train")
        if role == "train" or getattr(config.splits, role) is not None or config.held_out_pairs is not None
    }
    return Corpus(parts, origin, worker.close)


class _Worker:
    """The process that reads for us: lines of JSON in, lines of JSON out (see ``hub_worker``)."""

    def __init__(self, config: HubData, log: Callable[[str], None], origin: dict[str, Any]) -> None:
        self._config = config
        self._log = log
        self._origin = origin  # what the worker finds out is written down here
        self._process: subprocess.Popen[bytes] | None = None
        self._buffer = b""

    def read(self, role: str) -> Iterator[TextPair]:
        """Pairs of a split until it ends or the reader is closed; the log then says which files they were from."""
        counts: Counter[str] = Counter()
        finished = failed = False
        try:
            if self._process is None:
                self._start()
            self._ask({"split": role})
            while (message := self._answer(self._config.timeout * PATIENCE)) is not None:
                files = message["files"]
                for source, target, file in message["pairs"]:
                    counts[files[file]] += 1
                    yield TextPair(source, target)
            finished = True
        except (TimeoutError, EOFError, BrokenPipeError) as error:
            failed = True
            raise DataError(
                f"{self._config.dataset}: {role}: the stream broke off after {counts.total():,} pairs ({error}); "
                "nothing of it was kept: run the same command again, or use a local copy (data.folder=PATH)"
            ) from None
        except DataError:
            failed = True
            raise
        finally:
            if not finished:
                self.close()  # the reader has enough, or it is over: what is on its way is of no use
            if not failed and counts:
                self._log(_provenance(role, counts, finished, self._config))
                self._origin.setdefault("pairs_from", {})[role] = dict(counts)

    def close(self) -> None:
        """End the process, whatever it is waiting for."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            for pipe in (self._process.stdin, self._process.stdout):
                assert pipe is not None
                pipe.close()
            self._process = None

    def _start(self) -> None:
        # USE_TORCH=0: `datasets` would import torch, only to see whether its data loader is at work.
        path = [str(Path(nmt.__file__).parent.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "nmt.data.hub_worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(path), "USE_TORCH": "0"},
        )
        self._buffer = b""
        self._ask(to_tree(self._config))
        self._answer(_START)

    def _ask(self, message: dict[str, Any]) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")

    def _answer(self, patience: float) -> dict[str, Any] | None:
        """The next message with pairs; None when the split, or whatever was asked for, is done.

        Raises:
            DataError: the worker says so.
            TimeoutError: it says nothing for ``patience`` seconds.
            EOFError: it is gone.
        """
        waits = 0.0
        while True:
            message = json.loads(self._line(patience + waits))
            waits = message.get("waits", 0.0)
            if "log" in message:
                self._log(message["log"])
            elif "origin" in message:
                self._origin.update(message["origin"])
                # A process that follows this one reads the same revision.
                self._config = replace(self._config, revision=message["origin"]["revision"])
            elif "error" in message:
                raise DataError(message["error"])
            else:
                return message if "pairs" in message else None

    def _line(self, patience: float) -> bytes:
        assert self._process is not None
        assert self._process.stdout is not None
        parts = [self._buffer]
        while b"\n" not in parts[-1]:
            if not select.select([self._process.stdout], [], [], patience)[0]:
                raise TimeoutError(f"nothing came for {patience:g} s")
            parts.append(os.read(self._process.stdout.fileno(), 1 << 16))
            if not parts[-1]:
                raise EOFError("the process that reads it is gone")
        line, _, self._buffer = b"".join(parts).partition(b"\n")
        return line


def _provenance(role: str, counts: Counter[str], whole: bool, config: HubData) -> str:
    """Which files the pairs of a split were from, and how many of each."""
    if whole:
        how = "all"
    elif role == "train" and is_sampled(config):
        how = f"a sample (data.sample_seed={config.sample_seed}) of"
    else:
        how = "the first"
    from_files = ", ".join(f"{name} {count:,}" for name, count in sorted(counts.items()))
    unlike = (
        "" if whole or role != "train" or is_sampled(config) else "; data.sample_seed=1 takes them from all over it"
    )
    return f"{config.dataset}: {role}: read {how} {counts.total():,} pairs: {from_files}{unlike}"
