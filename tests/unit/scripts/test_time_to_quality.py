"""The table of minutes until a validation BLEU."""

import json
from pathlib import Path

import pytest

from scripts import time_to_quality


@pytest.fixture
def run(tmp_path: Path) -> Path:
    events = [
        {"event": "train", "step": 10, "bleu": 99.0, "time": {"minutes": 0.1}},
        {"event": "validation", "step": 100, "bleu": 24.9, "time": {"minutes": 2.0}},
        {"event": "validation", "step": 200, "bleu": 31.0, "time": {"minutes": 4.04}},
        {"event": "validation", "step": 300, "bleu": 29.0, "time": {"minutes": 6.0}},
        {"event": "average", "step": 300, "bleu": 40.0, "time": {"minutes": 6.1}},
    ]
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events), encoding="utf-8")
    summary = {"parameters": 7_578_624, "minutes": 6.25, "target_tokens_per_second": 4567.8}
    (tmp_path / "summary.json").write_text(json.dumps(summary), encoding="utf-8")
    return tmp_path


def test_the_first_validation_that_reaches_a_score_counts(run: Path) -> None:
    cells = time_to_quality.row("bahdanau", run)
    assert cells == ["bahdanau", "7.6M", "4.0 min", "4.0 min", "not reached", "31.0 (4.0 min)", "6.2 min", "4,568"]
