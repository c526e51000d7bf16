"""Alignments against matrices made by hand, and words against what a user counts."""

import re

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.alignment import AttentionChoice, align, choose, hard_links, memberships, words
from nmt.config import SearchConfig
from nmt.data.tokenizer import TokenizerPair
from nmt.engine import TorchEngine
from nmt.tokens import UNK
from nmt.translator import Translator
from tests.data_configs import ENGLISH, GERMAN
from tests.fakes import AutomatonModel, CopyModel, WordTokenizer
from tests.oracles import options
from tests.unit.data.test_tokenizer import ODD, trained

USUAL = AttentionChoice()


class SyllableTokenizer(WordTokenizer):
    """Words in pieces of two letters; every piece but a word's first begins with ``+``."""

    def __init__(self, words: list[str]):
        pieces = {
            f"{'+' if start else ''}{word[start : start + 2]}" for word in words for start in range(0, len(word), 2)
        }
        super().__init__(sorted(pieces))

    def _cut(self, text: str) -> list[tuple[str, tuple[int, int]]]:
        return [
            (
                f"{'+' if start else ''}{word[0][start : start + 2]}",
                (word.start() + start, word.start() + start + len(word[0][start : start + 2])),
            )
            for word in re.finditer(r"\S+", text)
            for start in range(0, len(word[0]), 2)
        ]

    def encode(self, text: str) -> list[int]:
        return [self.ids.get(piece, UNK) for piece, _ in self._cut(text)]

    def decode(self, ids) -> str:
        return " ".join(self.listed[token] for token in ids).replace(" +", "")

    def source_spans(self, text: str) -> list[tuple[int, int]]:
        return [span for _, span in self._cut(text)]


SOURCE, TARGET = SyllableTokenizer(["abcd", "xy", "mnopq"]), SyllableTokenizer(["ABC", "WXYZ"])
SYLLABLES = TokenizerPair(SOURCE, TARGET)
# Source abcd|xy is ab +cd xy </s>, target ABC|WXYZ is AB +C WX +YZ </s>.
BY_HAND = torch.tensor(
    [
        [0.1, 0.2, 0.4, 0.3],
        [0.3, 0.3, 0.1, 0.3],
        [0.0, 0.0, 0.2, 0.8],
        [0.1, 0.0, 0.4, 0.5],
        [0.0, 0.0, 0.0, 1.0],
    ]
)


def by_hand(weights: torch.Tensor = BY_HAND, target: str = "ABC WXYZ"):
    return align(
        weights[:, None, None], USUAL, SYLLABLES, "abcd xy", SOURCE.encode("abcd xy"), target, TARGET.encode(target)
    )


def test_a_word_is_the_sum_of_its_source_pieces_and_the_mean_of_its_target_pieces():
    found = by_hand()
    assert found.source_tokens == ["▁ab", "▁+cd", "▁xy", "▁</s>"]
    assert found.target_tokens == ["▁AB", "▁+C", "▁WX", "▁+YZ", "▁</s>"]
    assert torch.tensor(found.weights) == pytest.approx(BY_HAND)
    assert found.source_words == ["abcd", "xy", "▁</s>"]
    assert found.target_words == ["ABC", "WXYZ", "▁</s>"]
    expected = [[(0.3 + 0.6) / 2, (0.4 + 0.1) / 2, 0.3], [0.05, 0.3, 0.65], [0.0, 0.0, 1.0]]
    assert torch.tensor(found.word_weights) == pytest.approx(torch.tensor(expected), abs=1e-6)
    assert found.links == [(0, 0), (1, 1)]  # xy although most of the weight of WXYZ is on EOS
    assert found.pharaoh == "0-0 1-1"


def test_a_translation_cut_at_the_limit_has_no_row_of_its_end():
    found = by_hand(BY_HAND[:4])
    assert (len(found.target_tokens), found.target_words) == (4, ["ABC", "WXYZ"])
    assert len(found.word_weights) == 2
    assert found.links == [(0, 0), (1, 1)]


def test_links_are_sorted_leftmost_of_equals_and_none_without_weight():
    matrix = [[0.2, 0.5, 0.3], [0.4, 0.4, 0.2], [0.0, 0.0, 1.0], [0.0, 0.1, 0.9], [0.0, 0.0, 1.0]]
    assert hard_links(matrix, source_words=2, target_words=4) == [(0, 1), (1, 0), (1, 3)]


def test_nothing_written_is_aligned_with_nothing():
    found = by_hand(BY_HAND[-1:], "")
    assert (found.links, found.target_words, found.word_weights) == ([], ["▁</s>"], [[0.0, 0.0, 1.0]])


# --- layers and heads -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("layers", "choice", "layer", "title"),
    [
        (1, USUAL, 1, "layer 1 of 1, mean over 3 heads"),
        (2, USUAL, 1, "layer 1 of 2, mean over 3 heads"),
        (6, USUAL, 5, "layer 5 of 6, mean over 3 heads"),
        (6, AttentionChoice(layer=6), 6, "layer 6 of 6, mean over 3 heads"),
        (6, AttentionChoice(layer="mean", head=2), "mean", "mean over 6 layers, head 2 of 3"),
        (6, AttentionChoice(2, 3), 2, "layer 2 of 6, head 3 of 3"),
    ],
)
def test_what_is_chosen_is_named(layers, choice, layer, title):
    attention = torch.rand(4, layers, 3, 5).softmax(dim=-1)
    chosen = choose(attention, choice)
    by_layer = attention.mean(dim=1) if layer == "mean" else attention[:, layer - 1]
    expected = by_layer.mean(dim=1) if choice.head == "mean" else by_layer[:, choice.head - 1]
    assert torch.equal(chosen.weights, expected)
    assert (chosen.layer, chosen.layers, chosen.heads) == (layer, layers, 3)
    assert chosen.title == title


def test_the_only_one_is_called_so():
    assert choose(torch.ones(1, 1, 1, 1), USUAL).title == "the only layer and head"


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        (AttentionChoice(layer=3), r"--align-layer.*layers 1 to 2, found 3"),
        (AttentionChoice(layer=0), r"--align-layer.*layers 1 to 2, found 0"),
        (AttentionChoice(layer=-1), "--align-layer"),
        (AttentionChoice(head=4), r"--align-head.*heads 1 to 3, found 4"),
    ],
)
def test_what_there_is_not_is_refused_by_name(choice, message):
    with pytest.raises(ValueError, match=message):
        choose(torch.ones(1, 2, 3, 1), choice)


# --- words ------------------------------------------------------------------------------------------------------------


@settings(deadline=None)
@given(st.text(st.sampled_from([*"ab \t\u00a0\u2009\u3000\x0b\x1c\x85\u2028\u200b▁."]), max_size=20))
def test_words_are_those_of_split(text):
    assert [text[begin:end] for begin, end in words(text)] == text.split()


@pytest.mark.parametrize("normalization", ["identity", "nmt_nfkc"])
@pytest.mark.parametrize("byte_fallback", [False, True])
@pytest.mark.parametrize("text", [*ENGLISH[:3], *ODD, "the\u2009dog \u3000 cat\tx", "a\u00a0"])
def test_every_piece_belongs_to_words_that_the_user_sees(normalization, byte_fallback, text):
    size = 320 if byte_fallback else 60
    source, target = trained(
        ENGLISH, GERMAN, normalization=normalization, byte_fallback=byte_fallback, vocabulary_size=size
    )
    written = target.decode(target.encode(text))
    for side, spans in ((text, source.source_spans(text)), (written, target.target_spans(target.encode(text)))):
        shares = memberships(side, spans, end=True)
        assert shares.shape == (len(spans) + 1, len(side.split()) + 1)
        assert torch.allclose(shares.sum(dim=1), torch.ones(len(spans) + 1, dtype=torch.float64))
        for word, (begin, end) in enumerate(words(side)):
            own = [place for place in range(len(spans)) if shares[place, word]]
            if side[begin:end].isalpha():
                letters = {place for piece in own for place in range(*spans[piece])}
                assert set(range(begin, end)) <= letters


def test_pieces_without_letters_belong_to_what_follows():
    #         ab  gap   c    end
    pieces = [(0, 2), (2, 3), (3, 4), (4, 5)]
    assert memberships("ab c ", pieces, end=False).tolist() == [[1, 0], [0, 1], [0, 1], [0, 1]]
    assert memberships(" ab", [(0, 1), (1, 3)], end=True).tolist() == [[1, 0], [1, 0], [0, 1]]
    assert memberships("a", [(0, 0), (0, 0), (0, 1)], end=False).tolist() == [[1], [1], [1]]  # three bytes


def test_a_piece_of_several_words_is_shared_by_letters():
    assert memberships("abc d e", [(0, 5), (5, 7)], end=False).tolist() == [[0.75, 0.25, 0], [0, 0, 1]]


# --- with a search in front -------------------------------------------------------------------------------------------

WORDS = [f"w{number}" for number in range(40)]


def translator(model, config: SearchConfig | None = None) -> Translator:
    pair = TokenizerPair(WordTokenizer(WORDS), WordTokenizer([word.upper() for word in WORDS]))
    return Translator(TorchEngine([model], torch.device("cpu"), "fp32"), pair, config or options())


def test_a_copy_is_aligned_word_for_word_in_the_order_of_the_line():
    lines = ["w3 w1 w2", "", "  w7\u00a0w8 ", "w9"]
    found = translator(CopyModel(vocabulary=44)).translate(lines, alignment=USUAL)
    assert [t.alignment.pharaoh if t.alignment else None for t in found] == ["0-0 1-1 2-2", None, "0-0 1-1", "0-0"]
    first = found[0].alignment
    assert (first.layer, first.layers, first.head, first.heads) == (1, 1, "mean", 1)
    assert first.source_words[:3] == ["w3", "w1", "w2"]
    assert first.target_words[:3] == ["W3", "W1", "W2"]
    assert first.weights == torch.eye(4).tolist()


def test_what_is_beside_a_line_changes_nothing_in_its_alignment():
    model = AutomatonModel(seed=4, vocabulary=44)
    lines = ["w1 w2 w3", "w5", "w9 w8 w7 w6 w5 w4 w3 w2 w1", "w4 w4"]
    for choice in (USUAL, AttentionChoice(2, 3)):
        together = translator(model).n_best(lines, 2, options(beam_size=3), alignment=choice)
        for line, found in zip(lines, together, strict=True):
            [alone] = translator(model).n_best([line], 2, options(beam_size=3), alignment=choice)
            for one, other in zip(found, alone, strict=True):
                assert torch.allclose(torch.tensor(one.alignment.weights), torch.tensor(other.alignment.weights))
                assert one.alignment.links == other.alignment.links
                assert one.alignment.target_tokens[: len(one.tokens)] == one.tokens
                assert len(one.alignment.weights) == one.length
