"""Marks of what a translation has and lacks: cases made by hand, and text that is given back."""

from html.parser import HTMLParser
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.analysis.comparison.marks import differences
from nmt.analysis.document import tagged


@pytest.mark.parametrize(
    ("translation", "reference", "expected"),
    [
        ("a dog runs", "a dog runs", "a dog runs"),
        ("a cat runs", "a dog runs", "a +cat+ runs"),
        ("a big dog runs", "a dog runs", "a +big+ dog runs"),
        ("a dog runs", "a big dog runs", "a- big- dog runs"),
        ("a dog.", "a dog runs fast.", "a dog- runs fast-."),
        ("a dog runs", "then a dog runs", "-then -a dog runs"),
        ("a dog", "a dog runs", "a dog- runs-"),
        ("two black cats sit", "one white dog sits", "+two black cats sit+"),
        ("A dog", "a dog", "+A+ dog"),  # BLEU counts case, too
        ("a dog ,", "a dog.", "a dog +,+"),
        ("don't", "don’t", "+don't+"),
        ("a t-shirt", "a shirt", "a +t-shirt+"),  # one word
        ("", "a dog", "-a dog-"),
        ("a dog", "", "+a dog+"),
        ("", "", ""),
        ("  a  dog ", "a dog", "  a  dog "),  # space is no word
        ("我喜欢猫。", "我喜欢狗。", "我喜欢+猫+。"),
        ("我猫。", "我喜欢猫。", "我-喜欢-猫。"),
        ("שלום עולם", "שלום לכולם", "שלום +עולם+"),
        ("می‌روم", "می‌روم", "می‌روم"),  # joined by a zero-width non-joiner
        ("ein Ma\u0308rchen", "ein Märchen", "ein +Ma\u0308rchen+"),  # a letter and its accent stay together
    ],
)
def test_marks(translation: str, reference: str, expected: str) -> None:
    signs = {"same": "", "own": "+", "missing": "-"}
    found = "".join(f"{signs[mark]}{text}{signs[mark]}" for text, mark in differences(translation, reference))
    assert found == expected


class _Reader(HTMLParser):
    """The text of a page, apart from that within ``<del>``."""

    def __init__(self) -> None:
        super().__init__()
        self.text, self.open = "", ""

    def handle_starttag(self, tag: str, attrs: object) -> None:
        assert tag in ("ins", "del")
        assert not self.open, "marks do not overlap"
        self.open = tag

    def handle_endtag(self, tag: str) -> None:
        assert tag == self.open
        self.open = ""

    def handle_data(self, data: str) -> None:
        self.text += "" if self.open == "del" else data


SENTENCES = st.lists(
    st.sampled_from(
        ["a", "dog", "Dog", ".", "<b>", "&amp;", "猫", "喜", "שלום", "e\u0301", "'", "👩‍👩‍👧", " ", "\u00a0", "</ins>"]
    )
).map("".join)


@given(SENTENCES, SENTENCES)
def test_without_the_marks_it_is_the_translation(translation: str, reference: str) -> None:
    reader = _Reader()
    reader.feed(str(tagged(differences(translation, reference))))
    reader.close()
    assert reader.text == translation
    assert not reader.open


@given(SENTENCES, SENTENCES)
def test_nothing_is_marked_but_what_differs(translation: str, reference: str) -> None:
    assert {mark for _, mark in differences(translation, translation)} <= {"same"}
    pieces = differences(translation, reference)
    assert all(text for text, _ in pieces)
    assert all(one.mark != other.mark for one, other in pairwise(pieces))
    for text, mark in pieces:
        assert text in (reference if mark == "missing" else translation)
