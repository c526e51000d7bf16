"""A difference between two recipes, each trained with several seeds: how large, and is it more than chance?

One run against one run (``significance``) tells whether two *models* differ on sentences like these. Whether two
*recipes* differ is another question: another seed would have given other models (Reimers and Gurevych 2017). Here run i
of one recipe is paired with run i of the other (same seed), and chance has two sources:

- the sentences: paired bootstrap (Koehn 2004) of the mean difference over the seeds, on sacrebleu's own statistics of
  each sentence;
- the seeds: the variance of the differences of n pairs, divided by n, with Student's t of n - 1 degrees of freedom.
  (Three seeds are too few to be resampled: their bootstrap is too narrow and knows no probability below 1/27.)

The half-widths of the two add up in squares (Howe 1974), exact where either is all of the chance; the p-value is the
level at which the interval just reaches zero. Welch and Satterthwaite's degrees of freedom were tried: with two seeds a
tenth of equal recipes came out different at p < 0.05.

With one seed only the sentences count, and :attr:`Difference.seeds` says so.
"""

import math
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import numpy as np
from sacrebleu.metrics.base import Metric
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from nmt.evaluation.metrics import RESAMPLES, check

SEED = 12345
"""Of the resamples; sacrebleu's."""

_SMALLEST = 1e-12  # no p-value below it

Figure = Callable[[np.ndarray], float]
"""The figure of a test set, from the sum of its sentences' statistics."""


class Statistics(NamedTuple):
    """What one run's figure is made of."""

    rows: np.ndarray  # [sentences, numbers]
    figure: Figure

    @property
    def value(self) -> float:
        """The figure of the whole test set."""
        return self.figure(self.rows.sum(0))


class Difference(NamedTuple):
    """The second recipe less the first."""

    first: float  # mean over the seeds
    second: float
    first_spread: float | None  # standard deviation over the seeds; None with one
    second_spread: float | None
    difference: float
    low: float  # 95 % interval of the difference
    high: float
    p_value: float  # two-sided
    seeds: int


class Mean(NamedTuple):
    """A recipe's figure."""

    value: float  # mean over the seeds
    low: float  # 95 % interval
    high: float
    spread: float | None  # standard deviation over the seeds; None with one
    seeds: tuple[float, ...]  # of each


def sentence_scores(
    hypotheses: Sequence[str], references: Sequence[str], metric: Literal["bleu", "chrf"] = "bleu"
) -> Statistics:
    """Sacrebleu's statistics of each sentence (matches, lengths), for BLEU 13a or chrF2.

    Raises:
        ValueError: unequal counts, or nothing at all.
    """
    check(hypotheses, references)
    scorer: Metric = BLEU(tokenize="13a", force=True) if metric == "bleu" else CHRF()
    rows = np.array(scorer._extract_corpus_statistics(hypotheses, [references]), dtype=np.float64)
    return Statistics(rows, lambda total: float(scorer._compute_score_from_stats(total.tolist()).score))


def sentence_perplexities(nll: Sequence[float], tokens: Sequence[int]) -> Statistics:
    """Perplexity exp(sum of nll / sum of tokens); ``tokens`` may count words or bytes as well."""
    return Statistics(
        np.array([nll, tokens], dtype=np.float64).T, lambda total: float(np.exp(min(total[0] / total[1], 700.0)))
    )


def mean_over_seeds(runs: Sequence[Statistics], samples: int = RESAMPLES) -> Mean:
    """The figure of a recipe, over runs on the same sentences. With two seeds or more its interval is one of recipes:
    what another seed, and other sentences, might give; with one, of other sentences alone.

    Raises:
        ValueError: no runs, or other numbers of sentences.
    """
    _check_sentences(runs)
    values = np.array([run.value for run in runs])
    n = len(values)
    of_sentences = float(np.mean([_resampled(run, samples) for run in runs], 0).var(ddof=1))
    half_width = _half_width(0.05, of_sentences, float(values.var(ddof=1)) / n if n > 1 else 0.0, n)
    mean = float(values.mean())
    spread = float(values.std(ddof=1)) if n > 1 else None
    return Mean(mean, mean - half_width, mean + half_width, spread, tuple(values.tolist()))


def difference_over_seeds(
    first: Sequence[Statistics], second: Sequence[Statistics], samples: int = RESAMPLES
) -> Difference:
    """Compare two recipes; ``first[i]`` and ``second[i]`` have the same seed, and all the same sentences.

    Raises:
        ValueError: other numbers of runs, or of sentences.
    """
    if len(first) != len(second) or not first:
        raise ValueError(f"{len(first)} runs beside {len(second)}: every run needs its partner of the same seed")
    _check_sentences([*first, *second])
    values = np.array([[run.value for run in runs] for runs in (first, second)])  # [2, seeds]
    differences = values[1] - values[0]
    n = len(differences)
    resampled = np.mean(
        [_resampled(b, samples) - _resampled(a, samples) for a, b in zip(first, second, strict=True)], 0
    )
    of_sentences = float(resampled.var(ddof=1))
    of_seeds = float(differences.var(ddof=1)) / n if n > 1 else 0.0
    half_width, p_value = _chance(float(differences.mean()), of_sentences, of_seeds, n)
    spreads = [float(row.std(ddof=1)) if n > 1 else None for row in values]
    return Difference(
        first=float(values[0].mean()),
        second=float(values[1].mean()),
        first_spread=spreads[0],
        second_spread=spreads[1],
        difference=float(differences.mean()),
        low=float(differences.mean()) - half_width,
        high=float(differences.mean()) + half_width,
        p_value=p_value,
        seeds=n,
    )


def _resampled(run: Statistics, samples: int) -> np.ndarray:
    """[samples] figures of test sets drawn from the test set; the same sentences for every run."""
    generator = np.random.Generator(np.random.PCG64(SEED))
    size = len(run.rows)
    drawn = generator.multinomial(size, np.full(size, 1 / size), size=samples)  # [samples, sentences]
    return np.array([run.figure(total) for total in drawn @ run.rows])


def _check_sentences(runs: Sequence[Statistics]) -> None:
    counts = {len(run.rows) for run in runs}
    if len(counts) != 1:
        raise ValueError(f"runs scored on {sorted(counts)} sentences: they must be scored on the same")


def _half_width(level: float, of_sentences: float, of_seeds: float, seeds: int) -> float:
    """Of the interval that leaves out ``level``, for a mean with these two variances."""
    from scipy.special import ndtri, stdtrit  # quantiles of the normal and of Student's distribution

    of_t = float(stdtrit(seeds - 1, 1 - level / 2)) if of_seeds else 0.0
    return math.hypot(float(ndtri(1 - level / 2)) * of_sentences**0.5, of_t * of_seeds**0.5)


def _chance(difference: float, of_sentences: float, of_seeds: float, seeds: int) -> tuple[float, float]:
    """Half-width of the 95 % interval around a difference with these two variances, and its two-sided p-value."""
    from scipy.optimize import brentq

    def half_width(level: float) -> float:
        return _half_width(level, of_sentences, of_seeds, seeds)

    if half_width(_SMALLEST) <= abs(difference):  # no chance at all, or next to none
        p_value = 1.0 if difference == 0 else _SMALLEST
    else:
        p_value = float(brentq(lambda level: half_width(level) - abs(difference), _SMALLEST, 1.0))
    return half_width(0.05), p_value
