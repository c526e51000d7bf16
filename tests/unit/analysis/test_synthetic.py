"""Random pairs with the lengths of a real corpus, and random models."""

from pathlib import Path

import numpy as np
import pytest

from nmt.analysis.synthetic import (
    FIRST_SUBWORD,
    corpus_lengths,
    random_sentences,
    uniform_lengths,
    word_tokenizer,
    write_checkpoint,
    write_pairs,
)
from nmt.tokens import EOS
from nmt.translator import Translator
from tests.oracles import options
from tests.tiny_run import tiny_config


def test_lengths_are_as_documented() -> None:
    source, target = corpus_lengths(20_000, seed=3)
    assert source.mean() == pytest.approx(15.8, rel=0.01)
    assert target.mean() == pytest.approx(15.3, rel=0.01)
    assert np.corrcoef(source, target)[0, 1] == pytest.approx(0.866, abs=0.02)
    assert min(source.min(), target.min()) >= 4
    assert max(source.max(), target.max()) <= 53


def test_uniform_lengths_reach_the_longest() -> None:
    source, target = uniform_lengths(50, longest=40, seed=1)
    assert (source == target).all()
    assert source.max() == 40
    assert source.min() >= 2


def test_pairs_have_these_lengths_and_end_in_eos(tmp_path: Path) -> None:
    lengths = corpus_lengths(30, seed=1)
    dataset = write_pairs(tmp_path, lengths, vocabulary=50, seed=2)
    assert dataset.source_lengths.tolist() == lengths.source.tolist()
    assert dataset.target_lengths.tolist() == lengths.target.tolist()
    for index in range(30):
        for row in dataset.pair(index):
            assert row[-1] == EOS
            assert (row[:-1] >= FIRST_SUBWORD).all()
            assert (row < 50).all()
    with pytest.raises(ValueError, match="vocabulary: expected more than the 4 reserved subwords, found 4"):
        write_pairs(tmp_path, lengths, vocabulary=4, seed=2)


def test_random_sentences_have_these_lengths_in_words_of_their_tokenizer() -> None:
    tokenizer = word_tokenizer(300)
    assert tokenizer.vocabulary_size == 300
    lines = random_sentences([2, 9, 30], vocabulary=300, seed=4)
    rows = tokenizer.encode_batch(lines)
    assert [len(row) + 1 for row in rows] == [2, 9, 30]
    assert all(FIRST_SUBWORD <= token < 300 for row in rows for token in row)
    assert [tokenizer.decode(row) for row in rows] == lines


@pytest.mark.parametrize("model", ["seq2seq", "bahdanau", "transformer"])
def test_a_random_model_never_ends_by_itself(model: str, tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "model", tiny_config(tmp_path, model), vocabulary=100)
    lines = random_sentences([4, 12, 7], vocabulary=100, seed=1)
    translations = Translator.load(tmp_path / "model", "cpu").translate(lines, options(beam_size=3))
    assert [(best.length, best.finished) for best in translations] == [(7, False)] * 3
