"""Train a translation model:  python -m nmt.train model=bahdanau data=multi30k seed=2

Every key of configs/train.yaml can be overridden; ``-m`` sweeps (python -m nmt.train -m model=seq2seq,transformer);
``--cfg job`` shows the configuration, ``--help`` the groups. The same command again resumes where the run stopped.
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


@hydra.main(config_path=str(CONFIG_DIR), config_name="train", version_base="1.3")  # type: ignore[untyped-decorator]
def _job(tree: DictConfig) -> None:
    """One run of a sweep, or the only one. Errors end here: Hydra would print them in its own way."""
    try:
        run(lambda: _train(tree))
    except SystemExit as finished:
        if finished.code:  # else the next run of the sweep
            raise


def _train(tree: DictConfig) -> None:
    with _plain_errors():
        config = parse(TrainConfig, OmegaConf.to_container(tree, resolve=True, throw_on_missing=True))

    from nmt.training.signals import Interrupted  # torch is slow to import: not for --help
    from nmt.training.trainer import train

    try:
        train(config)
    except Interrupted as interrupted:
        sys.exit(interrupted.status)


@contextmanager
def _plain_errors() -> Iterator[None]:
    """What Hydra and OmegaConf complain about, as a ConfigError of one line."""
    try:
        yield
    except (HydraException, OmegaConfBaseException) as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        raise ConfigError("; ".join(lines)) from error


def main() -> None:
    """Compose the configuration and train."""
    os.environ["HYDRA_FULL_ERROR"] = "1"  # errors arrive here instead of being printed by Hydra with advice
    with _plain_errors():
        _job()


if __name__ == "__main__":
    run(main)
