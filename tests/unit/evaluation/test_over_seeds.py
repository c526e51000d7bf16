"""Recipes over seeds: calibrated without a difference whatever their spread; exact where one can count."""

import random
import statistics

import numpy as np
import pytest
import sacrebleu

from nmt.evaluation.metrics import bleu
from nmt.evaluation.over_seeds import (
    Statistics,
    difference_over_seeds,
    mean_over_seeds,
    sentence_perplexities,
    sentence_scores,
)

REFERENCES = [f"the {word} cat sat on the {word} mat and {word} slept" for word in "abcdefghijklmnopqrstuvwxyz"]


def mean(total: np.ndarray) -> float:
    return float(total[0] / total[1])


def drawn(generator: np.random.Generator, sentences: np.ndarray, seed_spread: float) -> Statistics:
    """A run: shared difficulty of the sentences, a shift of its own, noise in every sentence."""
    values = sentences + seed_spread * generator.normal() + 0.5 * generator.normal(size=len(sentences))
    return Statistics(np.stack([values, np.ones_like(values)], axis=1), mean)


@pytest.mark.parametrize("seed_spread", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("seeds", [2, 3])
def test_without_a_difference_one_in_twenty_is_significant(seeds: int, seed_spread: float) -> None:
    """200 comparisons of equal recipes: 10 expected below 0.05. More than 20 has p < 0.001; fewer may be: the noise of
    sentences within a run counts on both sides, so the test errs on the side of doubt."""
    generator = np.random.default_rng(7)
    values = []
    for _ in range(200):
        sentences = generator.normal(size=60)
        runs = [drawn(generator, sentences, seed_spread) for _ in range(2 * seeds)]
        values.append(difference_over_seeds(runs[:seeds], runs[seeds:], samples=50).p_value)
    assert sum(value < 0.05 for value in values) <= 20
    assert sum(value < 0.5 for value in values) <= 120
    if seed_spread == 1.0:  # the seeds are all of the chance: exact
        assert sum(value < 0.05 for value in values) >= 2


def test_one_seed_is_the_bootstrap_over_sentences() -> None:
    generator = np.random.default_rng(3)
    values = []
    for _ in range(200):
        sentences = generator.normal(size=60)
        a, b = (drawn(generator, sentences, 0.0) for _ in range(2))
        values.append(difference_over_seeds([a], [b], samples=50).p_value)
    assert 3 <= sum(value < 0.05 for value in values) <= 20


def test_the_spread_over_seeds_makes_doubt() -> None:
    """The same mean difference: sure where the seeds agree, in doubt where they do not."""

    def runs(shifts: list[float]) -> list[Statistics]:
        base = np.linspace(0, 1, 50)
        return [Statistics(np.stack([base + shift, np.ones(50)], axis=1), mean) for shift in shifts]

    agreed = difference_over_seeds(runs([0, 0, 0]), runs([0.29, 0.3, 0.31]))
    torn = difference_over_seeds(runs([0, 0, 0]), runs([-0.3, 0.3, 0.9]))
    assert agreed.difference == pytest.approx(torn.difference)
    assert agreed.p_value < 0.001
    assert torn.p_value > 0.2
    assert torn.low < 0 < agreed.low
    # Only the seeds vary here: the t-test of the three differences.
    assert torn.p_value == pytest.approx(2 * (1 - _student_2(0.3 / (0.6 / 3**0.5))), rel=1e-9)


def _student_2(t: float) -> float:
    """Distribution function of Student's t with 2 degrees of freedom, in closed form."""
    return 0.5 + t / (2 * (2 + t * t) ** 0.5)


def test_figures_are_sacrebleus() -> None:
    generator = random.Random(1)
    hypotheses = [" ".join(w for w in line.split() if generator.random() < 0.9) for line in REFERENCES]
    assert sentence_scores(hypotheses, REFERENCES).value == pytest.approx(bleu(hypotheses, REFERENCES).value)
    wanted = sacrebleu.corpus_chrf(hypotheses, [REFERENCES]).score
    assert sentence_scores(hypotheses, REFERENCES, "chrf").value == pytest.approx(wanted)
    assert sentence_perplexities([2.0, 4.0], [1, 3]).value == pytest.approx(np.exp(1.5))


def test_means_and_spreads_over_the_seeds() -> None:
    result = difference_over_seeds(
        [sentence_perplexities([x], [1]) for x in np.log([2.0, 4.0])],
        [sentence_perplexities([x], [1]) for x in np.log([5.0, 5.0])],
    )
    assert (result.first, result.second, result.difference) == pytest.approx((3.0, 5.0, 2.0))
    assert result.first_spread == pytest.approx(2**0.5)
    assert result.second_spread == pytest.approx(0.0)
    assert result.seeds == 2


def test_equal_runs_differ_by_nothing() -> None:
    run = sentence_scores(REFERENCES, REFERENCES)
    result = difference_over_seeds([run], [run])
    assert (result.difference, result.low, result.high, result.p_value) == (0, 0, 0, 1)
    assert result.first_spread is None


def test_what_has_no_partner_is_refused() -> None:
    run = sentence_scores(REFERENCES, REFERENCES)
    with pytest.raises(ValueError, match="1 runs beside 2"):
        difference_over_seeds([run], [run, run])
    with pytest.raises(ValueError, match=r"scored on \[25, 26\] sentences"):
        difference_over_seeds([run], [sentence_scores(REFERENCES[1:], REFERENCES[1:])])


@pytest.mark.parametrize("seeds", [1, 3])
def test_the_interval_of_a_mean_holds_the_truth_in_nineteen_of_twenty(seeds: int) -> None:
    """200 recipes whose true figure is 0; of sentences alone with one seed. 10 expected outside; the t-interval of the
    seeds and that of the sentences, added, err on the side of doubt."""
    generator = np.random.default_rng(5)
    outside = 0
    for _ in range(200):
        spread = 0.3 if seeds > 1 else 0.0
        runs = [drawn(generator, generator.normal(size=60), spread) for _ in range(seeds)]
        found = mean_over_seeds(runs, samples=100)
        outside += not found.low <= 0 <= found.high
    assert outside <= 20
    assert seeds > 1 or outside >= 3


def test_a_mean_knows_its_seeds() -> None:
    generator = np.random.default_rng(6)
    runs = [drawn(generator, np.zeros(50), 1.0) for _ in range(3)]
    found, values = mean_over_seeds(runs), [run.value for run in runs]
    assert found.seeds == pytest.approx(values)
    assert found.value == pytest.approx(statistics.fmean(values))
    assert found.spread == pytest.approx(statistics.stdev(values))
    one = mean_over_seeds(runs[:1])
    assert one.spread is None
    assert one.high - one.low < found.high - found.low
    with pytest.raises(ValueError, match="scored on"):
        mean_over_seeds([runs[0], Statistics(runs[1].rows[:40], mean)])
