"""How systems were trained: their curves, what they cost, and which budget they had in common."""

import json
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import Any, Literal

from nmt.analysis.comparison.runs import LoadedRun, LoadedSystem
from nmt.analysis.comparison.tree import Cost, Curve, CurvePoint
from nmt.models import parameter_count
from nmt.training.logging import METRICS_FILE

Budget = Literal["steps", "tokens", "time", "parameters"]
BUDGETS: tuple[Budget, ...] = ("steps", "tokens", "time", "parameters")

EQUAL_WITHIN = 0.03
"""Relative difference up to which a budget counts as equal."""

EQUAL_MINUTES_WITHIN = 0.1
"""The same for minutes: a run stops after an update, and its last validation comes on top."""


def curve(system: str, run: LoadedRun) -> Curve:
    """Validations of a run, from ``metrics.jsonl``."""
    path = run.folder / METRICS_FILE
    points: list[CurvePoint] = []
    tokens, losses = 0, []
    lines = path.read_text(encoding="utf-8").split("\n") if path.is_file() else []
    for entry in filter(None, map(_entry, lines)):
        if entry["event"] == "train":
            tokens = entry["tokens"]
            losses.append(entry["loss"])
        elif entry["event"] == "validation":
            known = [loss for loss in losses if loss is not None]  # null: not finite
            points.append(
                CurvePoint(
                    entry["step"],
                    tokens,
                    entry["time"]["minutes"],
                    fmean(known) if known else None,
                    entry["perplexity"],
                    entry.get("bleu"),
                )
            )
            losses = []
    return Curve(system, run.name, tuple(point for point in points if point.perplexity is not None))


def _entry(line: str) -> dict[str, Any] | None:
    try:
        entry = json.loads(line)
    except ValueError:  # the last line of a killed process may be cut
        return None
    return entry if isinstance(entry, dict) else None


def cost(system: LoadedSystem, texts: Sequence[str]) -> Cost:
    """What a system takes; speeds of translation are of the first text that has them."""
    speeds: dict[int, list[float]] = {}
    for text in texts[:1]:
        for run in system.runs:
            found = {run.evaluations[text].metrics["search"]["beam_size"]: run.evaluations[text]} | run.beams.get(
                text, {}
            )
            for size, evaluated in found.items():
                speeds.setdefault(size, []).append(evaluated.metrics["sentences_per_second"])
    return Cost(
        _parameters(system),
        _mean(system, lambda summary: summary["steps"]),
        _mean(system, lambda summary: summary["minutes"]),
        _mean(system, lambda summary: summary["target_tokens"]),
        _mean(system, lambda summary: summary["target_tokens_per_second"]),
        _mean(system, lambda summary: summary["peak_memory_mb"]),
        {size: fmean(values) for size, values in sorted(speeds.items())},
    )


def _parameters(system: LoadedSystem) -> int:
    known = system.first.summary.get("parameters")
    return int(known) if known is not None else parameter_count(system.first.load().model)


def _mean(system: LoadedSystem, of: Callable[[Mapping[str, Any]], float]) -> float | None:
    """Over the seeds; None where a run is not finished, or was trained before this was written down."""
    try:
        return fmean(of(run.summary) for run in system.runs)
    except KeyError:
        return None


# --- budget -----------------------------------------------------------------------------------------------------------

_KINDS: tuple[tuple[str, Callable[[Cost], float | None], str, float], ...] = (
    ("updates", lambda cost: cost.steps, ",.0f", EQUAL_WITHIN),
    ("target tokens", lambda cost: cost.training_tokens, ",.0f", EQUAL_WITHIN),
    ("minutes", lambda cost: cost.minutes, ".1f", EQUAL_MINUTES_WITHIN),
    ("parameters", lambda cost: cost.parameters, ",.0f", EQUAL_WITHIN),
)
_DECLARED: dict[Budget, str] = {
    "steps": "updates",
    "tokens": "target tokens",
    "time": "minutes",
    "parameters": "parameters",
}


def budget(costs: Mapping[str, Cost], declared: Budget | None) -> str:
    """What was equal and what was not, in a sentence.

    Raises:
        ValueError: the systems are unequal in what was declared to be equal, or that is not known.
    """
    equal: list[str] = []
    unequal: list[str] = []
    for what, of, form, margin in _KINDS:
        values = {name: value for name, each in costs.items() if (value := of(each)) is not None}
        if len(values) < len(costs):
            same, shown = None, "not known of all"
        else:
            low, high = min(values.values()), max(values.values())
            same = high - low <= margin * high
            shown = f"{high:{form}}" if f"{low:{form}}" == f"{high:{form}}" else f"{low:{form}} to {high:{form}}"
        if declared is not None and _DECLARED[declared] == what and not same:
            each = ", ".join(f"{name} {value:{form}}" for name, value in values.items())
            raise ValueError(
                f"--budget {declared}: the systems are not equal in {what} within {margin:.0%} "
                f"({each or shown}); leave it out to compare them as they are"
            )
        (equal if same else unequal).append(f"{what} ({shown})")
    parts = [f"equal in {', '.join(equal)}"] if equal else []
    parts += [f"unequal in {', '.join(unequal)}"] if unequal else []
    said = f"Declared: equal {_DECLARED[declared]}. " if declared is not None else ""
    sentence = "; ".join(parts)
    within = f"(equal: within {EQUAL_WITHIN:.0%}, minutes {EQUAL_MINUTES_WITHIN:.0%})"
    return f"{said}{sentence[:1].upper()}{sentence[1:]} {within}."
