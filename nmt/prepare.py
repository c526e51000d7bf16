"""Prepare data without training:  python -m nmt.prepare data=multi30k data.folder=PATH

Reads the text, trains the subwords, writes ids and report into the cache where ``nmt.train`` with the same data keys
finds them. The table of what was read, kept and dropped goes to stderr, the prepared folder's path to stdout.
``--cfg job`` shows the configuration, ``--help`` the groups.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import hydra
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from nmt.cli import run
from nmt.config import CONFIG_DIR, ConfigError, TrainConfig, parse
from nmt.data.dataset import prepare


@hydra.main(config_path=str(CONFIG_DIR), config_name="train", version_base="1.3")  # type: ignore[untyped-decorator]
def _job(tree: DictConfig) -> None:
    """Prepare the data of one configuration. Errors end here: Hydra would print them in its own way."""
    try:
        run(lambda: _prepare(tree))
    except SystemExit as finished:
        if finished.code:  # else the next one of a sweep
            raise


def _prepare(tree: DictConfig) -> None:
    with _plain_errors():
        config = parse(TrainConfig, OmegaConf.to_container(tree, resolve=True, throw_on_missing=True))
    print(prepare(config.data, _log).folder)


def _log(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


@contextmanager
def _plain_errors() -> Iterator[None]:
    """What Hydra and OmegaConf complain about, as a ConfigError of one line."""
    try:
        yield
    except (HydraException, OmegaConfBaseException) as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        raise ConfigError("; ".join(lines)) from error


def main() -> None:
    """Compose the configuration of a run and prepare its data."""
    os.environ["HYDRA_FULL_ERROR"] = "1"  # errors arrive here instead of being printed by Hydra with advice
    with _plain_errors():
        _job()


if __name__ == "__main__":
    run(main)
