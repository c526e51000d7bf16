"""Schedules against the papers' formulas, optimizers against torch's, nonsense against the checks."""

from itertools import pairwise

import pytest
import torch

from nmt.config import ConfigError, OptimConfig
from nmt.training.optim import build_optimizer, check_optim, clip_gradient, learning_rate
from tests.tiny_run import compose_config


def recipe(*overrides: str) -> OptimConfig:
    return compose_config("data=demo", *overrides).optim


def test_inverse_sqrt_is_equation_3_of_vaswani() -> None:
    dim, warmup = 512, 4000
    config = recipe(
        f"optim.schedule.warmup_steps={warmup}", f"optim.optimizer.learning_rate={dim**-0.5 * warmup**-0.5}"
    )
    for step in (1, 2, 399, 3999, 4000, 4001, 100000):
        wanted = dim**-0.5 * min(step**-0.5, step * warmup**-1.5)
        assert learning_rate(config, step, 0.0, 0) == pytest.approx(wanted, rel=1e-12)


def test_inverse_sqrt_without_warmup_starts_at_the_peak() -> None:
    config = recipe("optim.schedule.warmup_steps=0")
    assert [learning_rate(config, step, 0.0, 0) for step in (1, 4)] == pytest.approx([0.001, 0.0005])


def test_linear_falls_in_even_steps_to_zero_behind_the_last_update() -> None:
    config = recipe("optim/schedule=linear", "optim.schedule.warmup_steps=4", "optim.schedule.total_steps=10")
    peak = config.optimizer.learning_rate
    rates = [learning_rate(config, step, 0.0, 0) / peak for step in range(1, 13)]
    assert rates[:4] == pytest.approx([0.25, 0.5, 0.75, 1.0])
    steps = [earlier - later for earlier, later in pairwise(rates[3:11])]
    assert steps == pytest.approx([1 / 7] * 7)
    assert rates[9] > 0
    assert rates[10:] == [0.0, 0.0]


def test_halving_is_that_of_sutskever() -> None:
    """Section 3.4: 0.7 for 5 epochs, then halved every half epoch; 7.5 epochs in all."""
    config = recipe("optim/schedule=halving", "optim/optimizer=sgd")
    expected = {
        0.0: 1,
        4.99: 1,
        5.0: 1 / 2,
        5.49: 1 / 2,
        5.5: 1 / 4,
        6.0: 1 / 8,
        6.5: 1 / 16,
        7.0: 1 / 32,
        7.49: 1 / 32,
    }
    for epoch, factor in expected.items():
        assert learning_rate(config, 1, epoch, 0) == pytest.approx(0.7 * factor), epoch


def test_halving_at_periods_that_are_no_binary_fractions() -> None:
    config = recipe("optim/schedule=halving", "optim.schedule.every_epochs=0.1")
    rates = [learning_rate(config, 1, 5 + tenth / 10, 0) for tenth in range(20)]
    assert rates == pytest.approx([0.001 * 0.5 ** (tenth + 1) for tenth in range(20)])


def test_constant_and_plateau() -> None:
    constant = recipe("optim/schedule=constant", "optim.schedule.warmup_steps=4")
    assert [learning_rate(constant, step, 0.0, 0) for step in (1, 2, 4, 900)] == pytest.approx(
        [0.00025, 0.0005, 0.001, 0.001]
    )
    plateau = recipe("optim/schedule=plateau", "optim.schedule.min_learning_rate=0.0002")
    assert [learning_rate(plateau, 1, 0.0, cuts) for cuts in (0, 1, 2, 3, 9)] == pytest.approx(
        [0.001, 0.0005, 0.00025, 0.0002, 0.0002]
    )


@pytest.mark.parametrize("name", ["adam", "adamw", "sgd", "adadelta"])
def test_every_optimizer_goes_downhill_and_takes_its_rate(name: str) -> None:
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 1)
    optimizer = build_optimizer(model, recipe(f"optim/optimizer={name}", "optim.optimizer.learning_rate=0.05"))
    assert all(group["lr"] == 0.05 for group in optimizer.param_groups)
    inputs, losses = torch.randn(64, 4), []
    for _ in range(60):
        loss = (model(inputs) - 3.0).square().mean()
        losses.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert losses[-1] < losses[0]


def test_adamw_decays_matrices_only() -> None:
    model = torch.nn.Linear(3, 3)
    weight, bias = model.weight.detach().clone(), model.bias.detach().clone()
    optimizer = build_optimizer(
        model,
        recipe("optim/optimizer=adamw", "optim.optimizer.weight_decay=0.5", "optim.optimizer.learning_rate=0.1"),
    )
    model(torch.zeros(1, 3)).sum().mul(0.0).backward()  # a gradient of zero: only the decay moves anything
    optimizer.step()
    torch.testing.assert_close(model.weight, weight * 0.95)
    torch.testing.assert_close(model.bias, bias, rtol=0, atol=0)


def test_tied_parameters_are_stepped_once() -> None:
    one, two = torch.nn.Linear(3, 3, bias=False), torch.nn.Linear(3, 3, bias=False)
    two.weight = one.weight
    model = torch.nn.Sequential(one, two)
    assert sum(len(group["params"]) for group in build_optimizer(model, recipe()).param_groups) == 1


def test_norm_without_clipping_is_only_measured() -> None:
    model = torch.nn.Linear(2, 1, bias=False)
    model.weight.grad = torch.tensor([[3.0, 4.0]])
    assert clip_gradient(model, None) == 5.0
    assert model.weight.grad.tolist() == [[3.0, 4.0]]
    assert clip_gradient(model, 1.0) == 5.0
    torch.testing.assert_close(model.weight.grad, torch.tensor([[0.6, 0.8]]), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(
    ("key", "overrides"),
    [
        ("optim.optimizer.learning_rate", ["optim.optimizer.learning_rate=0"]),
        ("optim.optimizer.learning_rate", ["optim.optimizer.learning_rate=.nan"]),
        ("optim.optimizer.beta2", ["optim.optimizer.beta2=1"]),
        ("optim.optimizer.weight_decay", ["optim.optimizer.weight_decay=-1"]),
        ("optim.optimizer.momentum", ["optim/optimizer=sgd", "optim.optimizer.momentum=1.5"]),
        ("optim.optimizer.rho", ["optim/optimizer=adadelta", "optim.optimizer.rho=1"]),
        ("optim.schedule.warmup_steps", ["optim.schedule.warmup_steps=-1"]),
        ("optim.schedule.total_steps", ["optim/schedule=linear", "optim.schedule.total_steps=500"]),
        ("optim.schedule.factor", ["optim/schedule=plateau", "optim.schedule.factor=1.5"]),
        ("optim.schedule.patience", ["optim/schedule=plateau", "optim.schedule.patience=0"]),
        ("optim.schedule.min_learning_rate", ["optim/schedule=plateau", "optim.schedule.min_learning_rate=1"]),
        ("optim.schedule.every_epochs", ["optim/schedule=halving", "optim.schedule.every_epochs=0"]),
        ("optim.clip_norm", ["optim.clip_norm=0"]),
        ("optim.label_smoothing", ["optim.label_smoothing=1"]),
    ],
)
def test_nonsense_is_refused_by_key(key: str, overrides: list[str]) -> None:
    with pytest.raises(ConfigError, match=rf"^{key}: "):
        check_optim(recipe(*overrides))
