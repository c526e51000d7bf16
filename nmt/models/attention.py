"""The three attentions: additive, scaled dot product, and several heads of the latter.

Each compares a query (what is sought) with keys (the addresses) and reads a weighted mean of values (what is stored).
The weight of a padded position is exactly zero and so is every gradient through it. A row whose positions are all
padding reads a zero context with zero weights: no mean over nothing, no NaN, forward and backward.
"""

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nmt.models.dropout import dropout
from nmt.models.memory import MemoryTable

NARROW = 16
"""Torch's softmax on a CPU computes rows shorter than this number by number, ten times slower than padded to it."""

FEW = 16
"""Queries of a sentence up to which plain products are faster on a CPU than torch's fused kernel without gradients."""


class Reading(NamedTuple):
    """What a query read out of a table."""

    context: Tensor  # [rows, ..., dim]
    weights: Tensor | None  # float32, the last axis is src_len; None where they were never made explicit


def masked_softmax(scores: Tensor, mask: Tensor | None) -> Tensor:
    """Softmax over the last axis restricted to ``mask`` (bool, True = real; None = all real), in float32.

    Exactly zero outside the mask, and everywhere in a row without any real position.
    """
    scores = scores.float()
    length = scores.size(-1)
    # A program that torch compiles or exports is for every length: it must not depend on the one it was traced with.
    if not torch.compiler.is_compiling() and length < NARROW and scores.device.type == "cpu":
        padding = (0, NARROW - length)
        if mask is None:
            return F.pad(scores, padding, value=-math.inf).softmax(dim=-1)[..., :length]
        return masked_softmax(F.pad(scores, padding), F.pad(mask, padding))[..., :length]
    if mask is None:
        return scores.softmax(dim=-1)
    # The lowest finite number and not -inf, which would make a row of padding NaN. Beside a real position its
    # exponential is exactly 0; without one the softmax is uniform, and the product with the mask makes it zero.
    weights = scores.masked_fill(~mask, torch.finfo(scores.dtype).min).softmax(dim=-1)
    return weights * mask


class AdditiveAttention(nn.Module):
    """e_tj = v^T tanh(W_a s_{t-1} + U_a h_j); alpha_t = softmax(e_t); c_t = sum_j alpha_tj h_j.

    Bahdanau, Cho and Bengio (2014), equations 5 and 6 and appendix A.1.2. The query changes with every target token,
    the keys U_a h_j do not: :meth:`table` makes them once for a sentence.
    """

    def __init__(self, query_dim: int, annotation_dim: int, dim: int) -> None:
        super().__init__()
        self.query = nn.Linear(query_dim, dim, bias=False)  # W_a
        self.key = nn.Linear(annotation_dim, dim, bias=False)  # U_a
        self.score = nn.Linear(dim, 1, bias=False)  # v

    def table(self, annotations: Tensor, mask: Tensor) -> MemoryTable:
        """Annotations [batch, src_len, annotation_dim] with their keys [batch, src_len, dim]."""
        return MemoryTable(self.key(annotations), annotations, mask)

    def forward(self, query: Tensor, table: MemoryTable) -> Reading:
        """Read for queries [rows, query_dim]; ``rows`` is a multiple k of the table's sentences, grouped by sentence.

        Returns:
            context [rows, annotation_dim], weights [rows, src_len].
        """
        rows, sentences = query.size(0), table.mask.size(0)
        queries = self.query(query).view(sentences, rows // sentences, 1, -1)  # [sentences, k, 1, dim]
        hidden = torch.tanh(queries + table.keys[:, None])  # [sentences, k, src_len, dim]
        scores = self.score(hidden).squeeze(-1)  # e_tj: [sentences, k, src_len]
        weights = masked_softmax(scores, table.mask[:, None])  # alpha_tj
        context = weights.to(table.values.dtype) @ table.values  # c_t: [sentences, k, annotation_dim]
        return Reading(context.view(rows, -1), weights.view(rows, -1))


def scaled_dot_product(
    query: Tensor,
    keys: Tensor,
    values: Tensor,
    mask: Tensor | None,
    causal: bool = False,
    dropout_p: float = 0.0,
    with_weights: bool = False,
) -> Reading:
    """Attention(Q, K, V) = softmax(Q K^T / sqrt(d_k) + M) V, M = -inf where not to look. Vaswani et al. (2017), eq. 1.

    Args:
        query: [batch, heads, queries, head_dim].
        keys: [batch, heads, src_len, head_dim].
        values: [batch, heads, src_len, head_dim].
        mask: [batch, src_len], True = real; None = all real.
        causal: query t may look at positions up to t only (and ``mask`` is None).
        dropout_p: probability of dropping a weight.
        with_weights: return the weights too, which takes the explicit path.

    Returns:
        context [batch, heads, queries, head_dim], weights [batch, heads, queries, src_len] or None.
    """
    on_cpu, training = query.device.type == "cpu", torch.is_grad_enabled()
    # On a CPU plain products beat torch's fused kernel at the few queries of one decoding step, and by far in the
    # backward pass in bfloat16.
    slow_kernel = on_cpu and (query.dtype == torch.bfloat16 if training else query.size(-2) <= FEW)
    if not (with_weights or slow_kernel):
        return Reading(_fused(query, keys, values, mask, causal, dropout_p), None)
    visible = None if mask is None else mask[:, None, None]  # [batch, 1, 1, src_len]
    if causal:
        visible = torch.ones(query.size(-2), keys.size(-2), dtype=torch.bool, device=query.device).tril()
    scores = (query @ keys.transpose(-2, -1)).float() / math.sqrt(query.size(-1))
    weights = masked_softmax(scores, visible)  # [batch, heads, queries, src_len]
    context = dropout(weights, dropout_p).to(values.dtype) @ values
    return Reading(context, weights if with_weights else None)


def _fused(query: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, causal: bool, dropout_p: float) -> Tensor:
    """The same through torch's fused kernel, which never keeps the weights."""
    attend = F.scaled_dot_product_attention
    if mask is None:
        return attend(query, keys, values, dropout_p=dropout_p, is_causal=causal)
    # Kernels differ in what they make of a row that may look at nothing: so a row of padding looks at all of it, which
    # is finite, and then its context is set to zero.
    empty = ~mask.any(dim=1, keepdim=True)  # [batch, 1]
    visible = (mask | empty)[:, None, None]  # [batch, 1, 1, src_len]
    return attend(query, keys, values, attn_mask=visible, dropout_p=dropout_p).masked_fill(empty[:, None, None], 0.0)


def split_heads(x: Tensor, heads: int) -> Tensor:
    """[batch, length, heads * head_dim] -> [batch, heads, length, head_dim]."""
    batch, length, dim = x.shape
    return x.view(batch, length, heads, dim // heads).transpose(1, 2)


def merge_heads(x: Tensor) -> Tensor:
    """[batch, heads, length, head_dim] -> [batch, length, heads * head_dim]."""
    return x.transpose(1, 2).flatten(2)


class KeysValues(NamedTuple):
    """Keys and values of the target tokens so far: the cache of one layer's self-attention."""

    keys: Tensor  # [rows, heads, tgt_len, head_dim]
    values: Tensor  # [rows, heads, tgt_len, head_dim]
    room: "Room | None" = None  # where they lie, if there is space behind them

    def append(self, keys: Tensor, values: Tensor) -> "KeysValues":
        """The cache with one position more, keys and values [rows, heads, 1, head_dim]; this one stays as it is."""
        if keys.requires_grad:  # writing in place is not for autograd
            return KeysValues(torch.cat([self.keys, keys], dim=2), torch.cat([self.values, values], dim=2))
        length = self.keys.size(2)
        room = self.room
        if room is None or not room.claim(length):
            room = Room.holding(self)
            room.claim(length)
        room.buffer[length, 0] = keys[:, :, 0]
        room.buffer[length, 1] = values[:, :, 0]
        return room.view(length + 1)

    def select_rows(self, rows: Tensor) -> "KeysValues":
        """For :func:`nmt.models.memory.select_rows`: one copy, which has space behind it again."""
        if self.room is None:
            return KeysValues(self.keys.index_select(0, rows), self.values.index_select(0, rows))
        return self.room.select_rows(rows, self.keys.size(2)).view(self.keys.size(2))


class Room:
    """Memory of a cache with space left: a new position is written behind the others instead of copying them all.

    Whoever holds the first ``used`` positions may write the next one, once: of two continuations of one state the
    second finds its place taken and makes a copy. So a step never changes a state that somebody still holds.

    Args:
        buffer: [capacity, 2, rows, heads, head_dim], keys and values; positions first, so that each is one block.
        used: positions that are written.
    """

    AHEAD = 16
    """Positions of space that a new buffer has."""

    def __init__(self, buffer: Tensor, used: int) -> None:
        self.buffer = buffer
        self.used = used

    @classmethod
    def holding(cls, cache: KeysValues) -> "Room":
        """A copy of a cache with space behind it."""
        rows, heads, length, head_dim = cache.keys.shape
        buffer = cache.keys.new_empty(length + cls.AHEAD, 2, rows, heads, head_dim)
        buffer[:length, 0] = cache.keys.permute(2, 0, 1, 3)
        buffer[:length, 1] = cache.values.permute(2, 0, 1, 3)
        return cls(buffer, length)

    def claim(self, length: int) -> bool:
        """Whether who holds ``length`` positions may write the next; if so, nobody else may any more."""
        free = self.used == length < self.buffer.size(0)
        self.used += free
        return free

    def view(self, length: int) -> KeysValues:
        """The first positions as a cache."""
        keys, values = self.buffer[:length].permute(1, 2, 3, 0, 4)  # [rows, heads, length, head_dim] each
        return KeysValues(keys, values, self)

    def select_rows(self, rows: Tensor, length: int) -> "Room":
        """A copy of some rows' first positions, as large as this one."""
        capacity, two, _, *head = self.buffer.shape
        buffer = self.buffer.new_empty(capacity, two, rows.size(0), *head)
        torch.index_select(self.buffer[:length], 2, rows, out=buffer[:length])
        return Room(buffer, length)


class SelfAttention(nn.Module):
    """A sequence looks at itself: MultiHead(X, X, X), with the three input projections as one matrix.

    MultiHead(Q, K, V) = Concat(head_1, ..., head_h) W^O with head_i = Attention(Q W_i^Q, K W_i^K, V W_i^V): Vaswani et
    al. (2017), section 3.2.2.
    """

    def __init__(self, dim: int, heads: int, dropout_p: float) -> None:
        super().__init__()
        self.heads = heads
        self.dropout_p = dropout_p  # of the weights
        self.query_key_value = nn.Linear(dim, 3 * dim)  # W^Q, W^K, W^V of all heads
        self.output = nn.Linear(dim, dim)  # W^O

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """Every position of x [batch, src_len, dim] sees every real one, mask [batch, src_len]."""
        query, keys, values = self._project(x)
        dropout_p = self.dropout_p if self.training else 0.0
        return self._output(scaled_dot_product(query, keys, values, mask, dropout_p=dropout_p).context)

    def causal(self, x: Tensor, past: KeysValues | None) -> tuple[Tensor, KeysValues]:
        """Every position of x [rows, tgt_len, dim] sees itself and what is left of it.

        Args:
            x: all positions from the first on if ``past`` is None, else exactly one, which follows ``past``.
            past: keys and values of the positions before.

        Returns:
            [rows, tgt_len, dim], and the keys and values of all positions up to here.
        """
        query, keys, values = self._project(x)
        if past is not None:
            assert x.size(1) == 1, "only one position may follow a cache"
        cache = KeysValues(keys, values) if past is None else past.append(keys, values)
        # Padding is on the right: no real position ever sees it, so the triangle is mask enough.
        dropout_p = self.dropout_p if self.training else 0.0
        reading = scaled_dot_product(query, cache.keys, cache.values, None, causal=past is None, dropout_p=dropout_p)
        return self._output(reading.context), cache

    def _project(self, x: Tensor) -> list[Tensor]:
        return [split_heads(part, self.heads) for part in self.query_key_value(x).chunk(3, dim=-1)]

    def _output(self, context: Tensor) -> Tensor:
        merged: Tensor = self.output(merge_heads(context))
        return merged


class CrossAttention(nn.Module):
    """The target looks at the source: MultiHead(X, H, H) for the encoder's output H.

    Keys and values depend on the source alone: :meth:`table` makes them once for a sentence.
    """

    def __init__(self, dim: int, heads: int, dropout_p: float) -> None:
        super().__init__()
        self.heads = heads
        self.dropout_p = dropout_p  # of the weights
        self.query = nn.Linear(dim, dim)  # W^Q of all heads
        self.key_value = nn.Linear(dim, 2 * dim)  # W^K, W^V of all heads
        self.output = nn.Linear(dim, dim)  # W^O

    def table(self, encoded: Tensor, mask: Tensor) -> MemoryTable:
        """Keys and values [batch, heads, src_len, head_dim] of encoded [batch, src_len, dim]."""
        keys, values = (split_heads(part, self.heads) for part in self.key_value(encoded).chunk(2, dim=-1))
        if not torch.is_grad_enabled():  # every step of a search will read them: as they lie now, each would copy them
            keys, values = keys.contiguous(), values.contiguous()
        return MemoryTable(keys, values, mask)

    def forward(self, x: Tensor, table: MemoryTable, with_weights: bool = False) -> Reading:
        """Read for x [rows, tgt_len, dim]; ``rows`` is a multiple k of the table's sentences, grouped by sentence.

        Returns:
            context [rows, tgt_len, dim], weights [rows, heads, tgt_len, src_len] if asked for.
        """
        rows, tgt_len, _ = x.shape
        sentences = table.mask.size(0)
        # The hypotheses of a sentence become further queries to its one table: nothing is repeated.
        query = split_heads(self.query(x).reshape(sentences, rows // sentences * tgt_len, -1), self.heads)
        dropout_p = self.dropout_p if self.training else 0.0
        reading = scaled_dot_product(
            query, table.keys, table.values, table.mask, dropout_p=dropout_p, with_weights=with_weights
        )
        context = self.output(merge_heads(reading.context)).view(rows, tgt_len, -1)  # [rows, tgt_len, dim]
        if reading.weights is None:
            return Reading(context, None)
        weights = reading.weights.view(sentences, self.heads, rows // sentences, tgt_len, -1).transpose(1, 2)
        return Reading(context, weights.reshape(rows, self.heads, tgt_len, -1))
