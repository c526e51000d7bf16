"""The three attentions against naive loops and against torch's own modules with the same weights."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from nmt.models.attention import (
    AdditiveAttention,
    CrossAttention,
    SelfAttention,
    masked_softmax,
    scaled_dot_product,
)
from tests.model_configs import shake

CLOSE = {"rtol": 1e-5, "atol": 1e-5}


def lengths_mask(lengths: list[int], size: int) -> torch.Tensor:
    return torch.arange(size) < torch.tensor(lengths)[:, None]


# --- masked softmax ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1.0, 1e4])
def test_masked_softmax_is_the_softmax_of_the_real_part(scale: float) -> None:
    scores = torch.randn(4, 6) * scale
    mask = lengths_mask([6, 1, 4, 0], 6)
    weights = masked_softmax(scores, mask)
    for row, length in enumerate([6, 1, 4]):
        torch.testing.assert_close(weights[row, :length], scores[row, :length].softmax(0))
    assert torch.count_nonzero(weights[~mask]) == 0
    assert torch.count_nonzero(weights[3]) == 0


def test_masked_softmax_has_no_gradient_outside_the_mask() -> None:
    scores = torch.randn(3, 5, requires_grad=True)
    mask = lengths_mask([5, 2, 0], 5)
    (masked_softmax(scores, mask) * torch.randn(3, 5)).sum().backward()
    assert scores.grad.isfinite().all()
    assert torch.count_nonzero(scores.grad[~mask]) == 0
    assert torch.count_nonzero(scores.grad[1, :2]) == 2


# --- additive ---------------------------------------------------------------------------------------------------------


def naive_additive(attention: AdditiveAttention, query: np.ndarray, annotations: np.ndarray, length: int) -> tuple:
    """e_j = v^T tanh(W_a s + U_a h_j), one number at a time."""
    w, u, v = (module.weight.detach().numpy() for module in (attention.query, attention.key, attention.score))
    scores = []
    for j in range(length):
        score = 0.0
        for unit in range(v.shape[1]):
            inner = sum(w[unit, i] * query[i] for i in range(len(query)))
            inner += sum(u[unit, i] * annotations[j, i] for i in range(annotations.shape[1]))
            score += v[0, unit] * math.tanh(inner)
        scores.append(score)
    exponentials = [math.exp(score) for score in scores]
    weights = [exponential / sum(exponentials) for exponential in exponentials]
    return weights, sum(weights[j] * annotations[j] for j in range(length))


def test_additive_attention_equals_the_loop() -> None:
    attention = AdditiveAttention(query_dim=3, annotation_dim=4, dim=5)
    shake(attention)
    queries, annotations = torch.randn(4, 3), torch.randn(2, 6, 4)  # two queries for each of two sentences
    lengths = [6, 3]
    with torch.no_grad():
        context, weights = attention(queries, attention.table(annotations, lengths_mask(lengths, 6)))
    for row in range(4):
        sentence = row // 2
        expected_weights, expected_context = naive_additive(
            attention, queries[row].numpy(), annotations[sentence].numpy(), lengths[sentence]
        )
        np.testing.assert_allclose(weights[row, : lengths[sentence]].numpy(), expected_weights, rtol=1e-5)
        np.testing.assert_allclose(context[row].numpy(), expected_context, rtol=1e-4, atol=1e-6)


# --- scaled dot product -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("with_weights", [False, True])
def test_scaled_dot_product_equals_the_formula(with_weights: bool) -> None:
    query, keys, values = torch.randn(2, 3, 4, 8), torch.randn(2, 3, 5, 8), torch.randn(2, 3, 5, 8)
    context, weights = scaled_dot_product(query, keys, values, lengths_mask([5, 2], 5), with_weights=with_weights)
    for sentence, length in enumerate([5, 2]):
        for head in range(3):
            q, k, v = query[sentence, head], keys[sentence, head, :length], values[sentence, head, :length]
            expected = (q @ k.T / math.sqrt(8)).softmax(dim=-1)
            torch.testing.assert_close(context[sentence, head], expected @ v, **CLOSE)
            if weights is not None:
                torch.testing.assert_close(weights[sentence, head, :, :length], expected, **CLOSE)
    assert (weights is not None) == with_weights


@pytest.mark.parametrize("causal", [False, True])
def test_the_explicit_path_of_bf16_equals_the_fused_one(causal: bool) -> None:
    """On a CPU, training in bfloat16 takes other kernels than everything else."""
    exact = [torch.randn(2, 3, 5, 8) for _ in range(3)]
    mask = None if causal else lengths_mask([5, 0], 5)
    rounded = [tensor.bfloat16() for tensor in exact]
    explicit = scaled_dot_product(*rounded, mask, causal=causal).context
    with torch.no_grad():
        fused = scaled_dot_product(*rounded, mask, causal=causal).context
    reference = scaled_dot_product(*(tensor.float() for tensor in rounded), mask, causal=causal).context
    torch.testing.assert_close(explicit.float(), reference, rtol=2e-2, atol=2e-2)
    torch.testing.assert_close(fused.float(), reference, rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_row_of_padding_reads_zero_and_sends_no_gradient(dtype: torch.dtype) -> None:
    tensors = [torch.randn(2, 3, 4, 8, dtype=dtype, requires_grad=True) for _ in range(3)]
    context = scaled_dot_product(*tensors, lengths_mask([3, 0], 4)).context
    context.sum().backward()
    assert torch.count_nonzero(context[1]) == 0
    for tensor in tensors:
        assert tensor.grad.isfinite().all()
        assert torch.count_nonzero(tensor.grad[1]) == 0
    for tensor in tensors[1:]:
        assert torch.count_nonzero(tensor.grad[0, :, 3:]) == 0  # padding of the other row
        assert torch.count_nonzero(tensor.grad[0, :, :3]) > 0


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_attention_dropout_drops_and_keeps_the_mean(dtype: torch.dtype) -> None:
    torch.manual_seed(1)
    query, keys = torch.zeros(1, 1, 2000, 8, dtype=dtype), torch.zeros(1, 1, 10, 8, dtype=dtype)  # uniform weights
    values = torch.ones(1, 1, 10, 8, dtype=dtype)
    context = scaled_dot_product(query, keys, values, None, dropout_p=0.5).context.float()
    assert context.mean().item() == pytest.approx(1, abs=0.05)
    assert context.std() > 0.1


# --- several heads ----------------------------------------------------------------------------------------------------


def torch_attention(weight: torch.Tensor, bias: torch.Tensor, output: nn.Linear, heads: int) -> nn.MultiheadAttention:
    """torch's module with our weights."""
    attention = nn.MultiheadAttention(output.out_features, heads, batch_first=True)
    with torch.no_grad():
        attention.in_proj_weight.copy_(weight)
        attention.in_proj_bias.copy_(bias)
        attention.out_proj.load_state_dict(output.state_dict())
    return attention


def test_self_attention_equals_torch() -> None:
    ours = SelfAttention(dim=12, heads=3, dropout_p=0.0)
    shake(ours)
    theirs = torch_attention(ours.query_key_value.weight, ours.query_key_value.bias, ours.output, heads=3)
    x, mask = torch.randn(2, 5, 12), lengths_mask([5, 2], 5)
    expected, _ = theirs(x, x, x, key_padding_mask=~mask)
    torch.testing.assert_close(ours(x, mask), expected, **CLOSE)


def test_causal_attention_equals_torch_at_once_and_over_a_cache() -> None:
    ours = SelfAttention(dim=12, heads=3, dropout_p=0.0)
    shake(ours)
    theirs = torch_attention(ours.query_key_value.weight, ours.query_key_value.bias, ours.output, heads=3)
    x = torch.randn(2, 5, 12)
    expected, _ = theirs(x, x, x, attn_mask=torch.ones(5, 5, dtype=torch.bool).triu(1))
    at_once, cache = ours.causal(x, None)
    torch.testing.assert_close(at_once, expected, **CLOSE)
    past = ours.causal(x[:, :1], None)[1]
    for position in range(1, 5):
        output, past = ours.causal(x[:, position : position + 1], past)
        torch.testing.assert_close(output[:, 0], expected[:, position], **CLOSE)
    torch.testing.assert_close(past.keys, cache.keys, **CLOSE)


@pytest.mark.parametrize("hypotheses", [1, 3])
def test_cross_attention_equals_torch(hypotheses: int) -> None:
    ours = CrossAttention(dim=12, heads=3, dropout_p=0.0)
    shake(ours)
    weight = torch.cat([ours.query.weight, ours.key_value.weight])
    bias = torch.cat([ours.query.bias, ours.key_value.bias])
    theirs = torch_attention(weight, bias, ours.output, heads=3)
    encoded, mask = torch.randn(2, 5, 12), lengths_mask([5, 2], 5)
    x = torch.randn(2 * hypotheses, 4, 12)
    source, source_mask = (tensor.repeat_interleave(hypotheses, dim=0) for tensor in (encoded, mask))
    expected, expected_weights = theirs(x, source, source, key_padding_mask=~source_mask, average_attn_weights=False)
    table = ours.table(encoded, mask)
    context, weights = ours(x, table, with_weights=True)
    torch.testing.assert_close(context, expected, **CLOSE)
    torch.testing.assert_close(weights, expected_weights, **CLOSE)
    context, weights = ours(x, table)
    torch.testing.assert_close(context, expected, **CLOSE)
    assert weights is None
