"""The stages of a preparation as a whole: the same in other processes, what is written beside the ids, what is said."""

import gzip
import json
import os
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nmt.config import DataConfig
from nmt.data import parallel, training_text
from nmt.data.corpus import DataError
from nmt.data.dataset import PreparedData, open_prepared, prepare
from nmt.data.store import SIDES, RowRange
from nmt.tokens import EOS
from tests.data_configs import ENGLISH, GERMAN, files_config, small_corpus, write_corpus

LONG = "the " * 30
WORD = "".join(random.Random(1).choices("adeginorst", k=120))  # few pieces have more than a letter of it
SOURCES = [*ENGLISH[:6], "a dog .", "", "a\tnew \\n one .", "sing .", LONG, "zwei", WORD, *ENGLISH[6:10]]
TARGETS = [*GERMAN[:6], "Hund .", "leer", "neu", "", "das", LONG, "lang", *GERMAN[6:10]]
FILTERS = {"max_words": 20, "duplicates": "pair", "held_out": "source", "quarantine": True}
REASONS = [
    *[(6, "duplicate"), (7, "held_out"), (8, "empty"), (10, "empty"), (11, "too_many_words"), (12, "too_many_words")],
    *[(13, "too_long"), (14, "duplicate"), (15, "duplicate"), (16, "duplicate"), (17, "duplicate")],
]
"""Lines of this text that training is not given, and why; the fifth line and the tenth have one source."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_corpus(tmp_path / "text", train=(SOURCES[:9], TARGETS[:9]), more=(SOURCES[9:], TARGETS[9:]))
    write_corpus(tmp_path / "text", validation=(["a dog .", "ü", "ü"], ["Hund .", "x", "x"]))
    return tmp_path


def config_of(folder: Path, filters: dict[str, Any] = FILTERS, **changes: Any) -> DataConfig:
    text = str(folder / "text")
    usual = {"train": [f"{text}/train", f"{text}/more"], "max_length": 40, "tokenizer": {"vocabulary_size": 50}}
    cache = folder / str(changes.pop("cache", "cache"))
    return files_config(folder / "text", cache, filters=filters, **(usual | changes))


def prepared(config: DataConfig) -> PreparedData:
    return prepare(config, lambda line: None)


def quarantine(data: PreparedData) -> list[list[str]]:
    """What ``zcat | cut`` sees."""
    text = gzip.decompress((data.folder / "preparation" / "dropped.tsv.gz").read_bytes()).decode()
    return [line.split("\t") for line in text.removesuffix("\n").split("\n")]


def plain(field: str) -> str:
    return (
        field.replace("\\\\", "\0").replace("\\t", "\t").replace("\\n", "\n").replace("\\r", "\r").replace("\0", "\\")
    )


def test_what_is_dropped_is_written_down_in_order_with_the_reason(folder: Path) -> None:
    header, *rows = quarantine(prepared(config_of(folder)))
    assert header == ["reason", "part", "line", "source", "target"]
    assert rows
    for (line, reason), row in zip(REASONS, rows, strict=True):
        second = line > 9
        assert row[:3] == [reason, str(folder / "text" / ("more" if second else "train")), str(line - 9 * second)]
        assert [plain(field) for field in row[3:]] == [SOURCES[line - 1], TARGETS[line - 1]]


def test_a_tab_and_a_backslash_come_back(folder: Path) -> None:
    _, *rows = quarantine(prepared(config_of(folder, FILTERS | {"max_words": 3})))
    [row] = [row for row in rows if "new" in row[3]]
    assert row[3] == "a\\tnew \\\\n one ."
    assert plain(row[3]) == SOURCES[8]


def test_without_a_quarantine_no_dropped_text_stays(folder: Path) -> None:
    data = prepared(config_of(folder, FILTERS | {"quarantine": False}))
    assert not (data.folder / "preparation").exists()
    assert data.fingerprint != prepared(config_of(folder)).fingerprint


def test_the_name_of_what_was_dropped_from_may_be_any_bytes(folder: Path) -> None:
    other = folder / os.fsdecode(b"caf\xe9.tsv")
    other.write_bytes(b"a dog .\tHund .\n\tleer\n")
    data = prepared(
        config_of(folder, train=str(folder / "*.tsv"), tokenizer={"vocabulary_size": 15}, filters={"quarantine": True})
    )
    assert quarantine(data)[1] == ["empty", str(other).replace("\udce9", "\\udce9"), "2", "", "leer"]


def test_a_part_that_training_gets_nothing_of_is_named(folder: Path) -> None:
    said: list[str] = []
    prepare(config_of(folder, {}, max_pairs=5, tokenizer={"vocabulary_size": 40}), said.append)
    [warning] = [line for line in said if line.startswith("WARNING")]
    assert warning.startswith(f"WARNING: {folder / 'text' / 'more'}: none of its pairs")
    assert "data.sample_seed=1" in warning
    said.clear()
    prepare(config_of(folder, {}, max_pairs=5, sample_seed=1, tokenizer={"vocabulary_size": 40}), said.append)
    assert not any(line.startswith("WARNING") for line in said)


def test_every_pair_is_accounted_for(folder: Path) -> None:
    said: list[str] = []
    report = prepare(config_of(folder), said.append).report
    train = report["splits"]["train"]
    expected = Counter(reason for _, reason in REASONS)
    assert {reason: count for reason, count in train["dropped"].items() if count} == expected
    assert (train["read"], train["kept"]) == (len(SOURCES), len(SOURCES) - len(REASONS))
    assert train["held_out"] == {"source": 1, "target": 1, "pair": 1}
    assert report["overlap"]["validation"] == {"source": 0, "target": 0, "pair": 0}
    left = len(SOURCES)
    for stage in report["stages"]:
        assert stage["in"] == left
        left -= sum(stage["dropped"].values())
        assert stage["out"] == left
    assert left == train["kept"]
    rows = {line.split()[0]: line for line in said if line}
    assert rows["duplicates"].endswith("pair of an earlier one: 5")
    assert rows["filters"].split()[1:4] == ["17", "13", "4"]


def test_the_rows_are_what_is_left_in_order(folder: Path) -> None:
    data = prepared(config_of(folder))
    left = sorted(set(range(1, len(SOURCES) + 1)) - {line for line, _ in REASONS})
    assert len(data.train) == len(left)
    for row, line in enumerate(left):
        texts = SOURCES[line - 1], TARGETS[line - 1]
        for ids, tokenizer, text in zip(data.train.pair(row), data.tokenizers, texts, strict=True):
            assert ids.tolist() == [*tokenizer.encode(text), EOS]


def test_rows_by_part_have_the_weights_that_are_asked_for_now(folder: Path) -> None:
    names = [str(folder / "text" / name) for name in ("train", "more")]

    def mixture(*weights: float) -> DataConfig:
        corpora = [{"path": name, "weight": weight} for name, weight in zip(names, weights, strict=True)]
        return config_of(folder, train=None, corpora=corpora)

    first = prepared(mixture(1.0, 2.5))
    kept = sum(line > 9 for line in set(range(1, 18)) - {line for line, _ in REASONS})
    end = len(first.train)
    assert first.parts == [
        RowRange(names[0], 1.0, 0, end - kept),
        RowRange(names[1], 2.5, end - kept, end),
    ]
    assert first.report["parts"][1] == {"name": names[1], "weight": 2.5, "rows": [end - kept, end]}
    second = prepared(mixture(3.0, 1.0))
    assert second.folder == first.folder
    assert [part.weight for part in second.parts] == [3.0, 1.0]
    assert [part.weight for part in open_prepared(first.folder).parts] == [1.0, 2.5]


def test_the_text_of_the_rows_is_kept_for_subword_regularisation(folder: Path) -> None:
    tokenizer = {"vocabulary_size": 50, "subword_regularization": 0.1}
    data = prepared(config_of(folder, tokenizer=tokenizer))
    for number, side in enumerate(SIDES):
        text = data.train.text(side)
        assert len(text) == len(data.train)
        for row in range(len(text)):
            assert [*data.tokenizers[number].encode(text[row]), EOS] == data.train.pair(row)[number].tolist()
        with pytest.raises(IndexError):
            text[len(text)]
    assert prepared(config_of(folder, tokenizer=tokenizer | {"subword_regularization": 0.2})).folder == data.folder
    without = prepared(config_of(folder))
    assert without.folder != data.folder
    with pytest.raises(DataError, match=r"no text is kept .*subword_regularization"):
        without.train.text("source")


def test_a_sample_is_named_in_the_report(folder: Path) -> None:
    config = config_of(folder, {}, max_pairs=8, sample_seed=3, tokenizer={"vocabulary_size": 40})
    train = prepared(config).report["splits"]["train"]
    assert train["dropped"]["not_drawn"] == train["read"] - train["dropped"]["empty"] - 8
    assert train["kept"] + sum(train["dropped"].values()) == train["read"] == len(SOURCES)


@pytest.mark.parametrize("limits", [{}, {"max_pairs": 5}, {"max_pairs": 5, "sample_seed": 2}], ids=str)
def test_other_processes_leave_the_same_bytes(
    folder: Path, monkeypatch: pytest.MonkeyPatch, limits: dict[str, int]
) -> None:
    monkeypatch.setattr(training_text, "CHUNK", 2)
    monkeypatch.setattr(parallel, "ALONE", 1)
    found = []
    for cores in (1, 3):
        monkeypatch.setattr(parallel, "_cores", constant(cores))
        tokenizer = {"vocabulary_size": 40, "subword_regularization": 0.1}
        data = prepared(config_of(folder, tokenizer=tokenizer, cache=f"cache{cores}", **limits))
        files = sorted(path for path in data.folder.rglob("*") if path.is_file())
        found.append({str(path.relative_to(data.folder)): path.read_bytes() for path in files})
    assert len(found[0]) > 10
    assert found[0] == found[1]


def constant(value: int) -> Callable[[], int]:
    return lambda: value


def test_the_report_knows_every_file(folder: Path) -> None:
    data = prepared(config_of(folder))
    sizes = json.loads((data.folder / "preparation.json").read_text())["sizes"]
    found = {str(path.relative_to(data.folder)) for path in data.folder.rglob("*") if path.is_file()}
    assert set(sizes) == found - {"preparation.json"}
    assert "preparation/dropped.tsv.gz" in sizes
    assert not list(data.folder.rglob("scratch*"))


@pytest.mark.parametrize(("changes", "key"), [({"sample_seed": 1}, "max_pairs"), ({"sample_seed": -1}, "0 or more")])
def test_a_sample_that_cannot_be_is_refused(tmp_path: Path, changes: dict[str, Any], key: str) -> None:
    small_corpus(tmp_path / "text")
    with pytest.raises(ValueError, match=rf"data\.sample_seed: .*{key}"):
        prepared(files_config(tmp_path / "text", tmp_path / "cache", **changes))
