"""Translations from near: what goes wrong, what a wider beam brings, sentences side by side, attention."""

from collections.abc import Callable, Sequence
from statistics import fmean, stdev

import torch

from nmt.alignment import AttentionChoice, choose
from nmt.analysis.attention_maps import attention_along, labels
from nmt.analysis.comparison.runs import LoadedRun, LoadedSystem
from nmt.analysis.comparison.scores import Scores
from nmt.analysis.comparison.tree import AttentionWeights, BeamPoint, Estimate, Example, Rates
from nmt.analysis.evaluated_runs import Evaluated
from nmt.data.corpus import is_blank
from nmt.evaluation.repetition import repeated_share
from nmt.tokens import EOS

EXAMPLES = 10
TOLERANCE = 1e-4
"""Scores this near are equal: batches of other shapes round differently."""


def rates(scores: Scores) -> dict[str, Rates]:
    """Length ratio, repetition, empty translations, translations cut at the limit."""
    found = {}
    for name, runs in scores.systems.items():
        lines = scores.hypotheses[name]
        found[name] = Rates(
            _over([run.metrics["bleu"]["length_ratio"] for run in runs]),
            _over([repeated_share(each) for each in lines]),
            _over([sum(map(is_blank, each)) / len(each) for each in lines]),
            _over([run.metrics["limit_hits"] / len(each) for run, each in zip(runs, lines, strict=True)]),
        )
    return found


def _over(values: Sequence[float]) -> Estimate:
    return Estimate(fmean(values), None, None, stdev(values) if len(values) > 1 else None, tuple(values))


# --- size of the beam -------------------------------------------------------------------------------------------------


def beam_curve(evaluations: dict[int, Evaluated]) -> tuple[BeamPoint, ...]:
    """One run with beams of several sizes, the narrowest first.

    A search error (Stahlberg and Byrne 2019 count them against exact search) is a sentence for which a narrower beam
    has found a translation of better score: the wider one has missed it.
    """
    points = []
    best: list[float] | None = None  # score of each sentence by any narrower beam
    for place, (size, evaluated) in enumerate(sorted(evaluations.items())):
        found, missed = evaluated.scores, None
        if found is not None and place == 0:
            best, missed = found, 0.0
        elif found is not None and best is not None:
            missed = sum(score < other - TOLERANCE for score, other in zip(found, best, strict=True)) / len(found)
            best = list(map(max, found, best))
        else:
            best = None  # a size without scores: whether it was better cannot be known
        metrics = evaluated.metrics
        points.append(
            BeamPoint(
                size,
                metrics["bleu"]["value"],
                metrics["chrf"]["value"],
                metrics["bleu"]["length_ratio"],
                None if found is None else fmean(found),
                missed,
            )
        )
    return tuple(points)


# --- sentences --------------------------------------------------------------------------------------------------------


def examples(systems: Sequence[LoadedSystem], scores: Scores) -> tuple[Example, ...]:
    """Ten sentences chosen by their length alone, from short to long at equal steps, with the first seed's
    translations; in the order of the text.
    """
    rows = [row for row, source in enumerate(scores.sources) if not is_blank(source)]
    by_length = sorted(rows, key=lambda row: len(scores.sources[row].split()))  # sorted() keeps ties in order
    count = min(EXAMPLES, len(by_length))
    chosen = sorted(by_length[(2 * number + 1) * len(by_length) // (2 * count)] for number in range(count))
    return tuple(
        Example(
            row + 1,
            scores.sources[row],
            scores.references[row],
            {system.name: scores.hypotheses[system.name][0][row] for system in systems},
        )
        for row in chosen
    )


def attention(
    systems: Sequence[LoadedSystem], chosen: Sequence[Example], log: Callable[[str], None]
) -> tuple[AttentionWeights, ...]:
    """Where each system that has attention looked while it wrote its translation of the same sentence: of the examples,
    the one whose source is of middle length.
    """
    by_length = sorted(chosen, key=lambda example: len(example.source.split()))
    example = by_length[(len(by_length) - 1) // 2]
    found = []
    for system in systems:
        translation = example.translations[system.name]
        if not is_blank(translation) and (weights := _attention(system.first, example.source, translation)) is not None:
            found.append(weights._replace(system=system.name))
            log(f"{system.name}: attention of line {example.number}")
    return tuple(found)


def _attention(run: LoadedRun, source: str, translation: str) -> AttentionWeights | None:
    checkpoint = run.load()
    if not checkpoint.model.attends:
        return None
    source_ids = [*checkpoint.tokenizers.source.encode(source), EOS]
    target_ids = [*checkpoint.tokenizers.target.encode(translation), EOS]
    weights = attention_along(checkpoint.model, source_ids, target_ids, torch.device("cpu"), "fp32")
    one = choose(weights, AttentionChoice())
    columns, rows = labels(checkpoint.tokenizers, source_ids, target_ids)
    values = tuple(tuple(row) for row in one.weights.double().tolist())
    return AttentionWeights("", one.title, tuple(columns), tuple(rows), values)
