"""The commands that Hydra composes a configuration for: what ``nmt.train`` and ``nmt.prepare`` have in common.

Both take ``configs/train.yaml`` with overrides and ``-m`` for sweeps. Hydra composes; what goes wrong, in composing or
in the work itself, ends as with every other command: one line on stderr and the exit status of :func:`nmt.cli.run`.
:func:`composed` is for commands that need a configuration and have options of their own.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import hydra
from hydra import initialize_config_dir
from hydra.errors import HydraException, OverrideParseException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from nmt.cli import run
from nmt.config import CONFIG_DIR, ConfigError, TrainConfig, parse


def run_job(tree: DictConfig, work: Callable[[TrainConfig], None]) -> None:
    """Do the work for one composed configuration: one job of a sweep, or the only one.

    Errors end here, as Hydra would print them in its own way.

    Raises:
        SystemExit: the work failed, or was stopped; what else there is of a sweep is left undone.
    """
    try:
        run(lambda: work(_parsed(tree)))
    except SystemExit as finished:
        if finished.code:  # else the next job of the sweep
            raise


def register_resolvers() -> None:
    """What ``${...}`` in our YAML files can call beyond OmegaConf's own: ``expand_user``, for ``hydra.sweep.dir``, and
    ``side_of``, for the direction of a language pair."""
    OmegaConf.register_new_resolver("expand_user", os.path.expanduser, replace=True)
    OmegaConf.register_new_resolver("side_of", side_of, replace=True)


def side_of(pair: str | None, side: str, otherwise: str) -> str:
    """The source or target language of a pair's name: ``de-en`` is translated from English, as is ``en-fr``, and
    ``fr-de``, which has no English, in the order that it is written in. A name of another form says nothing.

    Args:
        pair: ``data.pair``; None says nothing.
        side: ``source`` or ``target``.
        otherwise: the language where the name says nothing.
    """
    first, dash, second = (pair or "").partition("-")
    if not (first and dash and second):
        return otherwise
    languages = (second, first) if second == "en" else (first, second)
    return languages[0 if side == "source" else 1]


def compose(job: Callable[[], None]) -> None:
    """Call a function that ``hydra.main`` has decorated: it composes from the command line and runs every job.

    Raises:
        ConfigError: the command line does not compose; Hydra's complaint in one line.
    """
    register_resolvers()
    os.environ["HYDRA_FULL_ERROR"] = "1"  # errors arrive here instead of being printed by Hydra with advice
    with _plain_errors():
        job()


def _parsed(tree: DictConfig) -> TrainConfig:
    with _plain_errors():
        return parse(TrainConfig, OmegaConf.to_container(tree, resolve=True, throw_on_missing=True))


@contextmanager
def _plain_errors() -> Iterator[None]:
    """What Hydra and OmegaConf complain about, as a ConfigError of one line."""
    try:
        yield
    except (HydraException, OmegaConfBaseException) as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        if isinstance(error, OverrideParseException):
            lines.append(
                "letters beyond ASCII, ~, commas and brackets want quotes that the shell leaves alone: \"key='Köln'\""
            )
        raise ConfigError("; ".join(lines)) from error


def composed(overrides: Sequence[str]) -> TrainConfig:
    """``configs/train.yaml`` with overrides, for a command whose own options argparse reads.

    Raises:
        ConfigError: it does not compose, or does not parse.
    """
    register_resolvers()
    with _plain_errors(), initialize_config_dir(str(CONFIG_DIR), version_base="1.3"):
        tree = hydra.compose("train", overrides=list(overrides))
    return _parsed(tree)
