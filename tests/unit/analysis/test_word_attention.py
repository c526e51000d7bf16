"""Attention between words of given pairs, on models whose attention is known."""

import numpy as np
import pytest
import torch

from nmt.alignment import AttentionChoice, align
from nmt.analysis.gold import Side, as_given
from nmt.analysis.word_attention import Setting, settings, word_attention
from nmt.data.batch import collate
from nmt.data.tokenizer import TokenizerPair
from nmt.forced import force
from nmt.tokens import EOS
from tests.fakes import AutomatonModel, CopyModel, WordTokenizer
from tests.model_configs import SEQ2SEQ, lively
from tests.unit.test_alignment import SyllableTokenizer

CPU = torch.device("cpu")
WORDS = [f"w{number}" for number in range(19)]
PLAIN = TokenizerPair(WordTokenizer(WORDS), WordTokenizer(WORDS))
SYLLABLES = TokenizerPair(SyllableTokenizer(["abcd", "xy", "mnopq"]), SyllableTokenizer(["ABC", "WXYZ", "UVUVU"]))


def pairs(*texts: tuple[str, str]) -> list[tuple[Side, Side]]:
    return [(as_given(source), as_given(target)) for source, target in texts]


def test_the_row_of_a_word_is_that_of_the_step_that_predicts_it_or_that_reads_it() -> None:
    """A copying model looks at place t while it predicts token t, whatever it is led along."""
    [found] = word_attention(CopyModel(23), PLAIN, pairs(("w1 w2 w3 w4", "w5 w6 w7")), CPU, "fp32")
    assert found.of(Setting(1, 1, "output")).tolist() == np.eye(3, 5).tolist()
    assert found.of(Setting(1, 1, "input")).tolist() == np.eye(3, 5, k=1).tolist()
    assert found.of(Setting("mean", "mean", "input")).tolist() == np.eye(3, 5, k=1).tolist()


@pytest.mark.parametrize("choice", [AttentionChoice(1, 3), AttentionChoice(2, "mean"), AttentionChoice("mean", "mean")])
def test_words_weights_are_those_of_translate(choice: AttentionChoice) -> None:
    """Of a translation whose text is the given target, beside longer pairs in the batch."""
    model = AutomatonModel(seed=3, vocabulary=40)
    texts = [("abcd xy", "ABC WXYZ"), ("xy mnopq abcd mnopq", "UVUVU"), ("xy", "ABC ABC WXYZ UVUVU")]
    together = word_attention(model, SYLLABLES, pairs(*texts), CPU, "fp32")
    for (source, target), found in zip(texts, together, strict=True):
        source_ids, target_ids = SYLLABLES.source.encode(source), SYLLABLES.target.encode(target)
        batch = collate([[*source_ids, EOS]], [[*target_ids, EOS]], [0])
        attention = force([model], batch, with_attention=True).attention
        assert attention is not None
        alignment = align(attention[0], choice, SYLLABLES, source, source_ids, target, target_ids)
        mine = found.of(Setting(alignment.layer, alignment.head))
        expected = np.array(alignment.word_weights)[:-1]  # without the row of EOS
        np.testing.assert_allclose(mine, expected, atol=1e-6)


def test_words_may_stand_without_space_between_them() -> None:
    """``ab`` and ``cd`` are words of the gold, ``abcd`` is what the model reads."""
    source = Side("abcd xy", [(0, 2), (2, 4), (5, 7)])
    [apart] = word_attention(AutomatonModel(3, 40), SYLLABLES, [(source, as_given("ABC"))], CPU, "fp32")
    [whole] = word_attention(AutomatonModel(3, 40), SYLLABLES, pairs(("abcd xy", "ABC")), CPU, "fp32")
    assert apart.weights.shape[-1] == 4
    np.testing.assert_allclose(apart.weights[..., :2].sum(-1), whole.weights[..., 0], atol=1e-12)
    np.testing.assert_allclose(apart.weights[..., 2:], whole.weights[..., 1:], atol=1e-12)


def test_settings_are_all_there_are_and_no_mean_of_one() -> None:
    assert settings(1, 1) == [Setting(1, 1, "output"), Setting(1, 1, "input")]
    assert len(settings(2, 3)) == len(set(settings(2, 3))) == 2 * 3 * 4
    [found] = word_attention(AutomatonModel(3, 40), SYLLABLES, pairs(("abcd", "ABC")), CPU, "fp32")
    assert found.weights.shape[:3] == (2, AutomatonModel.LAYERS + 1, AutomatonModel.HEADS + 1)
    every = {found.of(setting).tobytes() for setting in settings(AutomatonModel.LAYERS, AutomatonModel.HEADS)}
    assert len(every) == 24


def test_a_fixed_vector_is_refused() -> None:
    with pytest.raises(ValueError, match="no attention weights"):
        word_attention(lively(SEQ2SEQ), PLAIN, pairs(("w1", "w2")), CPU, "fp32")
