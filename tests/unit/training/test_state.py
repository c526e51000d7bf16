"""Counters, patience, plateau and the rules of stopping."""

import dataclasses
import math

import pytest
import torch

from nmt.config import ConfigError, TrainConfig
from nmt.training.checks import check_config
from nmt.training.resume import CHANGEABLE, check_same, flatten
from nmt.training.state import TrainState, is_better
from nmt.training.update import Update
from tests.tiny_run import compose_config

GOOD = Update(made=True, gradient_norm=1.0, smoothed=2.0, nll=1.5, tokens=10, slots=30, filled=25)


def limited(*overrides: str) -> TrainConfig:
    return compose_config("data=demo", "training.max_steps=null", *overrides)


def test_tie_and_nan_are_no_improvement() -> None:
    assert is_better("bleu", 1.0, None)
    assert is_better("bleu", 2.0, 1.0)
    assert not is_better("bleu", 1.0, 1.0)
    assert not is_better("perplexity", 2.0, 1.0)
    assert is_better("loss", 1.0, 2.0)
    assert not is_better("loss", math.nan, None)


def test_skipped_update_advances_nothing_but_its_count() -> None:
    state = TrainState(step=7, tokens=100)
    bad = GOOD._replace(made=False, smoothed=math.nan, nll=math.nan)
    state.count(bad, 1.0)
    state.count(bad, 1.0)
    assert (state.step, state.tokens, state.bad_steps, state.interval.skipped) == (7, 100, 2, 2)
    state.count(GOOD, 1.0)
    assert (state.step, state.tokens, state.bad_steps, state.interval.smoothed) == (8, 110, 0, 2.0)


def test_patience_counts_validations_in_a_row() -> None:
    config = limited("training.patience=2", "training.metric=chrf")
    state = TrainState()
    stops = []
    for step, value in enumerate([10.0, 9.0, 11.0, 11.0, 10.0, 12.0], start=1):
        state.step = step
        state.observe(config, value)
        stops.append(state.stop_reason(config, 0.0, 0.0) is not None)
    assert stops == [False, False, False, False, True, False]


def test_plateau_cuts_after_its_patience_and_starts_counting_anew() -> None:
    config = limited("training.max_steps=100", "optim/schedule=plateau", "optim.schedule.patience=2")
    state, cuts = TrainState(), []
    for value in [5.0, 4.0, 4.0, 4.0, 4.0, 6.0, 5.0]:
        state.observe(config, value)
        cuts.append(state.plateau_cuts)
    assert cuts == [0, 0, 1, 1, 2, 2, 2]


@pytest.mark.parametrize(
    ("overrides", "epochs", "seconds", "key"),
    [
        (["training.max_steps=5"], 0.0, 0.0, "training.max_steps"),
        (["training.max_epochs=1.5"], 1.5, 0.0, "training.max_epochs"),
        (["training.max_minutes=2"], 0.0, 120.0, "training.max_minutes"),
    ],
)
def test_every_limit_stops(overrides: list[str], epochs: float, seconds: float, key: str) -> None:
    config = limited("training.patience=null", *overrides)
    state = TrainState(step=5)
    assert str(state.stop_reason(config, epochs, seconds)).startswith(key)
    state.step = 4
    assert state.stop_reason(config, epochs - 0.01, seconds - 1) is None


def test_state_survives_plain_values() -> None:
    state = TrainState(step=3, best=1.5, best_scores={"bleu": 1.0})
    state.count(GOOD, 0.5)
    assert TrainState.from_tree(state.tree()) == state


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["training.batch_tokens=0"], "training.batch_tokens"),
        (["training.accumulate=0"], "training.accumulate"),
        (["training.max_epochs=0"], "training.max_epochs"),
        (["training.max_minutes=-1"], "training.max_minutes"),
        (["training.validate_every=0"], "training.validate_every"),
        (["training.patience=0"], "training.patience"),
        (["training.average_last=9"], "training.keep_last"),
        (["training.average_last=1"], "training.average_last: 1 checkpoint"),
        (["training.timeout=0"], "training.timeout: expected seconds above 0"),
        (["training.timeout=1e15"], "training.timeout: expected seconds above 0, 1,000,000,000 at most"),
        (["model.positions=learned", "model.max_positions=50", "data.max_length=51"], "model.max_positions"),
        (["training.device=quantum"], "device"),
        (["training.patience=null", "training.max_steps=null"], "nothing would ever end"),
        (["search.beam_size=0"], "search.beam_size"),
        (["search.max_length_b=-1"], "search.max_length_b"),
        (["seed=-1"], "seed"),
        (["tag=a/b"], "tag"),
        (["model.heads=3"], "model.heads"),
        (["data.tokenizer.joint=false"], "model.tie_embeddings"),
    ],
)
def test_values_that_cannot_work_are_refused_before_any_work(overrides: list[str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        check_config(compose_config(*overrides))


@pytest.mark.parametrize("model", ["seq2seq", "bahdanau", "transformer"])
def test_shipped_configurations_pass(model: str) -> None:
    check_config(compose_config(f"model={model}"))


def test_unknown_metric_is_an_error_at_the_start() -> None:
    with pytest.raises(ConfigError, match=r"training\.metric: expected one of bleu, chrf, perplexity, loss"):
        compose_config("training.metric=rouge")


def test_checking_draws_no_random_numbers() -> None:
    torch.manual_seed(5)
    before = torch.get_rng_state()
    check_config(compose_config())
    assert torch.equal(torch.get_rng_state(), before)


def test_only_keys_of_the_list_may_change(tmp_path) -> None:  # type: ignore[no-untyped-def]
    config = compose_config()
    assert set(CHANGEABLE) <= set(flatten(dataclasses.asdict(config))) | {"data.folder", "data.timeout"}
    check_same(config, compose_config("training.max_steps=5", "data.cache=elsewhere", "training.device=cpu"), tmp_path)
    for override, text in (
        ("seed=2", r"seed \(was 1, now 2\)"),
        ("training.batch_tokens=1", r"training\.batch_tokens \(was 4096, now 1\)"),
        ("model=seq2seq", r"model\.name \(was transformer, now seq2seq\)"),
        ("optim.clip_norm=null", r"optim\.clip_norm \(was 1\.0, now null\)"),
    ):
        with pytest.raises(ConfigError, match=text):
            check_same(config, compose_config(override), tmp_path)
