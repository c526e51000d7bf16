"""Where a model looked while it wrote a translation: attention weights with their tokens, and what they say of words.

A row of weights belongs to the token that was predicted with it, a column to a source token; both end with EOS (a
translation that was cut at the length limit has no row of it). Attention of one layer, or of their mean, is looked at,
and of one head or of their mean. Unless told otherwise: the mean over the heads of **the last layer but one**, which is
where a Transformer's attention comes nearest to word alignment (Garg et al. 2019, arXiv 1909.02074: of six layers the
fifth; against the demo's gold links, of four the third), or of the only layer.

Words are what stands between white space in the line as it was given and in the translation as it was written, however
the subword models see it. A word's weight in a row is the sum over its pieces; a target word's row is the mean over its
pieces. A piece that spans several words counts for each by its share of letters; one without letters (the mark of a
word's beginning alone) belongs to the word that follows, or to the last.

A hard alignment links every target word to the source word of most weight, the leftmost of equals. Weight on EOS is
left out of account: the word is linked to the best of the others, unless nothing at all is left for them.
"""

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from nmt.data.corpus import pharaoh
from nmt.data.tokenizer import TokenizerPair
from nmt.tokens import EOS

Which = int | Literal["mean"]
"""A layer or a head, counted from 1, or the mean of all."""

Span = tuple[int, int]


class AttentionChoice(NamedTuple):
    """Whose weights to look at."""

    layer: Which | None = None  # None: the last but one, or the only one
    head: Which = "mean"


class Alignment(NamedTuple):
    """Attention weights of one translation, in plain values."""

    layer: Which  # that was looked at
    layers: int  # that there are
    head: Which
    heads: int
    source_tokens: list[str]  # subwords and EOS, in the order of the sentence
    target_tokens: list[str]
    weights: list[list[float]]  # [target tokens, source tokens]; a row sums to 1
    source_words: list[str]  # and EOS
    target_words: list[str]
    word_weights: list[list[float]]  # [target words, source words]; a row sums to 1
    links: list[tuple[int, int]]  # (source word, target word), counted from 0, sorted; EOS has none

    @property
    def pharaoh(self) -> str:
        """The links as ``0-0 1-2``, source first."""
        return pharaoh(self.links)

    @property
    def title(self) -> str:
        """Whose weights these are, for people."""
        return title(self.layer, self.layers, self.head, self.heads)


class Chosen(NamedTuple):
    """Weights of one layer and head."""

    weights: Tensor  # [tgt_len, src_len]
    layer: Which
    layers: int
    head: Which
    heads: int

    @property
    def title(self) -> str:
        """Whose weights these are, for people."""
        return title(self.layer, self.layers, self.head, self.heads)


def title(layer: Which, layers: int, head: Which, heads: int) -> str:
    """``layer 5 of 6, mean over 8 heads``."""
    if layers * heads == 1:
        return "the only layer and head"
    where = f"mean over {layers} layers" if layer == "mean" else f"layer {layer} of {layers}"
    who = f"mean over {heads} heads" if head == "mean" else f"head {head} of {heads}"
    return f"{where}, {who}"


def choose(attention: Tensor, choice: AttentionChoice) -> Chosen:
    """Weights of the layer and the head asked for.

    Args:
        attention: [tgt_len, layers, heads, src_len].
        choice: which.

    Raises:
        ValueError: the model has no such layer or head.
    """
    layers, heads = attention.shape[1:3]
    layer = max(1, layers - 1) if choice.layer is None else choice.layer
    by_head = _pick(attention, 1, layer, "layer")  # [tgt_len, heads, src_len]
    return Chosen(_pick(by_head, 1, choice.head, "head"), layer, layers, choice.head, heads)


def _pick(weights: Tensor, axis: int, which: Which, kind: str) -> Tensor:
    if which == "mean":
        return weights.mean(dim=axis)
    if not 1 <= which <= weights.size(axis):
        raise ValueError(
            f"{kind} (--align-{kind}): the model has {kind}s 1 to {weights.size(axis)}, found {which}; or take mean"
        )
    return weights.select(axis, which - 1)


def align(
    attention: Tensor,
    choice: AttentionChoice,
    tokenizers: TokenizerPair,
    source: str,
    source_ids: Sequence[int],
    translation: str,
    target_ids: Sequence[int],
) -> Alignment:
    """What the attention of one translation says.

    Args:
        attention: [|y|, layers, heads, src_len]: with a row for EOS or without one, and a column for EOS.
        choice: which layer and head.
        tokenizers: of both sides.
        source: the line as it was given.
        source_ids: its subwords, without EOS.
        translation: the text of ``target_ids``.
        target_ids: the translation's subwords, without EOS.

    Raises:
        ValueError: the model has no such layer or head.
    """
    chosen = choose(attention, choice)
    end = tokenizers.target.pieces([EOS])[: attention.size(0) - len(target_ids)]  # of a finished translation
    source_end = tokenizers.source.pieces([EOS])
    source_words, target_words = words(source), words(translation)
    columns = memberships(source, tokenizers.source.source_spans(source), end=True)
    rows = memberships(translation, tokenizers.target.target_spans(target_ids), end=bool(end))
    rows = rows / rows.sum(dim=0).clamp(min=torch.finfo(rows.dtype).tiny)  # a mean over the pieces of each word
    weights = chosen.weights.double()  # [tgt_len, src_len]
    word_weights = (rows.T @ weights @ columns).tolist()  # [target words, source words]
    return Alignment(
        chosen.layer,
        chosen.layers,
        chosen.head,
        chosen.heads,
        source_tokens=tokenizers.source.pieces(source_ids) + source_end,
        target_tokens=tokenizers.target.pieces(target_ids) + end,
        weights=weights.tolist(),
        source_words=[source[slice(*span)] for span in source_words] + source_end,
        target_words=[translation[slice(*span)] for span in target_words] + end,
        word_weights=word_weights,
        links=hard_links(word_weights, len(source_words), len(target_words)),
    )


def words(text: str) -> list[Span]:
    """Where each word of ``text.split()`` stands."""
    return [match.span() for match in re.finditer(r"\S+", text)]


def memberships(text: str, pieces: Sequence[Span], end: bool, spans: Sequence[Span] | None = None) -> Tensor:
    """How much of each piece belongs to each word of a text: [pieces, words] float64.

    A row sums to 1, but where the text has no words.

    Args:
        text: what the pieces stand for.
        pieces: where in it each stands.
        end: there is one more piece and one more word, EOS.
        spans: where in it each word stands, in order; None: what stands between white space.
    """
    spans = words(text) if spans is None else spans
    owners = [-1] * len(text)  # the word of each character
    for word, (begin, stop) in enumerate(spans):
        owners[begin:stop] = [word] * (stop - begin)
    following = [len(spans) - 1] * (len(text) + 1)  # the word at or behind each place, or the last one
    for place in reversed(range(len(text))):
        following[place] = owners[place] if owners[place] >= 0 else following[place + 1]
    shares = torch.zeros(len(pieces) + end, len(spans) + end, dtype=torch.float64)
    for piece, (begin, stop) in enumerate(pieces):
        letters = [word for word in owners[begin:stop] if word >= 0]
        for word in letters:
            shares[piece, word] += 1 / len(letters)
        if spans and not letters:
            shares[piece, following[begin]] = 1.0
    if end:
        shares[-1, -1] = 1.0
    return shares


def hard_links(word_weights: list[list[float]], source_words: int, target_words: int) -> list[tuple[int, int]]:
    """The source word of most weight for each target word, as (source, target), sorted; EOS on neither side."""
    links = []
    for target, row in enumerate(word_weights[:target_words]):
        best = max(range(source_words), key=row.__getitem__)
        if row[best] > 0.0:
            links.append((best, target))
    return sorted(links)
