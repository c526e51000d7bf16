"""Label-smoothed cross-entropy on real target positions only, a few rows of logits at a time.

The target distribution of Szegedy et al. (2016), section 7, as Vaswani et al. (2017), section 5.4, use it, with one
difference: the smoothing mass is spread over the vocabulary *without PAD*, which is never a possible token.

    q(k) = (1 - e) [k = y] + e / (V - 1)   for k != PAD,      q(PAD) = 0

    loss = -sum_k q(k) log p(k) = (1 - e) (-log p(y)) + e / (V - 1) sum_{k != PAD} -log p(k)

Its gradient with respect to the logits is p - q, so one softmax serves the loss, the plain negative log-likelihood and
the gradient. Logits of a whole batch (rows x vocabulary) are never held: every chunk is projected, gone back through
and forgotten.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from nmt.data.batch import Batch
from nmt.models.base import TranslationModel
from nmt.tokens import PAD

CHUNK_ROWS = 512
"""Rows projected at once. A speed knob, without effect on the result beyond rounding."""

BLOCK_ROWS = 64
"""Rows of logits that a CPU takes the softmax of at once: so few stay in its cache between one pass and the next."""


class LossSums(NamedTuple):
    """Sums over real target tokens, on the model's device and off the graph; divide by the tokens for a mean."""

    smoothed: Tensor  # scalar float32, what is minimised
    nll: Tensor  # scalar float32, plain negative log-likelihood in nats: perplexity = exp(nll / tokens)


def real_positions(batch: Batch) -> Tensor:
    """Indices of the real target tokens in ``target_out.flatten()``, [tokens] int64."""
    return batch.target_mask.flatten().nonzero().squeeze(1)


def smoothed_cross_entropy(logits: Tensor, targets: Tensor, smoothing: float) -> tuple[Tensor, Tensor, Tensor]:
    """Loss, NLL and gradient of a block of rows; no autograd.

    Args:
        logits: [rows, vocabulary], of any floating type; computed in float32.
        targets: [rows] int64, none of them PAD.
        smoothing: mass e taken from the true token.

    Returns:
        Summed smoothed loss (scalar), summed NLL (scalar), and the gradient of the summed loss with respect to the
        logits, [rows, vocabulary] float32.
    """
    logits = logits.float()
    gradient = logits.softmax(dim=-1)  # p, [rows, vocabulary]
    # log sum_k exp(logit_k) from the largest p, which cannot underflow: one exp per entry, where log_softmax needs two.
    normaliser = logits.amax(dim=-1) - gradient.amax(dim=-1).log()  # [rows]
    true = targets[:, None]
    nll = (normaliser - logits.gather(1, true).squeeze(1)).sum()
    gradient.scatter_add_(1, true, gradient.new_full(true.shape, smoothing - 1.0))
    if smoothing == 0.0:
        return nll, nll, gradient
    others = logits.size(1) - 1
    spread = (others * normaliser - (logits.sum(dim=-1) - logits[:, PAD])).sum()  # over k != PAD: -log p(k)
    gradient.sub_(smoothing / others)
    gradient[:, PAD] += smoothing / others
    return (1.0 - smoothing) * nll + smoothing / others * spread, nll, gradient


def _in_blocks(logits: Tensor, targets: Tensor, smoothing: float, scale: float) -> tuple[Tensor, Tensor, Tensor]:
    """:func:`smoothed_cross_entropy` with the gradient times ``scale`` and in the number format of the logits."""
    rows = BLOCK_ROWS if logits.device.type == "cpu" else logits.size(0)
    gradient = torch.empty_like(logits)  # [rows, vocabulary]
    smoothed, nll = torch.zeros((), device=logits.device), torch.zeros((), device=logits.device)
    for start in range(0, logits.size(0), rows):
        block = slice(start, start + rows)
        block_smoothed, block_nll, block_gradient = smoothed_cross_entropy(logits[block], targets[block], smoothing)
        gradient[block] = block_gradient.mul_(scale)
        smoothed += block_smoothed
        nll += block_nll
    return smoothed, nll, gradient


def backward(
    model: TranslationModel,
    features: Tensor,
    batch: Batch,
    positions: Tensor,
    smoothing: float,
    scale: float,
    chunk_rows: int = CHUNK_ROWS,
) -> LossSums:
    """Add the gradient of ``scale * summed smoothed loss`` to every parameter's ``.grad``.

    Call it inside the autocast context of the forward pass. ``features`` must come from ``model`` with its graph, which
    is used up.

    Args:
        model: its ``project`` makes the logits, any ties included.
        features: [batch, tgt_len, dim], of every target position.
        batch: the pairs, on the device of the model.
        positions: [tokens] int64, from :func:`real_positions`.
        smoothing: label smoothing e.
        scale: 1 / (tokens or sentences of the whole update).
        chunk_rows: positions projected at once.
    """
    flat = features.flatten(0, 1).index_select(0, positions)  # [tokens, dim]
    targets = batch.target_out.flatten().index_select(0, positions)  # [tokens]
    rows = flat.detach()
    features_gradient = torch.empty_like(rows)
    smoothed = torch.zeros((), device=rows.device)
    nll = torch.zeros((), device=rows.device)
    for start in range(0, rows.size(0), chunk_rows):
        leaf = rows[start : start + chunk_rows].detach().requires_grad_()  # [chunk, dim]
        logits = model.project(leaf)  # [chunk, vocabulary]
        with torch.no_grad():
            chunk_smoothed, chunk_nll, gradient = _in_blocks(
                logits, targets[start : start + chunk_rows], smoothing, scale
            )
        torch.autograd.backward(logits, gradient)
        assert leaf.grad is not None
        features_gradient[start : start + chunk_rows] = leaf.grad
        smoothed += chunk_smoothed
        nll += chunk_nll
    torch.autograd.backward(flat, features_gradient)
    return LossSums(smoothed, nll)
