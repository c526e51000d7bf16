"""A Hub that refuses, is silent, has no name or only damaged files; what is left without it."""

import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

from nmt.config import HubData
from nmt.data.corpus import DataError
from nmt.data.dataset import PreparedData, prepare
from nmt.data.hub import open_hub
from tests.data_configs import ENGLISH, GERMAN, data_config
from tests.hub_server import HubServer, hub_server

NAME = "some/pairs"
WAYS_OUT = ["data=demo", "data=files", "data.folder=", "data.cache"]

Prepare = Callable[..., PreparedData]


@pytest.fixture
def prepare_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Prepare:
    """Prepares a data set like Multi30k from a Hub at an endpoint, with empty caches of the libraries."""
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.setenv("HF_HUB_DISABLE_TELEMETRY", "1")
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)

    def run(endpoint: str, **changes: Any) -> PreparedData:
        monkeypatch.setenv("HF_ENDPOINT", endpoint)
        return prepare(data_config("multi30k", tmp_path / "cache", dataset=NAME, **changes), lambda line: None)

    return run


@contextmanager
def silent_server() -> Iterator[str]:
    """Takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0), backlog=16) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """The files of a data set like Multi30k; some training data is needed for what dies on the way."""
    folder = tmp_path / "data"
    folder.mkdir()
    for split, copies in (("train", 600), ("validation", 1), ("test", 1)):
        table = pa.table({"en": ENGLISH * copies, "de": GERMAN * copies})
        name = folder / f"{split}-00000-of-00001.parquet"
        pyarrow.parquet.write_table(table, name, row_group_size=1000, compression="none", use_dictionary=False)
    return folder


@pytest.fixture
def server(data: Path) -> Iterator[HubServer]:
    with hub_server(data, NAME) as running:
        yield running


def test_a_refused_connection(prepare_from: Prepare, tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        prepare_from("http://127.0.0.1:9")
    assert NAME in str(caught.value)
    for part in ("cannot be reached", *WAYS_OUT):
        assert part in str(caught.value)
    assert list((tmp_path / "cache").iterdir()) == []


@pytest.mark.parametrize("way", ["no network", "HF_HUB_OFFLINE"])
def test_what_the_library_has_in_its_cache_is_used(
    prepare_from: Prepare, server: HubServer, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = f"import datasets; datasets.load_dataset({NAME!r})"
    env = os.environ | {"HF_ENDPOINT": server.endpoint, "USE_TORCH": "0"}
    subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, timeout=300, check=True)
    if way == "HF_HUB_OFFLINE":
        monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    server.asked.clear()
    data = prepare_from("http://127.0.0.1:9" if way == "no network" else server.endpoint)
    assert (len(data.train), len(data.validation)) == (12_000, 20)
    assert data.validation.references() == ENGLISH
    assert data.report["origin"]["pairs_from"]["validation"] == {"the cache of `datasets`": 20}
    assert server.asked == []


def test_a_silent_server_is_an_error_within_the_timeout(tmp_path: Path) -> None:
    """The command as a user types it: status 2, one line, nothing on stdout; timed from the first sign of life on."""
    keys = ["data=multi30k", f"data.cache={tmp_path}", "data.timeout=2"]
    with silent_server() as endpoint:
        env = os.environ | {"HF_ENDPOINT": endpoint, "HF_HOME": str(tmp_path / "hf")}
        command = [sys.executable, "-m", "nmt.prepare", *keys]
        begin = time.monotonic()
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=300, check=False)
        seconds = time.monotonic() - begin
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert "no answer" in done.stderr or "timed out" in done.stderr
    assert "Traceback" not in done.stderr
    *_, last = done.stderr.strip().split("\n")
    assert re.match(r"error: the Hugging Face Hub cannot be reached for bentrevett/multi30k .*data=demo", last)
    assert seconds < 90  # two of them waiting, the rest imports on a busy machine; the libraries would wait for longer


def test_all_splits_come_from_one_revision(prepare_from: Prepare, server: HubServer) -> None:
    data = prepare_from(server.endpoint)
    assert server.revisions == {server.sha}
    files = {"train": 12_000, "validation": 20, "test": 20}
    expected = {role: {f"{role}-00000-of-00001.parquet": count} for role, count in files.items()}
    assert data.report["origin"] == {"hub": NAME, "revision": server.sha, "pairs_from": expected}

    # What was prepared needs no Hub any more.
    assert prepare_from("http://127.0.0.1:9").folder == data.folder


def test_a_subset_of_a_large_file_downloads_little_more_than_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    for split, rows in (("train", 20_000), ("validation", 10), ("test", 10)):
        table = pa.table({"en": [f"{i:07} " * 200 for i in range(rows)], "de": GERMAN[:10] * (rows // 10)})
        name = folder / f"{split}-00000-of-00001.parquet"
        pyarrow.parquet.write_table(table, name, row_group_size=100, compression="none", use_dictionary=False)
    assert (folder / "train-00000-of-00001.parquet").stat().st_size > 30_000_000
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    for seed, least, most in ((None, 1, 1), (1, 5, 16)):
        with hub_server(folder, NAME) as server:
            monkeypatch.setenv("HF_ENDPOINT", server.endpoint)
            config = data_config("multi30k", tmp_path, dataset=NAME, max_pairs=50, sample_seed=seed)
            assert isinstance(config, HubData)
            corpus = open_hub(config, lambda line: None)
            reader = corpus.splits["train"][0].read()
            blocks = {int(next(reader).target.split()[0]) // 100 for _ in range(50)}
            reader.close()  # type: ignore[attr-defined]
            assert least <= len(blocks) <= most
            assert server.sent < 12_000_000  # 4 MB at a time where it is read in order, 16 row groups for a sample


def test_a_download_that_breaks_off_leaves_nothing_and_can_be_done_again(
    prepare_from: Prepare, server: HubServer, tmp_path: Path
) -> None:
    path = server.folder / "train-00000-of-00001.parquet"
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match=r"broke off .*nothing of it was kept"):
        prepare_from(server.endpoint, timeout=5.0)
    assert list((tmp_path / "cache").iterdir()) == []
    path.write_bytes(whole)
    assert len(prepare_from(server.endpoint, timeout=60.0).train) == 12_000
