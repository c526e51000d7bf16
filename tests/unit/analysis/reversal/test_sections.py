"""What a reversal report says in words: each sentence follows from the figures, whichever way they fall."""

from pathlib import Path

import pytest

from nmt.analysis import document
from nmt.analysis.comparison.tree import Curve, CurvePoint, Estimate, Groups, Provenance
from nmt.analysis.reversal.sections import answers, sections, shown
from nmt.analysis.reversal.tree import ARMS, Effect, LagChange, PairResults, Reversal
from nmt.analysis.time_lag import Lags
from nmt.evaluation.over_seeds import Mean
from tests.pages import Page


def effect(name: str, forward: float, change: float, half: float, p_value: float) -> Effect:
    means = [Mean(value, value - 1, value + 1, 0.3, (value,) * 3) for value in (forward, forward + change)]
    paper = {"test perplexity": (5.8, 4.7), "BLEU 13a, beam 12": (25.9, 30.6)}.get(name)
    less = "perplexity" in name
    return Effect(name, less, means[0], means[1], change, change - half, change + half, p_value, paper)


def lags(smallest: float) -> Lags:
    return Lags(10.0, smallest, 9.0, smallest, {2: 3, 9: 4, int(smallest): 2})


def pair(
    name: str = "seq2seq", bleu: float = 3.0, p_value: float = 0.01, fall: float | None = 4.0, **changes: object
) -> PairResults:
    half = 1.0 if p_value < 0.05 else 9.0
    made = PairResults(
        name,
        name.split(",")[0],
        None,
        (1, 2, 3),
        1200,
        500,
        (
            effect("test perplexity", 12.0, -bleu / 3, half / 3, p_value),
            effect("BLEU 13a, beam 12", 20.0, bleu, half, p_value),
        ),
        Groups(
            "source words", ("1-10", "11-20"), (300, 200), {arm: (Estimate(20, 18, 22), Estimate(10)) for arm in ARMS}
        ),
        tuple(Curve(arm, f"run_{arm}", (CurvePoint(10, 100, 0.5, None, 30.0, None),)) for arm in ARMS),
        None if fall is None else LagChange(lags(2 + fall), lags(2)),
    )
    return made._replace(**changes)  # type: ignore[arg-type]


def reversal(*pairs: PairResults) -> Reversal:
    return Reversal("Title", pairs, Provenance(("make",), {"nmt": "0"}, (), (), ()))


@pytest.mark.parametrize(
    ("bleu", "p_value", "bleu_verb", "perplexity_verb"),
    [
        (3.0, 0.01, "improves BLEU", "improves test perplexity"),
        (-3.0, 0.01, "worsens BLEU", "worsens test perplexity"),
        (3.0, 0.2, "makes no difference that can be told from chance in BLEU", "chance in test perplexity"),
    ],
)
def test_the_verdict(bleu: float, p_value: float, bleu_verb: str, perplexity_verb: str) -> None:
    said = shown(pair(bleu=bleu, p_value=p_value))
    assert bleu_verb in said
    assert perplexity_verb in said
    assert f"20.00 to {20 + bleu:.2f}, {bleu:+.2f}" in said


def answer(question: str, *pairs: PairResults) -> str:
    return dict(answers(reversal(*pairs)))[question]


def test_beside_the_paper() -> None:
    assert answer("As in the paper?", pair()).count("the same direction") == 2
    assert answer("As in the paper?", pair(bleu=-1.0)).count("the other direction") == 2
    assert answer("As in the paper?", pair(p_value=0.3)).count("if it is one at all") == 2


@pytest.mark.parametrize(
    ("control", "said"),
    [
        (pair("bahdanau", 0.1, 0.6), "no effect that can be told from chance, as expected"),
        (pair("bahdanau", -2.0, 0.01), "another effect than that on the fixed vector"),
        (pair("bahdanau", 2.5, 0.01), "an effect as well"),
    ],
)
def test_a_control_speaks_for_or_against_the_explanation(control: PairResults, said: str) -> None:
    assert answer("Where the decoder reads every position?", pair(), control).count(said) == 2


def test_the_gain_follows_the_lag_or_does_not() -> None:
    question = "Does the gain follow the time lag?"
    monotone = pair("seq2seq, monotone", 6.0, fall=8.0)
    crossed = pair("seq2seq, reversed", -5.0, fall=-4.0)
    assert answer(question, pair(), monotone, crossed).count(": yes, in this order") == 2
    assert answer(question, pair(), pair("seq2seq, monotone", 3.5, fall=8.0)).count("but intervals of neighbours") == 2
    assert answer(question, pair(), pair("seq2seq, monotone", 1.0, fall=8.0)).count("no, the gains have another") == 2
    assert question not in dict(answers(reversal(pair(), pair("bahdanau")))), "attention has no lag to follow"


def test_one_seed_is_said_to_be_one() -> None:
    single = pair(seeds=(1,))
    assert "one seed (chance of the seed is not in the interval)" in shown(single)
    assert answer("What does it not show?", single).startswith("With one seed it is about two models")


def test_parts_are_there_where_they_can_be(tmp_path: Path) -> None:
    whole = reversal(pair(), pair("seq2seq, reversed", fall=-4.0), pair("bahdanau"))
    page = Page(document.write("Title", sections(whole), tmp_path)[0].read_text(encoding="utf-8"))
    assert page.texts["h2"] == [
        "In short",
        "The effect",
        "Control: seq2seq, reversed",
        "Control: bahdanau",
        "All side by side",
        "By source length",
        "Time lags",
        "While training",
        "How to do it again",
    ]
    assert len(page.all("svg")) == 4
    assert page.texts["th"].count("Sutskever et al.") == 2, "the paper has no attention"
    alone = [section.heading for section in sections(reversal(pair(fall=None)))]
    assert alone == ["In short", "The effect", "By source length", "While training", "How to do it again"]
