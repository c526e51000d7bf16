"""Eight-bit products against the arithmetic they stand for, and models made of them against the originals."""

import pytest
import torch
from torch import nn

from nmt.models.int8 import INPUT_LEVELS, WEIGHT_LEVELS, Int8Linear, Int8LSTM, quantized
from tests.model_configs import CONFIGS, VOCABULARY, lively, random_rows, shift_right

SOURCE, SOURCE_LENGTHS = random_rows([7, 3, 5], seed=1)
TARGET_IN = shift_right(random_rows([4, 6, 2], seed=2)[0])


def draw(*shape: int, seed: int = 1) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("bias", [True, False])
def test_a_linear_layer_is_the_product_of_its_roundings(bias: bool) -> None:
    weight, x = draw(96, 40, seed=1), draw(3, 5, 40, seed=2)
    offset = draw(96, seed=3) if bias else None
    weight_scales = weight.abs().amax(dim=1, keepdim=True) / WEIGHT_LEVELS
    input_scales = x.abs().amax(dim=-1, keepdim=True) / INPUT_LEVELS
    levels, weights = (x / input_scales).round(), (weight / weight_scales).round()
    expected = nn.functional.linear(levels.double(), weights.double()) * input_scales * weight_scales[:, 0]
    expected = expected if offset is None else expected + offset
    # An input that lies on the edge between two levels may fall either way: one level of one weight at most.
    one_level = float(input_scales.max() * weight.abs().max())
    found = Int8Linear(weight, offset)(x)
    assert found.dtype == torch.float32
    assert (found - expected).abs().max() < one_level + 1e-5
    assert ((found - expected).abs() < 1e-4).float().mean() > 0.95


def test_sums_do_not_overflow() -> None:
    """All weights and inputs at their largest: where eight bits were too many, pairs of products would be cut off."""
    for sign in (1.0, -1.0):
        found = Int8Linear(torch.full((64, 512), 0.5), None)(torch.full((2, 512), sign))
        torch.testing.assert_close(found, torch.full((2, 64), sign * 256.0), rtol=1e-5, atol=0)


def test_a_row_does_not_depend_on_its_neighbours() -> None:
    layer, x = Int8Linear(draw(128, 64), draw(128, seed=2)), draw(33, 64, seed=3) * draw(33, 1, seed=4).exp()
    together = layer(x)
    for row in range(33):
        assert torch.equal(layer(x[row : row + 1])[0], together[row])


def test_a_row_of_zeros_gives_the_bias() -> None:
    bias = draw(64)
    assert torch.equal(Int8Linear(draw(64, 8), bias)(torch.zeros(2, 8)), bias.expand(2, 64))


def test_some_outputs_of_a_layer() -> None:
    layer, x, chosen = Int8Linear(draw(80, 16), draw(80, seed=2)), draw(4, 16, seed=3), torch.tensor([0, 7, 7, 79])
    assert torch.equal(layer.outputs(chosen)(x), layer(x)[:, chosen])


def test_an_lstm_is_near_torchs() -> None:
    lstm = nn.LSTM(32, 64, num_layers=2, batch_first=True)
    x, state = draw(3, 5, 32), (draw(2, 3, 64, seed=2).tanh(), draw(2, 3, 64, seed=3))
    with torch.no_grad():
        expected, (hidden, cell) = lstm(x, state)
        found, (found_hidden, found_cell) = Int8LSTM(lstm)(x, state)
    for one, other in ((found, expected), (found_hidden, hidden), (found_cell, cell)):
        assert (one - other).abs().max() < 0.03


@pytest.mark.parametrize("name", CONFIGS)
def test_a_model_in_eight_bits_is_near_the_original(name: str) -> None:
    model = lively(CONFIGS[name])
    small = quantized(model)
    with torch.no_grad():
        exact = model.project(model(SOURCE, SOURCE_LENGTHS, TARGET_IN))
        rounded = small.project(small(SOURCE, SOURCE_LENGTHS, TARGET_IN))
    assert (rounded - exact).square().mean() < 0.01 * exact.square().mean()
    assert not torch.equal(rounded, exact)


@pytest.mark.parametrize("eight_bits", [False, True])
@pytest.mark.parametrize("name", CONFIGS)
def test_the_output_layer_for_some_words(name: str, eight_bits: bool) -> None:
    model = lively(CONFIGS[name])
    model = quantized(model) if eight_bits else model
    words = torch.tensor([0, 1, 2, 3, VOCABULARY - 1, 5])
    with torch.no_grad():
        features = model(SOURCE, SOURCE_LENGTHS, TARGET_IN)
        torch.testing.assert_close(model.projection(words)(features), model.project(features)[..., words])
