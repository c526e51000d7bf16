"""Occlusion and gradient x input against the model asked directly."""

import numpy as np
import pytest
import torch

from nmt.analysis import relevance
from nmt.analysis.relevance import changes, gradient_x_input, total_variation
from nmt.models.base import TranslationModel
from nmt.tokens import EOS
from tests.model_configs import CONFIGS, VOCABULARY, lively
from tests.oracles import next_log_probabilities

CPU = torch.device("cpu")
SOURCE, TARGET = [5, 9, 12, 7], [6, 11, 8, EOS]  # all different, so that a row of the source table is one position


def log_probability(model: TranslationModel) -> np.ndarray:
    """log p of each target token, [tgt_len]."""
    values = [next_log_probabilities(model, [*SOURCE, EOS], TARGET[:place]) for place in range(len(TARGET))]
    return np.array([row[token] for row, token in zip(values, TARGET, strict=True)])


@pytest.mark.parametrize("name", [name for name, config in CONFIGS.items() if config.tie_embeddings != "three-way"])
def test_the_gradient_is_what_a_little_more_of_a_vector_does(name: str) -> None:
    """d log p / d scale of one subword's vector, by two evaluations; of a model that reads backwards, too."""
    model = lively(CONFIGS[name])
    found = gradient_x_input(model, SOURCE, TARGET, VOCABULARY, CPU)
    rows = model.embeddings.source_table
    expected = np.zeros((len(TARGET), len(SOURCE) + 1))
    with torch.no_grad():
        for place, token in enumerate([*SOURCE, EOS]):
            vector, sides = rows[token].clone(), []
            for scale in (1.01, 0.99):
                rows[token] = vector * scale
                sides.append(log_probability(model))
            rows[token] = vector
            expected[:, place] = (sides[0] - sides[1]) / 0.02
    np.testing.assert_allclose(found, expected, atol=4e-4, rtol=1e-2)
    assert np.abs(found).max() > 1e-3


@pytest.mark.parametrize("name", ["seq2seq", "bahdanau", "transformer-post"])
def test_parts_change_nothing_and_the_model_is_left_as_it_was(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = lively(CONFIGS[name]).train()
    lookup = model.embeddings.source(torch.tensor([5]))
    others = [[9, 12, 7], [5], [5, 9, 12, 7, 7, 7, 6]]
    gradient = gradient_x_input(model, SOURCE, TARGET, VOCABULARY, CPU)
    changed = changes(model, SOURCE, others, TARGET, VOCABULARY, CPU, "fp32")
    monkeypatch.setattr(relevance, "NUMBERS", 1)
    np.testing.assert_allclose(gradient_x_input(model, SOURCE, TARGET, VOCABULARY, CPU), gradient, atol=1e-5)
    np.testing.assert_allclose(changes(model, SOURCE, others, TARGET, VOCABULARY, CPU, "fp32"), changed, atol=1e-5)
    assert model.training
    assert torch.equal(model.embeddings.source(torch.tensor([5])), lookup)
    assert all(parameter.grad is None for parameter in model.parameters())


@pytest.mark.parametrize("name", CONFIGS)
def test_changes_are_distances_of_distributions(name: str) -> None:
    model = lively(CONFIGS[name])
    others = [[9, 12, 7], SOURCE, [5, 9, 12, 7, 8, 8]]
    found = changes(model, SOURCE, others, TARGET, VOCABULARY, CPU, "fp32")
    for row, other in zip(found, others, strict=True):
        for place, change in enumerate(row.tolist()):
            one, two = (
                np.exp(next_log_probabilities(model, [*source, EOS], TARGET[:place])) for source in (SOURCE, other)
            )
            assert change == pytest.approx(0.5 * np.abs(one - two).sum(), abs=1e-5)
    assert found[1].max() < 1e-5


def test_total_variation_is_nothing_and_all() -> None:
    one, other = (torch.tensor([row]).log() for row in ([1.0, 0.0, 0.0], [0.0, 0.5, 0.5]))
    assert float(total_variation(one, one)) == 0.0
    assert float(total_variation(one, other)) == 1.0
