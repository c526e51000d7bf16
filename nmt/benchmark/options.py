"""What the commands of ``nmt.benchmark`` have in common."""

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path

from nmt.composition import composed
from nmt.config import ConfigError, TrainConfig
from nmt.training.checks import check_config
from nmt.training.distributed import Processes

MODELS = {"T": "benchmark_transformer", "R": "benchmark_bahdanau", "S": "benchmark_seq2seq"}
"""Short names of the experiments whose sizes speed is usually measured at."""

VOCABULARY = 8000


def add_common(parser: argparse.ArgumentParser) -> None:
    """Options of every one of them."""
    add = parser.add_argument
    add("--set", nargs="+", action="extend", default=[], metavar="KEY=VALUE", help="change keys of the configuration")
    add("--device", default="auto", help="auto, cpu, cuda, cuda:1 ... (default: %(default)s)")
    add("--threads", type=positive, metavar="N", help="of torch on the CPU (default: torch's own choice)")
    add("--json", type=Path, metavar="FILE", help="also write every figure here")


def positive(text: str) -> int:
    """A whole number of 1 or more."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected 1 or more, found {text}")
    return int(text)


def config_of(name: str, overrides: list[str], options: Mapping[str, str], batch_tokens: int | None) -> TrainConfig:
    """The experiment of this name, with what the command line changes.

    Args:
        name: a key of :data:`MODELS`, or of any experiment.
        overrides: what ``--set`` was given.
        options: keys of the configuration that have an option of their own, and which.
        batch_tokens: token budget a side; None: the experiment's.

    Raises:
        ConfigError: there is none, or a value cannot be.
    """
    for text in overrides:
        key = text.partition("=")[0].lstrip("+")
        if key in options:
            raise ConfigError(f"--set {key}: give {options[key]} instead")
    overrides = [f"experiment={MODELS.get(name, name)}", *overrides]
    if batch_tokens is not None:
        overrides.append(f"training.batch_tokens={batch_tokens}")
    try:
        config = composed(overrides)
        check_config(config)
    except ConfigError as error:
        raise ConfigError(f"{name}: {error}") from error
    return config


def say(processes: Processes, message: str) -> None:
    """A line of progress, once."""
    if processes.is_main:
        print(message, file=sys.stderr, flush=True)
