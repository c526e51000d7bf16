"""``build``: parameter counts of the papers, tied matrices, and settings that cannot be."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from nmt.config import ConfigError, ModelConfig
from nmt.models import build, parameter_count
from nmt.models.base import TranslationModel
from tests.model_configs import BAHDANAU, SEQ2SEQ, TRANSFORMER, VOCABULARY, lively
from tests.tiny_run import compose_config


def on_meta(config: ModelConfig, source_vocabulary: int, target_vocabulary: int) -> TranslationModel:
    with torch.device("meta"):
        return build(config, source_vocabulary, target_vocabulary, seed=1)


# --- the papers -------------------------------------------------------------------------------------------------------


def of_experiment(name: str) -> TranslationModel:
    """The model of a shipped experiment, with the vocabularies that it asks for."""
    config = compose_config(f"experiment={name}")
    tokenizer = config.data.tokenizer
    return on_meta(
        config.model, tokenizer.source_vocabulary_size or tokenizer.vocabulary_size, tokenizer.vocabulary_size
    )


def test_sutskever_2014() -> None:
    """Section 3.4: "384M parameters of which 64M are pure recurrent connections"."""
    model = of_experiment("sutskever2014")
    assert parameter_count(model) == pytest.approx(384e6, rel=0.005)
    assert parameter_count(model.encoder) + parameter_count(model.decoder) == pytest.approx(64e6, rel=0.005)
    tables = (160_000 + 80_000 + 80_000) * 1000
    lstm = 4 * (4 * 1000 * (1000 + 1000) + 2 * 4 * 1000)  # layers x (four gates of [x; h], two biases)
    assert parameter_count(model) == tables + 80_000 + 2 * lstm


def test_bahdanau_2014() -> None:
    """Appendix A: n = 1000, m = 620, l = 500, n' = 1000, 30,000 words a side."""
    n, m, readout, n_align, words = 1000, 620, 500, 1000, 30_000
    model = of_experiment("bahdanau2014_rnnsearch50")
    tables = 2 * words * m + words * readout + words
    encoder = 2 * 3 * (n * m + n * n + 2 * n)  # directions x gates
    initial = n * n + n
    alignment = n_align * n + n_align * 2 * n + n_align
    decoder = 3 * (n * m + n * 2 * n + n * n + 2 * n)
    maxout = 2 * readout * (n + m + 2 * n + 1)
    assert parameter_count(model) == tables + encoder + initial + alignment + decoder + maxout


@pytest.mark.parametrize(
    ("size", "dim", "inner", "paper"), [("base", 512, 2048, 65e6), ("big", 1024, 4096, 213e6)], ids=["base", "big"]
)
def test_vaswani_2017(size: str, dim: int, inner: int, paper: float) -> None:
    """Table 3: 65M and 213M; the exact size of the joint vocabulary (about 37,000) is not given."""
    model = of_experiment(f"vaswani2017_{size}")
    attention = 4 * dim * dim + 4 * dim
    feedforward = 2 * dim * inner + inner + dim
    norm = 2 * dim
    encoder, decoder = attention + feedforward + 2 * norm, 2 * attention + feedforward + 3 * norm
    assert parameter_count(model) == 37_000 * dim + 6 * encoder + 6 * decoder
    assert parameter_count(model) == pytest.approx(paper, rel=0.035)


# --- ties -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "config", [replace(SEQ2SEQ, dropout=0.0), BAHDANAU, TRANSFORMER], ids=lambda config: config.name
)
def test_a_tie_saves_a_matrix_and_shares_its_gradient(config: ModelConfig) -> None:
    counts = {}
    for tying in ("none", "two-way", "three-way"):
        model = lively(replace(config, tie_embeddings=tying))
        counts[tying] = parameter_count(model)
        source = torch.tensor([[4, 3]])
        features = model(source, torch.tensor([2]), torch.tensor([[2]]))
        model.project(features).sum().backward()
        used = model.embeddings.target_table.grad.abs().sum(dim=1) > 0
        expected = {"none": [2], "two-way": list(range(VOCABULARY)), "three-way": list(range(VOCABULARY))}[tying]
        assert used.nonzero().flatten().tolist() == expected
        assert (model.embeddings.source_table is None) == (tying == "three-way")
    matrix = VOCABULARY * model.embeddings.target_table.size(1)
    assert counts["none"] - counts["two-way"] == counts["two-way"] - counts["three-way"] == matrix


def test_three_way_reads_the_source_from_the_target_table() -> None:
    model = lively(replace(TRANSFORMER, tie_embeddings="three-way"))
    assert torch.equal(model.embeddings.source(torch.tensor([5])), model.embeddings.target(torch.tensor([5])))
    features = torch.randn(2, 8)
    assert torch.equal(model.project(features), nn.functional.linear(features, model.embeddings.target_table))


# --- what cannot be ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("config", "vocabularies", "key"),
    [
        (replace(SEQ2SEQ, tie_embeddings="two-way", hidden_dim=9), (20, 20), "tie_embeddings"),
        (replace(BAHDANAU, tie_embeddings="two-way", maxout_dim=9), (20, 20), "tie_embeddings"),
        (replace(TRANSFORMER, tie_embeddings="three-way"), (20, 21), "data.tokenizer.joint"),
        (replace(TRANSFORMER, heads=3), (20, 20), "model.heads"),
        (replace(TRANSFORMER, dim=9, heads=3), (20, 20), "model.dim"),
        (replace(TRANSFORMER, positions="learned"), (20, 20), "model.max_positions"),
        (replace(TRANSFORMER, max_positions=10), (20, 20), "model.max_positions"),
        (replace(TRANSFORMER, dropout=1.0), (20, 20), "model.dropout"),
        (replace(TRANSFORMER, attention_dropout=-0.1), (20, 20), "model.attention_dropout"),
        (replace(TRANSFORMER, decoder_layers=0), (20, 20), "model.decoder_layers"),
        (replace(SEQ2SEQ, layers=-1), (20, 20), "model.layers"),
        (replace(SEQ2SEQ, init_range=0.0), (20, 20), "model.init_range"),
        (replace(BAHDANAU, hidden_dim=0), (20, 20), "model.hidden_dim"),
    ],
)
def test_refuses_by_name(config: ModelConfig, vocabularies: tuple[int, int], key: str) -> None:
    with pytest.raises(ConfigError, match=key):
        build(config, *vocabularies, seed=1)
