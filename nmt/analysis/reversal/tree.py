"""What a reversal ablation holds."""

from typing import NamedTuple

from nmt.analysis.comparison.tree import Curve, Groups, Provenance
from nmt.analysis.time_lag import Lags
from nmt.evaluation.over_seeds import Mean

ARMS = ("source as it is", "source reversed")
"""Names of the two arms, wherever they are shown."""

MAIN = "BLEU 13a, beam 12"
PERPLEXITY = "test perplexity"
"""Names of the effects that the paper reports as well."""


class Effect(NamedTuple):
    """One figure of both arms, and what reversing changes."""

    name: str  # "test perplexity", "BLEU 13a, beam 12"
    less_is_better: bool
    forward: Mean
    backward: Mean
    difference: float  # reversed minus as it is, mean over the seeds
    low: float  # 95 % interval
    high: float
    p_value: float
    paper: tuple[float, float] | None  # Sutskever et al. 2014, section 3.3: as it is, reversed


class Contrast(NamedTuple):
    """A control beside the main pair: what reversal changes in it minus what it changes there.

    On the same source sentences, with the same seeds. Of a perplexity, the change is that of its logarithm: a better
    model has less to lose.
    """

    name: str  # PERPLEXITY or MAIN
    difference: float
    low: float  # 95 % interval
    high: float
    p_value: float


class LagChange(NamedTuple):
    """Time lags of a test set's aligned words, from gold alignments."""

    forward: Lags
    backward: Lags
    shorter: float  # share of the links whose lag reversal makes shorter
    longer: float  # and longer; the middle word of a sentence stays where it is


class PairResults(NamedTuple):
    """A recipe with and without reversal."""

    name: str
    model: str
    word_order: str | None
    seeds: tuple[int, ...]
    steps: int  # updates of each run
    sentences: int  # of the test set
    effects: tuple[Effect, ...]
    by_length: Groups
    curves: tuple[Curve, ...]
    lags: LagChange | None  # where the data has gold alignments
    contrasts: tuple[Contrast, ...]  # of a control; none where sentences or seeds are others

    def effect(self, name: str) -> Effect:
        """By its name."""
        return next(effect for effect in self.effects if effect.name == name)

    def contrast(self, name: str) -> Contrast | None:
        """By its name; None where there is none."""
        return next((contrast for contrast in self.contrasts if contrast.name == name), None)


class Reversal(NamedTuple):
    """Everything; the first pair is what it is about, the others are controls."""

    title: str
    pairs: tuple[PairResults, ...]
    provenance: Provenance
