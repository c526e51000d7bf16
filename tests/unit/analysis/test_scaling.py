"""Exponents, crossings and counted operations of the scaling benchmark."""

from pathlib import Path

import pytest
import torch

from nmt.analysis.scaling import Cost, Curve, Task, bytes_of, counted, crossings, exponent, seconds_of, works_of
from nmt.analysis.scaling_report import scaling_figure, scaling_report
from nmt.models import build
from tests.model_configs import BAHDANAU, CONFIGS, SEQ2SEQ, TRANSFORMER
from tests.tiny_run import tiny_config

LENGTHS = [8, 16, 32, 64]


def test_exponent_of_a_power_is_found_from_the_length_asked_for() -> None:
    values = {length: 3.0 * length**1.7 for length in LENGTHS} | {2: 1000.0}
    assert exponent(values, shortest=8) == pytest.approx(1.7)
    assert exponent(values, shortest=2) != pytest.approx(1.7)
    assert exponent(values, shortest=64) is None


def test_curves_cross_where_they_are_equal() -> None:
    linear = {length: 20.0 * length for length in LENGTHS}
    square = {length: float(length**2) for length in LENGTHS}
    assert crossings(linear, square) == pytest.approx([20.0])
    assert crossings(square, linear) == pytest.approx([20.0])
    assert crossings(linear, {length: 2 * value for length, value in linear.items()}) == []
    touching = {length: value * {8: 0.5, 16: 0.5, 32: 1.0, 64: 2.0}[length] for length, value in linear.items()}
    assert crossings(touching, linear) == pytest.approx([32.0])  # where they are equal, once


@pytest.mark.parametrize("name", CONFIGS)
def test_operations_grow_as_textbooks_say(name: str) -> None:
    config = CONFIGS[name]
    growth = {
        work: [counted(config, 23, work, length, 4) for length in (1 << 12, 1 << 13)]
        for work in works_of(build(config, 23, 23, seed=1))
    }
    ratios = {work: second / first for work, (first, second) in growth.items()}
    if config.name == "seq2seq":
        assert ratios == pytest.approx({"train": 2, "encode": 2, "step": 1}, rel=0.01)
    elif config.name == "bahdanau":  # linear to encode, but every step reads all that was encoded
        assert ratios == pytest.approx({"train": 4, "encode": 2, "step": 2}, rel=0.05)
    else:
        assert ratios == pytest.approx({"train": 4, "encode": 4, "step": 2, "step, no cache": 4}, rel=0.05)


def test_cost_of_a_long_pair_is_found_in_a_fresh_process(tmp_path: Path) -> None:
    config = tiny_config(tmp_path, "transformer")
    for work in works_of(build(config.model, 40, 40, seed=1)):
        task = Task(config, 40, work, 12, 3, torch.device("cpu"), "fp32", 1)
        seconds, peak = task.measure()
        assert seconds > 0
        assert isinstance(peak, int)


def test_report_leaves_out_what_memory_was_missing_for() -> None:
    models = {"A": SEQ2SEQ, "B": BAHDANAU, "C": TRANSFORMER}
    curves = []
    for place, (name, config) in enumerate(models.items(), 1):
        for work in works_of(build(config, 23, 23, seed=1)):
            costs: dict[int, Cost | None] = {n: Cost(0.001 * place * n**place, place * n << 20) for n in LENGTHS}
            if name == "C":
                costs[64] = None
            counts = {length: counted(config, 23, work, length, 4) for length in LENGTHS}
            curves.append(Curve(name, work, costs, counts))
    assert list(seconds_of(curves[-1])) == list(bytes_of(curves[-1])) == [8, 16, 32]
    report = scaling_report(curves, fitted_from=8, sentences=4)
    rows = {tuple(cell.strip() for cell in line.split("|")[1:4]) for line in report.split("\n") if line.startswith("|")}
    assert {("train", "A", "1.00"), ("train", "B", "2.00"), ("step, no cache", "C", "3.00")} <= rows
    assert ("64", "64.00", "8192.00") in rows
    assert "a training update: A is faster than B at 8 tokens; and up to 64" in report
    figure = scaling_figure(curves, {name: config.name for name, config in models.items()})
    assert [len(axes.lines) for axes in figure.axes] == [3, 3, 4, 3, 3, 4]
    assert all(axes.get_ylabel() for axes in figure.axes)
