"""A comparison as a document for people: the answers first, then what they rest on, last how to do it again.

A part that the comparison lacks is left out whole; a line says why, in the place where a reader would look for it.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from nmt.analysis import document
from nmt.analysis.comparison.pictures import cost_picture, curves_picture
from nmt.analysis.comparison.provenance import provenance_section
from nmt.analysis.comparison.summary import summary
from nmt.analysis.comparison.text_sections import TextSections
from nmt.analysis.comparison.tree import Comparison, Cost, System
from nmt.analysis.document import Entries, Notes, Paragraph, Section, Shown, Table
from nmt.analysis.evaluated_runs import write_text
from nmt.analysis.report import MISSING

JSON_FILE = "report.json"

BRIEF = ("In short", "Quality", "Differences", "By source length", "Cost")
"""Sections that say most."""


def write_report(comparison: Comparison, folder: Path) -> list[Path]:
    """Write ``report.html``, which holds its pictures, ``report.md`` with the pictures as files, and ``report.json``,
    the comparison as plain values.

    Args:
        comparison: what to show.
        folder: that is there.

    Returns:
        The files, the page first.
    """
    files = document.write(comparison.title, sections(comparison), folder)
    text = json.dumps(plain(comparison), indent=1, ensure_ascii=False, allow_nan=False)
    write_text(folder / JSON_FILE, text + "\n")
    return [*files, folder / JSON_FILE]


def plain(tree: Any) -> Any:
    """Named tuples as dictionaries, other tuples as lists, all the way down."""
    if isinstance(tree, tuple) and hasattr(tree, "_asdict"):
        return {name: plain(value) for name, value in tree._asdict().items()}
    if isinstance(tree, dict):
        return {str(key): plain(value) for key, value in tree.items()}
    return list(map(plain, tree)) if isinstance(tree, (tuple, list)) else tree


def sections(comparison: Comparison) -> list[Section]:
    """The whole document."""
    texts = [TextSections(comparison, text) for text in comparison.texts]
    return [
        Section("In short", [Entries(summary(comparison)), _systems(comparison)]),
        *(part for text in texts for part in text.scores()),
        _curves(comparison),
        _cost(comparison),
        *(part for text in texts for part in text.closer()),
        provenance_section(comparison.provenance),
    ]


def _systems(comparison: Comparison) -> Table:
    rows = [
        [
            system.name,
            system.model,
            ", ".join(str(run.seed) for run in system.runs),
            ", ".join(run.path for run in system.runs),
        ]
        for system in comparison.systems
    ]
    return Table(["system", "model", "seeds", "runs"], rows, left=(0, 1, 2, 3))


def _runs(system: System) -> list[tuple[int, str]]:
    return [(run.seed, run.path) for run in system.runs]


def _curves(comparison: Comparison) -> Section:
    heading = "While training"
    if not any(curve.points for curve in comparison.curves):
        return Section(heading, [Paragraph("Left out: no run has a validation on record.")])
    rows = []
    for curve in comparison.curves:
        if not curve.points:
            continue
        end, lowest = curve.points[-1], min(curve.points, key=lambda point: point.perplexity)
        scores = [point.bleu for point in curve.points if point.bleu is not None]
        rows.append(
            [
                curve.run,
                f"{end.step:,}",
                f"{end.tokens / 1e6:.1f}",
                f"{end.minutes:.1f}",
                f"{lowest.perplexity:.2f}",
                f"{max(scores):.1f}" if scores else MISSING,
            ]
        )
    header = ["run", "updates", "million tokens", "minutes", "lowest perplexity", "highest BLEU"]
    said = [
        "On the validation set, perplexity of a target subword, BLEU by the search of the run's own configuration.",
        "Tokens are those of the target side; minutes are of training, validations included.",
    ]
    if any(quality.perplexity is None for text in comparison.texts for quality in text.quality.values()):
        said.append("The systems have different subwords: these perplexities cannot be compared.")
    return Section(heading, [Shown([curves_picture(comparison)]), Table(header, rows), Notes(said)])


def _cost(comparison: Comparison) -> Section:
    columns: list[tuple[str, Callable[[Cost], float | None], str]] = [
        ("parameters", lambda cost: cost.parameters, ",.0f"),
        ("updates", lambda cost: cost.steps, ",.0f"),
        ("minutes", lambda cost: cost.minutes, ".1f"),
        (
            "million tokens",
            lambda cost: None if cost.training_tokens is None else cost.training_tokens / 1e6,
            ".1f",
        ),
        ("tokens/s", lambda cost: cost.training_tokens_per_second, ",.0f"),
        ("peak MB", lambda cost: cost.peak_memory_mb, ",.0f"),
        ("sentences/s, beam 1", lambda cost: cost.sentences_per_second.get(1), ".1f"),
        ("sentences/s, beam 5", lambda cost: cost.sentences_per_second.get(5), ".1f"),
    ]
    rows = [
        [name, *(MISSING if (value := of(cost)) is None else format(value, form) for _, of, form in columns)]
        for name, cost in comparison.cost.items()
    ]
    said = [
        "Means over the seeds. Minutes, tokens/s (target side) and peak memory are of training.",
        "Sentences/s: translation of the test set, loading and scoring apart. -: not measured.",
    ]
    table = Table(["system", *(name for name, _, _ in columns)], rows)
    return Section("Cost", [Shown([cost_picture(comparison)]), table, Notes(said)])
