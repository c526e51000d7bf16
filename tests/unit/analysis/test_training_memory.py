"""Peak memory, from a fresh process."""

import mmap
from pathlib import Path

import numpy as np
import pytest
import torch

from nmt.analysis import training_memory
from nmt.analysis.synthetic import uniform_lengths, write_pairs
from nmt.analysis.training_memory import Peak, Point, measure_point
from nmt.data.batch import Group
from nmt.machine import peak_resident
from nmt.models import build, parameter_count
from tests.tiny_run import compose_config

CPU = torch.device("cpu")
MEGABYTE = 1 << 20


def test_peak_resident_grows_by_what_is_held() -> None:
    before = peak_resident()
    size = max(0, before - _resident()) + 64 * MEGABYTE  # over the peak that there has been
    held = np.frombuffer(mmap.mmap(-1, size), dtype=np.uint8)  # new pages, whatever the C library keeps
    held[:] = 1
    grown = peak_resident() - before
    assert 60 * MEGABYTE <= grown <= 80 * MEGABYTE
    del held
    assert peak_resident() >= before + grown - MEGABYTE  # the kernel counts pages in batches


def _resident() -> int:
    with open("/proc/self/status", encoding="ascii") as stream:
        return next(int(line.split()[1]) for line in stream if line.startswith("VmRSS:")) * 1024


def test_the_parent_does_not_show_in_a_point() -> None:
    """A process that holds much starts one that holds little."""
    ballast = torch.ones(600 * MEGABYTE // 4)
    config = compose_config("experiment=benchmark_bahdanau", "model.hidden_dim=16", "model.attention_dim=16")
    peak = measure_point(Point(batch_tokens=200, vocabulary=50, longest=20), config, CPU, "fp32")
    assert peak.peak < ballast.numel() * 4
    assert 0 < peak.at_rest < peak.peak
    assert peak.parameters == parameter_count(build(config.model, 50, 50, seed=1))


def test_parts_of_a_peak() -> None:
    peak = Peak(at_rest=100, peak=1000, parameters=10)
    assert peak.states == 160  # value, gradient, two moments of 4 bytes each
    assert peak.rest == 740


def test_updates_are_those_that_the_configuration_asks_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[tuple[int, bool]] = []

    class Recorder:
        """Stands in for the updater."""

        def __init__(self, *arguments: object, use_tf32: bool, compiled: bool) -> None:
            self.compiled = compiled

        def update(self, group: Group, rate: float) -> None:
            made.append((group.sentences, self.compiled))

    monkeypatch.setattr(training_memory, "Updater", Recorder)
    config = compose_config("experiment=benchmark_bahdanau", "model.hidden_dim=16", "model.attention_dim=16",
                            "training.batch_sentences=3", "training.compile=true")  # fmt: skip
    write_pairs(tmp_path, uniform_lengths(40, longest=9, seed=1), vocabulary=50, seed=1)
    task = training_memory._Task(config, tmp_path, (50, 50), 200, CPU, "fp32", torch.get_num_threads())
    training_memory._train(task)
    assert len(made) == 3
    assert all(sentences <= 3 and compiled for sentences, compiled in made)
