"""What a reversal report says in words: each sentence follows from the figures, whichever way they fall."""

import pytest

from nmt.analysis.reversal.answers import answers, of_lags, shown, sooner
from nmt.analysis.reversal.tree import ARMS, PairResults
from tests.reversals import curve, pair, reversal


def answer(question: str, *pairs: PairResults) -> str:
    return dict(answers(reversal(*pairs)))[question]


@pytest.mark.parametrize(
    ("bleu", "p_value", "bleu_verb", "perplexity_verb"),
    [
        (3.0, 0.01, "improves BLEU", "improves test perplexity"),
        (-3.0, 0.01, "worsens BLEU", "worsens test perplexity"),
        (3.0, 0.05, "makes no difference that can be told from chance in BLEU", "chance in test perplexity"),
    ],
)
def test_the_verdict(bleu: float, p_value: float, bleu_verb: str, perplexity_verb: str) -> None:
    said = shown(pair(bleu=bleu, p_value=p_value))
    assert bleu_verb in said
    assert perplexity_verb in said
    assert f"20.00 to {20 + bleu:.2f}, {bleu:+.2f}" in said


def test_beside_the_paper() -> None:
    question = "As in the paper?"
    assert answer(question, pair()).count("here: the same direction") == 2
    assert answer(question, pair(bleu=-1.0)).count("not the same direction") == 2
    assert answer(question, pair(bleu=0.0, p_value=1.0)).count("not the same direction, but within chance") == 2
    assert "5.8 to 4.7 there (-1.1), -1.00 here" in answer(question, pair())
    assert "within chance" not in answer(question, pair())


@pytest.mark.parametrize(
    ("main", "control", "said"),
    [
        # Gone, and tested against the main effect: an effect that is merely not significant proves nothing.
        (3.0, pair("bahdanau", 0.1, 0.6, contrast=(-2.9, 0.01)), "as the explanation predicts, nothing is left"),
        (3.0, pair("bahdanau", 0.1, 0.6, contrast=(-2.9, 0.3)), "not decided"),
        (3.0, pair("bahdanau", 1.0, 0.01, contrast=(-2.0, 0.01)), "smaller, as the explanation predicts, but not gone"),
        (
            3.0,
            pair("bahdanau", -2.0, 0.01, contrast=(-5.0, 0.01)),
            "not as the explanation predicts, the effect is th",
        ),
        (3.0, pair("bahdanau", 5.0, 0.01, contrast=(2.0, 0.01)), "not as the explanation predicts, the effect is lar"),
        (-3.0, pair("bahdanau", 0.1, 0.6, contrast=(3.1, 0.01)), "as the explanation predicts, nothing is left"),
        (-3.0, pair("bahdanau", -5.0, 0.01, contrast=(-2.0, 0.01)), "not as the explanation predicts, the effect is l"),
        (3.0, pair("bahdanau", 0.1, 0.6), "so the two effects cannot be tested"),
    ],
)
def test_a_decoder_that_reads_every_position(main: float, control: PairResults, said: str) -> None:
    found = answer("And where the decoder reads every position?", pair(bleu=main), control)
    assert found.count(f"; {said}" if said[:2] != "so" else said) == 2, "by perplexity and by BLEU"


def test_without_an_effect_there_is_none_that_could_vanish() -> None:
    control = pair("bahdanau", 0.1, 0.6, contrast=(0.1, 0.01))
    said = answer("And where the decoder reads every position?", pair(p_value=0.3), control)
    assert said.count("seq2seq shows no effect that could be missing here") == 2


LAG = "Does the gain follow the time lag?"
MORE = pair("seq2seq, monotone", 6.0, fall=8.0, contrast=(3.0, 0.01))
LESS = pair("seq2seq, reversed", -5.0, fall=-4.0, contrast=(-8.0, 0.01))


@pytest.mark.parametrize(
    ("controls", "verdict"),
    [
        ([MORE, LESS], "yes"),
        ([MORE, LESS._replace(contrasts=MORE.contrasts)], "no"),
        ([MORE._replace(contrasts=LESS.contrasts), LESS], "no"),
        ([pair("seq2seq, monotone", 6.0, fall=8.0, contrast=(3.0, 0.2)), LESS], "not decided"),
        ([MORE._replace(contrasts=()), LESS], "not decided"),
        # The smallest lag falls by as much: nothing else is predicted, and so nothing shown.
        ([pair("seq2seq, monotone", 3.1, fall=4.5, contrast=(0.1, 0.8))], "not decided"),
        ([pair("seq2seq, monotone", 3.1, fall=4.5, contrast=(0.1, 0.8)), LESS], "yes"),
        ([pair("seq2seq, monotone", 6.0, fall=4.5, contrast=(3.0, 0.01)), LESS], "no"),
    ],
)
def test_the_gain_follows_the_lag_or_does_not(controls: list[PairResults], verdict: str) -> None:
    said = answer(LAG, pair(), *controls)
    assert f"By test perplexity, beside seq2seq: {verdict}. " in said
    assert f"By BLEU 13a, beam 12, beside seq2seq: {verdict}. " in said
    assert said.startswith("Reversal makes the smallest lag of seq2seq 4.0 steps shorter. ")
    if LESS in controls:
        assert said.count("seq2seq, reversed, 4.0 steps longer: as predicted (") == 2


def test_attention_has_no_lag_to_follow() -> None:
    assert LAG not in dict(answers(reversal(pair(), pair("bahdanau", contrast=(0.0, 1.0)))))


@pytest.mark.parametrize(
    ("seeds", "said"), [((1,), "With one seed they are about two models"), ((1, 2), "Two seeds hardly tell")]
)
def test_too_few_seeds_are_said_to_be_few(seeds: tuple[int, ...], said: str) -> None:
    assert said in answer("What do they not show?", pair(seeds=seeds))
    assert said not in answer("What do they not show?", pair())
    assert ("chance of the seed is not in the interval" in shown(pair(seeds=seeds))) == (len(seeds) == 1)


def test_lags_in_words() -> None:
    found = pair("seq2seq")
    assert found.lags is not None
    assert of_lags(found, found.lags) == (
        "seq2seq: reversal makes 50% of the links shorter and 25% longer, the mean goes from 10.0 to 10.0, "
        "the smallest from 10.0 to 6.0."
    )


def test_which_arm_is_sooner() -> None:
    begin = f"seq2seq: the lowest validation perplexity with the {ARMS[0]}, 16.00 at update 30"
    assert sooner(pair()) == f"{begin}, is reached with the {ARMS[1]} by update 20."
    turned = pair(curves=(curve(ARMS[0], 9.0, 8.0), curve(ARMS[1], 10.0, 11.0)))
    assert sooner(turned) == (
        f"seq2seq: the lowest validation perplexity with the {ARMS[1]}, 10.00 at update 10, is reached with the "
        f"{ARMS[0]} by update 10."
    )
    # Two seeds: of their mean, where both were looked at.
    two = pair(curves=(curve(ARMS[0], 30.0, 20.0), curve(ARMS[0], 10.0), curve(ARMS[1], 19.0), curve(ARMS[1], 21.0)))
    assert f"{ARMS[0]}, 20.00 at update 10, is reached with the {ARMS[1]} by update 10." in sooner(two)
    assert sooner(pair(curves=())) == "seq2seq: no validations on record."
