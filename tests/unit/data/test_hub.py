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
from nmt.data.hub_revision import UnreachableError, find_revision, within
from nmt.data.hub_worker import Source, serve
from tests.data_configs import ENGLISH, GERMAN, data_config
from tests.hub_server import hub_server

FRENCH = [f"{line} oui" for line in GERMAN]

KEEP_ALL = {"held_out": "keep", "duplicates": "keep", "quarantine": False}

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
    """A data set to be read in order, unless ``sample_seed`` is among the changes."""
    config = data_config(group, Path("cache"), **({"dataset": str(dataset), "sample_seed": None} | changes))
    assert isinstance(config, HubData)
    return config


def read(config: HubData, split: str = "train") -> list[tuple[str, str]]:
    """A split as the worker reads it, without the process around it."""
    pairs = Source(config, lambda message: None).pairs(split)
    return [(source, target) for source, target, _ in pairs]


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


def test_whole_splits_in_their_order(multi30k: Path, wmt: Path) -> None:
    for group, folder, targets in (("multi30k", multi30k, ENGLISH), ("wmt14", wmt, FRENCH)):
        config = hub(group, folder, max_pairs=3)
        for split, size in (("train", 20), ("validation", 5), ("test", 4)):
            assert [target for _, target in read(config, split)] == targets[:size]


@pytest.mark.parametrize("group", ["multi30k", "wmt14"])
def test_a_sample_is_drawn_with_its_seed(multi30k: Path, wmt: Path, group: str) -> None:
    """From Parquet and from JSON Lines; only training text is one, and only where less than all is wanted."""
    folder = {"multi30k": multi30k, "wmt14": wmt}[group]
    in_order = read(hub(group, folder))
    drawn = {seed: read(hub(group, folder, max_pairs=5, sample_seed=seed)) for seed in (1, 2, 3)}
    assert all(sorted(pairs) == sorted(in_order) for pairs in drawn.values())
    assert len({tuple(pairs) for pairs in [*drawn.values(), in_order]}) == 4
    assert read(hub(group, folder, max_pairs=5, sample_seed=2)) == drawn[2]
    assert read(hub(group, folder, max_pairs=None, sample_seed=1)) == in_order
    assert read(hub(group, folder, max_pairs=5, sample_seed=1), "test") == read(hub(group, folder), "test")


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
        ({"pair": "auto", "source": "cs"}, "train", r"data\.pair: .*'fr-cs' not found.*fr-en.*de-en"),
        ({"pair": None}, "train", r"data\.pair: .*fr-en.*de-en"),
        (
            {"splits": {"train": "train", "validation": "dev", "test": "test"}},
            "validation",
            r"data\.splits: no split 'dev'; found train, validation, test",
        ),
        ({"column": "text"}, "train", r"data\.column: no column 'text'.*found translation"),
        ({"column": None}, "train", r"data\.source: no 'en' here; found translation"),
        (
            {"source": "es", "pair": "fr-en"},
            "train",
            r"data\.source: no 'es' here in data.pair=fr-en; found (fr, en|en, fr)",
        ),
        ({"target": "es", "pair": "en-fr"}, "train", r"data\.target: no 'es' here in data.pair=en-fr"),
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
        assert find_revision(hub("multi30k", "bentrevett/multi30k")) == server.sha


@pytest.mark.parametrize("endpoint", ["http://127.0.0.1:9", "http://hub.invalid"])
def test_no_answer_is_no_revision(monkeypatch: pytest.MonkeyPatch, endpoint: str) -> None:
    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", endpoint)
    with pytest.raises(UnreachableError):
        find_revision(hub("multi30k", "bentrevett/multi30k"))


def test_offline_mode_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(UnreachableError, match="OfflineMode"):
        find_revision(hub("multi30k", "bentrevett/multi30k"))


def test_a_pinned_revision_is_not_taken_from_a_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(DataError, match="does not tell revisions apart"):
        read(hub("multi30k", "bentrevett/multi30k", revision="abc"))


# --- streams that fail ------------------------------------------------------------------------------------------------


class Stream:
    """What ``datasets`` streams of a file, with a fault of our choosing behind some records."""

    def __init__(self, good: int, fails: bool) -> None:
        self.good = good
        self.fails = fails

    def __iter__(self) -> Iterator[dict[str, str]]:
        for i in range(self.good):
            yield {"de": f"eins {i}", "en": f"one {i}"}
        if self.fails:
            raise ConnectionError("peer went away")


@pytest.fixture
def streaming(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Make a stream be the data set's: one in a folder, so that no network is asked for a revision."""

    def use(stream: Stream, published: int | None = None, **changes: Any) -> HubData:
        splits = {"train": SimpleNamespace(num_examples=published)} if published else None
        builder = SimpleNamespace(
            config=SimpleNamespace(data_files={"train": ["train.jsonl"]}),
            info=SimpleNamespace(splits=splits),
            as_streaming_dataset=lambda split: stream,
        )
        monkeypatch.setattr(datasets, "load_dataset_builder", lambda *args, **keys: builder)
        return hub("multi30k", tmp_path, **changes)

    return use


@pytest.mark.parametrize("good", [0, 1, 700])
def test_a_stream_that_breaks_off(streaming: Any, good: int) -> None:
    with pytest.raises(DataError, match=f"broke off after {good} pairs .*peer went away.*nothing of it was kept"):
        read(streaming(Stream(good, fails=True)))


def test_a_stream_that_ends_before_what_was_published(streaming: Any) -> None:
    with pytest.raises(DataError, match="ended after 10 of 20 pairs"):
        read(streaming(Stream(10, fails=False), published=20))
    assert len(read(streaming(Stream(20, fails=False), published=20, max_pairs=30))) == 20


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
    config = hub("wmt14", wmt, splits={"train": "nothing", "validation": "validation", "test": "test"})
    requests = [to_tree(config), {"split": "test"}, {"split": "train"}]
    sent: list[dict[str, Any]] = []
    serve(io.StringIO("".join(json.dumps(request) + "\n" for request in requests)), sent.append)
    assert sent[0] == {"ready": True}
    pairs = [(english, french, 0) for english, french in zip(ENGLISH[:4], FRENCH[:4], strict=True)]
    assert sent[1] == {"pairs": pairs, "files": ["test.jsonl"]}
    assert sent[2] == {"end": 4}
    assert "data.splits" in sent[3]["error"]
    assert len(sent) == 4


def test_splits_come_out_of_one_process_which_ends_with_the_corpus(multi30k: Path) -> None:
    log: list[str] = []
    corpus = open_hub(hub("multi30k", multi30k), log.append)
    try:
        pairs = {split: list(part.read()) for split, (part,) in corpus.splits.items()}
        assert {split: len(found) for split, found in pairs.items()} == {"validation": 5, "test": 4, "train": 20}
        assert pairs["train"][0] == TextPair(GERMAN[0], ENGLISH[0])
    finally:
        corpus.close()
    corpus.close()  # twice does no harm
    assert log[-1] == f"{multi30k}: train: read all 20 pairs: train-00000-of-00001.parquet 20"
    assert corpus.origin["pairs_from"]["train"] == {"train-00000-of-00001.parquet": 20}


def test_prepared_from_end_to_end(wmt: Path, tmp_path: Path) -> None:
    config = data_config(
        "wmt14",
        tmp_path / "cache",
        dataset=str(wmt),
        max_pairs=None,
        tokenizer={"vocabulary_size": 50},
        filters=KEEP_ALL,
    )
    data = prepare(config, ignore)
    assert data.test is not None
    assert (len(data.train), len(data.validation), len(data.test)) == (20, 5, 4)
    assert data.test.references() == FRENCH[:4]
