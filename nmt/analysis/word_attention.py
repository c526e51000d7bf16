"""Attention between the words of given pairs, from every layer and head: the target is given, nothing is searched.

A word's weight is the sum over its source pieces and the mean over its target pieces (see ``nmt/alignment.py``). Which
row belongs to a target piece is a choice:

    output    the step that predicted it: what the model looked at while it chose the word
    input     the step after, which reads it: in a Transformer often nearer to word alignment, because the word is
              known by then (Chen et al. 2020, arXiv 2004.14837)
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
import torch

from nmt.alignment import Which, memberships
from nmt.analysis.gold import Side
from nmt.data.batch import collate
from nmt.data.tokenizer import Tokenizer, TokenizerPair
from nmt.device import SearchPrecision, autocast
from nmt.forced import force
from nmt.models.base import TranslationModel
from nmt.tokens import EOS
from nmt.translation import batches_by_length

BATCH_TOKENS = 2048
"""Tokens a side at once, padding included; a longer pair stands alone."""

StepOf = Literal["output", "input"]


class Setting(NamedTuple):
    """Whose weights, of which step."""

    layer: Which
    head: Which
    step: StepOf = "output"

    def __str__(self) -> str:
        who = ", ".join(f"{name} {which}" for name, which in (("layer", self.layer), ("head", self.head)))
        return f"{who}, {self.step}"


class WordAttention(NamedTuple):
    """Weights of one pair, [step (output, input), layers + 1, heads + 1, target words, source words + 1].

    The last layer and the last head are the mean of the others; the last column is EOS.
    """

    weights: np.ndarray

    def of(self, setting: Setting) -> np.ndarray:
        """[target words, source words + 1]."""
        layer, head = (-1 if which == "mean" else which - 1 for which in (setting.layer, setting.head))
        found: np.ndarray = self.weights[("output", "input").index(setting.step), layer, head]
        return found


def settings(layers: int, heads: int) -> list[Setting]:
    """All there are, in the order of :class:`WordAttention`; with one layer or one head its mean is left out."""
    every_layer: list[Which] = [*range(1, layers + 1), *(["mean"] if layers > 1 else [])]  # type: ignore[list-item]
    every_head: list[Which] = [*range(1, heads + 1), *(["mean"] if heads > 1 else [])]  # type: ignore[list-item]
    steps: tuple[StepOf, StepOf] = ("output", "input")
    return [Setting(layer, head, step) for step in steps for layer in every_layer for head in every_head]


def shares(tokenizer: Tokenizer, side: Side) -> np.ndarray:
    """How much of each piece belongs to each word, EOS included: [pieces + 1, words + 1]; a row sums to 1."""
    found: np.ndarray = memberships(side.text, tokenizer.source_spans(side.text), True, side.spans).numpy()
    return found


def means(of_pieces: np.ndarray) -> np.ndarray:
    """Shares [pieces, words] as those of a mean over the pieces of each word: a column sums to 1."""
    found: np.ndarray = of_pieces / np.maximum(of_pieces.sum(axis=0), np.finfo(np.float64).tiny)
    return found


def word_attention(
    model: TranslationModel,
    tokenizers: TokenizerPair,
    pairs: Sequence[tuple[Side, Side]],
    device: torch.device,
    precision: SearchPrecision,
) -> list[WordAttention]:
    """Attention of each pair.

    Raises:
        ValueError: the model reads one fixed vector.
    """
    sources = tokenizers.source.encode_batch([source.text for source, _ in pairs])
    targets = tokenizers.target.encode_batch([target.text for _, target in pairs])
    lengths = {i: 1 + max(len(sources[i]), len(targets[i])) for i in range(len(pairs))}
    found: dict[int, WordAttention] = {}
    for rows in batches_by_length(lengths, BATCH_TOKENS):
        batch = collate([[*sources[i], EOS] for i in rows], [[*targets[i], EOS] for i in rows], rows)
        with autocast(device, precision):
            forced = force([model], batch.to(device), with_log_probabilities=False, with_attention=True).attention
        assert forced is not None
        for place, i in enumerate(rows):
            own = forced[place, : len(targets[i]) + 1, :, :, : len(sources[i]) + 1].double().cpu().numpy()
            source, target = pairs[i]
            of_target = means(shares(tokenizers.target, target))[:-1, :-1]  # [pieces, words]
            of_source = shares(tokenizers.source, source)  # [pieces + 1, words + 1]
            steps = np.stack([own[:-1], own[1:]])  # [2, pieces, layers, heads, source pieces + 1]
            weights = np.einsum("tw,stlhj,jk->slhwk", of_target, steps, of_source, optimize=True)
            weights = np.concatenate([weights, weights.mean(axis=1, keepdims=True)], axis=1)
            found[i] = WordAttention(np.concatenate([weights, weights.mean(axis=2, keepdims=True)], axis=2))
    return [found[i] for i in range(len(pairs))]
