"""Gold alignments in every form they come in, and what is said about wrong ones."""

from pathlib import Path

import pytest

from nmt.analysis.gold import GoldFiles, as_given, read_gold, reversed_pair, written
from nmt.data.corpus import DataError

SOURCE, TARGET = ["the house", "I see it ."], ["la maison", "je le vois ."]
SURE = [{(0, 0), (1, 1)}, {(0, 0), (3, 3)}]
POSSIBLE = [set(), {(1, 2), (2, 1)}]


@pytest.fixture
def files(tmp_path: Path) -> GoldFiles:
    for name, lines in (("text.en", SOURCE), ("text.fr", TARGET), ("links", ["0-0 1-1", "0-0 1?2 2p1 3-3"])):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return GoldFiles(tmp_path / "text.en", tmp_path / "text.fr", tmp_path / "links")


def links_of(files: GoldFiles) -> list[tuple[set[tuple[int, int]], set[tuple[int, int]]]]:
    return [(set(pair.sure), set(pair.possible)) for pair in read_gold(files)]


EXPECTED = [(sure, sure | possible) for sure, possible in zip(SURE, POSSIBLE, strict=True)]


def test_pharaoh(files: GoldFiles) -> None:
    assert links_of(files) == EXPECTED
    assert [pair.source.text for pair in read_gold(files)] == SOURCE


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        ("1-1 2-2\n1-1 2?3 3?2 4-4\n", {"base": 1}),
        ("0-0 1-1\n0-0 2p1 1p2 3-3\n", {"inverse": True}),
        ("1 1 1 S\n1 2 2 S\n2 1 1 S\n2 2 3 P\n2 3 2 P 0.7\n2 4 4 S\n2 0 1 S\n", {}),
        ("0001 1 1\n1 2 2\n2 1 1\n2 2 3 P\n2 3 2 P\n2 4 4\n\n", {}),
    ],
    ids=["from one", "target first", "naacl", "naacl without marks"],
)
def test_other_forms_say_the_same(files: GoldFiles, text: str, changes: dict[str, object]) -> None:
    files.links.write_text(text, encoding="utf-8")
    assert links_of(files._replace(**changes)) == EXPECTED


def test_possible_links_in_a_file_of_their_own(files: GoldFiles, tmp_path: Path) -> None:
    files.links.write_text("0-0 1-1\n0-0 3-3\n", encoding="utf-8")
    (tmp_path / "possible").write_text("0-0 1-1\n0-0 1-2 2-1 3-3\n", encoding="utf-8")
    assert links_of(files._replace(possible=tmp_path / "possible")) == EXPECTED


@pytest.mark.parametrize(
    ("text", "base", "message"),
    [
        ("0-0\n1-9\n", 0, r"links: pair 2: links source word 2 and target word 10, but the pair has 4 and 4 words"),
        ("1-1 2-2\n1-1 4-4\n", 0, "--gold-base 1"),
        ("0-0\n1-1\n", 1, r"line 1: 0-0: counted from 0.*leave out --gold-base 1"),
        ("0-0\n", 0, "has 1 lines but the text has 2"),
        ("0-0\n0:0\n", 0, r"line 2: expected links like 0-0.*found '0:0'"),
        ("1 1 1 S\n3 1 1 S\n", 0, "line 2: sentence 3, but the text has 2 lines"),
        ("1 1 1 S\n1-1\n", 0, "line 2: expected 'sentence source target S|P'"),
        ("0?0\n0?0\n", 0, "no sure link"),
    ],
)
def test_wrong_gold_is_named(files: GoldFiles, text: str, base: int, message: str) -> None:
    files.links.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=message):
        read_gold(files._replace(base=base))


def test_a_blank_side_is_named(files: GoldFiles) -> None:
    files.target.write_text("la maison\n \n", encoding="utf-8")
    with pytest.raises(DataError, match="line 2: nothing to align"):
        read_gold(files)


@pytest.mark.parametrize(
    ("language", "text", "joined"),
    [
        ("en", 'oh , oh ! it \'s ( not ) " fine " .', 'oh, oh! it\'s (not) "fine".'),
        ("fr", "l' union de la pêche n' est qu' un début .", "l'union de la pêche n'est qu'un début."),
        ("en", "one", "one"),
    ],
)
def test_text_as_people_write_it_still_has_its_words(language: str, text: str, joined: str) -> None:
    side = written(text, language)
    assert side.text == joined
    assert [side.text[slice(*span)] for span in side.spans] == text.split()


def test_text_whose_words_are_lost_stays_as_it_is() -> None:
    for text in ("a &#124; b", "x @-@ y"):
        side = written(text, "en")
        assert [side.text[slice(*span)] for span in side.spans] == text.split()


def test_turned_twice_is_the_same(files: GoldFiles) -> None:
    for pair in read_gold(files):
        turned = reversed_pair(pair)
        assert turned.source == as_given(pair.target.text)
        assert reversed_pair(turned) == pair
