"""The demo data as its users see it: splits, lengths, word orders, determinism."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter

import pytest

from nmt.data.corpus import pharaoh
from nmt.data.demo import generate

LENGTHS = {"min_words": 3, "max_words": 60, "mean_words": 13.0}
SIZES = {"train_pairs": 1500, "validation_pairs": 300, "test_pairs": 300}


def make(word_order="german", seed=1, **changes):
    return generate(**{"seed": seed, "word_order": word_order, **SIZES, **LENGTHS, **changes})


@pytest.fixture(scope="module")
def german():
    return make()


@pytest.fixture(scope="module")
def monotone():
    return make("monotone")


@pytest.fixture(scope="module")
def reversed_():
    return make("reversed")


def everything(splits):
    return [pair for name in ("train", "validation", "test") for pair in splits[name]]


def bag(target):
    return Counter(re.sub(r"[.,?]", "", target).lower().split())


def bare(target):
    return re.sub(r"[.,?]", "", target).lower().split()


def test_counts(german):
    assert {name: len(pairs) for name, pairs in german.items()} == {"train": 1500, "validation": 300, "test": 300}


def test_sources_are_distinct_within_and_across_splits(german):
    sources = [pair.source for pair in everything(german)]
    assert len(set(sources)) == len(sources)


def test_lengths_have_the_range_the_mean_and_a_long_tail(german):
    lengths = [len(pair.source.split()) for pair in everything(german)]
    assert min(lengths) == 3
    assert max(lengths) > 50
    assert max(lengths) <= 60
    assert sum(lengths) / len(lengths) == pytest.approx(13.0, abs=0.6)
    assert sorted(lengths)[len(lengths) * 3 // 4] >= 16
    assert sum(length > 40 for length in lengths) >= 15
    assert all(3 <= len(pair.target.split()) <= 60 for pair in everything(german))


@pytest.mark.parametrize(("low", "high", "mean"), [(3, 12, 6.0), (8, 30, 15.0), (3, 60, 25.0)])
def test_other_lengths(low, high, mean):
    splits = make(min_words=low, max_words=high, mean_words=mean, train_pairs=800, validation_pairs=10, test_pairs=10)
    lengths = [len(pair.source.split()) for pair in everything(splits)]
    assert min(lengths) >= low
    assert max(lengths) <= high
    assert sum(lengths) / len(lengths) == pytest.approx(mean, rel=0.08)


def test_the_longest_length_occurs():
    splits = make(max_words=20, mean_words=9.0, train_pairs=1500)
    lengths = {len(pair.source.split()) for pair in splits["train"]}
    assert lengths == set(range(3, 21))


def test_the_same_seed_gives_the_same_pairs_and_another_seed_others(german):
    assert make(train_pairs=200)["train"] == german["train"][:200]
    assert {pair.source for pair in make(seed=2, train_pairs=0)["test"]} != {pair.source for pair in german["test"]}


def test_evaluation_sets_do_not_depend_on_the_amount_of_training_data(german):
    small = make(train_pairs=5)
    assert small["test"] == german["test"]
    assert small["validation"] == german["validation"]
    assert small["train"] == german["train"][:5]


def test_output_does_not_depend_on_the_hash_seed():
    program = (
        "import hashlib, nmt.data.demo as demo;"
        "splits = demo.generate(seed=3, train_pairs=300, validation_pairs=5, test_pairs=5, word_order='monotone',"
        " min_words=3, max_words=60, mean_words=13.0);"
        "print(hashlib.sha256(repr(splits).encode()).hexdigest())"
    )
    digests = set()
    for seed in ("0", "12345"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        run = subprocess.run(
            [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
        )
        digests.add(run.stdout)
    assert len(digests) == 1


def test_word_orders_share_sources_and_words(german, monotone, reversed_):
    for one, other, third in zip(everything(german), everything(monotone), everything(reversed_), strict=True):
        assert one.source == other.source == third.source
        assert bag(one.target) == bag(other.target) == bag(third.target)
        assert len(one.alignment) == len(other.alignment) == len(third.alignment)


def test_alignments_move_with_their_words(german, monotone, reversed_):
    """Whatever the order, the same English words are linked to the same German words."""
    for one, *others in zip(everything(german), everything(monotone), everything(reversed_), strict=True):
        expected = linked_words(one)
        for other in others:
            assert linked_words(other) == expected


def linked_words(pair):
    words = bare(pair.target)
    return Counter((source, words[target]) for source, target in pair.alignment)


def test_monotone_follows_the_english_order(monotone):
    for pair in everything(monotone):
        first = {}
        for source, target in pair.alignment:
            first[target] = min(source, first.get(target, source))
        order = [first[target] for target in sorted(first)]
        assert order == sorted(order), pair


def test_reversed_is_the_mirror_of_monotone(monotone, reversed_):
    for pair, mirrored in zip(everything(monotone), everything(reversed_), strict=True):
        words = bare(pair.target)
        assert bare(mirrored.target) == words[::-1]
        last = len(words) - 1
        assert set(mirrored.alignment) == {(source, last - target) for source, target in pair.alignment}


def test_spelling(german, monotone, reversed_):
    for splits in (german, monotone, reversed_):
        for pair in everything(splits):
            for text in (pair.source, pair.target):
                assert text[0].isupper() or text[0].isdigit()
                assert text[-1] in ".?"
                assert not re.search(r"[.?].|,,|\s,|  |,[.?]", text), text
            assert pair.source[-1] == pair.target[-1]
            if splits is not german:
                assert "," not in pair.target


def test_alignments_are_sorted_distinct_and_in_range(german, monotone, reversed_):
    for splits in (german, monotone, reversed_):
        for pair in everything(splits):
            assert list(pair.alignment) == sorted(set(pair.alignment))
            assert all(0 <= source < len(pair.source.split()) for source, _ in pair.alignment)
            assert all(0 <= target < len(pair.target.split()) for _, target in pair.alignment)


def test_german_order_differs_from_monotone_more_in_longer_sentences(german, monotone):
    different = [one.target != other.target for one, other in zip(german["train"], monotone["train"], strict=True)]
    assert 0.4 < sum(different) / len(different) < 1.0


def test_test_sentences_are_not_to_be_looked_up(german):
    """Most longer test sentences contain a sequence of four words that training never shows."""
    seen = {gram for pair in german["train"] for gram in grams(pair.source)}
    long = [pair for pair in german["test"] if len(pair.source.split()) >= 8]
    assert sum(grams(pair.source) <= seen for pair in long) / len(long) < 0.1


def grams(text, size=4):
    words = text.split()
    return {tuple(words[index : index + size]) for index in range(len(words) - size + 1)}


def test_test_words_are_known_from_training(german):
    known = {word for pair in german["train"] for word in bare(pair.source)}
    words = [word for pair in german["test"] for word in bare(pair.source)]
    assert sum(word in known for word in words) / len(words) > 0.97


def test_pharaoh():
    assert pharaoh(((0, 0), (1, 2))) == "0-0 1-2"
    assert pharaoh(()) == ""


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"word_order": "english"}, "word_order is 'english'"),
        ({"train_pairs": -1}, "train_pairs is -1"),
        ({"min_words": 2}, "at least 3"),
        ({"min_words": 20, "max_words": 20}, "below the longest"),
        ({"mean_words": 3.0}, "mean_words is 3.0"),
        ({"mean_words": 50.0}, "mean_words is 50.0"),
    ],
)
def test_impossible_wishes_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        make(**{"word_order": "german", **changes})


def test_too_many_short_sentences_are_refused_not_repeated(monkeypatch):
    monkeypatch.setattr("nmt.data.demo._PATIENCE", 2)
    with pytest.raises(ValueError, match="ask for fewer pairs"):
        make(max_words=4, mean_words=3.2, train_pairs=10**6)
