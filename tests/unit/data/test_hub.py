"""Public data sets: local stand-ins with the same columns, and streams that fail in every way a network can."""

import gzip
import io
import json
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import datasets
import huggingface_hub
import pyarrow as pa
import pyarrow.parquet
import pytest

from nmt.config import HubData, to_tree
from nmt.data.corpus import DataError, TextPair
from nmt.data.dataset import prepare
from nmt.data.hub import open_hub
from nmt.data.hub_worker import Source, UnreachableError, _find_revision, serve, within
from tests.data_configs import ENGLISH, GERMAN, data_config
from tests.hub_server import SHA, hub_server

FRENCH = [f"{line} oui" for line in GERMAN]

CARD = """---
configs:
- config_name: fr-en
  data_files:
  - {split: train, path: train.jsonl}
  - {split: validation, path: validation.jsonl}
  - {split: test, path: test.jsonl}
- config_name: de-en
  data_files:
  - {split: train, path: train.jsonl}
---
"""


def ignore(line: str) -> None:
    """A log nobody reads."""


def hub(group: str, dataset: Path | str, **changes: Any) -> HubData:
    config = data_config(group, Path("cache"), dataset=str(dataset), **changes)
    assert isinstance(config, HubData)
    return config


def read(config: HubData, split: str = "train") -> list[tuple[str, str]]:
    """A split as the worker reads it, without the process around it."""
    name = getattr(config.splits, split)
    return list(Source(config, lambda message: None).pairs(name, config.max_pairs if split == "train" else None))


@pytest.fixture
def wmt(tmp_path: Path) -> Path:
    """Like wmt/wmt14: configurations, and a column of texts by language."""
    folder = tmp_path / "wmt"
    folder.mkdir()
    (folder / "README.md").write_text(CARD)
    for split, size in (("train", 20), ("validation", 5), ("test", 4)):
        records = [{"translation": {"fr": FRENCH[i], "en": ENGLISH[i]}} for i in range(size)]
        (folder / f"{split}.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    return folder


@pytest.fixture
def multi30k(tmp_path: Path) -> Path:
    """Like bentrevett/multi30k: a column a language, in Parquet of several row groups."""
    folder = tmp_path / "multi30k"
    folder.mkdir()
    for split, size in (("train", 20), ("validation", 5), ("test", 4)):
        table = pa.table({"en": ENGLISH[:size], "de": GERMAN[:size]})
        pyarrow.parquet.write_table(table, folder / f"{split}-00000-of-00001.parquet", row_group_size=3)
    return folder


# --- what is read -----------------------------------------------------------------------------------------------------


def test_a_column_of_texts_by_language(wmt: Path) -> None:
    assert read(hub("wmt14", wmt)) == list(zip(ENGLISH, FRENCH, strict=True))


def test_one_pair_serves_both_directions(wmt: Path) -> None:
    assert read(hub("wmt14", wmt, source="fr", target="en"))[0] == (FRENCH[0], ENGLISH[0])


def test_a_column_a_language(multi30k: Path) -> None:
    assert read(hub("multi30k", multi30k)) == list(zip(GERMAN, ENGLISH, strict=True))


def test_a_folder_below_the_home_folder(multi30k: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(multi30k.parent))
    corpus = open_hub(hub("multi30k", Path("~/multi30k")), lambda line: None)
    assert corpus.origin["hub"] == str(multi30k)
    assert len(corpus.origin["files"]["local"]) == 3


@pytest.mark.parametrize("limit", [1, 3, 4, 20, 1000])
def test_the_first_pairs_of_training_and_all_of_the_rest(multi30k: Path, wmt: Path, limit: int) -> None:
    for group, folder in (("multi30k", multi30k), ("wmt14", wmt)):
        config = hub(group, folder, max_pairs=limit)
        assert len(read(config)) == min(limit, 20)
        assert (len(read(config, "validation")), len(read(config, "test"))) == (5, 4)


def test_line_breaks_in_records_are_white_space(tmp_path: Path) -> None:
    for split in ("train", "validation", "test"):
        record = {"de": "ein\nHund\r\nläuft\n", "en": None}
        (tmp_path / f"{split}.jsonl").write_text(json.dumps(record) + "\n")
    assert read(hub("multi30k", tmp_path)) == [("ein Hund läuft", "")]


# --- what is missing --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "split", "found"),
    [
        ({"pair": "cs-en"}, "train", r"data\.pair: .*'cs-en' not found.*fr-en.*de-en"),
        ({"pair": None}, "train", r"data\.pair: .*fr-en.*de-en"),
        (
            {"splits": {"train": "train", "validation": "dev", "test": "test"}},
            "validation",
            r"data\.splits: .*dev.*train",
        ),
        ({"column": "text"}, "train", r"data\.column: no column 'text'.*found translation"),
        ({"column": None}, "train", r"data\.source: no 'en' here; found translation"),
        (
            {"source": "es"},
            "train",
            r"data\.source: no 'es' here; found fr, en|data\.source: no 'es' here; found en, fr",
        ),
        ({"target": "es"}, "train", r"data\.target: no 'es' here"),
    ],
    ids=str,
)
def test_what_is_missing_is_named_with_what_there_is(
    wmt: Path, changes: dict[str, Any], split: str, found: str
) -> None:
    with pytest.raises(DataError, match=found):
        read(hub("wmt14", wmt, **changes), split)


def test_a_truncated_file_is_no_shorter_split(tmp_path: Path) -> None:
    lines = "".join(json.dumps({"de": f"{i * i}", "en": f"{i}"}) + "\n" for i in range(5000)).encode()
    packed = gzip.compress(lines)
    for split in ("train", "validation", "test"):
        (tmp_path / f"{split}.jsonl.gz").write_bytes(packed[: len(packed) // 2] if split == "train" else packed)
    with pytest.raises(DataError, match=r"EOFError.*ended before"):
        read(hub("multi30k", tmp_path))


# --- the Hub's own answers --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"dataset": "some/thing"}, r"data\.dataset: no data set 'some/thing'"),
        ({"dataset": "what is this?"}, r"data\.dataset: "),
        ({"revision": "old"}, r"data\.revision: .* no revision 'old'"),
    ],
    ids=str,
)
def test_what_the_hub_does_not_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], found: str
) -> None:
    with hub_server(tmp_path, "bentrevett/multi30k") as server:
        monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", server.endpoint)
        with pytest.raises(DataError, match=found):
            read(hub("multi30k", **({"dataset": "bentrevett/multi30k"} | changes)))


def test_the_revision_is_the_newest_unless_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with hub_server(tmp_path, "bentrevett/multi30k") as server:
        monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", server.endpoint)
        assert _find_revision(hub("multi30k", "bentrevett/multi30k")) == SHA


@pytest.mark.parametrize("endpoint", ["http://127.0.0.1:9", "http://hub.invalid"])
def test_no_answer_is_no_revision(monkeypatch: pytest.MonkeyPatch, endpoint: str) -> None:
    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", endpoint)
    with pytest.raises(UnreachableError):
        _find_revision(hub("multi30k", "bentrevett/multi30k"))


def test_offline_mode_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(UnreachableError, match="OfflineMode"):
        _find_revision(hub("multi30k", "bentrevett/multi30k"))


def test_a_pinned_revision_is_not_taken_from_a_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(DataError, match="does not tell revisions apart"):
        read(hub("multi30k", "bentrevett/multi30k", revision="abc"))


# --- streams that fail ------------------------------------------------------------------------------------------------


class Stream:
    """What ``datasets.load_dataset`` returns, with a fault of our choosing behind some records."""

    def __init__(self, good: int, fails: bool, published: int | None = None) -> None:
        self.good = good
        self.fails = fails
        self.taken = 0
        self.info = SimpleNamespace(splits={"train": SimpleNamespace(num_examples=published)} if published else None)

    def __iter__(self) -> Iterator[dict[str, str]]:
        for i in range(self.good):
            self.taken += 1
            yield {"de": f"eins {i}", "en": f"one {i}"}
        if self.fails:
            raise ConnectionError("peer went away")


@pytest.fixture
def streaming(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Make a stream be the data set's: one in a folder, so that no network is asked for a revision."""

    def use(stream: Stream, **changes: Any) -> HubData:
        monkeypatch.setattr(datasets, "load_dataset", lambda *args, **keys: stream)
        return hub("multi30k", tmp_path, **changes)

    return use


@pytest.mark.parametrize("good", [0, 1, 700])
def test_a_stream_that_breaks_off(streaming: Any, good: int) -> None:
    with pytest.raises(DataError, match=f"broke off after {good} pairs .*peer went away.*nothing of it was kept"):
        read(streaming(Stream(good, fails=True)))


def test_a_stream_that_ends_before_what_was_published(streaming: Any) -> None:
    with pytest.raises(DataError, match="ended after 10 of 20 pairs"):
        read(streaming(Stream(10, fails=False, published=20)))
    assert len(read(streaming(Stream(10, fails=False, published=20), max_pairs=10))) == 10
    assert len(read(streaming(Stream(20, fails=False, published=20), max_pairs=30))) == 20


def test_no_record_beyond_the_limit_is_asked_for(streaming: Any) -> None:
    stream = Stream(10_000, fails=True)
    assert len(read(streaming(stream, max_pairs=300))) == 300
    assert stream.taken == 300


def test_nothing_is_waited_for_longer_than_wanted() -> None:
    begin = time.monotonic()
    with pytest.raises(UnreachableError, match=r"no answer in 0\.1 s"):
        within(0.1, lambda: time.sleep(5))
    assert time.monotonic() - begin < 3
    assert within(5, lambda: "answer") == "answer"
    with pytest.raises(KeyError):
        within(5, lambda: {}["nothing"])


# --- the process that reads -------------------------------------------------------------------------------------------


def test_the_worker_speaks_lines_of_json(wmt: Path) -> None:
    config = hub("wmt14", wmt, max_pairs=5)
    requests = [to_tree(config), {"split": "test", "limit": 3}, {"split": "nothing", "limit": None}]
    sent: list[dict[str, Any]] = []
    serve(io.StringIO("".join(json.dumps(request) + "\n" for request in requests)), sent.append)
    assert sent[0] == {"ready": True}
    assert sent[1] == {"pairs": list(zip(ENGLISH[:3], FRENCH[:3], strict=True))}
    assert sent[2] == {"end": 3}
    assert "data.splits" in sent[3]["error"]
    assert len(sent) == 4


def test_splits_come_out_of_one_process_which_ends_with_the_corpus(multi30k: Path) -> None:
    corpus = open_hub(hub("multi30k", multi30k, max_pairs=7), ignore)
    try:
        pairs = {split: list(part.read()) for split, (part,) in corpus.splits.items()}
        assert {split: len(found) for split, found in pairs.items()} == {"validation": 5, "test": 4, "train": 7}
        assert pairs["train"][0] == TextPair(GERMAN[0], ENGLISH[0])
    finally:
        corpus.close()
    corpus.close()  # twice does no harm


def test_prepared_from_end_to_end(wmt: Path, tmp_path: Path) -> None:
    config = data_config("wmt14", tmp_path / "cache", dataset=str(wmt), max_pairs=10, tokenizer={"vocabulary_size": 50})
    data = prepare(config, ignore)
    assert data.test is not None
    assert (len(data.train), len(data.validation), len(data.test)) == (10, 5, 4)
    assert data.test.references() == FRENCH[:4]
