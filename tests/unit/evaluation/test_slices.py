"""Groups of test sentences: every sentence in one, at its boundary in the right one, scored as if it stood alone."""

from collections import Counter

import sacrebleu
from hypothesis import given
from hypothesis import strategies as st

from nmt.evaluation.slices import by_rarest_word, by_source_length, count_words, scores_by_slice, words


@given(st.lists(st.integers(1, 90), min_size=1, max_size=60))
def test_every_sentence_is_in_the_one_group_of_its_length(lengths: list[int]) -> None:
    slices = by_source_length(["w " * length for length in lengths])
    assert sorted(row for part in slices for row in part.rows) == list(range(len(lengths)))
    for part in slices:
        low, high = (61, 10**9) if part.name == "over 60" else map(int, part.name.split("-"))
        assert part.rows
        assert all(low <= lengths[row] <= high for row in part.rows)


def test_length_groups_are_those_of_the_papers() -> None:
    names = [part.name for part in by_source_length(["w " * length for length in (1, 10, 11, 20, 60, 61)])]
    assert names == ["1-10", "11-20", "51-60", "over 60"]


def test_words_go_without_case_and_without_punctuation_at_their_ends() -> None:
    assert words("«L'Union», said Mr. O'Neill - in 1,000 (rather) words…") == [
        "l'union",
        "said",
        "mr",
        "o'neill",
        "in",
        "1,000",
        "rather",
        "words",
    ]
    assert count_words(["A a.", "b, a"]) == Counter({"a": 3, "b": 1})


def test_groups_by_the_rarest_word() -> None:
    counts = Counter({"the": 50_000, "cat": 10, "dog": 11, "once": 1})
    sources = ["the cat", "the dog", "the", "once the", "The unheard cat", "...", ""]
    assert {part.name: part.rows for part in by_rarest_word(sources, counts)} == {
        "0": [4],
        "1": [3],
        "2-10": [0],
        "11-100": [1],
        "over 10000": [2],
    }


def test_a_group_scores_as_it_would_alone() -> None:
    sources = [f"{'w ' * (5 if row % 2 else 15)}" for row in range(12)]
    hypotheses = [f"the cat number {row} sat on a mat" for row in range(12)]
    references = [f"the cat number {row} sat on {'the' if row % 2 else 'a'} mat" for row in range(12)]
    slices = by_source_length(sources)
    assert [part.name for part in slices] == ["1-10", "11-20"]
    short, long = scores_by_slice(slices, hypotheses, references)
    assert (short.sentences, long.sentences) == (6, 6)
    assert short.value == sacrebleu.corpus_bleu(hypotheses[1::2], [references[1::2]]).score
    assert long.value > 100 - 1e-9
    assert short.low is not None
    assert short.high is not None
    assert 0 < short.low <= short.high < 100
