"""Time lags: by hand, by counting, in the gradients of the model, and what reversal does to them."""

from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.analysis.paths import trace_paths
from nmt.analysis.time_lag import Lags, time_lag, time_lags
from nmt.config import Seq2SeqConfig
from nmt.data.dataset import prepare
from tests.data_configs import data_config

Sentence = tuple[int, list[tuple[int, int]]]  # source words, links


@pytest.mark.parametrize("reversed_source", [False, True])
def test_the_lag_is_the_path_in_the_model(reversed_source: bool) -> None:
    config = Seq2SeqConfig("seq2seq", 6, 6, 1, 0.0, reversed_source, "none", 0.5)
    paths = trace_paths(config, source_words=4, target_words=3)
    assert paths.from_source == [[time_lag(j, i, 4, reversed_source) for j in range(4)] for i in range(3)]


def test_by_hand() -> None:
    """``a b c EOS | BOS x y``: a is read at step 0, x is chosen at step 4, y at step 5."""
    alignments, lengths = [[(0, 0), (2, 1)], [], [(0, 6), (1, 0)]], [3, 2, 2]
    assert time_lags(alignments, lengths, reversed_source=False) == Lags(
        mean=(3.5 + 5.5) / 2,
        smallest=(3 + 2) / 2,
        first_words=(3.5 + 2) / 2,
        first_words_smallest=(3 + 2) / 2,
        counts={2: 1, 3: 1, 4: 1, 9: 1},
    )
    # ``c b a EOS | BOS x y``: a is read at step 2, one step before EOS.
    assert time_lags(alignments[:1], lengths[:1], reversed_source=True) == Lags(3.5, 2, 3.5, 2, {2: 1, 5: 1})


def test_the_first_words_are_five_and_a_sentence_without_links_of_them_counts_only_for_all() -> None:
    alignments = [[(9, 4), (9, 5)], [(0, 5)]]
    assert time_lags(alignments, [10, 10], reversed_source=False) == Lags(
        mean=(6.5 + 16) / 2, smallest=(6 + 16) / 2, first_words=6, first_words_smallest=6, counts={6: 1, 7: 1, 16: 1}
    )


@st.composite
def sentences(draw: st.DrawFn) -> Sentence:
    words = draw(st.integers(1, 12))
    return words, draw(st.lists(st.tuples(st.integers(0, words - 1), st.integers(0, 9)), max_size=15))


def counted(sentence: Sentence, reversed_source: bool, targets: int) -> list[int]:
    """Lags of the distinct links of the first target words, by counting what is read in between."""
    words, links = sentence
    order = list(range(words))
    read: list[Any] = [*(order[::-1] if reversed_source else order), "EOS", "BOS", *(f"target {i}" for i in range(10))]
    lags = []
    for j, i in sorted(set(links)):
        asked = read.index(f"target {i - 1}" if i else "BOS")  # what has just been read when word i is chosen
        lags += [len(read[read.index(j) : asked])] if i < targets else []
    return lags


@settings(deadline=None)
@given(st.lists(sentences(), min_size=1, max_size=6), st.booleans())
def test_by_counting_what_is_read(found: list[Sentence], reversed_source: bool) -> None:
    every, beginnings = (
        [lags for sentence in found if (lags := counted(sentence, reversed_source, targets))] for targets in (10, 5)
    )
    alignments, lengths = [links for _, links in found], [words for words, _ in found]
    if not beginnings:
        with pytest.raises(ValueError, match="no sentence has an alignment link"):
            time_lags(alignments, lengths, reversed_source)
        return
    lags = time_lags(alignments, lengths, reversed_source)
    assert lags.mean == pytest.approx(fmean(map(fmean, every)))
    assert lags.smallest == pytest.approx(fmean(map(min, every)))
    assert lags.first_words == pytest.approx(fmean(map(fmean, beginnings)))
    assert lags.first_words_smallest == pytest.approx(fmean(map(min, beginnings)))
    assert [lag for lag, links in lags.counts.items() for _ in range(links)] == sorted(
        lag for each in every for lag in each
    )


@settings(deadline=None)
@given(st.lists(st.integers(2, 30), min_size=1, max_size=5))
def test_in_a_monotone_alignment_reversal_shortens_the_smallest_lag_and_not_the_mean(lengths: list[int]) -> None:
    monotone = [[(place, place) for place in range(words)] for words in lengths]
    before, after = (time_lags(monotone, lengths, reversed_source) for reversed_source in (False, True))
    assert before.mean == pytest.approx(after.mean)
    assert before.smallest == before.first_words_smallest == pytest.approx(fmean(lengths) + 1)
    assert after.smallest == after.first_words_smallest == 2
    crossed = [[(words - 1 - place, place) for place in range(words)] for words in lengths]
    assert time_lags(crossed, lengths, reversed_source=False) == after  # the other way round
    assert time_lags(crossed, lengths, reversed_source=True) == before


@pytest.mark.parametrize("word_order", ["monotone", "reversed"])
def test_on_gold_alignments_reversal_helps_where_the_orders_agree(word_order: str, tmp_path: Path) -> None:
    pairs = {"train_pairs": 300, "validation_pairs": 2, "test_pairs": 100}
    config = data_config("demo", tmp_path, {"vocabulary_size": 200}, word_order=word_order, **pairs)
    test = prepare(config, lambda _message: None).test
    assert test is not None
    alignments = test.alignments()
    assert alignments is not None
    lengths = [len(line.split()) for line in test.sources()]
    plain, turned = (time_lags(alignments, lengths, reversed_source) for reversed_source in (False, True))
    near, far = (turned, plain) if word_order == "monotone" else (plain, turned)
    assert near.smallest < far.smallest
    assert near.first_words < far.first_words
    assert near.first_words_smallest < far.first_words_smallest
    # Whatever the alignment, a link's two lags are 2 i + n + 3 together.
    sums = sum(2 * i + n + 3 for links, n in zip(alignments, lengths, strict=True) for _, i in set(links))
    assert sum(lag * links for lags in (plain, turned) for lag, links in lags.counts.items()) == sums


@pytest.mark.parametrize(
    ("alignments", "lengths", "message"),
    [
        ([[(0, 0)], [(2, 0)]], [2, 2], "sentence 2: found links 2-0, expected source words below 2, none below 0"),
        ([[(-1, 0)]], [2], "sentence 1: found links -1-0"),
        ([[(0, 0), (1, -1)]], [2], "sentence 1: found links 0-0 1--1"),
        ([[(0, 0)]], [2, 2], "1 alignments of 2 sources"),
        ([[]], [2], "no sentence has an alignment link"),
        ([[(0, 5)]], [2], "no sentence has an alignment link of its first words"),
    ],
)
def test_what_cannot_be_measured_is_refused(
    alignments: list[list[tuple[int, int]]], lengths: list[int], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        time_lags(alignments, lengths, reversed_source=False)
