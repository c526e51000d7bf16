"""Curves from logs, and which budget systems had in common."""

import json
from pathlib import Path

import pytest

from nmt.analysis.comparison.runs import LoadedRun
from nmt.analysis.comparison.training import budget, curve
from nmt.analysis.comparison.tree import Cost, CurvePoint
from tests.tiny_run import tiny_config


def test_a_curve_is_what_the_log_says(tmp_path: Path) -> None:
    lines = [
        {"event": "train", "step": 1, "tokens": 10, "loss": 4.0, "time": {"minutes": 0.1}},
        {"event": "train", "step": 2, "tokens": 20, "loss": 2.0, "time": {"minutes": 0.2}},
        {"event": "validation", "step": 2, "perplexity": 9.0, "bleu": 1.5, "time": {"minutes": 0.3}},
        {"event": "train", "step": 3, "tokens": 30, "loss": None, "time": {"minutes": 0.4}},
        {"event": "validation", "step": 3, "perplexity": None, "time": {"minutes": 0.5}},  # overflowed
        {"event": "validation", "step": 4, "perplexity": 7.0, "time": {"minutes": 0.6}},
        {"event": "average", "step": 4, "perplexity": 6.0, "time": {"minutes": 0.7}},
    ]
    text = "".join(json.dumps(line) + "\n" for line in lines) + '{"event": "tra'  # killed while it wrote
    (tmp_path / "metrics.jsonl").write_text(text, encoding="utf-8")
    run = LoadedRun("a_s1", tmp_path, tiny_config(tmp_path), {})
    assert curve("a", run).points == (
        CurvePoint(2, 20, 0.3, 3.0, 9.0, 1.5),
        CurvePoint(4, 30, 0.6, None, 7.0, None),
    )
    assert curve("a", LoadedRun("b", tmp_path / "none", run.config, {})).points == ()


def cost(parameters: int, steps: float | None, minutes: float = 3.0) -> Cost:
    return Cost(parameters, steps, minutes, 1e6, None, None, {})


def test_what_was_equal_and_what_was_not() -> None:
    said = budget({"a": cost(100, 50), "b": cost(103, 50, 9.0)}, None)
    assert said == (
        "Equal in updates (50), target tokens (1,000,000), parameters (100 to 103); unequal in minutes (3.0 to 9.0) "
        "(equal: within 3%, minutes 10%)."
    )
    assert "parameters (100 to 104)" in budget({"a": cost(100, 50), "b": cost(104, 50)}, None).split("unequal")[1]
    assert "updates (not known of all)" in budget({"a": cost(1, None), "b": cost(1, 2)}, None).split("unequal")[1]


def test_a_declared_budget_holds_or_is_refused() -> None:
    pair = {"a": cost(100, 50), "b": cost(200, 50)}
    assert budget(pair, "steps").startswith("Declared: equal updates. Equal in updates (50)")
    with pytest.raises(ValueError, match=r"--budget parameters: .* not equal in parameters within 3% \(a 100, b 200\)"):
        budget(pair, "parameters")
    with pytest.raises(ValueError, match=r"not equal in updates within 3% \(b 2\)"):
        budget({"a": cost(1, None), "b": cost(1, 2)}, "steps")
