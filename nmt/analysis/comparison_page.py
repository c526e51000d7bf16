"""A comparison as a page for people: the answers first, then what they rest on, last how to do it again.

A part that the comparison lacks is left out whole; a line says why, in the place where a reader would look for it.
"""

from collections.abc import Callable
from pathlib import Path

from markupsafe import Markup

from nmt.analysis import html
from nmt.analysis.comparison import Comparison, Cost
from nmt.analysis.comparison_pictures import Picture, cost_picture, curves_picture
from nmt.analysis.comparison_summary import summary
from nmt.analysis.comparison_text_page import TextSections
from nmt.analysis.evaluated_runs import write_text
from nmt.analysis.report import MISSING

PAGE_FILE = "report.html"


def write_page(comparison: Comparison, folder: Path) -> list[Path]:
    """Write ``report.html``, which holds its pictures, and each picture as a file of its own for other documents.

    Args:
        comparison: what to show.
        folder: that is there.

    Returns:
        The files, the page first.
    """
    shown = _Page(comparison)
    write_text(folder / PAGE_FILE, shown.markup())
    files = [folder / PAGE_FILE]
    for picture in shown.pictures:
        name, number = picture.name, 1
        while folder / f"{name}.png" in files:  # of texts whose names differ in a sign only
            number += 1
            name = f"{picture.name}_{number}"
        files.append(folder / f"{name}.png")
        picture.figure.savefig(files[-1])
    return files


class _Page:
    """The sections, and the pictures that they have used."""

    def __init__(self, comparison: Comparison) -> None:
        self.comparison = comparison
        self.pictures: list[Picture] = []

    def markup(self) -> Markup:
        """The whole page."""
        texts = [TextSections(self.comparison, text, self._picture) for text in self.comparison.texts]
        return html.page(
            self.comparison.title,
            [
                html.section("In short", html.entries(summary(self.comparison)), self._systems()),
                *(part for text in texts for part in text.scores()),
                self._curves(),
                self._cost(),
                *(part for text in texts for part in text.closer()),
                self._provenance(),
            ],
        )

    def _picture(self, picture: Picture, caption: str) -> Markup:
        self.pictures.append(picture)
        return html.picture(picture.figure, picture.alternative, caption)

    def _systems(self) -> Markup:
        seeds = self.comparison.provenance.seeds
        rows = [
            [system.name, system.model, ", ".join(map(str, seeds.get(system.name, ()))) or MISSING]
            for system in self.comparison.systems
        ]
        return html.table(["system", "model", "seeds"], rows, left=(0, 1, 2))

    def _curves(self) -> Markup:
        heading = "While training"
        if not any(curve.points for curve in self.comparison.curves):
            return html.section(heading, html.paragraph("Left out: no run has a validation on record."))
        rows = []
        for curve in self.comparison.curves:
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
        if any(quality.perplexity is None for text in self.comparison.texts for quality in text.quality.values()):
            said.append("The systems have different subwords: these perplexities cannot be compared.")
        return html.section(
            heading, self._picture(curves_picture(self.comparison), ""), html.table(header, rows), html.notes(said)
        )

    def _cost(self) -> Markup:
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
            for name, cost in self.comparison.cost.items()
        ]
        said = [
            "Means over the seeds. Minutes, tokens/s (target side) and peak memory are of training.",
            "Sentences/s: translation of the test set, loading and scoring apart. -: not measured.",
        ]
        return html.section(
            "Cost",
            self._picture(cost_picture(self.comparison), ""),
            html.table(["system", *(name for name, _, _ in columns)], rows),
            html.notes(said),
        )

    def _provenance(self) -> Markup:
        made = self.comparison.provenance
        rows = [(name, version) for name, version in made.versions.items()]
        return html.section(
            "How to do it again",
            html.code("\n".join(made.commands)),
            html.table(["package", "version"], rows, left=(0, 1)),
            html.entries(
                [
                    ("data", "; ".join(made.data)),
                    ("hardware", "; ".join(made.hardware)),
                    ("dates", "; ".join(made.dates)),
                ]
            ),
        )
