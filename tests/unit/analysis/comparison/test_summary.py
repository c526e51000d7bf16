"""A comparison in sentences: they say what the figures say, also where the answer is no."""

import pytest

from nmt.analysis.comparison.summary import best, figure, p_text, price, significance, summary
from nmt.analysis.comparison.tree import Cost, Estimate, PairedDifference, TextResults
from tests.comparisons import comparison, text


def with_pairs(*pairs: tuple[str, str, float, float | None, float | None, float | None, float | None]) -> TextResults:
    """The text with these differences in BLEU: first, second, difference, low, high, p, corrected."""
    return text()._replace(differences=tuple(PairedDifference("BLEU 13a", *pair) for pair in pairs))


def test_the_best_and_who_disagrees() -> None:
    found = text()
    assert best(found) == "transformer, by BLEU 13a: 41.7 ± 0.3 [40.3, 43.1]; then bahdanau 40.1, seq2seq 13.0."
    quality = dict(found.quality)
    quality["bahdanau"] = quality["bahdanau"]._replace(chrf=Estimate(90.0), perplexity_per_word=Estimate(1.0))
    assert best(found._replace(quality=quality)).endswith(
        "seq2seq 13.0; but by chrF2 it is bahdanau and by perplexity per word it is bahdanau."
    )
    alone = {"seq2seq": found.quality["seq2seq"]._replace(bleu=Estimate(13.0))}
    assert best(found._replace(quality=alone)) == "seq2seq, by BLEU 13a: 13.0."


def test_the_first_two_are_tested_whichever_way_round_the_pair_is() -> None:
    ahead = "transformer is 1.6 BLEU [0.4, 2.8] ahead of bahdanau"
    one = with_pairs(("bahdanau", "transformer", 1.6, 0.4, 2.8, 0.01, None))
    other = with_pairs(("transformer", "bahdanau", -1.6, -2.8, -0.4, 0.01, None))
    assert significance(one, seeds=3) == significance(other, seeds=3) == f"Yes: {ahead}, p = 0.010."


@pytest.mark.parametrize(
    ("raw", "corrected", "verdict"),
    [
        (0.0001, 0.0003, "Yes: {}, p < 0.001."),
        (0.03, 0.06, "Not by this test: {}, p = 0.060."),  # the corrected one counts
        (0.05, None, "Not by this test: {}, p = 0.050."),
        (None, None, "{}; no test."),
    ],
)
def test_the_verdict_is_that_of_the_corrected_p(raw: float | None, corrected: float | None, verdict: str) -> None:
    found = with_pairs(("bahdanau", "transformer", 1.6, None, None, raw, corrected))
    assert significance(found, seeds=3) == verdict.format("transformer is 1.6 BLEU ahead of bahdanau")


def test_pairs_that_cannot_be_told_apart_are_named() -> None:
    first = ("bahdanau", "transformer", 1.6, 0.4, 2.8, 0.01, 0.02)
    told = ("seq2seq", "transformer", 28.7, 27.0, 30.0, 0.0001, 0.0003)
    assert significance(with_pairs(first, told), seeds=2).endswith("p = 0.020. All other pairs differ as well.")
    alike = ("seq2seq", "bahdanau", 0.1, -0.4, 0.6, 0.6, 0.6)
    assert significance(with_pairs(first, told, alike), seeds=2).endswith("Not told apart: seq2seq and bahdanau.")


def test_one_seed_is_said_to_be_one() -> None:
    found = with_pairs(("bahdanau", "transformer", 1.6, 0.4, 2.8, 0.01, None))
    assert "With one seed" in significance(found, seeds=1)
    questions = dict(summary(comparison(seeds=1)))
    assert "With one seed" in questions["Is it more than chance?"]
    assert "With one seed" not in dict(summary(comparison(seeds=2)))["Is it more than chance?"]
    assert questions["Under which budget?"] == comparison().budget


def test_without_a_test_the_reason_is_given() -> None:
    assert (
        significance(text()._replace(differences=(), left_out={"differences": "No common seed"}), 1)
        == "No common seed."
    )


def test_the_price_leaves_out_what_nobody_knows() -> None:
    known = Cost(7_800_000, None, 22.4, None, None, None, {1: 120.0, 5: 46.2})
    unknown = Cost(5_400_000, None, None, None, None, None, {})
    assert price({"a": known, "b": unknown}) == (
        "Parameters: a 7.8M, b 5.4M; minutes of training: a 22; sentences/s translated with beam 5: a 46."
    )
    assert price({"b": unknown}) == "Parameters: b 5.4M."


@pytest.mark.parametrize(
    ("estimate", "expected"),
    [
        (None, "-"),
        (Estimate(40.123), "40.12"),
        (Estimate(40.0, 39.0, 41.0), "40.00 [39.00, 41.00]"),
        (Estimate(40.0, None, None, 0.5, (39.5, 40.5)), "40.00 ± 0.50"),
        (Estimate(40.0, 39.0, 41.0, 0.5), "40.00 ± 0.50 [39.00, 41.00]"),
    ],
)
def test_figures_are_written_with_what_there_is(estimate: Estimate | None, expected: str) -> None:
    assert figure(estimate, ".2f") == expected


def test_p_values_are_written_to_be_read() -> None:
    assert [p_text(p) for p in (None, 0.0, 0.00099, 0.001, 0.0514, 1.0)] == [
        *("-", "< 0.001", "< 0.001", "= 0.001", "= 0.051", "= 1.000"),
    ]
