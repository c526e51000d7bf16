"""A process's place in a run, without any other process."""

import math

import pytest
import torch
from torch import nn

from nmt.config import ConfigError
from nmt.training import distributed
from nmt.training.distributed import ALONE, Processes, connect, stream_seed
from nmt.training.together import common_precision

NAMES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("size", [None, "1"])
def test_one_process_sets_nothing_up(monkeypatch: pytest.MonkeyPatch, size: str | None) -> None:
    if size:
        monkeypatch.setenv("WORLD_SIZE", size)
        monkeypatch.setenv("RANK", "0")
    with connect("cpu", timeout=1) as processes:
        assert processes.is_main
        assert not torch.distributed.is_initialized()
        model, numbers, value = nn.Linear(2, 2), torch.ones(2), object()
        assert processes.sum_gradients(model, numbers) is numbers
        assert model.weight.grad is None
        assert processes.highest(3, math.nan)[0] == 3
        assert processes.gather(value, "gathering") == [value]
        assert processes.broadcast(value, "broadcasting") is value
        processes.meet("meeting")


WHOLE = {"WORLD_SIZE": "2", "RANK": "0", "MASTER_ADDR": "localhost", "MASTER_PORT": "29500"}


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({"WORLD_SIZE": "2"}, "RANK, MASTER_ADDR, MASTER_PORT"),
        ({"WORLD_SIZE": "2", "RANK": "0", "MASTER_ADDR": "localhost"}, "not MASTER_PORT: start with torchrun"),
        (
            WHOLE | {"RANK": "2"},
            "RANK=2, expected 0 to 1",
        ),
        (
            WHOLE | {"RANK": "-1"},
            "RANK=-1, expected 0 to 1",
        ),
        (WHOLE | {"MASTER_PORT": "abc"}, "MASTER_PORT='abc'"),
        ({"WORLD_SIZE": "two"}, "WORLD_SIZE='two', expected a whole number"),
    ],
)
def test_half_an_environment_is_refused(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], message: str
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ConfigError, match=message), connect("cpu", timeout=1):
        pass


def test_each_process_takes_the_gpu_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    second = Processes(rank=5, size=8, local_rank=1, timeout=1)
    assert second.device("auto") == second.device("cuda") == torch.device("cuda:1")
    assert second.device("cpu") == torch.device("cpu")
    assert ALONE.device("cuda:1") == torch.device("cuda:1")
    with pytest.raises(ConfigError, match=r"cuda:1 is one GPU, but this run has 8 processes"):
        second.device("cuda:1")
    with pytest.raises(ConfigError, match="process 3 on this machine finds only 2 GPUs"):
        Processes(rank=2, size=3, local_rank=2, timeout=1).device("auto")


def test_rank_0_draws_what_one_process_draws_and_every_other_stream_is_its_own() -> None:
    assert stream_seed(7, 0, 0) == 7
    seeds = [stream_seed(seed, rank, step) for seed in (0, 1, 2) for rank in (0, 1, 2) for step in (0, 1, 500)]
    assert len(set(seeds)) == len(seeds)
    for seed in seeds:
        torch.Generator().manual_seed(seed)


def test_buckets_hold_every_parameter_once_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distributed, "BUCKET_NUMBERS", 10)
    parameters = [nn.Parameter(torch.zeros(size)) for size in (3, 7, 1, 40, 5, 5, 1)]
    buckets = list(distributed._buckets(parameters))
    assert [[each.numel() for each in bucket] for bucket in buckets] == [[3, 7], [1], [40], [5, 5], [1]]
    assert all(a is b for a, b in zip([each for bucket in buckets for each in bucket], parameters, strict=True))


def test_processes_must_multiply_in_one_format(monkeypatch: pytest.MonkeyPatch) -> None:
    pair = Processes(rank=0, size=2, local_rank=0, timeout=1)
    monkeypatch.setattr(pair, "gather", lambda own, what: [own, "fp32"])
    assert common_precision("fp32", pair) == "fp32"
    with pytest.raises(ConfigError, match=r"training\.precision: auto is bf16, fp32 in processes 0 to 1"):
        common_precision("bf16", pair)
