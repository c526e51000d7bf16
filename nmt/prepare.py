"""Prepare data without training:  python -m nmt.prepare data=multi30k data.folder=PATH

Reads the text, trains the subwords, writes ids and report into the cache where ``nmt.train`` with the same data keys
finds them; with ``init_from`` the subwords are that checkpoint's. The table of what was read, kept and dropped goes to
stderr, the prepared folder's path to stdout.
``--cfg job`` shows the configuration, ``--help`` the groups.
"""

import sys

import hydra
from omegaconf import DictConfig

from nmt.cli import run
from nmt.composition import compose, run_job
from nmt.config import CONFIG_DIR, TrainConfig
from nmt.data.dataset import prepare


@hydra.main(config_path=str(CONFIG_DIR), config_name="train", version_base="1.3")  # type: ignore[untyped-decorator]
def _job(tree: DictConfig) -> None:
    run_job(tree, _prepare)


def _prepare(config: TrainConfig) -> None:
    if config.init_from is None:
        print(prepare(config.data, _log).folder)
        return
    from nmt.training.start import fine_tuning  # torch is slow to import

    start = fine_tuning(config)
    print(prepare(start.config.data, _log, start.tokenizers).folder)


def _log(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def main() -> None:
    """Compose the configuration of a run and prepare its data."""
    compose(_job)


if __name__ == "__main__":
    run(main)
