"""The user's own files: prefixes, pairs, TSV, JSON Lines, compressed or not."""

import gzip
import json
import lzma
from pathlib import Path
from typing import Any

import pytest
import zstandard

from nmt.config import FilesData, HubData
from nmt.data.corpus import Corpus, DataError
from nmt.data.files import open_files, open_folder
from tests.data_configs import data_config


def config(**changes: Any) -> FilesData:
    defaults = {"source": "en", "target": "de", "train": [], "validation": []}
    made = data_config("files", Path("cache"), **(defaults | changes))
    assert isinstance(made, FilesData)
    return made


def train_pairs(corpus: Corpus) -> list[tuple[str, str]]:
    return [(pair.source, pair.target) for part in corpus.splits["train"] for pair in part.read()]


def opened(entry: Any, **changes: Any) -> Corpus:
    return open_files(config(**({"train": entry, "validation": entry} | changes)))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "train.en").write_bytes(b"one\ntwo\n")
    (tmp_path / "train.de").write_bytes(b"eins\r\nzwei\r\n")
    return tmp_path


def test_a_prefix(folder: Path) -> None:
    assert train_pairs(opened(str(folder / "train"))) == [("one", "eins"), ("two", "zwei")]


def test_a_prefix_may_hold_dots(tmp_path: Path) -> None:
    for language in ("en", "de"):
        (tmp_path / f"news.2019.{language}").write_text("a\n")
    assert train_pairs(opened(str(tmp_path / "news.2019"))) == [("a", "a")]


def test_each_side_may_be_packed_in_its_own_way(tmp_path: Path) -> None:
    (tmp_path / "train.en.xz").write_bytes(lzma.compress(b"one\ntwo"))
    (tmp_path / "train.de.zst").write_bytes(zstandard.compress("eins\nzwölf\n".encode()))
    assert train_pairs(opened(str(tmp_path / "train"))) == [("one", "eins"), ("two", "zwölf")]


def test_the_plain_file_goes_before_a_packed_one(folder: Path) -> None:
    (folder / "train.en.gz").write_bytes(gzip.compress(b"old\nold\n"))
    corpus = opened(str(folder / "train"))
    assert train_pairs(corpus)[0] == ("one", "eins")
    assert corpus.origin["files"]["train"] == [str(folder / "train.en"), str(folder / "train.de")]


def test_a_missing_file_names_all_that_were_tried(folder: Path) -> None:
    (folder / "train.de").unlink()
    with pytest.raises(DataError) as caught:
        opened(str(folder / "train"))
    for ending in ("", ".gz", ".xz", ".zst"):
        assert f"{folder}/train.de{ending}" in str(caught.value)


def test_two_named_files(folder: Path) -> None:
    pair = {"source": str(folder / "train.en"), "target": str(folder / "train.de")}
    assert train_pairs(opened(pair)) == [("one", "eins"), ("two", "zwei")]
    with pytest.raises(DataError, match=r"nothing\.de"):
        opened({"source": str(folder / "train.en"), "target": str(folder / "nothing.de")})


def test_several_are_read_in_order(folder: Path) -> None:
    (folder / "more.tsv").write_text("three\tdrei\n\nfour\tvier\n")
    (folder / "last.jsonl.gz").write_bytes(gzip.compress(b'{"de": "f\\u00fcnf", "x": 1, "en": "five"}\n\n'))
    entries = [str(folder / "more.tsv"), str(folder / "train"), str(folder / "last.jsonl.gz")]
    pairs = [("three", "drei"), ("", ""), ("four", "vier"), ("one", "eins"), ("two", "zwei"), ("five", "fünf")]
    assert train_pairs(opened(entries)) == pairs
    assert train_pairs(opened(entries, max_pairs=4)) == pairs[:4]


def test_a_limit_counts_training_pairs_only(folder: Path) -> None:
    corpus = opened(str(folder / "train"), max_pairs=1)
    assert len(train_pairs(corpus)) == 1
    assert sum(1 for part in corpus.splits["validation"] for _ in part.read()) == 2


@pytest.mark.parametrize("split", ["train", "validation", "test"])
@pytest.mark.parametrize("short", ["en", "de"])
@pytest.mark.parametrize("max_pairs", [None, 1])
def test_unequal_counts_name_both(folder: Path, split: str, short: str, max_pairs: int | None) -> None:
    for language in ("en", "de"):
        (folder / f"odd.{language}").write_text("x\n" * (9 if language == short else 10))
    entries = {name: str(folder / ("odd" if name == split else "train")) for name in ("train", "validation", "test")}
    corpus = open_files(config(max_pairs=max_pairs, **entries))
    with pytest.raises(DataError) as caught:
        [pair for part in corpus.splits[split] for pair in part.read()]
    message = str(caught.value)
    assert f"odd.{short} has 9 lines" in message or f"odd.{short} has 9:" in message
    assert "10" in message


@pytest.mark.parametrize(
    ("name", "line", "found"),
    [
        ("x.tsv", "one\teins\tthird", "3 fields"),
        ("x.tsv", "one eins", "1 fields"),
        ("x.jsonl", '{"en": "one"', "not JSON"),
        ("x.jsonl", '["one", "eins"]', "expected an object"),
        ("x.jsonl", '{"en": "one", "fr": "un"}', "no key 'de'; found en, fr"),
        ("x.jsonl", '{"en": "one", "de": 1}', "expected text, found 1"),
        ("x.jsonl", '{"en": "one", "de": "\\ud83d"}', "surrogate"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, name: str, line: str, found: str) -> None:
    good = "one\teins" if name.endswith("tsv") else '{"en": "one", "de": "eins"}'
    (tmp_path / name).write_text(f"{good}\n{line}\n")
    with pytest.raises(DataError) as caught:
        train_pairs(opened(str(tmp_path / name)))
    assert f"{name}: line 2" in str(caught.value)
    assert found in str(caught.value)


def test_a_line_break_in_json_is_white_space(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text(json.dumps({"en": "a\nb", "de": "c\r\nd\n"}) + "\n")
    assert train_pairs(opened(str(tmp_path / "x.jsonl"))) == [("a b", "c d")]


def test_no_files_is_an_error() -> None:
    with pytest.raises(DataError, match=r"data\.train"):
        open_files(config(train=[], validation="x"))


def test_a_local_copy_of_a_public_data_set(tmp_path: Path) -> None:
    for name in ("train", "val", "test_2016_flickr"):
        for language in ("de", "en"):
            (tmp_path / f"{name}.{language}.gz").write_bytes(gzip.compress(f"{name} {language}\n".encode()))
    hub = data_config("multi30k", tmp_path, folder=str(tmp_path))
    assert isinstance(hub, HubData)
    corpus = open_folder(hub)
    assert {split: next(part.read()) for split, (part,) in corpus.splits.items()} == {
        "train": ("train de", "train en", None),
        "validation": ("val de", "val en", None),
        "test": ("test_2016_flickr de", "test_2016_flickr en", None),
    }
    missing = data_config("multi30k", tmp_path, folder=str(tmp_path / "nowhere"))
    assert isinstance(missing, HubData)
    with pytest.raises(DataError, match=r"data\.folder"):
        open_folder(missing)


def test_one_entry_needs_no_brackets() -> None:
    assert config(train="a").train == ("a",)
