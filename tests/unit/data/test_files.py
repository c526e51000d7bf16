"""The user's own files: prefixes, pairs, TSV, JSON Lines, compressed or not."""

import gzip
import json
import lzma
from pathlib import Path
from typing import Any

import pytest
import zstandard

from nmt.config import ConfigError, FilesData, HubData
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
    corpus = opened(entries)
    assert train_pairs(corpus) == pairs
    assert [part.name for part in corpus.splits["train"]] == entries
    assert all(part.to_the_end for part in corpus.splits["train"])


def test_the_code_of_a_language_in_a_record_goes_before_a_translation_in_it(tmp_path: Path) -> None:
    records = [
        {"translation": {"en": "one", "de": "eins"}, "id": 7, "en": "x"},
        {"en": "two", "de": "zwei", "translation": {"en": "x", "de": "x"}},
        {"en": "three", "de": "drei", "translation": "x"},
    ]
    (tmp_path / "x.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    assert train_pairs(opened(str(tmp_path / "x.jsonl"))) == [("one", "eins"), ("two", "zwei"), ("three", "drei")]


def test_endings_in_capitals(tmp_path: Path) -> None:
    (tmp_path / "X.TSV.GZ").write_bytes(gzip.compress(b"one\teins\n"))
    assert train_pairs(opened(str(tmp_path / "X.TSV.GZ"))) == [("one", "eins")]


# --- mixtures and patterns --------------------------------------------------------------------------------------------


def test_a_mixture_has_weights(folder: Path) -> None:
    (folder / "web.tsv").write_text("three\tdrei\n")
    pair = {"source": str(folder / "train.en"), "target": str(folder / "train.de")}
    corpora = [
        {"path": str(folder / "train"), "weight": 2.5},
        {"path": str(folder / "*.tsv"), "weight": 0.5},
        {"path": pair, "weight": 1.0},
    ]
    corpus = opened(None, corpora=corpora, validation=str(folder / "train"))
    found = [(part.name, part.weight) for part in corpus.splits["train"]]
    assert found == [(str(folder / "train"), 2.5), (str(folder / "web.tsv"), 0.5), (pair["source"], 1.0)]
    assert train_pairs(corpus) == [
        ("one", "eins"),
        ("two", "zwei"),
        ("three", "drei"),
        ("one", "eins"),
        ("two", "zwei"),
    ]
    assert [part.weight for part in corpus.splits["validation"]] == [1.0]


@pytest.mark.parametrize("weight", [0.0, -1.0, float("inf"), float("nan")])
def test_a_weight_is_a_number_above_0(folder: Path, weight: float) -> None:
    with pytest.raises(ConfigError, match=r"data\.corpora: a weight .* found"):
        opened(None, corpora=[{"path": str(folder / "train"), "weight": weight}], validation=str(folder / "train"))


@pytest.mark.parametrize("both", [True, False])
def test_either_a_list_or_a_mixture(folder: Path, both: bool) -> None:
    corpora = [{"path": str(folder / "train"), "weight": 1.0}] if both else None
    with pytest.raises(ConfigError, match=r"data\.train: give either train or corpora"):
        opened(str(folder / "train") if both else None, corpora=corpora, validation=str(folder / "train"))


def test_a_pattern_is_all_that_match_sorted_by_name(tmp_path: Path) -> None:
    for name in ("part-2", "part-10", "part-1"):
        (tmp_path / f"{name}.tsv.gz").write_bytes(gzip.compress(f"{name}\t{name}\n".encode()))
        (tmp_path / f"{name}.en").write_text(f"{name}\n")
        (tmp_path / f"{name}.de.xz").write_bytes(lzma.compress(f"{name}\n".encode()))
    (tmp_path / "part-3.tsv.gz").mkdir()
    (tmp_path / "part-3.en").mkdir()
    expected = [(name, name) for name in ("part-1", "part-10", "part-2")]
    for pattern in ("part-*.tsv.gz", "part-*", "part-[0-9]*"):
        assert train_pairs(opened(str(tmp_path / pattern))) == expected


def test_a_name_with_a_star_in_it_is_that_file(tmp_path: Path) -> None:
    for name in ("a*.tsv", "ab.tsv", "b[1].en", "b[1].de", "b1.en", "b1.de"):
        (tmp_path / name).write_text(f"{name}\t{name}\n" if name.endswith("tsv") else f"{name}\n")
    assert train_pairs(opened(str(tmp_path / "a*.tsv"))) == [("a*.tsv", "a*.tsv")]
    assert train_pairs(opened(str(tmp_path / "b[1]"))) == [("b[1].en", "b[1].de")]


def test_a_pattern_without_a_match_or_with_half_a_match(tmp_path: Path) -> None:
    (tmp_path / "part-1.en").write_text("one\n")
    for pattern, found in (("x-*.tsv", "x-\\*.tsv: no file matches"), ("x-*", "no file matches: .*x-\\*.en.gz")):
        with pytest.raises(DataError, match=found):
            opened(str(tmp_path / pattern))
    with pytest.raises(DataError, match=r"one side only of .*part-1: no such file: .*part-1\.de, .*part-1\.de\.gz"):
        opened(str(tmp_path / "part-*"))


def test_what_is_read_shows_in_the_report_and_its_form_with_it(folder: Path) -> None:
    """Two .tsv files can be two entries, or the two sides of one: the same names, another text."""
    for name in ("a.tsv", "b.tsv"):
        (folder / name).write_text("one\teins\n")
    apart = opened([str(folder / "a.tsv"), str(folder / "b.tsv")])
    sides = opened({"source": str(folder / "a.tsv"), "target": str(folder / "b.tsv")})
    assert apart.origin["files"] == sides.origin["files"]
    assert apart.origin["forms"]["train"] == [".tsv", ".tsv"]
    assert sides.origin["forms"]["train"] == ["pair"]


# --- what is wrong ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "line", "found"),
    [
        ("x.tsv", "one\teins\tthird", "3 fields"),
        ("x.tsv", "one eins", "1 fields"),
        ("x.tsv", "one,eins", "CSV"),
        ("x.tsv", "1\teins\tone", "cut -f 1,2"),
        ("x.jsonl", "[", "jq -c"),
        ("x.jsonl", "{", "one object a line"),
        ("x.jsonl", '[{"en": "one", "de": "eins"}]', "jq -c"),
        ("x.jsonl", "[" * 100_000, "not JSON that can be read"),
        ("x.jsonl", '{"en": ' + "1" * 5000 + "}", "not JSON that can be read"),
        ("x.jsonl", '{"\\ud800": 1, "fr": "un"}', "no key 'en'; found '\\ud800', fr"),
        ("x.jsonl", '{"translation": {"en": "one", "fr": "un"}}', "no key 'de'; found en, fr"),
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
    assert len(str(caught.value)) < 300 + len(str(tmp_path))
    str(caught.value).encode()  # no half characters


def test_what_was_meant_perhaps_is_said(folder: Path) -> None:
    for name in ("notes.docx", "pairs.csv", "plain", "dev.fr"):
        (folder / name).write_text("x\n")
    pair = {"source": str(folder / "train.de"), "target": str(folder / "train.en")}
    for entry, found in (
        (str(folder), r"is a folder; name a prefix in it \(.*/train for .*/train\.en and .*/train\.de\)"),
        (str(folder / "train.en"), r"train\.en: is one side's file; give the prefix of both: .*/train$"),
        (str(folder / "notes.docx"), r"notes\.docx: no file of this ending is read"),
        (str(folder / "pairs.csv"), r"pairs\.csv: no file of this ending is read: convert it, one tab"),
        (str(folder / "plain"), r"plain: no file of this ending is read"),
        (str(folder / "dev"), r"no such file: .*dev\.en, .*; there is dev\.fr"),
        ({"source": str(folder), "target": str(folder)}, "is a folder"),
        (pair, r"their endings say the opposite of data\.source=en data\.target=de; swap"),
    ):
        with pytest.raises(DataError, match=found):
            opened(entry)


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
