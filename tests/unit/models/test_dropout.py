"""Dropout: how much it drops, that the mean stays, that a seed repeats it, and what flows back."""

import pytest
import torch

from nmt.models.dropout import LEVELS, Dropout, dropout

N = 200_000


@pytest.mark.parametrize("p", [0.05, 0.1, 0.3, 0.5, 0.9])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_rate_scale_and_mean(p: float, dtype: torch.dtype) -> None:
    torch.manual_seed(1)
    y = dropout(torch.ones(N, dtype=dtype), p)
    dropped = (y == 0).double().mean().item()
    deviation = (p * (1 - p) / N) ** 0.5
    assert abs(dropped - p) < 5 * deviation + 1 / LEVELS
    assert y.dtype == dtype
    kept = y[y != 0].unique()
    assert len(kept) == 1  # one scale for all
    assert kept.double().item() == pytest.approx(
        1 / (1 - round(p * LEVELS) / LEVELS), rel=1e-6 if dtype is torch.float32 else 4e-3
    )
    assert y.double().mean().item() == pytest.approx(
        1, abs=5 * deviation / (1 - p) + (0 if dtype is torch.float32 else 4e-3)
    )


def test_every_lane_of_the_random_words_drops_alike() -> None:
    torch.manual_seed(2)
    dropped = (dropout(torch.ones(N), 0.25) == 0).double().view(-1, 4).mean(dim=0)  # four draws to a word of 64 bits
    assert (dropped - 0.25).abs().max() < 5 * (0.25 * 0.75 / (N / 4)) ** 0.5


def test_neighbours_are_independent() -> None:
    torch.manual_seed(3)
    kept = (dropout(torch.ones(N), 0.5) != 0).double() - 0.5
    for lag in (1, 2, 3, 4, 64):
        correlation = (kept[:-lag] * kept[lag:]).mean().item() / 0.25
        assert abs(correlation) < 5 / N**0.5


@pytest.mark.parametrize("shape", [(1,), (3,), (5, 7), (2, 3, 5), (0, 4), ()])
def test_any_shape(shape: tuple[int, ...]) -> None:
    assert dropout(torch.ones(shape), 0.5).shape == shape


def test_seed_repeats_and_moves_on() -> None:
    x = torch.randn(1000)
    torch.manual_seed(4)
    first, second = dropout(x, 0.3), dropout(x, 0.3)
    torch.manual_seed(4)
    assert torch.equal(first, dropout(x, 0.3))
    assert not torch.equal(first, second)


def test_gradient_is_mask_times_scale() -> None:
    x = torch.randn(1000, requires_grad=True)
    torch.manual_seed(5)
    y = dropout(x, 0.3)
    upstream = torch.randn(1000)
    y.backward(upstream)
    torch.manual_seed(5)
    factor = dropout(torch.ones(1000), 0.3)
    torch.testing.assert_close(y, x * factor)
    torch.testing.assert_close(x.grad, upstream * factor)


def test_identity_in_eval_mode_and_at_zero() -> None:
    x = torch.randn(10)
    state = torch.get_rng_state()
    assert Dropout(0.5).eval()(x) is x
    assert Dropout(0.0)(x) is x
    assert torch.equal(state, torch.get_rng_state())
    assert not torch.equal(Dropout(0.5)(x), x)


@pytest.mark.parametrize("p", [-0.1, 1.0, float("nan")])
def test_refuses_what_is_no_probability(p: float) -> None:
    with pytest.raises(ValueError, match="dropout"):
        Dropout(p)
