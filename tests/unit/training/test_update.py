"""One update is the same however its pairs are cut into batches, and a broken gradient makes none."""

import dataclasses
import math
from collections.abc import Callable

import pytest
import torch

from nmt.config import OptimConfig, SGDConfig
from nmt.data.batch import Group
from nmt.models import build
from nmt.training.optim import build_optimizer
from nmt.training.update import Updater
from tests.tiny_run import compose_config
from tests.unit.training.test_loss import VOCABULARY, TiedToy, batch_of, pairs

LENGTHS = (2, 3, 7, 20)


def updater(**changes: object) -> Updater:
    recipe = compose_config("optim/optimizer=sgd", "data=demo").optim
    recipe = dataclasses.replace(recipe, **changes)  # type: ignore[arg-type]
    model = TiedToy()
    return Updater(model, build_optimizer(model, recipe), recipe, torch.device("cpu"), "fp32")


@pytest.mark.parametrize("normalize", ["tokens", "sentences"])
@pytest.mark.parametrize("clip_norm", [None, 0.05])
def test_four_batches_of_one_equal_one_batch_of_four(normalize: str, clip_norm: float | None) -> None:
    some = pairs(LENGTHS)
    whole, parts = (updater(normalize=normalize, clip_norm=clip_norm) for _ in range(2))
    one = whole.update(Group.of([batch_of(some)]), rate=0.5)
    four = parts.update(Group.of([batch_of([pair]) for pair in some]), rate=0.5)
    assert one.tokens == four.tokens == sum(LENGTHS)
    assert one.gradient_norm == pytest.approx(four.gradient_norm, rel=1e-5)
    assert one.smoothed == pytest.approx(four.smoothed, rel=1e-5)
    for a, b, before in zip(whole.model.parameters(), parts.model.parameters(), TiedToy().parameters(), strict=True):
        torch.testing.assert_close(a, b, atol=1e-6, rtol=1e-5)
        assert not torch.equal(a, before), "the update must have done something"


@pytest.mark.parametrize(("normalize", "divisor"), [("tokens", sum(LENGTHS)), ("sentences", len(LENGTHS))])
def test_gradient_is_the_summed_loss_over_tokens_or_sentences(normalize: str, divisor: int) -> None:
    batch = batch_of(pairs(LENGTHS))
    found = updater(normalize=normalize, clip_norm=None, label_smoothing=0.0)
    found.update(Group.of([batch]), rate=1.0)
    model = TiedToy()
    logits = model.project(model(batch.source, batch.source_lengths, batch.target_in))[batch.target_mask]
    torch.nn.functional.cross_entropy(logits, batch.target_out[batch.target_mask], reduction="sum").backward()
    for after, before in zip(found.model.parameters(), model.parameters(), strict=True):
        assert before.grad is not None
        torch.testing.assert_close(after, before - before.grad / divisor, atol=1e-5, rtol=1e-4)


def test_norm_is_the_true_one_and_the_step_the_clipped_one() -> None:
    batch = batch_of(pairs(LENGTHS))
    free, clipped = updater(clip_norm=None), updater(clip_norm=0.01)
    one, two = free.update(Group.of([batch]), rate=1.0), clipped.update(Group.of([batch]), rate=1.0)
    assert one.gradient_norm == pytest.approx(two.gradient_norm)
    assert one.gradient_norm > 0.1
    moved = [a - b for a, b in zip(clipped.model.parameters(), TiedToy().parameters(), strict=True)]
    assert float(torch.nn.utils.get_total_norm(moved)) == pytest.approx(0.01, rel=1e-3)


@pytest.mark.parametrize("bad", [math.inf, math.nan])
def test_broken_gradient_makes_no_update(bad: float) -> None:
    some = updater(clip_norm=1.0)
    before = [parameter.detach().clone() for parameter in some.model.parameters()]
    handle = next(some.model.parameters()).register_hook(lambda gradient: gradient * bad)
    assert not some.update(Group.of([batch_of(pairs(LENGTHS))]), rate=1.0).made
    handle.remove()
    for parameter, old in zip(some.model.parameters(), before, strict=True):
        torch.testing.assert_close(parameter, old, rtol=0, atol=0)
        assert parameter.grad is None
    assert some.update(Group.of([batch_of(pairs(LENGTHS))]), rate=1.0).made


def test_recipe_is_what_the_tests_mean() -> None:
    recipe: OptimConfig = updater().config
    assert isinstance(recipe.optimizer, SGDConfig)
    assert recipe.optimizer.momentum == 0.0


def test_compile_translates_what_an_update_calls_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[object, bool]] = []

    def compiled(function: Callable[..., torch.Tensor], dynamic: bool) -> Callable[..., torch.Tensor]:
        def translated(*arguments: torch.Tensor) -> torch.Tensor:
            calls.append((function, dynamic))
            return function(*arguments)

        return translated

    monkeypatch.setattr(torch, "compile", compiled)
    plain = updater()
    names = list(plain.model.state_dict())
    one = Updater(plain.model, plain.optimizer, plain.config, plain.device, "fp32", compiled=True)
    plain.update(Group.of([batch_of(pairs(LENGTHS))]), rate=0.0)
    assert calls == []
    one.update(Group.of([batch_of(pairs(LENGTHS))] * 2), rate=0.0)
    assert calls == [(one.model.forward, True)] * 2
    assert list(one.model.state_dict()) == names


@pytest.mark.slow
def test_compiled_updates_are_those_of_the_plain_model() -> None:
    """A small Transformer without dropout, batches of several shapes."""
    recipe = dataclasses.replace(updater().config, clip_norm=None)
    settings = compose_config("data=demo", "model=transformer", "model.dim=16", "model.heads=2", "model.dropout=0",
                              "model.encoder_layers=1", "model.decoder_layers=1", "model.feedforward_dim=24",
                              "model.attention_dropout=0").model  # fmt: skip
    models = [build(settings, VOCABULARY, VOCABULARY, seed=1) for _ in range(2)]
    for model, compiled in zip(models, (False, True), strict=True):
        one = Updater(model, build_optimizer(model, recipe), recipe, torch.device("cpu"), "fp32", compiled=compiled)
        for lengths in (LENGTHS, (5, 6, 7), (11, 12)):
            one.update(Group.of([batch_of(pairs(lengths))]), rate=0.5)
    for name, expected in models[0].state_dict().items():
        torch.testing.assert_close(models[1].state_dict()[name], expected, rtol=1e-4, atol=1e-5)
