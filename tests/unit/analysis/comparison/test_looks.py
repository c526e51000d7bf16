"""Beam curves and the choice of examples."""

from pathlib import Path
from typing import Any

import pytest

from nmt.analysis.comparison.looks import beam_curve
from nmt.analysis.evaluated_runs import Evaluated


def evaluated(folder: Path, scores: list[float] | None, bleu: float = 10.0) -> Evaluated:
    folder.mkdir()
    if scores is not None:
        (folder / "scores.txt").write_text("".join(f"{score}\n" for score in scores))
    metrics: dict[str, Any] = {"bleu": {"value": bleu, "length_ratio": 1.0}, "chrf": {"value": 20.0}}
    return Evaluated(folder, metrics)


def test_a_search_error_is_a_better_score_that_any_narrower_beam_has_found(tmp_path: Path) -> None:
    curve = beam_curve(
        {
            4: evaluated(tmp_path / "4", [-1.0, -3.0, -1.0, -2.0]),
            1: evaluated(tmp_path / "1", [-2.0, -2.0, -2.0, -2.0], bleu=5.0),
            12: evaluated(tmp_path / "12", [-1.0, -2.5, -1.00001, -2.0]),  # the second is still worse than with 1
        }
    )
    assert [point.size for point in curve] == [1, 4, 12]
    assert [point.search_errors for point in curve] == [0.0, 0.25, 0.25]
    assert [point.score for point in curve] == pytest.approx([-2.0, -1.75, -1.6250025])
    assert curve[0].bleu == 5.0


def test_without_scores_search_errors_are_not_known(tmp_path: Path) -> None:
    curve = beam_curve({1: evaluated(tmp_path / "1", None), 2: evaluated(tmp_path / "2", [-1.0])})
    assert [(point.score, point.search_errors) for point in curve] == [(None, None), (-1.0, None)]
