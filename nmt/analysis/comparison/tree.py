"""What a comparison holds: systems, what they reach on each text, how they got there, what they cost.

A *system* is a recipe: runs that differ in nothing but their seed. Everything is said of systems; where there are
several seeds a figure is their mean. Renderings (page, Markdown, JSON) read this tree and measure nothing themselves.
"""

from collections.abc import Mapping
from typing import Literal, NamedTuple

from nmt.evaluation.significance import Method

Part = Literal["differences", "by_length", "by_rarest_word", "rates", "beams", "examples", "attention"]


class Run(NamedTuple):
    """One training of a system."""

    name: str
    seed: int
    path: str


class System(NamedTuple):
    """A recipe, trained once or with several seeds."""

    name: str
    model: str  # architecture
    runs: tuple[Run, ...]  # one a seed


class Estimate(NamedTuple):
    """A figure of a system."""

    value: float  # mean over the seeds
    low: float | None = None  # 95 % interval; None where there is none
    high: float | None = None
    spread: float | None = None  # standard deviation over the seeds; None with one
    seeds: tuple[float, ...] = ()  # of each


class Quality(NamedTuple):
    """How good a system's translations of a text are."""

    bleu: Estimate
    chrf: Estimate
    perplexity: Estimate | None  # None where the systems' subwords differ: nothing to be compared
    perplexity_per_word: Estimate
    bits_per_byte: Estimate


class PairedDifference(NamedTuple):
    """Two systems on the same sentences (and seeds): the second less the first."""

    metric: str  # "BLEU 13a"
    first: str
    second: str
    difference: float
    low: float | None  # 95 % interval
    high: float | None
    p_value: float | None  # two-sided
    corrected: float | None  # by Holm's method, for all pairs of this metric; None with one pair


class Groups(NamedTuple):
    """BLEU of groups of sentences."""

    axis: str  # what they differ in
    names: tuple[str, ...]
    sentences: tuple[int, ...]
    scores: Mapping[str, tuple[Estimate, ...]]  # by system


class Rates(NamedTuple):
    """What goes wrong that no score names."""

    length_ratio: Estimate  # tokens of the translations per token of the references
    repetition: Estimate  # share of n-grams that their translation has had before, nmt/evaluation/repetition.py
    empty: Estimate  # share of the sentences
    limit_hits: Estimate  # share of the sentences


class BeamPoint(NamedTuple):
    """A text translated with one size of the beam."""

    size: int
    bleu: float
    chrf: float
    length_ratio: float
    score: float | None  # the model's, mean over the sentences
    search_errors: float | None  # share of sentences for which a narrower beam found a better score


class Example(NamedTuple):
    """A sentence and what every system made of it."""

    number: int  # of its line, from 1
    source: str
    reference: str
    translations: Mapping[str, str]  # by system


class AttentionWeights(NamedTuple):
    """Where a system looked while it wrote a translation."""

    system: str
    title: str  # layer and head
    source: tuple[str, ...]  # tokens, EOS last
    target: tuple[str, ...]  # each predicted with its row
    weights: tuple[tuple[float, ...], ...]  # [target, source]; a row sums to 1


class TextResults(NamedTuple):
    """All that is measured on one text."""

    name: str
    sentences: int
    quality: Mapping[str, Quality]  # by system, as everything here
    differences: tuple[PairedDifference, ...]
    by_length: Groups | None
    by_rarest_word: Groups | None
    rates: Mapping[str, Rates]
    beams: Mapping[str, tuple[BeamPoint, ...]]
    examples: tuple[Example, ...]
    attention: tuple[AttentionWeights, ...]
    notes: tuple[str, ...]  # how it was measured: signatures, search, hardware
    left_out: Mapping[Part, str]  # why a part is not there


class CurvePoint(NamedTuple):
    """A validation in training."""

    step: int
    tokens: int  # of the target side, seen so far
    minutes: float
    training_loss: float | None  # mean since the validation before
    perplexity: float
    bleu: float | None


class Curve(NamedTuple):
    """One run's way."""

    system: str
    run: str
    points: tuple[CurvePoint, ...]


class Cost(NamedTuple):
    """What a system takes; None where it is not known. Means over the seeds."""

    parameters: int
    steps: float | None
    minutes: float | None
    training_tokens: float | None  # target tokens seen
    training_tokens_per_second: float | None
    peak_memory_mb: float | None
    sentences_per_second: Mapping[int, float]  # by size of the beam


class Provenance(NamedTuple):
    """What one needs to do it again."""

    commands: tuple[str, ...]
    versions: Mapping[str, str]
    hardware: tuple[str, ...]
    data: tuple[str, ...]  # name and fingerprint
    dates: tuple[str, ...]


class Comparison(NamedTuple):
    """Everything."""

    title: str
    baseline: str  # system that the others are measured against first
    test: Method
    budget: str  # what was equal and what was not, in a sentence
    systems: tuple[System, ...]
    texts: tuple[TextResults, ...]
    curves: tuple[Curve, ...]
    cost: Mapping[str, Cost]  # by system
    provenance: Provenance
