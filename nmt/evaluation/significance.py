"""Is a difference between two systems more than chance? Paired tests, by sacrebleu's own implementation.

Approximate randomisation (Riezler and Maxwell 2005) swaps the two systems' translations at random; paired bootstrap
resampling (Koehn 2004) draws test sets from the test set. Both ask how often chance alone makes a difference at least
as large as the one observed. The seed is sacrebleu's, 12345, as for the intervals of ``metrics``.

Two corrections make a p-value mean what its reader takes it for, a two-sided error rate:

* sacrebleu's bootstrap centres absolute differences, which leaves one tail only: without any difference it says
  p < 0.05 in a tenth of all cases. Its p-value is doubled here. (Randomisation keeps its level as it is.)
* With few differing sentences sacrebleu takes ties for evidence: two equal systems get p = 0.001, one differing
  sentence in a thousand p = 0.0001. Swapping k sentences has 2^k outcomes, of which two (all and none) are always as
  extreme as the observed one: no p-value below 2^(1-k) is reported, and none below 1 for equal scores.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, cast

from sacrebleu.metrics.base import Metric
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.significance import PairedTest

from nmt.evaluation.metrics import check

Method = Literal["bootstrap", "randomization"]
_METHODS = {"bootstrap": "bs", "randomization": "ar"}


class SystemResult(NamedTuple):
    """One system beside the baseline; the baseline itself has no p-value."""

    system: str
    score: float
    mean: float  # of the bootstrap resamples
    half_width: float  # of the 95 % interval around the mean
    p_value: float | None


class Comparison(NamedTuple):
    """All systems on one metric, the baseline first, then in the order given."""

    results: list[SystemResult]
    signature: str


def paired_test(
    systems: Mapping[str, Sequence[str]],
    references: Sequence[str],
    baseline: str,
    metric: Literal["bleu", "chrf"] = "bleu",
    method: Method = "randomization",
    samples: int = 0,
) -> Comparison:
    """Test every system against the baseline on the same references.

    Args:
        systems: name -> translations, one per reference. Cased, detokenised text, as for ``13a``.
        references: the untouched references.
        baseline: the name in ``systems`` that the others are tested against.
        metric: BLEU 13a or chrF2.
        method: approximate randomisation or paired bootstrap.
        samples: resamples or swaps; 0 is sacrebleu's own number (1000 and 10000).

    Raises:
        ValueError: the baseline is not among the systems or has nothing to be compared with, or the counts differ.
    """
    if baseline not in systems:
        raise ValueError(f"baseline {baseline!r} is none of the systems: {', '.join(systems)}")
    if len(systems) < 2:
        raise ValueError(f"only {baseline!r} to compare: a paired test needs two systems or more")
    for name, hypotheses in systems.items():
        try:
            check(hypotheses, references)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from error
    names = [baseline, *(name for name in systems if name != baseline)]
    metrics: dict[str, Metric] = {metric: BLEU(tokenize="13a") if metric == "bleu" else CHRF()}
    test = PairedTest(
        [(name, systems[name]) for name in names],
        metrics,
        [references],
        test_type=_METHODS[method],
        n_samples=samples,
        n_ar_confidence=0,  # with approximate randomisation: bootstrap the intervals all the same
    )
    signatures, scores = test()
    (key,) = signatures
    results = [
        SystemResult(name, float(result.score), float(result.mean), float(result.ci), None)
        for name, result in zip(names, cast(list[Any], scores[key]), strict=True)
    ]
    for place, result in enumerate(cast(list[Any], scores[key])[1:], start=1):
        smallest = _smallest_p(results[place], results[0], systems)
        p_value = float(result.p_value) * (2 if method == "bootstrap" else 1)
        results[place] = results[place]._replace(p_value=min(1.0, max(p_value, smallest)))
    return Comparison(results, str(signatures[key]))


def _smallest_p(result: SystemResult, baseline: SystemResult, systems: Mapping[str, Sequence[str]]) -> float:
    """The smallest p-value that the number of differing sentences allows."""
    if result.score == baseline.score:
        return 1.0
    pairs = zip(systems[result.system], systems[baseline.system], strict=True)
    return 2.0 ** (1 - sum(ours != theirs for ours, theirs in pairs))


def holm(p_values: Sequence[float]) -> list[float]:
    """Each p-value corrected for all of them being tested (Holm 1979): the chance that any true null hypothesis of the
    family is called false at a level is at most that level.
    """
    corrected, floor = [0.0] * len(p_values), 0.0
    for rank, place in enumerate(sorted(range(len(p_values)), key=lambda place: p_values[place])):
        floor = max(floor, min(1.0, (len(p_values) - rank) * p_values[place]))
        corrected[place] = floor
    return corrected
