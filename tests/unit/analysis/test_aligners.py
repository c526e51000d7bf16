"""What attention stands beside: chance, the diagonal, and IBM Model 1 on text whose links are known."""

from itertools import pairwise

import numpy as np
import pytest

from nmt.analysis.aligners import PUBLISHED, chance, diagonal, lexicon_weights, published
from nmt.analysis.alignment_error import Extraction, as_links, extract
from nmt.analysis.gold import GoldPair, as_given
from nmt.data.tokenizer import TokenizerPair
from nmt.lexicon import learn
from tests.fakes import WordTokenizer
from tests.unit.test_lexicon import TRANSLATION, VOCABULARY, pairs

WORDS = [f"w{number}" for number in range(26)]  # ids 4 to 29
TOKENIZERS = TokenizerPair(WordTokenizer(WORDS), WordTokenizer(WORDS))


def test_chance_is_fair_and_the_same_for_a_seed() -> None:
    [weights] = chance([(4, 4000)], seed=1)
    found = extract(weights, Extraction())
    assert found.sum() == 4000
    assert all(900 < count < 1100 for count in found.sum(axis=0).tolist())
    assert np.array_equal(weights, chance([(4, 4000)], seed=1)[0])
    assert not np.array_equal(weights, chance([(4, 4000)], seed=2)[0])


def test_the_diagonal_goes_from_corner_to_corner() -> None:
    for source, target in ((4, 4), (3, 9), (8, 2)):
        links = sorted(as_links(extract(diagonal([(source, target)])[0], Extraction())), key=lambda link: link[1])
        assert len(links) == target
        assert all(one[0] <= other[0] for one, other in pairwise(links))
        if source == target:
            assert links == [(i, i) for i in range(source)]
    assert sorted(as_links(extract(diagonal([(3, 9)])[0], Extraction()))) == [(j // 3, j) for j in range(9)]


def test_a_lexicon_is_asked_for_what_it_has_learned() -> None:
    lexicon = learn(pairs(300), (VOCABULARY, VOCABULARY))
    for source in TRANSLATION:
        row = lexicon.of([source], list(range(10, 25)))[:, 1]
        assert int(row.argmax()) + 10 == TRANSLATION[source]
    total = lexicon.of(list(TRANSLATION), list(range(VOCABULARY))).sum(axis=0)
    np.testing.assert_allclose(total, 1.0)  # t(. | e) of every e, the empty word among them
    assert lexicon.of([29], [14])[0, 1] == 0.0  # never seen


def test_model_1_finds_the_links_of_words_that_have_one_translation_each() -> None:
    lexicon = learn(pairs(300), (VOCABULARY, VOCABULARY))
    source, target = "w0 w5 w9", "w15 w20 w19 w10"  # 4 9 13 -> 19 (of 9), 24 (of nothing), 23 (of 13), 14 (of 4)
    weights = lexicon_weights(lexicon, TOKENIZERS, as_given(source), as_given(target))
    np.testing.assert_allclose(weights.sum(axis=1), 1.0)
    assert as_links(extract(weights, Extraction("argmax or none"))) == {(1, 0), (2, 2), (0, 3)}
    assert int(weights[1].argmax()) == 3  # the empty word


def test_figures_are_given_for_the_test_set_that_they_are_of() -> None:
    def gold(sure: int, possible: int) -> list[GoldPair]:
        side = as_given("w " * 200)
        first = frozenset((i // 200, i % 200) for i in range(sure))
        every = frozenset((i // 200, i % 200) for i in range(possible))
        return [GoldPair(side, side, first, every)] + [GoldPair(side, side, frozenset(), frozenset())] * 446

    assert published(gold(4038, 17438)) == PUBLISHED
    assert published(gold(4038, 17437)) == published(gold(4038, 17438)[:-1]) == ()


@pytest.mark.parametrize("each", PUBLISHED)
def test_published_figures_can_be(each) -> None:
    """AER lies between what precision and recall allow: 1 - AER is a mean of the two, weighted by |A| and |S|."""
    assert min(each.precision, each.recall) <= 1 - each.aer + 0.001
    assert 1 - each.aer <= max(each.precision, each.recall) + 0.001
