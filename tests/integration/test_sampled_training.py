"""Runs on a mixture whose pairs are cut anew every epoch: stopped or not, alone or together, they are the same run."""

import dataclasses
import shutil
from pathlib import Path

import pytest

from nmt import checkpoint
from nmt.config import FilesData, TrainConfig, WeightedCorpus
from nmt.data.dataset import prepare
from nmt.training.loading import training_loader, validation_loader
from nmt.training.trainer import train
from tests.integration.test_distributed import PLAIN, assert_same_lines, train_in, weights
from tests.tiny_run import assert_equal, limited, metrics, tiny_config

pytestmark = pytest.mark.usefixtures("quick_figures")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("sampled")


def sampled_config(shared: Path, tag: str, *overrides: str) -> TrainConfig:
    """Two parts of unlike weights, BPE-dropout, an update of two batches, passes of a few updates."""
    config = tiny_config(
        shared, "transformer", f"tag={tag}", "data.tokenizer.subword_regularization=0.3", "training.accumulate=2",
        *overrides,
    )  # fmt: skip
    for ending in ("de", "en"):
        lines = (shared / f"train.{ending}").read_text(encoding="utf-8").splitlines(keepends=True)
        (shared / f"few.{ending}").write_text("".join(lines[:40]), encoding="utf-8")
        (shared / f"many.{ending}").write_text("".join(lines[40:]), encoding="utf-8")
    corpora = (WeightedCorpus(f"{shared}/few", 2.5), WeightedCorpus(f"{shared}/many", 0.4))
    assert isinstance(config.data, FilesData)
    return dataclasses.replace(config, data=dataclasses.replace(config.data, train=None, corpora=corpora))


def test_a_run_that_is_resumed_is_the_run_that_never_stopped(shared: Path) -> None:
    whole = sampled_config(shared, "whole")
    train(whole)
    stopped = dataclasses.replace(whole, tag="stopped")
    for steps in (5, 9, 12):
        train(limited(stopped, max_steps=steps))
    assert metrics(whole.run_dir, "train")
    assert metrics(whole.run_dir, "train") == metrics(stopped.run_dir, "train")
    assert_equal(weights(whole, 12), weights(stopped, 12))


def test_several_processes_make_the_run_of_one(shared: Path) -> None:
    config = sampled_config(shared, "alone", *PLAIN, "training.accumulate=3")
    train(config)
    together = dataclasses.replace(config, tag="together")
    train_in(2, together)
    assert_same_lines(config, together)


def test_an_epoch_has_the_pairs_and_subwords_that_are_asked_for_and_validation_what_is_stored(shared: Path) -> None:
    config = sampled_config(shared, "epochs")
    prepared = prepare(config.data, lambda line: None)
    assert [(part.weight, part.end - part.first) for part in prepared.parts] == [(2.5, 40), (0.4, 200)]
    loader = training_loader(config, prepared)
    seen = []
    for epoch in (0, 1):
        groups = list(loader.groups(epoch, 0, 2, 0, 1))
        assert sum(group.sentences for group in groups) == 100 + 80
        seen.append(sum(group.filled for group in groups))
    assert seen[0] != seen[1]
    plain = dataclasses.replace(
        config.data, tokenizer=dataclasses.replace(config.data.tokenizer, subword_regularization=None)
    )
    stored = prepare(plain, lambda line: None)
    for one, two in zip(
        validation_loader(config, prepared).batches(0), validation_loader(config, stored).batches(0), strict=True
    ):
        assert all(left.equal(right) for left, right in zip(one, two, strict=True))


def test_fine_tuning_samples_from_the_tokenizer_of_its_checkpoint(shared: Path) -> None:
    base = tiny_config(shared, "transformer", "tag=base", "training.max_steps=6")
    train(base)
    config = sampled_config(shared, "fine", f"init_from={base.run_dir}", "training.max_steps=6")
    train(config)
    best = checkpoint.load(config.run_dir)
    assert best.config.data.tokenizer.subword_regularization == 0.3
    assert best.tokenizers.digest == checkpoint.load(base.run_dir).tokenizers.digest
    train(limited(config, max_steps=8))  # resumed, with the rate it began with
    shutil.rmtree(config.run_dir)
