"""Paired tests: calibrated without a difference, sharp with one, and fooled by no tie."""

import random
from itertools import combinations

import pytest

from nmt.evaluation.metrics import bleu
from nmt.evaluation.significance import Method, holm, paired_test

WORDS = [f"w{number}" for number in range(30)]
DRAW = random.Random(1)
REFERENCES = [" ".join(DRAW.choices(WORDS, k=DRAW.randint(5, 12))) for _ in range(40)]
METHODS: list[Method] = ["bootstrap", "randomization"]


def noisy(rate: float, seed: int) -> list[str]:
    """The references with a share of the words replaced."""
    draw = random.Random(seed)
    return [" ".join(draw.choice(WORDS) if draw.random() < rate else w for w in r.split()) for r in REFERENCES]


@pytest.mark.parametrize("method", METHODS)
def test_without_a_difference_one_in_twenty_is_significant(method: Method) -> None:
    """200 pairs of equally good systems: 10 expected below 0.05; fewer than 2 or more than 20 (10 %) has p < 0.002."""
    values = []
    for trial in range(100):
        systems = {name: noisy(0.3, 3 * trial + place) for place, name in enumerate("abc")}
        values += [result.p_value for result in paired_test(systems, REFERENCES, "a", "bleu", method, 100).results[1:]]
    assert len(values) == 200
    assert 2 <= sum(value < 0.05 for value in values if value is not None) <= 20
    assert 70 <= sum(value < 0.5 for value in values if value is not None) <= 160


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("metric", ["bleu", "chrf"])
def test_a_clear_difference_is_significant(method: Method, metric) -> None:  # type: ignore[no-untyped-def]
    systems = {"good": noisy(0.1, 1), "bad": noisy(0.5, 2)}
    comparison = paired_test(systems, REFERENCES, "bad", metric, method)
    bad, good = comparison.results
    assert (bad.system, good.system) == ("bad", "good")
    assert bad.p_value is None
    assert good.p_value is not None
    assert good.p_value < 0.005
    assert good.score - good.half_width > bad.score + bad.half_width
    assert "seed:12345" in comparison.signature
    if metric == "bleu":
        assert good.score == pytest.approx(bleu(systems["good"], REFERENCES).value)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("differing", [0, 1, 3])
def test_few_differing_sentences_prove_nothing(method: Method, differing: int) -> None:
    """Sacrebleu alone says p = 0.001 here."""
    systems = {"a": REFERENCES, "b": ["nothing right"] * differing + REFERENCES[differing:]}
    p_value = paired_test(systems, REFERENCES, "a", "bleu", method, 200).results[1].p_value
    assert p_value is not None
    assert min(1.0, 2.0 ** (1 - differing)) <= p_value <= 1


def test_the_order_of_the_systems_and_the_run_do_not_matter() -> None:
    systems = {"a": noisy(0.3, 1), "b": noisy(0.35, 2), "c": noisy(0.2, 3)}
    first = paired_test(systems, REFERENCES, "b", samples=200)
    second = paired_test(dict(reversed(systems.items())), REFERENCES, "b", samples=200)
    assert [result.system for result in first.results] == ["b", "a", "c"]
    assert sorted(first.results) == sorted(second.results)
    assert first == paired_test(systems, REFERENCES, "b", samples=200)


def test_what_cannot_be_compared_is_refused() -> None:
    with pytest.raises(ValueError, match="'c' is none of the systems: a, b"):
        paired_test({"a": REFERENCES, "b": REFERENCES}, REFERENCES, "c")
    with pytest.raises(ValueError, match="two systems"):
        paired_test({"a": REFERENCES}, REFERENCES, "a")
    with pytest.raises(ValueError, match="b: 39 hypotheses but 40 references"):
        paired_test({"a": REFERENCES, "b": REFERENCES[1:]}, REFERENCES, "a")


@pytest.mark.parametrize("values", [[0.01, 0.04, 0.03], [0.2], [0.5, 0.5, 0.001, 0.02], [0.9, 0.8], [], [0.01] * 3])
def test_holm_is_the_closure_of_bonferroni(values: list[float]) -> None:
    """By definition: the largest Bonferroni p-value of any set of hypotheses that has this one among them."""
    places = range(len(values))
    sets = [chosen for size in range(1, len(values) + 1) for chosen in combinations(places, size)]
    expected = [
        min(1.0, max(len(chosen) * min(values[other] for other in chosen) for chosen in sets if place in chosen))
        for place in places
    ]
    assert holm(values) == pytest.approx(expected)


def test_of_all_pairs_of_equal_systems_any_comes_out_significant_in_one_family_of_twenty() -> None:
    """100 families of the three pairs of three equal systems: 5 expected with any corrected p below 0.05; more than 12
    has p < 0.002. Without correction it is about twice as many."""
    raw = corrected = 0
    for trial in range(100):
        systems = {name: noisy(0.3, 1000 + 3 * trial + place) for place, name in enumerate("abc")}
        values = []
        for first, second in combinations("abc", 2):
            pair = {name: systems[name] for name in (first, second)}
            p_value = paired_test(pair, REFERENCES, first, "bleu", "randomization", 100).results[1].p_value
            assert p_value is not None
            values.append(p_value)
        raw += min(values) < 0.05
        corrected += min(holm(values)) < 0.05
    assert corrected <= 12
    assert corrected <= raw
