"""The pictures of a comparison, each with what it shows in words: for the page, and as files beside the Markdown."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import numpy as np

from nmt.analysis.attention_maps import AttentionMap, heat_map
from nmt.analysis.comparison.figures import (
    Interval,
    Panel,
    Systems,
    beam_figure,
    cost_figure,
    curves_figure,
    differences_figure,
    quality_figure,
)
from nmt.analysis.comparison.scores import FEWEST
from nmt.analysis.comparison.tree import BeamPoint, Comparison, Cost, Estimate, Groups, Quality, TextResults
from nmt.analysis.document import Picture
from nmt.analysis.figures import Series, scores_figure
from nmt.evaluation.metrics import Score

Key = TypeVar("Key")
Value = TypeVar("Value")


def systems_of(comparison: Comparison) -> Systems:
    """(name, model) in the order of the tables."""
    return [(system.name, system.model) for system in comparison.systems]


# --- of one text ------------------------------------------------------------------------------------------------------

_QUALITY: tuple[tuple[str, Callable[[Quality], Estimate | None]], ...] = (
    ("BLEU 13a", lambda quality: quality.bleu),
    ("chrF2", lambda quality: quality.chrf),
    ("perplexity per word (less is better)", lambda quality: quality.perplexity_per_word),
)


def quality_picture(comparison: Comparison, text: TextResults) -> Picture:
    """BLEU, chrF and perplexity per word with their intervals."""
    panels = [Panel(axis, _known({name: of(each) for name, each in text.quality.items()})) for axis, of in _QUALITY]
    figure = quality_figure(f"Quality on {text.name}: 95 % intervals", systems_of(comparison), panels)
    scores = "; ".join(f"{name} {quality.bleu.value:.1f}" for name, quality in text.quality.items())
    return Picture(f"quality_{_stem(text)}", figure, f"Scores with 95 % intervals on {text.name}. BLEU: {scores}.")


def differences_picture(text: TextResults) -> Picture:
    """BLEU of each pair of systems, beside no difference."""
    rows = [
        Interval(
            f"{each.second} − {each.first}", each.difference, each.low, each.high, _p(each.corrected, each.p_value)
        )
        for each in text.differences
        if each.metric.startswith("BLEU")
    ]
    figure = differences_figure(f"Differences on {text.name}", "difference in BLEU 13a, 95 % interval", rows)
    said = "; ".join(f"{' '.join(row.name.split())}: {row.difference:+.1f}" for row in rows)
    return Picture(f"differences_{_stem(text)}", figure, f"Differences in BLEU with 95 % intervals. {said}.")


def _p(corrected: float | None, raw: float | None) -> float | None:
    return raw if corrected is None else corrected


def groups_picture(comparison: Comparison, text: TextResults, groups: Groups, name: str) -> Picture:
    """BLEU of groups of sentences, a line for each system; without groups that are too small to say anything."""
    groups = with_enough(groups)
    series = [
        Series(system, model, [as_score(*each) for each in zip(groups.scores[system], groups.sentences, strict=True)])
        for system, model in systems_of(comparison)
        if system in groups.scores
    ]
    figure = scores_figure(f"BLEU by {groups.axis}, {text.name}", groups.axis, groups.names, series)
    said = "; ".join(f"{each.name} {_course([score.value for score in each.scores])}" for each in series)
    ends = f"{groups.names[0]} to {groups.names[-1]}"
    return Picture(f"{name}_{_stem(text)}", figure, f"BLEU by {groups.axis}, groups {ends}. {said}.")


def with_enough(groups: Groups) -> Groups:
    """Groups whose scores have intervals, if there are any."""
    kept = [place for place, count in enumerate(groups.sentences) if count >= FEWEST] or range(len(groups.names))
    return Groups(
        groups.axis,
        tuple(groups.names[place] for place in kept),
        tuple(groups.sentences[place] for place in kept),
        {name: tuple(scores[place] for place in kept) for name, scores in groups.scores.items()},
    )


def as_score(estimate: Estimate, sentences: int) -> Score:
    """As pictures of groups have it; without an interval, one without width."""
    low = estimate.value if estimate.low is None else estimate.low
    high = estimate.value if estimate.high is None else estimate.high
    return Score("BLEU 13a", estimate.value, "", sentences, low, high)


_BEAMS: tuple[tuple[str, Callable[[BeamPoint], float | None]], ...] = (
    ("BLEU 13a", lambda point: point.bleu),
    ("length ratio", lambda point: point.length_ratio),
    ("search errors, % of sentences", lambda point: None if point.search_errors is None else 100 * point.search_errors),
)


def beams_picture(comparison: Comparison, text: TextResults) -> Picture:
    """What a wider beam brings."""
    panels = []
    for axis, of in _BEAMS:
        curves = {name: _known({point.size: of(point) for point in points}) for name, points in text.beams.items()}
        if any(curves.values()):
            panels.append((axis, {name: curve for name, curve in curves.items() if curve}))
    figure = beam_figure(f"Size of the beam, {text.name}", systems_of(comparison), panels)
    said = "; ".join(f"{name} {_course([point.bleu for point in points])}" for name, points in text.beams.items())
    return Picture(f"beams_{_stem(text)}", figure, f"BLEU against the size of the beam. {said}.")


def attention_pictures(comparison: Comparison, text: TextResults) -> list[Picture]:
    """Where each system that has attention looked, all on one sentence."""
    models = dict(systems_of(comparison))
    made = []
    for number, seen in enumerate(text.attention, 1):
        weights = AttentionMap(
            f"{seen.system}\n{seen.title}",
            models[seen.system],
            list(seen.source),
            list(seen.target),
            np.array(seen.weights),
        )
        strongest = [
            f"{token}: {seen.source[int(row.argmax())]}"
            for token, row in zip(seen.target, weights.weights, strict=True)
        ]
        words = f"Attention of {seen.system}, {seen.title}. Most weight for each target token: {', '.join(strongest)}."
        made.append(Picture(f"attention_{_stem(text)}_{number}", heat_map(weights), words))
    return made


# --- of the runs ------------------------------------------------------------------------------------------------------


def curves_picture(comparison: Comparison) -> Picture:
    """How validation went, run by run."""
    figure = curves_figure("Validation while training, a line for each run", systems_of(comparison), comparison.curves)
    said = "; ".join(
        f"{curve.run} ends at {curve.points[-1].perplexity:.2f} after {curve.points[-1].minutes:.0f} minutes"
        for curve in comparison.curves
        if curve.points
    )
    return Picture("curves", figure, f"Validation perplexity and BLEU against updates, tokens, minutes. {said}.")


_COST: tuple[tuple[str, Callable[[Cost], float | None]], ...] = (
    ("parameters, millions", lambda cost: cost.parameters / 1e6),
    ("training, minutes", lambda cost: cost.minutes),
    ("training, target tokens/s", lambda cost: cost.training_tokens_per_second),
    ("training, peak memory in MB", lambda cost: cost.peak_memory_mb),
    ("translation, sentences/s, beam 1", lambda cost: cost.sentences_per_second.get(1)),
    ("translation, sentences/s, beam 5", lambda cost: cost.sentences_per_second.get(5)),
)


def cost_picture(comparison: Comparison) -> Picture:
    """What each system takes."""
    panels = []
    for axis, of in _COST:
        values = _known({name: of(cost) for name, cost in comparison.cost.items()})
        if values:
            panels.append(Panel(axis, {name: Estimate(value) for name, value in values.items()}))
    said = "; ".join(f"{name} {cost.parameters / 1e6:.1f} million parameters" for name, cost in comparison.cost.items())
    return Picture(
        "cost", cost_figure("What each system takes", systems_of(comparison), panels), f"Cost of each system. {said}."
    )


# --- pieces -----------------------------------------------------------------------------------------------------------


def _known(values: Mapping[Key, Value | None]) -> dict[Key, Value]:
    return {key: value for key, value in values.items() if value is not None}


def _course(values: Sequence[float]) -> str:
    return " ".join(f"{value:.1f}" for value in values)


def _stem(text: TextResults) -> str:
    """The text's name as part of a file's."""
    return re.sub(r"[^\w.-]+", "_", text.name).strip("._") or "text"
