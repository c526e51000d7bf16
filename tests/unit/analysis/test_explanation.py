"""Explanation: statistics against scipy's, words against numbers, and models that look at nothing."""

import json
import math

import numpy as np
import pytest
import scipy.stats
import torch

from nmt.alignment import AttentionChoice
from nmt.analysis.diagnosis import LeftOut
from nmt.analysis.explanation import Explanation, Mean, mean, measure, rank_correlation
from nmt.analysis.explanation_report import explanation, statements, text
from tests.subjects import subject


def test_rank_correlation_is_scipys() -> None:
    generator = np.random.default_rng(1)
    one, other = generator.integers(0, 4, (20, 6)), generator.random((20, 6))
    one[3] = 2  # all the same: nothing to rank
    found = rank_correlation(one, other)
    for row in range(20):
        expected = math.nan if row == 3 else scipy.stats.spearmanr(one[row], other[row]).statistic
        assert found[row] == pytest.approx(expected, nan_ok=True)


def test_a_mean_has_students_interval() -> None:
    values = [0.1, 0.5, 0.2, 0.9]
    found = mean([*values, math.nan])
    low, high = scipy.stats.t.interval(0.95, 3, loc=np.mean(values), scale=scipy.stats.sem(values))
    assert found == (pytest.approx(np.mean(values)), pytest.approx(low), pytest.approx(high), 4)
    assert mean([0.5])[1:3] == (-math.inf, math.inf)
    assert mean([]).sentences == 0


@pytest.mark.parametrize("name", ["bahdanau", "transformer"])
def test_everything_is_asked_of_a_model_that_attends(name: str, tmp_path) -> None:
    found = measure(subject(name, tmp_path))
    assert found.sentences == 3  # blank ones and those of two words are left out
    assert found.replacements == "the sentences themselves"  # there is no training text
    assert found.attention is not None
    assert len(found.attention) == (1 if name == "bahdanau" else 4)
    assert found.swapped is not None
    shares = [found.swapped[key].value for key in ("followed the word", "stayed at the place", "went elsewhere")]
    assert sum(shares) == pytest.approx(1.0)
    assert found.elsewhere is not None
    assert len(found.elsewhere) == (2 if name == "bahdanau" else 4)
    assert 0 < found.deleted["all"].value < 1
    again = measure(subject(name, tmp_path))
    assert again == found
    assert measure(subject(name, tmp_path, seed=2)) != found


def test_a_fixed_vector_has_occlusion_and_gradient_only(tmp_path) -> None:
    finding = explanation(subject("seq2seq", tmp_path))
    assert finding.tree["attention"] is finding.tree["swapped"] is finding.tree["elsewhere"] is None
    assert set(finding.tree["deleted"]) == {"all"}
    assert "no attention" in finding.text
    json.dumps(finding.tree, allow_nan=False)


def test_where_all_weights_are_equal_they_rank_nothing(tmp_path) -> None:
    """An additive score that is always 0 gives uniform weights: shuffling or making them uniform changes nothing."""
    made = subject("bahdanau", tmp_path)
    with torch.no_grad():
        made.checkpoint.model.reader.score.weight.zero_()
    found = measure(made)
    assert found.elsewhere is not None
    assert max(abs(each["change"].value) for each in found.elsewhere.values()) < 1e-6
    said = " ".join(statements(found))
    assert "is not shown to need its weights" in said
    assert "no better than shuffled" in said


def test_too_short_sentences_are_left_out_with_the_reason(tmp_path) -> None:
    with pytest.raises(LeftOut, match="3 or more source words"):
        measure(subject("bahdanau", tmp_path, lines=("w1 w2",), references=("w1",)))
    with pytest.raises(LeftOut, match="--input"):
        measure(subject("bahdanau", tmp_path, lines=("", " "), references=("w1", "w2")))


def test_a_layer_that_there_is_not_is_named(tmp_path) -> None:
    with pytest.raises(ValueError, match=r"--align-layer.*layers 1 to 2, found 9"):
        measure(subject("transformer", tmp_path, choice=AttentionChoice(9)))


# --- words ------------------------------------------------------------------------------------------------------------


def around(value: float, width: float = 0.05) -> Mean:
    return Mean(value, value - width, value + width, 50)


def made_up(**changes: object) -> Explanation:
    start = Explanation(
        model="m",
        sentences=50,
        target="its own translations",
        replacements="the training text",
        occlusion_gradient=around(0.5),
        attention={"attention": {"occlusion": around(0.6), "gradient": around(0.5)}},
        ahead=around(0.1),
        shuffled=around(0.0),
        deleted={
            "all": around(0.1),
            "looked at it": around(0.5),
            "looked elsewhere": around(0.1),
            "difference": around(0.4),
        },
        replaced={
            "all": around(0.1),
            "looked at it": around(0.2),
            "looked elsewhere": around(0.2),
            "difference": around(0.0),
        },
        swapped={
            "followed the word": around(0.7),
            "stayed at the place": around(0.2),
            "went elsewhere": around(0.1),
            "followed less stayed": around(0.5),
        },
        elsewhere={
            how: {"change": around(0.5), "nll": around(0.7), "more_nll": around(2.0)} for how in ("shuffled", "uniform")
        },
    )
    return start._replace(**changes)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, ["better than gradient x input", "needs its weights", "Weights go with words:", "change more than"]),
        ({}, ["is replaced, the predictions that looked at it change no differently from"]),
        ({"ahead": around(0.0)}, ["about as well as gradient"]),
        ({"ahead": around(-0.3)}, ["less well than gradient"]),
        ({"shuffled": around(0.6)}, ["no better than shuffled", "do not tell which words matter"]),
        (
            {"attention": {"attention": {"occlusion": around(-0.6), "gradient": around(0.1)}}},
            ["no better than shuffled", "do not tell which words matter"],
        ),
        (
            {
                "swapped": {
                    "followed the word": around(0.1),
                    "stayed at the place": around(0.8),
                    "followed less stayed": around(-0.7),
                }
            },
            ["Weights stay at places:", "Not supported:", "that weights go where words go"],
        ),
    ],
)
def test_words_say_what_the_numbers_do(changes: dict[str, object], said: list[str]) -> None:
    found = " ".join(statements(made_up(**changes)))
    for words in said:
        assert words in found


def test_neither_is_said_where_neither_is_shown() -> None:
    nothing = {
        how: {"change": around(0.0), "nll": around(1.0), "more_nll": around(0.0)} for how in ("shuffled", "uniform")
    }
    found = statements(made_up(elsewhere=nothing, shuffled=around(0.6)))
    assert found[-1].startswith("Supported: neither that predictions need these weights nor that they tell")
    assert "Not supported: that a weight is the importance of a word" in found[-1]


def test_every_number_is_in_the_text() -> None:
    shown = text(made_up())
    assert "that weights go where words go" not in shown
    for value in ("0.60 [0.55, 0.65]", "0.40 [0.35, 0.45]", "2.00 [1.95, 2.05]", "70 [65, 75] %"):
        assert value in shown
