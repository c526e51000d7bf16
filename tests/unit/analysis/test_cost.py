"""Counted operations against those that torch really dispatches."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from nmt.analysis.cost import TRAINING, Operations, operations, products
from nmt.config import ModelConfig, TransformerConfig
from nmt.models import build
from nmt.models.base import TranslationModel
from tests.model_configs import CONFIGS, VOCABULARY, random_rows, shift_right

PAIRS, SOURCE, TARGET = 3, 7, 5


@pytest.fixture(autouse=True)
def plain_kernels() -> Iterator[None]:
    """Attention and recurrent layers as plain products: fused kernels hide theirs from the counter."""
    with sdpa_kernel(SDPBackend.MATH), torch.backends.mkldnn.flags(enabled=False, allow_tf32=None):
        yield


def dispatched(model: TranslationModel, source: torch.Tensor, target: torch.Tensor) -> tuple[Operations, int]:
    """Operations of each part of forward, and of backward, as torch's dispatcher saw them."""
    lengths = torch.full((len(source),), source.size(1))
    parts = []
    with FlopCounterMode(display=False) as counter:
        memory = model.encode(source, lengths)
        parts.append(counter.get_total_flops())
        features = model.decode(shift_right(target), memory)
        parts.append(counter.get_total_flops())
        logits = model.project(features)
        parts.append(counter.get_total_flops())
        logits.square().sum().backward()
        total = counter.get_total_flops()
    encode, decode, output = parts
    return Operations(encode, decode - encode, output - decode), total - output


@pytest.mark.parametrize("name", CONFIGS)
def test_forward_is_exactly_what_torch_dispatches(name: str) -> None:
    config = CONFIGS[name]
    source, lengths = random_rows([SOURCE] * PAIRS, seed=1)
    target, target_lengths = random_rows([TARGET] * PAIRS, seed=2)
    counted = operations(config, VOCABULARY, lengths.numpy(), target_lengths.numpy())
    model = build(config, VOCABULARY, VOCABULARY, seed=1).eval()
    assert counted == dispatched(model, source, target)[0]


def large(config: ModelConfig) -> ModelConfig:
    """Sizes at which what has no gradient is little: zeros that a recurrence begins with, the state it ends in."""
    if isinstance(config, TransformerConfig):
        return replace(config, dim=32, heads=4, feedforward_dim=64)
    return replace(config, embedding_dim=24, hidden_dim=32)


@pytest.mark.parametrize("name", ["seq2seq", "bahdanau", "transformer"])
def test_backward_is_twice_forward(name: str) -> None:
    config = large(CONFIGS[name])
    source, lengths = random_rows([30] * PAIRS, seed=1)
    target, target_lengths = random_rows([28] * PAIRS, seed=2)
    counted = operations(config, VOCABULARY, lengths.numpy(), target_lengths.numpy())
    forward, backward = dispatched(build(config, VOCABULARY, VOCABULARY, seed=1).eval(), source, target)
    assert forward == counted
    assert backward == pytest.approx((TRAINING - 1) * counted.forward, rel=0.02)


@pytest.mark.parametrize("name", ["seq2seq", "bahdanau", "transformer"])
def test_a_ragged_batch_needs_what_its_pairs_need_alone(name: str) -> None:
    config = CONFIGS[name]
    sources, targets = [2, 9, 9, 4], [3, 8, 8, 6]
    _, source_lengths = random_rows(sources, seed=1)
    _, target_lengths = random_rows(targets, seed=2)
    together = operations(config, VOCABULARY, source_lengths.numpy(), target_lengths.numpy())
    alone = [
        sum(product.operations for product in products(config, VOCABULARY, 1, source, target))
        for source, target in zip(sources, targets, strict=True)
    ]
    assert together.forward == sum(alone)
    assert together.training == 3 * sum(alone)
    padded = sum(product.operations for product in products(config, VOCABULARY, len(sources), 9, 8))
    assert padded > together.forward
