"""Official sets: their size is checked, their text compared, wherever they come from."""

import gzip
import hashlib
from pathlib import Path
from typing import Any

import pytest

from nmt.config import HubData
from nmt.data import official
from nmt.data.corpus import Corpus, DataError, Part, TextPair
from nmt.data.files import open_folder
from nmt.data.official import OfficialSet, checked, official_set
from tests.data_configs import data_config


def config(group: str, **changes: Any) -> HubData:
    made = data_config(group, Path("cache"), **changes)
    assert isinstance(made, HubData)
    return made


def corpus_of(sentences: list[tuple[str, str]]) -> Corpus:
    pairs = [TextPair(*pair) for pair in sentences]
    return Corpus({split: (Part(split, lambda: iter(pairs)),) for split in ("train", "validation", "test")})


def digest(lines: list[str]) -> str:
    return hashlib.sha256("".join(f"{line}\n" for line in lines).encode()).hexdigest()


SENTENCES = [("a b", "c"), ("d\u00a0", "\u00e9 f"), ("", "g")]


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    """WMT14 fr-en has an official test set of three sentences, of whose text the English is known."""
    text = {"en": digest([source for source, _ in SENTENCES])}
    sets = {"wmt/wmt14": {"fr-en": {"test": OfficialSet("newstest2014", 3, text)}}}
    monkeypatch.setattr(official, "_SETS", sets)


def read(corpus: Corpus, log: list[str] | None = None, **changes: Any) -> list[TextPair]:
    lines = [] if log is None else log
    return list(checked(corpus, config("wmt14", **changes), lines.append).splits["test"][0].read())


def test_the_official_text_passes(known: None) -> None:
    log: list[str] = []
    corpus = corpus_of(SENTENCES)
    assert [pair[:2] for pair in read(corpus, log)] == SENTENCES  # nothing is filtered
    assert log == ["test: newstest2014, 3 sentences: checked by the text of en"]
    assert corpus.origin["official"] == {
        "test": {"name": "newstest2014", "sentences": 3, "text_as_published": {"en": True}}
    }


@pytest.mark.parametrize("count", [0, 2, 4])
def test_another_number_of_sentences_is_an_error(known: None, count: int) -> None:
    with pytest.raises(DataError, match=f"test: newstest2014 has 3 sentences, found {count}: not the official set"):
        read(corpus_of((SENTENCES * 2)[:count]))


@pytest.mark.parametrize("text", ["a  b", "a b ", "A b", "a b\u200b"])
def test_another_text_is_a_loud_warning_and_stands_in_the_report(known: None, text: str) -> None:
    log: list[str] = []
    corpus = corpus_of([(text, "c"), *SENTENCES[1:]])
    assert len(read(corpus, log)) == 3
    (line,) = log
    assert line.startswith("WARNING: test: the text of newstest2014 in en is not that of the official set")
    assert corpus.origin["official"]["test"]["text_as_published"] == {"en": False}


def test_the_direction_does_not_matter(known: None) -> None:
    corpus = corpus_of([(target, source) for source, target in SENTENCES])
    read(corpus, source="fr", target="en")
    assert corpus.origin["official"]["test"]["text_as_published"] == {"en": True}


@pytest.mark.parametrize(
    "changes",
    [
        {"target": "de"},
        {"dataset": "other/set"},
        {"splits": {"train": "train", "validation": "validation", "test": "my_test"}},
        {"folder": "x", "folder_splits": {"train": "train", "validation": "newstest2013", "test": "my_test"}},
    ],
    ids=str,
)
def test_what_is_not_the_official_set_is_not_held_against_it(known: None, changes: dict[str, Any]) -> None:
    log: list[str] = []
    assert len(read(corpus_of(SENTENCES[:1]), log, **changes)) == 1
    assert log == []


def test_training_text_is_none(known: None) -> None:
    corpus = corpus_of(SENTENCES)
    assert checked(corpus, config("wmt14"), print).splits["train"] is corpus.splits["train"]


def test_a_copy_in_a_folder_is_held_against_it_too(known: None, tmp_path: Path) -> None:
    for name, count in (("train", 3), ("newstest2013", 1), ("newstest2014", 2)):
        for language in ("en", "fr"):
            (tmp_path / f"{name}.{language}.gz").write_bytes(gzip.compress(b"a\n" * count))
    hub = config("wmt14", folder=str(tmp_path))
    splits = checked(open_folder(hub), hub, print).splits
    assert len(list(splits["validation"][0].read())) == 1
    with pytest.raises(DataError, match="newstest2014 has 3 sentences, found 2"):
        list(splits["test"][0].read())


PUBLISHED = [
    ("wmt14", "fr-en", "validation", "newstest2013", 3000),
    ("wmt14", "fr-en", "test", "newstest2014", 3003),
    ("wmt14", "de-en", "test", "newstest2014", 3003),
    ("wmt14", "hi-en", "validation", "newsdev2014", 520),
    ("wmt16", "de-en", "test", "newstest2016", 2999),
    ("wmt16", "ro-en", "validation", "newsdev2016", 1999),
    ("wmt19", "de-en", "validation", "newstest2018", 2998),
    ("wmt19", "fr-de", "validation", "euelections_dev2019", 1512),
]


@pytest.mark.parametrize(("group", "pair", "role", "name", "sentences"), PUBLISHED)
def test_sets_are_found_by_data_set_pair_and_split(group: str, pair: str, role: str, name: str, sentences: int) -> None:
    first, second = pair.split("-")
    for source, target in ((first, second), (second, first)):
        found = official_set(config(group, source=source, target=target), role)
        assert found is not None
        assert (found.name, found.sentences) == (name, sentences)


def test_multi30k_has_its_two_sets_in_every_place() -> None:
    for dataset in ("bentrevett/multi30k", "romrawinjp/multi30k"):
        found = [official_set(config("multi30k", dataset=dataset), role) for role in ("validation", "test")]
        assert [(each.name, each.sentences) for each in found if each] == [("val", 1014), ("test_2016_flickr", 1000)]
    folder = official_set(config("multi30k", folder="x"), "test")
    assert folder is not None
    assert official_set(config("wmt19"), "test") is None


def test_every_hash_is_one() -> None:
    hashes = [
        text
        for by_pair in official._SETS.values()
        for sets in by_pair.values()
        for each in sets.values()
        for text in each.sha256.values()
    ]
    assert len(set(hashes)) == 10
    assert all(len(text) == 64 and int(text, 16) for text in hashes)
