"""Floating-point operations of a training step, counted from the sizes of its matrix products.

A product of a [rows, inner] and an [inner, columns] matrix has rows * inner * columns multiply-adds and is counted as

    2 * rows * inner * columns                                                                     operations.

Backward needs two products of that size for each one of forward (the gradients of both factors), so training costs
three times the forward pass. Only matrix products are counted: softmax, normalisation, activations, gates, dropout,
embedding look-ups, the loss and the optimizer are left out, which is a few per cent at usual sizes.

Per pair of n source and m target tokens (EOS counted), with vocabulary V, the forward pass has these multiply-adds:

    transformer (d dim, f feedforward_dim, N and M layers)
        encode   N n (4 d d + 2 d f + 2 n d) + M n 2 d d
        decode   M m (6 d d + 2 d f + 2 m d + 2 n d)
        output   m d V
    bahdanau (e embedding_dim, h hidden_dim, a attention_dim, o maxout_dim)
        encode   2 n (e 3h + h 3h) + n 2h a
        decode   h h + m (e 3h + h a + n a + n 2h + 2h 3h + h 3h + (3h + e) 2o)
        output   m o V
    seq2seq (e embedding_dim, h hidden_dim, L layers)
        encode   n (e 4h + h 4h + (L - 1) 8 h h)
        decode   m (the same)
        output   m h V

Causal attention is counted in full (m m, not m (m + 1) / 2), as plain products compute it.

**Padding.** What a batch *needs* is the sum of the above over its pairs, each with its own n and m: as if every pair
stood alone. Whatever is computed at padded positions comes on top, is not counted, and so lowers the share of the
hardware's rate that counts as used (MFU).
"""

from collections import Counter
from typing import Literal, NamedTuple

import numpy as np

from nmt.config import BahdanauConfig, ModelConfig, Seq2SeqConfig, TransformerConfig

Part = Literal["encode", "decode", "output"]

TRAINING = 3
"""Operations of forward and backward together, relative to forward."""


class Product(NamedTuple):
    """Equal matrix products of a forward pass: [rows, inner] x [inner, columns], ``times`` times."""

    part: Part
    rows: int
    inner: int
    columns: int
    times: int = 1  # steps of a recurrence, or pairs x heads
    weight: bool = True  # one factor is a parameter; False: attention, where both are activations

    @property
    def operations(self) -> int:
        """Of all of them."""
        return 2 * self.rows * self.inner * self.columns * self.times


class Operations(NamedTuple):
    """Operations of a forward pass by part."""

    encode: int
    decode: int
    output: int

    @property
    def forward(self) -> int:
        """All parts."""
        return sum(self)

    @property
    def training(self) -> int:
        """Forward and backward."""
        return TRAINING * self.forward


def operations(
    config: ModelConfig, vocabulary: int, source_lengths: np.ndarray, target_lengths: np.ndarray
) -> Operations:
    """What a forward pass over these pairs needs, padding not counted.

    Args:
        config: the model.
        vocabulary: target subwords.
        source_lengths: [pairs] tokens of each source, EOS included.
        target_lengths: [pairs] tokens of each target, EOS included.
    """
    sums: Counter[str] = Counter()
    lengths = Counter(zip(source_lengths.tolist(), target_lengths.tolist(), strict=True))
    for (source, target), pairs in lengths.items():
        for product in products(config, vocabulary, 1, source, target):
            sums[product.part] += pairs * product.operations
    return Operations(sums["encode"], sums["decode"], sums["output"])


def products(config: ModelConfig, vocabulary: int, pairs: int, source: int, target: int) -> list[Product]:
    """Every matrix product of a forward pass over ``pairs`` pairs of ``source`` and ``target`` tokens each."""
    match config:
        case TransformerConfig():
            return _transformer(config, vocabulary, pairs, source, target)
        case BahdanauConfig():
            return _bahdanau(config, vocabulary, pairs, source, target)
        case Seq2SeqConfig():
            return _seq2seq(config, vocabulary, pairs, source, target)


def _transformer(config: TransformerConfig, vocabulary: int, pairs: int, source: int, target: int) -> list[Product]:
    dim, inner = config.dim, config.feedforward_dim

    def attention(part: Part, queries: int, keys: int) -> list[Product]:
        size, times = dim // config.heads, pairs * config.heads
        return [
            Product(part, queries, size, keys, times, weight=False),
            Product(part, queries, keys, size, times, weight=False),
        ]

    def feedforward(part: Part, rows: int) -> list[Product]:
        return [Product(part, rows, dim, inner), Product(part, rows, inner, dim)]

    rows = pairs * source
    encoder = [
        Product("encode", rows, dim, 3 * dim),  # query, key, value
        *attention("encode", source, source),
        Product("encode", rows, dim, dim),
        *feedforward("encode", rows),
    ]
    tables = [Product("encode", rows, dim, 2 * dim)]  # keys and values for a decoder layer
    rows = pairs * target
    decoder = [
        Product("decode", rows, dim, 3 * dim),
        *attention("decode", target, target),
        Product("decode", rows, dim, dim),
        Product("decode", rows, dim, dim),  # query of the attention to the source
        *attention("decode", target, source),
        Product("decode", rows, dim, dim),
        *feedforward("decode", rows),
    ]
    output = [Product("output", rows, dim, vocabulary)]
    return encoder * config.encoder_layers + tables * config.decoder_layers + decoder * config.decoder_layers + output


def _bahdanau(config: BahdanauConfig, vocabulary: int, pairs: int, source: int, target: int) -> list[Product]:
    words, hidden, attention = config.embedding_dim, config.hidden_dim, config.attention_dim
    annotation, gates = 2 * hidden, 3 * hidden
    direction = [
        Product("encode", pairs * source, words, gates),
        Product("encode", pairs, hidden, gates, source),
    ]
    return [
        *direction,
        *direction,
        Product("encode", pairs * source, annotation, attention),  # U_a h_j
        Product("decode", pairs, hidden, hidden),  # s_0
        Product("decode", pairs * target, words, gates),
        Product("decode", pairs, hidden, attention, target),  # W_a s_{t-1}
        Product("decode", source, attention, 1, pairs * target, weight=False),  # v^T tanh(...)
        Product("decode", 1, source, annotation, pairs * target, weight=False),  # c_t
        Product("decode", pairs, annotation, gates, target),
        Product("decode", pairs, hidden, gates, target),
        Product("decode", pairs * target, hidden + words + annotation, 2 * config.maxout_dim),  # readout
        Product("output", pairs * target, config.maxout_dim, vocabulary),
    ]


def _seq2seq(config: Seq2SeqConfig, vocabulary: int, pairs: int, source: int, target: int) -> list[Product]:
    hidden, gates = config.hidden_dim, 4 * config.hidden_dim

    def layers(part: Part, length: int) -> list[Product]:
        inputs = [config.embedding_dim, *[hidden] * (config.layers - 1)]
        recurrence = Product(part, pairs, hidden, gates, length)
        return [product for size in inputs for product in (Product(part, pairs * length, size, gates), recurrence)]

    return [
        *layers("encode", source),
        *layers("decode", target),
        Product("output", pairs * target, hidden, vocabulary),
    ]
