"""Perplexity against the naive computation: one sentence at a time, every position, float64 log-softmax."""

import math
import random
from collections.abc import Iterator

import pytest
import torch

from nmt import forced
from nmt.config import BahdanauConfig, ModelConfig, Seq2SeqConfig, TransformerConfig
from nmt.data.batch import Batch, collate
from nmt.evaluation.likelihood import Likelihood, evaluate_likelihood
from nmt.models import build
from nmt.models.base import TranslationModel
from nmt.tokens import EOS

VOCABULARY = 13
CPU = torch.device("cpu")
CONFIGS: list[ModelConfig] = [
    Seq2SeqConfig("seq2seq", 8, 8, 2, 0.5, True, "none", 0.8),
    BahdanauConfig("bahdanau", 8, 8, 8, 8, 0.5, False, "none", "xavier"),
    TransformerConfig("transformer", 8, 2, 1, 1, 16, 0.5, 0.0, "pre", "relu", "sinusoidal", None, "none"),
]
Pair = tuple[list[int], list[int]]


class Batched:
    """Pairs in batches of a fixed number of rows."""

    def __init__(self, pairs: list[Pair], rows: int) -> None:
        self.pairs, self.rows = pairs, rows

    def batches(self, epoch: int) -> Iterator[Batch]:
        for start in range(0, len(self.pairs), self.rows):
            some = self.pairs[start : start + self.rows]
            yield collate([s for s, _ in some], [t for _, t in some], range(start, start + len(some)))


@pytest.fixture
def pairs() -> list[Pair]:
    draw = random.Random(1)
    return [
        tuple([*draw.choices(range(4, VOCABULARY), k=draw.randint(0, 9)), EOS] for _ in range(2))  # type: ignore[misc]
        for _ in range(11)
    ]


@pytest.fixture(params=CONFIGS, ids=lambda config: config.name)
def model(request: pytest.FixtureRequest) -> TranslationModel:
    return build(request.param, VOCABULARY, VOCABULARY, seed=1)


def naive(model: TranslationModel, pairs: list[Pair]) -> tuple[float, int]:
    """Sum of -log p over every target token, EOS included."""
    model.eval()
    total = 0.0
    for source, target in pairs:
        batch = collate([source], [target], [0])
        with torch.no_grad():
            logits = model.project(model(batch.source, batch.source_lengths, batch.target_in))  # [1, tgt_len, vocab]
        log_probabilities = logits[0].double().log_softmax(dim=-1)
        total -= sum(float(log_probabilities[place, token]) for place, token in enumerate(target))
    return total, sum(len(target) for _, target in pairs)


@pytest.mark.parametrize("rows", [1, 2, 11])
def test_equals_the_naive_sum_however_batched(model: TranslationModel, pairs: list[Pair], rows: int) -> None:
    nll, tokens = naive(model, pairs)
    result = evaluate_likelihood(model.train(), Batched(pairs, rows), CPU, "fp32")
    assert result.tokens == tokens
    assert result.nll == pytest.approx(nll, rel=1e-5)
    assert result.perplexity == pytest.approx(math.exp(nll / tokens), rel=1e-5)


def test_projects_in_chunks_and_only_real_positions(
    model: TranslationModel, pairs: list[Pair], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forced, "PROJECTED_ROWS", 7)
    seen: list[int] = []
    project = model.project

    def record(features: torch.Tensor) -> torch.Tensor:
        seen.append(features.size(0))
        return project(features)

    monkeypatch.setattr(model, "project", record)
    result = evaluate_likelihood(model, Batched(pairs, 11), CPU, "fp32")
    assert max(seen) <= 7
    assert sum(seen) == result.tokens
    assert result.nll == pytest.approx(naive(model, pairs)[0], rel=1e-5)


@pytest.mark.parametrize("training", [True, False])
def test_leaves_the_model_as_it_was(model: TranslationModel, pairs: list[Pair], training: bool) -> None:
    model.train(training)
    evaluate_likelihood(model, Batched(pairs, 4), CPU, "fp32")
    assert all(module.training == training for module in model.modules())
    assert all(parameter.grad is None for parameter in model.parameters())


def test_the_mode_comes_back_after_an_error(model: TranslationModel) -> None:
    model.train()
    with pytest.raises(ValueError, match="no target tokens"):
        evaluate_likelihood(model, Batched([], 4), CPU, "fp32")
    assert model.training


def test_bf16_is_close(model: TranslationModel, pairs: list[Pair]) -> None:
    result = evaluate_likelihood(model, Batched(pairs, 4), CPU, "bf16")
    assert result.nll == pytest.approx(naive(model, pairs)[0], rel=0.02)


def test_perplexity_is_infinite_rather_than_an_error() -> None:
    assert Likelihood(nll=1e6, tokens=1).perplexity == math.inf
    assert Likelihood(nll=0.0, tokens=3).perplexity == 1.0
