"""Runs that are trained enough to score: more than nothing, less than everything right."""

from pathlib import Path

import pytest

from nmt.training.trainer import train
from tests.tiny_run import tiny_config

SCORED = (
    "optim.optimizer.learning_rate=0.02",
    "model.dropout=0",
    "training.max_steps=100",
    "training.validate_every=50",
    "training.log_every=50",
    "training.average_last=0",
)

AS_IN_TRAINING = ("--beam-size", "1", "--max-length-b", "5")
"""The search options of the tiny runs, for commands."""


@pytest.fixture(scope="session")
def scored_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder ``runs`` with two finished runs on the same data, ``a_s1`` and ``b_s1``. To be copied, not changed."""
    folder = tmp_path_factory.mktemp("scored")
    for tag, steps in (("a", 100), ("b", 50)):
        train(tiny_config(folder, "transformer", *SCORED, f"training.max_steps={steps}", f"tag={tag}"))
    return folder / "runs"
