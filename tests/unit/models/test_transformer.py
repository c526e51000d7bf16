"""The Transformer against torch's own layers with the same weights, against the formula of positions, and its order."""

import math
import warnings
from dataclasses import replace

import pytest
import torch
from torch import nn

from nmt.models.transformer import DecoderLayer, EncoderLayer, Positions, sinusoids
from tests.model_configs import TRANSFORMER, lively, random_rows, shake, shift_right

CLOSE = {"rtol": 1e-5, "atol": 1e-5}
LAYER = replace(TRANSFORMER, dim=12, heads=3, feedforward_dim=20, dropout=0.0, attention_dropout=0.0)
variants = pytest.mark.parametrize(
    "config",
    [replace(LAYER, norm=norm, activation=activation) for norm in ("pre", "post") for activation in ("relu", "gelu")],
)
MASK = torch.arange(6) < torch.tensor([6, 4])[:, None]


def copy_attention(theirs: nn.MultiheadAttention, ours: nn.Module) -> None:
    projections = [ours.query_key_value] if hasattr(ours, "query_key_value") else [ours.query, ours.key_value]
    theirs.in_proj_weight.copy_(torch.cat([projection.weight for projection in projections]))
    theirs.in_proj_bias.copy_(torch.cat([projection.bias for projection in projections]))
    theirs.out_proj.load_state_dict(ours.output.state_dict())


def copy_feedforward(theirs: nn.Module, ours: nn.Module) -> None:
    theirs.linear1.load_state_dict(ours.feedforward.inner.state_dict())
    theirs.linear2.load_state_dict(ours.feedforward.outer.state_dict())


def torch_layer(kind: type[nn.Module], config: object) -> nn.Module:
    return kind(
        config.dim,
        config.heads,
        config.feedforward_dim,
        dropout=0.0,
        activation=config.activation,
        batch_first=True,
        norm_first=config.norm == "pre",
    )


@variants
def test_encoder_layer_equals_torch(config: object) -> None:
    ours, theirs = EncoderLayer(config), torch_layer(nn.TransformerEncoderLayer, config)
    shake(ours)
    with torch.no_grad():
        copy_attention(theirs.self_attn, ours.self_attention)
        copy_feedforward(theirs, ours)
        theirs.norm1.load_state_dict(ours.self_attention_residual.norm.state_dict())
        theirs.norm2.load_state_dict(ours.feedforward_residual.norm.state_dict())
    x = torch.randn(2, 6, 12)
    expected = theirs(x, src_key_padding_mask=~MASK)
    torch.testing.assert_close(ours(x, MASK)[MASK], expected[MASK], **CLOSE)


@variants
def test_decoder_layer_equals_torch(config: object) -> None:
    ours, theirs = DecoderLayer(config), torch_layer(nn.TransformerDecoderLayer, config)
    shake(ours)
    with torch.no_grad():
        copy_attention(theirs.self_attn, ours.self_attention)
        copy_attention(theirs.multihead_attn, ours.cross_attention)
        copy_feedforward(theirs, ours)
        theirs.norm1.load_state_dict(ours.self_attention_residual.norm.state_dict())
        theirs.norm2.load_state_dict(ours.cross_attention_residual.norm.state_dict())
        theirs.norm3.load_state_dict(ours.feedforward_residual.norm.state_dict())
    x, encoded = torch.randn(2, 5, 12), torch.randn(2, 6, 12)
    causal = torch.ones(5, 5, dtype=torch.bool).triu(1)
    expected = theirs(x, encoded, tgt_mask=causal, memory_key_padding_mask=~MASK)
    for with_weights in (False, True):
        output, _, _ = ours(x, ours.cross_attention.table(encoded, MASK), None, with_weights)
        torch.testing.assert_close(output, expected, **CLOSE)


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_the_residual_stream_is_normalised_at_the_end_and_once(norm: str) -> None:
    model = lively(replace(TRANSFORMER, norm=norm))
    assert sum(isinstance(module, nn.LayerNorm) for module in model.modules()) == 2 * 2 + 2 * 3 + 2 * (norm == "pre")
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, nn.LayerNorm):
                module.reset_parameters()
    source, lengths = random_rows([6, 4], seed=1)
    features = model(source, lengths, shift_right(random_rows([5, 5], seed=2)[0]))
    torch.testing.assert_close(features.mean(-1), torch.zeros(2, 5), **CLOSE)
    torch.testing.assert_close(features.var(-1, unbiased=False), torch.ones(2, 5), rtol=1e-2, atol=1e-2)


def test_sinusoids_equal_the_formula() -> None:
    table = sinusoids(torch.tensor([0, 1, 7, 511]), 10)
    for row, position in enumerate([0, 1, 7, 511]):
        for i in range(5):
            angle = position / 10000 ** (2 * i / 10)
            assert table[row, 2 * i].item() == pytest.approx(math.sin(angle), abs=1e-4)
            assert table[row, 2 * i + 1].item() == pytest.approx(math.cos(angle), abs=1e-4)


def test_word_vectors_are_scaled_by_the_root_of_their_size() -> None:
    model = lively(replace(TRANSFORMER, encoder_layers=1))
    seen = []
    model.encoder_layers[0].register_forward_pre_hook(lambda module, arguments: seen.append(arguments[0]))
    source, lengths = random_rows([6, 4], seed=1)
    model.encode(source, lengths)
    expected = model.embeddings.source_table[source] * math.sqrt(8) + sinusoids(torch.arange(6), 8)
    torch.testing.assert_close(seen[0], expected, **CLOSE)


def test_no_sentence_is_too_long_for_sinusoids() -> None:
    model = lively(TRANSFORMER)
    source, lengths = random_rows([1500, 3], seed=1)
    target_in = shift_right(random_rows([1200, 2], seed=2)[0])
    with torch.no_grad():
        memory = model.encode(source, lengths)
        features = model.decode(target_in, memory)
        state = model.init_state(memory)
        for position in range(0, 40):
            step = model.step(target_in[:, position], state, memory)
            state = step.state
            torch.testing.assert_close(step.features, features[:, position], rtol=1e-4, atol=1e-4)
    assert features.isfinite().all()


def test_positions_beyond_a_learned_table_share_its_last_row_with_a_warning() -> None:
    positions = Positions("learned", 4, 6)
    torch.nn.init.normal_(positions.table)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")  # what Python does unless told otherwise: each warning once
        assert torch.equal(positions(0, 4, torch.device("cpu")), positions.table)
        assert caught == []
        assert torch.equal(positions(2, 5, torch.device("cpu")), positions.table[[2, 3, 3, 3, 3]])
        assert torch.equal(positions(9, 1, torch.device("cpu")), positions.table[3:])
    assert len(caught) == 1
    assert "model.max_positions" in str(caught[0].message)


def test_without_positions_the_encoder_does_not_see_order() -> None:
    source, lengths = random_rows([7, 7], seed=3)
    order = torch.randperm(7, generator=torch.Generator().manual_seed(1))
    for kind, alike in (("none", True), ("sinusoidal", False)):
        model = lively(replace(TRANSFORMER, positions=kind))
        straight = model.encode(source, lengths)[-1].values[:, :, order]
        shuffled = model.encode(source[:, order], lengths)[-1].values
        assert torch.allclose(straight, shuffled, atol=1e-5) == alike
