"""What the training benchmark counts, and that it trains as training does."""

from pathlib import Path

import numpy as np
import pytest
import torch

from nmt.analysis.cost import operations
from nmt.analysis.synthetic import corpus_lengths, write_pairs
from nmt.analysis.training_speed import STAGES, Round, Tally, TrainingBench
from nmt.config import ConfigError
from tests.tiny_run import compose_config, tiny_overrides

CPU = torch.device("cpu")
VOCABULARY = 40


def bench(folder: Path, model: str, *overrides: str) -> TrainingBench:
    """Of a tiny model without dropout, on 60 pairs: a few batches."""
    dataset = write_pairs(folder, corpus_lengths(60, seed=1), VOCABULARY, seed=1)
    config = compose_config(*tiny_overrides(folder, model), "model.dropout=0", "training.batch_tokens=300", *overrides)
    return TrainingBench(config, dataset, (VOCABULARY, VOCABULARY), CPU, "fp32")


@pytest.mark.parametrize("model", ["seq2seq", "bahdanau", "transformer"])
def test_a_whole_epoch_is_counted(model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Timed until the pass is through: every pair once, padding apart, and the operations of these pairs."""
    measured = bench(tmp_path, model, "training.accumulate=2")
    dataset, batches = measured.loader.dataset, measured.loader.epoch_batches(0)
    updates = -(-len(batches) // 2)
    clock = iter(range(1000))
    monkeypatch.setattr("nmt.analysis.training_speed.time.perf_counter", lambda: float(next(clock)))
    monkeypatch.setattr(measured.probe, "rate", lambda: 1e6)
    done = measured.measure(seconds=updates, warm_up=0)
    tally = done.tally
    assert (done.seconds, done.product_rate) == (updates, 1e6)
    assert tally.updates == updates
    assert tally.sentences == 60
    assert tally.source_tokens == dataset.source_lengths.sum()
    assert tally.target_tokens == dataset.target_lengths.sum()
    assert tally.source_slots == sum(len(rows) * int(dataset.source_lengths[rows].max()) for rows in batches)
    assert tally.target_slots == sum(len(rows) * int(dataset.target_lengths[rows].max()) for rows in batches)
    needed = operations(measured.config.model, VOCABULARY, dataset.source_lengths, dataset.target_lengths)
    assert tally.operations == needed.training


def test_figures_of_a_round() -> None:
    tally = Tally(
        updates=2,
        sentences=10,
        source_tokens=80,
        target_tokens=90,
        source_slots=100,
        target_slots=100,
        operations=600,
    )
    done = Round(tally, seconds=2.0, product_rate=400.0)
    assert tally.padding == pytest.approx(0.15)
    assert tally.target_padding == pytest.approx(0.10)
    assert (done.tokens_per_second, done.sentences_per_second) == (45.0, 5.0)
    assert done.utilisation == pytest.approx(0.75)


def test_stages_make_the_same_updates_as_training(tmp_path: Path) -> None:
    """One by one with the clock read in between, or at once: the same parameters in the end."""
    plain = ("optim/optimizer=sgd", "optim.optimizer.learning_rate=0.5", "optim.clip_norm=null")  # so that scale shows
    staged, whole = (bench(tmp_path, "bahdanau", "training.accumulate=2", *plain) for _ in range(2))
    rate = whole.config.optim.optimizer.learning_rate / 5  # of the first update of five that warm up
    for group in staged.optimizer.param_groups:
        group["lr"] = rate
    seconds = staged.breakdown(updates=1)
    whole.train(updates=1)
    assert list(seconds) == list(STAGES)
    assert all(value > 0 for value in seconds.values())
    for (name, own), other in zip(staged.model.named_parameters(), whole.model.parameters(), strict=True):
        np.testing.assert_allclose(own.detach(), other.detach(), rtol=1e-4, atol=1e-6, err_msg=name)


def test_a_budget_too_small_for_any_pair_is_refused(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="left out"), pytest.raises(ConfigError, match="no pair fits into 3 tokens"):
        bench(tmp_path, "transformer", "training.batch_tokens=3")
