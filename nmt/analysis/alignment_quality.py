"""The part ``alignment``: attention as an aligner, beside people's judgement and beside other aligners.

The given pair is force-decoded, so that gold and attention speak of the same words. Every layer and head, the step that
predicts a word or that reads it, and the way from weights to links are ranked on one half of the gold and reported on
the other, drawn with a seed: the best of many on the sentences it is reported on would be chance in part. So is the
setting that ``nmt.translate --align`` has, which was chosen by nobody.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch

from nmt.alignment import AttentionChoice, choose
from nmt.analysis.aligners import (
    WPT2003,
    Learned,
    Published,
    chance,
    diagonal,
    learn_lexicon,
    lexicon_weights,
    published,
)
from nmt.analysis.alignment_error import (
    EXTRACTIONS,
    Extraction,
    Quality,
    as_links,
    counts,
    difference,
    error_rate,
    extract,
    masks,
    quality,
)
from nmt.analysis.diagnosis import LeftOut, Subject, model_name, require_attention
from nmt.analysis.gold import GoldPair, as_given, read_gold, reversed_pair
from nmt.analysis.symmetrize import METHODS, Links
from nmt.analysis.word_attention import Setting, WordAttention, settings, word_attention
from nmt.checkpoint import Checkpoint
from nmt.config import DemoData
from nmt.data.tokenizer import TokenizerPair


class Ranked(NamedTuple):
    """One way to read links off attention."""

    setting: Setting
    extraction: Extraction
    chosen_on: float  # AER on the half that the ranking is made on
    reported: float  # ... on the other


class Row(NamedTuple):
    """One aligner on the reported half."""

    aligner: str
    how: str
    quality: Quality


class AlignmentQuality(NamedTuple):
    """What the part has measured."""

    model: str
    gold: str  # what it is, in words
    pairs: int  # of the gold, all
    reported_pairs: int
    layers: int
    heads: int
    rows: list[Row]
    ranking: list[Ranked]  # best first, on the half that it is made on
    by_layer_and_head: dict[str, list[list[float]]]  # step -> AER by argmax [layers + 1, heads + 1], reported half
    against_lexicon: tuple[float, float, float] | None  # AER of best attention less that of Model 1, 95 % interval
    lexicon: str | None  # what it was learned from, or None
    published: tuple[Published, ...]
    notes: list[str]


class _Aligner(NamedTuple):
    """Links of every pair, and their counts beside gold."""

    links: list[Links]
    rows: np.ndarray  # [pairs, 4]


def measure(subject: Subject) -> AlignmentQuality:
    """Align all gold pairs in every way.

    Raises:
        LeftOut: there is no gold, or no attention.
        ValueError: gold that cannot be read.
    """
    require_attention(subject)
    gold, what = _gold(subject)
    if len(gold) < 2:
        raise LeftOut("gold of one pair: two or more are needed, one half to choose on, one to report")
    pairs = _Pairs(gold, subject.seed)
    attention = _Attention(subject, subject.checkpoint, pairs)
    best = attention.ranking[0]
    usual = attention.usual(subject.choice)
    rows = [
        Row("attention, as --align", f"{usual}, argmax", pairs.quality(attention.aligned(usual, Extraction()))),
        Row("attention, best", _how(best), pairs.quality(attention.aligned(best.setting, best.extraction))),
    ]
    notes = []
    if subject.reverse is not None:
        rows += _both_directions(subject, pairs, attention, best)
    else:
        notes.append("one direction: with --reverse-checkpoint, a model of the other, the two are symmetrised")
    learned: Learned | None = None
    against = None
    try:
        learned, of_lexicon, more = _model_1(subject, pairs)
        rows += more
        mine = attention.aligned(best.setting, best.extraction).rows[pairs.report]
        against = difference(of_lexicon.rows[pairs.report], mine)
    except LeftOut as reason:
        notes.append(f"IBM Model 1 left out: {reason}")
    random = chance(pairs.sizes, subject.seed)
    rows += [
        Row("diagonal", "argmax", pairs.quality(pairs.aligned(diagonal(pairs.sizes), Extraction()))),
        Row("uniform", "a source word at random", pairs.quality(pairs.aligned(random, Extraction()))),
    ]
    return AlignmentQuality(
        model_name(subject.checkpoint),
        what,
        len(gold),
        len(pairs.report),
        attention.layers,
        attention.heads,
        rows,
        attention.ranking,
        attention.by_layer_and_head(),
        against,
        None if learned is None else f"{learned.pairs:,} of the run's {learned.of:,} training pairs, over its subwords",
        published(gold),
        notes,
    )


def _gold(subject: Subject) -> tuple[list[GoldPair], str]:
    if subject.gold is not None:
        found = read_gold(subject.gold)
        known = WPT2003 if published(found) else str(subject.gold.links)
        written = ", text put as people write it" if subject.gold.languages else ""
        return found, f"{known}{written}"
    if not isinstance(subject.checkpoint.config.data, DemoData):
        raise LeftOut("no gold: give --gold, --gold-source and --gold-target (the demo's data brings its own)")
    split = subject.prepared.test
    assert split is not None, "the demo has a test split"
    links = split.alignments()
    assert links is not None, "the demo's splits have gold"
    triples = zip(split.sources(), split.references(), map(frozenset, links), strict=True)
    found = [GoldPair(as_given(source), as_given(target), own, own) for source, target, own in triples]
    return found, "the demo's test split, whose links are part of its grammar, all sure"


class _Pairs:
    """Gold pairs, their two halves, and how alignments of them are counted."""

    def __init__(self, gold: Sequence[GoldPair], seed: int) -> None:
        self.gold = gold
        self.sizes = [(len(pair.source.spans), len(pair.target.spans)) for pair in gold]
        self.masks = [masks(pair.sure, pair.possible, *size) for pair, size in zip(gold, self.sizes, strict=True)]
        order = np.random.Generator(np.random.PCG64(seed)).permutation(len(gold))
        self.choose, self.report = np.sort(order[: len(gold) // 2]), np.sort(order[len(gold) // 2 :])

    def aligned(self, weights: Sequence[np.ndarray], extraction: Extraction) -> _Aligner:
        """Links of the weights of each pair, [target words, source words + 1]."""
        found = [extract(each, extraction) for each in weights]
        rows = [counts(each, gold) for each, gold in zip(found, self.masks, strict=True)]
        return _Aligner([as_links(each) for each in found], np.array(rows))

    def of_links(self, links: Sequence[Links]) -> _Aligner:
        """The same of links."""
        found = [masks(own, (), *size).sure for own, size in zip(links, self.sizes, strict=True)]
        return _Aligner(list(links), np.array([counts(own, gold) for own, gold in zip(found, self.masks, strict=True)]))

    def quality(self, aligner: _Aligner) -> Quality:
        """On the half that is reported."""
        return quality(aligner.rows[self.report])

    def best(self, weights: Sequence[np.ndarray]) -> Extraction:
        """The way from these weights to links that is best on the half to choose on."""
        rates = [error_rate(self.aligned(weights, way).rows[self.choose].sum(axis=0)) for way in EXTRACTIONS]
        return EXTRACTIONS[int(np.argmin(rates))]


class _Attention:
    """A model's attention on the pairs, with every setting counted."""

    def __init__(self, subject: Subject, checkpoint: Checkpoint, pairs: _Pairs) -> None:
        texts = [(pair.source, pair.target) for pair in pairs.gold]
        self._found: list[WordAttention] = word_attention(
            checkpoint.model, checkpoint.tokenizers, texts, subject.device, subject.precision
        )
        self._pairs = pairs
        _, layers, heads = self._found[0].weights.shape[:3]
        self.layers, self.heads = layers - 1, heads - 1
        # [extractions, 2 halves, steps, layers + 1, heads + 1, 4]
        self._totals = np.array([self._halves(extraction) for extraction in EXTRACTIONS])
        self.ranking = self._rank()

    def _halves(self, extraction: Extraction) -> np.ndarray:
        first, second = (
            sum(
                counts(extract(self._found[i].weights, extraction), self._pairs.masks[i])  # [steps, layers, heads, 4]
                for i in half.tolist()
            )
            for half in (self._pairs.choose, self._pairs.report)
        )
        return np.array([first, second])

    def _rank(self) -> list[Ranked]:
        rates = error_rate(self._totals)  # [extractions, 2, steps, layers + 1, heads + 1]
        found = []
        for setting in settings(self.layers, self.heads):
            place = _place(setting)
            for number, extraction in enumerate(EXTRACTIONS):
                chosen_on, reported = (float(rates[(number, half, *place)]) for half in (0, 1))
                found.append(Ranked(setting, extraction, chosen_on, reported))
        return sorted(found, key=lambda each: each.chosen_on)

    def by_layer_and_head(self) -> dict[str, list[list[float]]]:
        rates = error_rate(self._totals[0, 1])  # by argmax, reported: [steps, layers + 1, heads + 1]
        return {name: rates[step].tolist() for step, name in enumerate(("output", "input"))}

    def usual(self, choice: AttentionChoice) -> Setting:
        chosen = choose(torch.zeros(1, self.layers, self.heads, 1), choice)
        return Setting(chosen.layer, chosen.head)

    def aligned(self, setting: Setting, extraction: Extraction) -> _Aligner:
        return self._pairs.aligned([each.of(setting) for each in self._found], extraction)


def _place(setting: Setting) -> tuple[int, int, int]:
    layer, head = (-1 if which == "mean" else which - 1 for which in (setting.layer, setting.head))
    return ("output", "input").index(setting.step), layer, head


def _how(ranked: Ranked) -> str:
    return f"{ranked.setting}, {ranked.extraction}"


def _both_directions(subject: Subject, pairs: _Pairs, attention: _Attention, best: Ranked) -> list[Row]:
    """The other model's best links, and the two directions as one."""
    reverse = subject.reverse
    assert reverse is not None
    other_pairs = _Pairs([reversed_pair(pair) for pair in pairs.gold], subject.seed)
    other = _Attention(subject, reverse, other_pairs)
    other_best = other.ranking[0]
    backward = other.aligned(other_best.setting, other_best.extraction)
    forward = attention.aligned(best.setting, best.extraction)
    return [
        Row("attention of the other direction, best", _how(other_best), other_pairs.quality(backward)),
        *_symmetrised("attention", pairs, forward, backward),
    ]


def _symmetrised(name: str, pairs: _Pairs, forward: _Aligner, backward: _Aligner) -> list[Row]:
    turned = [frozenset((j, i) for i, j in links) for links in backward.links]
    return [
        Row(f"{name}, both directions", method, pairs.quality(pairs.of_links(list(map(join, forward.links, turned)))))
        for method, join in METHODS.items()
    ]


def _model_1(subject: Subject, pairs: _Pairs) -> tuple[Learned, _Aligner, list[Row]]:
    """IBM Model 1 in both directions, each with its own best way to links."""
    data, tokenizers = subject.prepared, subject.checkpoint.tokenizers
    found: list[_Aligner] = []
    rows: list[Row] = []
    for inverse in (False, True):
        learned = learn_lexicon(data.train, tokenizers, subject.seed, inverse)
        turned = pairs if not inverse else _Pairs([reversed_pair(pair) for pair in pairs.gold], subject.seed)
        both = TokenizerPair(tokenizers.target, tokenizers.source) if inverse else tokenizers
        weights = [lexicon_weights(learned.lexicon, both, pair.source, pair.target) for pair in turned.gold]
        way = turned.best(weights)
        found.append(turned.aligned(weights, way))
        name = "IBM Model 1" + (", other direction" if inverse else "")
        rows.append(Row(name, str(way), turned.quality(found[-1])))
    return learned, found[0], [*rows, *_symmetrised("IBM Model 1", pairs, *found)]
