"""Train a translation model:  python -m nmt.train model=bahdanau data=multi30k seed=2

Every key of configs/train.yaml can be overridden; ``-m`` sweeps (python -m nmt.train -m model=seq2seq,transformer);
``--cfg job`` shows the configuration, ``--help`` the groups. The same command again resumes where the run stopped.
"""

import sys

import hydra
from omegaconf import DictConfig

from nmt.cli import run
from nmt.composition import compose, run_job
from nmt.config import CONFIG_DIR, TrainConfig


@hydra.main(config_path=str(CONFIG_DIR), config_name="train", version_base="1.3")  # type: ignore[untyped-decorator]
def _job(tree: DictConfig) -> None:
    run_job(tree, _train)


def _train(config: TrainConfig) -> None:
    from nmt.training.signals import Interrupted  # torch is slow to import: not for --help
    from nmt.training.trainer import train

    try:
        train(config)
    except Interrupted as interrupted:
        sys.exit(interrupted.status)


def main() -> None:
    """Compose the configuration and train."""
    compose(_job)


if __name__ == "__main__":
    run(main)
