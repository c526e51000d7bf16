"""Requests that fail in passing, and those that keep failing: a set is whole, or there is one clear error."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nmt.config import HubData
from nmt.data import hub_http
from nmt.data.corpus import DataError
from nmt.data.hub import open_hub
from nmt.data.hub_worker import Source
from tests.data_configs import data_config
from tests.hub_server import Fault, HubServer, hub_server, in_this_process, numbered, write_parquet

NAME = "wmt/wmt14"
FAULTS = {
    "error 500": Fault("status", status=500, times=2),
    "error 503": Fault("status", status=503, times=2),
    "too many requests": Fault("status", status=429, times=2),
    "too many requests, come back": Fault("status", status=429, retry_after="1"),
    "silence": Fault("silent"),
    "cut short": Fault("cut", times=2),
    "reset": Fault("reset", times=2),
    "wrong length": Fault("short", times=2),
}


def copy(fault: Fault, **changes: Any) -> Fault:
    return Fault(**(vars(fault) | changes))


def config(**changes: Any) -> HubData:
    made = data_config("wmt14", Path("cache"), **({"timeout": 1.0, "sample_seed": None} | changes))
    assert isinstance(made, HubData)
    return made


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HubServer]:
    monkeypatch.setattr(hub_http, "FIRST_PAUSE", 0.01)
    shards = {"train": [numbered("train", shard, 300) for shard in range(3)], "test": [numbered("test", 0, 20)]}
    write_parquet(tmp_path / "hub", "fr-en", shards, row_group_size=100)
    with hub_server(tmp_path / "hub", NAME) as running:
        in_this_process(monkeypatch, running)
        yield running


def read(config: HubData, log: list[str], role: str = "train") -> list[str]:
    def send(message: dict[str, Any]) -> None:
        if "log" in message:
            log.append(message["log"])

    return [source for source, _, _ in Source(config, send).pairs(role)]


WHOLE = [record["en"] for shard in range(3) for record in numbered("train", shard, 300)]


@pytest.mark.parametrize("name", FAULTS)
def test_what_passes_is_gone_through(server: HubServer, name: str) -> None:
    """Faults while the second file is being read: the set is whole, and the log has a line for each of them."""
    fault = copy(FAULTS[name], where="train-00001")
    times = fault.times
    server.faults = [fault]
    log: list[str] = []
    assert read(config(), log) == WHOLE
    assert len(server.met) == times
    assert len(log) == times
    assert all("fr-en/train-00001-of-00003.parquet: " in line and "attempt" in line for line in log)


@pytest.mark.parametrize("name", FAULTS)
def test_what_does_not_pass_is_one_clear_error(server: HubServer, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub_http, "ATTEMPTS", 3)
    server.faults = [copy(FAULTS[name], where="train-00002", times=1000, retry_after=None)]
    log: list[str] = []
    with pytest.raises(DataError) as caught:
        read(config(timeout=0.5), log)
    message = str(caught.value)
    assert "broke off after 600 pairs" in message
    assert "train-00002-of-00003.parquet" in message
    assert "last of 3 attempts" in message
    assert "nothing of it was kept" in message
    assert "\n" not in message
    assert len(server.met) == 3
    assert len(log) == 2


@pytest.mark.parametrize("where", ["/api/datasets/wmt/wmt14", "/tree/", "README.md"])
@pytest.mark.parametrize("status", [500, 429])
def test_finding_the_data_set_is_tried_again_too(server: HubServer, where: str, status: int) -> None:
    server.faults = [Fault("status", where=where, status=status, times=2)]
    log: list[str] = []
    assert read(config(), log, "test") == [record["en"] for record in numbered("test", 0, 20)]
    assert server.met == ["status"] * 2


def test_a_hub_that_only_has_errors_is_not_reached(server: HubServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub_http, "ATTEMPTS", 2)
    server.faults = [Fault("status", where="/api", status=503, times=1000)]
    with pytest.raises(DataError, match=r"cannot be reached for wmt/wmt14 .*data\.folder"):
        read(config(), [])


def test_a_file_that_was_cut_short_on_the_hub_is_no_shorter_set(server: HubServer) -> None:
    path = server.folder / "fr-en" / "train-00001-of-00003.parquet"
    path.write_bytes(path.read_bytes()[:-500])
    with pytest.raises(DataError, match="broke off after 300 pairs"):
        read(config(), [])


def test_a_file_that_is_missing_on_the_hub_is_no_shorter_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shards = {"train": [numbered("train", shard, 30) for shard in range(2)]}
    write_parquet(tmp_path / "hub", "fr-en", shards, counts={"train": 90})
    with hub_server(tmp_path / "hub", NAME) as running:
        in_this_process(monkeypatch, running)
        with pytest.raises(DataError, match="ended after 60 of 90 pairs"):
            read(config(), [])
        with pytest.raises(DataError, match="its files hold 60 of 90 pairs"):
            read(config(max_pairs=10, sample_seed=1), [])


def test_files_of_other_kinds_are_read_as_patiently(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Multi30k is in JSON Lines."""
    monkeypatch.setattr(hub_http, "FIRST_PAUSE", 0.01)
    folder = tmp_path / "hub"
    folder.mkdir()
    for split in ("train", "test"):
        lines = [f'{{"en": "en {split} {row}", "de": "de {split} {row}"}}\n' for row in range(500)]
        (folder / f"{split}.jsonl").write_text("".join(lines))
    with hub_server(folder, "bentrevett/multi30k") as running:
        in_this_process(monkeypatch, running)
        running.faults = [copy(fault, where="train.jsonl", times=1) for fault in list(FAULTS.values())[4:]]
        multi30k = data_config("multi30k", tmp_path, timeout=1.0)
        assert isinstance(multi30k, HubData)
        log: list[str] = []
        assert read(multi30k, log) == [f"de train {row}" for row in range(500)]
        assert running.met == ["silent", "cut", "reset", "short"]
        assert len(log) == 4


# --- the process around it --------------------------------------------------------------------------------------------


def test_a_reader_that_has_enough_stops_the_download(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process, too, is gone through with faults: its pauses are real, its log lines arrive."""
    shards = [numbered("train", shard, 20_000) for shard in range(2)]
    write_parquet(tmp_path / "hub", "fr-en", {"train": shards, "test": [numbered("test", 0, 20)]}, row_group_size=500)
    with hub_server(tmp_path / "hub", NAME) as running:
        monkeypatch.setenv("HF_ENDPOINT", running.endpoint)
        monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
        running.faults = [Fault("reset", where="train-00000"), Fault("status", status=429, retry_after="2")]
        log: list[str] = []
        corpus = open_hub(config(timeout=5.0, max_pairs=1000, sample_seed=1), log.append)
        reader = corpus.splits["train"][0].read()
        pairs = [next(reader) for _ in range(1000)]
        reader.close()  # type: ignore[attr-defined]
        asked = len(running.asked)
        time.sleep(0.5)
        assert len(running.asked) == asked < 40  # of 80 row groups
        assert len(set(pairs)) == 1000
        assert [line for line in log if "HTTP 429: attempt" in line and "next in 2 s" in line]
        assert "train: read a sample (data.sample_seed=1) of 1,000 pairs: fr-en/train-00000-of-00002.parquet" in log[-1]
        assert sum(corpus.origin["pairs_from"]["train"].values()) == 1000
        assert corpus.origin["revision"] == running.sha

        # What else is wanted comes from the same revision, from a new process.
        monkeypatch.setattr(running, "sha", running.sha)
        assert len(list(corpus.splits["test"][0].read())) == 20
        assert running.revisions == {running.sha}
        corpus.close()
        assert threading.active_count() < 20


def test_the_first_pairs_are_called_the_first(tmp_path: Path) -> None:
    write_parquet(tmp_path / "hub", "fr-en", {"train": [numbered("train", 0, 900)]}, row_group_size=100)
    log: list[str] = []
    corpus = open_hub(config(dataset=str(tmp_path / "hub"), max_pairs=30), log.append)
    reader = corpus.splits["train"][0].read()
    assert [next(reader).source for _ in range(30)] == [f"en train 0 {row}" for row in range(30)]
    reader.close()  # type: ignore[attr-defined]
    assert "train: read the first 30 pairs: fr-en/train-00000-of-00001.parquet 30" in log[-1]
    assert "data.sample_seed=1" in log[-1]
