"""The Transformer: Vaswani et al. (2017), arXiv 1706.03762.

The encoder lets every source position look at every other; the decoder reads the source in every layer, so ``encode``
leaves one table of keys and values per decoder layer. Training is one pass over all target positions behind a causal
mask; generation goes one token at a time over a cache of the target's own keys and values, which is the state of a
hypothesis.

Deviations from the paper: attention projections have biases, as in torch; ``norm: pre`` normalises before each
sub-layer and once more at the end (Xiong et al. 2020); learned positions, no positions and GELU are alternatives.
Dropout also acts inside the feed-forward network and, if asked for, on the attention weights.
"""

import math
import warnings
from collections.abc import Callable
from typing import Literal, NamedTuple, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nmt.config import TransformerConfig
from nmt.models.attention import CrossAttention, KeysValues, SelfAttention
from nmt.models.base import Step, TranslationModel
from nmt.models.dropout import Dropout
from nmt.models.embedding import Embeddings
from nmt.models.memory import Memory, MemoryTable

Cache = tuple[KeysValues, ...]
"""Keys and values of the target so far, one entry per decoder layer."""


class Transformer(TranslationModel):
    """The state of a hypothesis is a :data:`Cache`."""

    attends = True

    def __init__(self, config: TransformerConfig, source_vocabulary: int, target_vocabulary: int) -> None:
        super().__init__()
        dim = config.dim
        self.scale = math.sqrt(dim)
        self.heads = config.heads
        self.embeddings = Embeddings(
            source_vocabulary, target_vocabulary, dim, dim, config.tie_embeddings, output_bias=False
        )
        self.source_positions = Positions(config.positions, config.max_positions, dim)
        self.target_positions = Positions(config.positions, config.max_positions, dim)
        self.dropout = Dropout(config.dropout)
        self.encoder_layers = nn.ModuleList(EncoderLayer(config) for _ in range(config.encoder_layers))
        self.decoder_layers = nn.ModuleList(DecoderLayer(config) for _ in range(config.decoder_layers))
        # Pre-norm leaves the sum of all layers unnormalised; post-norm has normalised it already.
        self.encoder_norm = nn.LayerNorm(dim) if config.norm == "pre" else nn.Identity()
        self.decoder_norm = nn.LayerNorm(dim) if config.norm == "pre" else nn.Identity()

    def initialize(self, generator: torch.Generator) -> None:
        """Xavier (Glorot and Bengio 2010) for each projection on its own; tables Gaussian with deviation dim^-1/2."""
        fused = {"query_key_value": 3, "key_value": 2}  # projections in one matrix
        for name, module in self.named_modules():
            if isinstance(module, nn.LayerNorm):
                module.reset_parameters()  # ones and zeros: draws nothing
            elif isinstance(module, nn.Linear):
                for matrix in module.weight.chunk(fused.get(name.rpartition(".")[2], 1)):
                    nn.init.xavier_uniform_(matrix, generator=generator)
                nn.init.zeros_(module.bias)
        for name, parameter in self.named_parameters():
            if name.endswith("table"):
                nn.init.normal_(parameter, std=parameter.size(1) ** -0.5, generator=generator)

    def encode(self, source: Tensor, source_lengths: Tensor) -> tuple[MemoryTable, ...]:
        """The source's keys and values for every decoder layer."""
        mask = torch.arange(source.size(1), device=source.device) < source_lengths[:, None]  # [batch, src_len]
        x = self._embed(self.embeddings.source(source), self.source_positions, first=0)  # [batch, src_len, dim]
        for layer in self.encoder_layers:
            x = layer(x, mask)
        x = self.encoder_norm(x)
        return tuple(layer.cross_attention.table(x, mask) for layer in cast(list[DecoderLayer], self.decoder_layers))

    def init_state(self, memory: Memory) -> Cache:
        """A cache of no positions."""
        tables = cast(tuple[MemoryTable, ...], memory)
        return tuple(KeysValues(table.keys[:, :, :0], table.values[:, :, :0]) for table in tables)

    def step(self, previous: Tensor, state: Cache, memory: Memory, with_attention: bool = False) -> Step:
        """One position over the cache."""
        result = self._run(previous[:, None], state, memory, with_attention)
        weights = result.weights
        return Step(
            result.features.squeeze(1), result.cache, torch.stack(weights, dim=1).squeeze(3) if with_attention else None
        )

    def decode(self, target_in: Tensor, memory: Memory) -> Tensor:
        """All positions in one pass: the causal mask hides from each what it may not know."""
        return self._run(target_in, None, memory).features

    def attention(self, target_in: Tensor, memory: Memory) -> Tensor:
        """All positions in one pass, with explicit weights of every decoder layer's cross-attention."""
        return torch.stack(self._run(target_in, None, memory, with_weights=True).weights, dim=1)

    def project(self, features: Tensor) -> Tensor:
        """Logits [..., target_vocabulary]."""
        return self.embeddings.logits(features)

    def projection(self, words: Tensor) -> Callable[[Tensor], Tensor]:
        """Without computing what is not wanted."""
        return self.embeddings.logits_of(words)

    def _embed(self, embedded: Tensor, positions: "Positions", first: int) -> Tensor:
        """Scaled word vectors [rows, length, dim] with the positions from ``first`` on added (section 3.4)."""
        return cast(Tensor, self.dropout(embedded * self.scale + positions(first, embedded.size(1), embedded.device)))

    def _run(self, target: Tensor, past: Cache | None, memory: Memory, with_weights: bool = False) -> "Decoded":
        """Run target [rows, tgt_len] through all layers: from the first position on, or one position after ``past``."""
        tables = cast(tuple[MemoryTable, ...], memory)
        first = 0 if past is None else past[0].keys.size(2)
        x = self._embed(self.embeddings.target(target), self.target_positions, first)  # [rows, tgt_len, dim]
        caches, weights = [], []
        for index, (layer, table) in enumerate(zip(self.decoder_layers, tables, strict=True)):
            x, cache, layer_weights = layer(x, table, None if past is None else past[index], with_weights)
            caches.append(cache)
            weights.append(layer_weights)
        return Decoded(self.decoder_norm(x), tuple(caches), weights)


class Decoded(NamedTuple):
    """What a run through the decoder gives."""

    features: Tensor  # [rows, tgt_len, dim]
    cache: Cache
    weights: list[Tensor]  # of each layer, [rows, heads, tgt_len, src_len], if asked for


class EncoderLayer(nn.Module):
    """Self-attention, then the feed-forward network."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.self_attention = SelfAttention(config.dim, config.heads, config.attention_dropout)
        self.self_attention_residual = Residual(config)
        self.feedforward = FeedForward(config)
        self.feedforward_residual = Residual(config)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """x [batch, src_len, dim], mask [batch, src_len] True = real."""
        residual = self.self_attention_residual
        x = residual.add(x, self.self_attention(residual.enter(x), mask))
        residual = self.feedforward_residual
        return residual.add(x, self.feedforward(residual.enter(x)))


class DecoderLayer(nn.Module):
    """Causal self-attention, attention to the source, then the feed-forward network."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.self_attention = SelfAttention(config.dim, config.heads, config.attention_dropout)
        self.self_attention_residual = Residual(config)
        self.cross_attention = CrossAttention(config.dim, config.heads, config.attention_dropout)
        self.cross_attention_residual = Residual(config)
        self.feedforward = FeedForward(config)
        self.feedforward_residual = Residual(config)

    def forward(
        self, x: Tensor, table: MemoryTable, past: KeysValues | None, with_weights: bool
    ) -> tuple[Tensor, KeysValues, Tensor | None]:
        """x [rows, tgt_len, dim] -> the same, this layer's cache, and the cross-attention's weights if asked for."""
        residual = self.self_attention_residual
        update, cache = self.self_attention.causal(residual.enter(x), past)
        x = residual.add(x, update)
        residual = self.cross_attention_residual
        update, weights = self.cross_attention(residual.enter(x), table, with_weights)
        x = residual.add(x, update)
        residual = self.feedforward_residual
        return residual.add(x, self.feedforward(residual.enter(x))), cache, weights


class Residual(nn.Module):
    """The way around a sub-layer f: x + f(norm(x)) if pre-norm, norm(x + f(x)) if post-norm (the paper)."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.pre = config.norm == "pre"
        self.norm = nn.LayerNorm(config.dim)
        self.dropout = Dropout(config.dropout)

    def enter(self, x: Tensor) -> Tensor:
        """What the sub-layer gets."""
        return self.norm(x) if self.pre else x

    def add(self, x: Tensor, update: Tensor) -> Tensor:
        """x and what the sub-layer made of it, together."""
        x = x + self.dropout(update)
        return x if self.pre else self.norm(x)


class FeedForward(nn.Module):
    """FFN(x) = max(0, x W_1 + b_1) W_2 + b_2 at every position on its own (equation 2), or GELU for the maximum."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.inner = nn.Linear(config.dim, config.feedforward_dim)
        self.outer = nn.Linear(config.feedforward_dim, config.dim)
        self.activation = F.gelu if config.activation == "gelu" else F.relu
        self.dropout = Dropout(config.dropout)

    def forward(self, x: Tensor) -> Tensor:
        """[..., dim] -> [..., dim]."""
        output: Tensor = self.outer(self.dropout(self.activation(self.inner(x))))
        return output


class Positions(nn.Module):
    """What is added to the word vectors so that their order can be seen (section 3.5).

    Sinusoids are computed when asked for, so no length is too long for them. A learned table ends: positions beyond it
    share its last row, with a warning.
    """

    def __init__(self, kind: Literal["sinusoidal", "learned", "none"], max_positions: int | None, dim: int) -> None:
        super().__init__()
        self.kind = kind
        self.dim = dim
        self.table = nn.Parameter(torch.empty(max_positions, dim)) if kind == "learned" and max_positions else None

    def forward(self, first: int, length: int, device: torch.device) -> Tensor:
        """Vectors of the positions first, ..., first + length - 1: [length, dim] float32."""
        positions = torch.arange(first, first + length, device=device)
        if self.table is not None:
            last = self.table.size(0) - 1
            # While a program for all lengths is traced there is no length to warn of.
            if not torch.compiler.is_compiling() and first + length - 1 > last:
                warnings.warn(  # Python shows the same warning once
                    f"a sentence is longer than the {last + 1} learned positions (model.max_positions): "
                    "positions beyond share the last one",
                    stacklevel=2,
                )
            return F.embedding(positions.clamp(max=last), self.table)
        if self.kind == "none":
            return torch.zeros(length, self.dim, device=device)
        return sinusoids(positions, self.dim)


def sinusoids(positions: Tensor, dim: int) -> Tensor:
    """PE(pos, 2i) = sin(pos / 10000^(2i/dim)), PE(pos, 2i+1) = cos(the same): [length, dim] of positions [length]."""
    even = torch.arange(0, dim, 2, device=positions.device, dtype=torch.float32)  # 2i
    angles = positions[:, None] * torch.exp(even * (-math.log(10000.0) / dim))  # [length, dim / 2]
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)
