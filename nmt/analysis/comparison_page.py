"""A comparison as a page for people: the answers first, then what they rest on, last how to do it again.

A part that the comparison lacks is left out whole; a line says why, in the place where a reader would look for it.
"""

from collections.abc import Callable
from pathlib import Path

from markupsafe import Markup

from nmt.analysis import html
from nmt.analysis.attention_maps import CAPTION
from nmt.analysis.comparison import BeamPoint, Comparison, Cost, Groups, Part, TextResults
from nmt.analysis.comparison_pictures import (
    Picture,
    attention_pictures,
    beams_picture,
    cost_picture,
    curves_picture,
    differences_picture,
    groups_picture,
    quality_picture,
)
from nmt.analysis.comparison_summary import figure, p_text, score, summary
from nmt.analysis.differences import LEGEND, marked
from nmt.analysis.evaluated_runs import write_text

PAGE_FILE = "report.html"
MISSING = "-"

INTERVALS = "[low, high]: 95 % interval. ±: standard deviation over the seeds, where there are several."


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
        self._several = len(comparison.texts) > 1

    def markup(self) -> Markup:
        """The whole page."""
        texts = self.comparison.texts
        return html.page(
            self.comparison.title,
            [
                html.section("In short", html.entries(summary(self.comparison)), self._systems()),
                *(part for text in texts for part in self._scores(text)),
                self._curves(),
                self._cost(),
                *(part for text in texts for part in self._closer(text)),
                self._provenance(),
            ],
        )

    def _scores(self, text: TextResults) -> list[Markup]:
        return [
            self._quality(text),
            self._differences(text),
            self._groups(text, text.by_length, "by_length", "By source length"),
            self._groups(text, text.by_rarest_word, "by_rarest_word", "By rarest source word"),
            self._rates(text),
        ]

    def _closer(self, text: TextResults) -> list[Markup]:
        return [self._beams(text), self._examples(text), self._attention(text)]

    # --- pieces -------------------------------------------------------------------------------------------------------

    def _section(self, heading: str, text: TextResults, *blocks: str) -> Markup:
        return html.section(f"{heading}: {text.name}" if self._several else heading, *blocks)

    def _left_out(self, heading: str, text: TextResults, part: Part) -> Markup:
        return self._section(heading, text, html.paragraph(f"Left out: {text.left_out.get(part, 'not measured')}."))

    def _picture(self, picture: Picture, caption: str = "") -> Markup:
        self.pictures.append(picture)
        return html.picture(picture.figure, picture.alternative, caption)

    def _systems(self) -> Markup:
        seeds = self.comparison.provenance.seeds
        rows = [
            [system.name, system.model, ", ".join(map(str, seeds.get(system.name, ()))) or MISSING]
            for system in self.comparison.systems
        ]
        return html.table(["system", "model", "seeds"], rows, left=(0, 1, 2))

    # --- one text -----------------------------------------------------------------------------------------------------

    def _quality(self, text: TextResults) -> Markup:
        rows = [
            [
                name,
                *map(_stacked, (score(quality.bleu), score(quality.chrf))),
                *(_stacked(figure(each, ".2f")) for each in (quality.perplexity_per_word, quality.perplexity)),
                _stacked(figure(quality.bits_per_byte, ".3f")),
            ]
            for name, quality in text.quality.items()
        ]
        header = ["system", "BLEU 13a", "chrF2", "perplexity per word", "perplexity", "bits per byte"]
        return self._section(
            "Quality",
            text,
            self._picture(quality_picture(self.comparison, text)),
            html.table(header, rows, caption=f"{text.name}, {text.sentences:,} sentences"),
            html.notes(
                [INTERVALS, "Perplexity is of a target subword: only for systems with the same ones.", *text.notes]
            ),
        )

    def _differences(self, text: TextResults) -> Markup:
        if not text.differences:
            return self._left_out("Differences", text, "differences")
        several = any(each.corrected is not None for each in text.differences)
        rows = []
        for each in text.differences:
            ends = MISSING if each.low is None or each.high is None else f"{each.low:+.2f} to {each.high:+.2f}"
            row = [f"{each.second} − {each.first}", each.metric, f"{each.difference:+.2f}", ends]
            corrected = [p_text(each.corrected).removeprefix("= ")] if several else []
            rows.append([*row, p_text(each.p_value).removeprefix("= "), *corrected])
        header = ["pair", "metric", "difference", "95 % interval", "p", *(["p, Holm"] if several else [])]
        said = ["p: how often chance alone would make so large a difference, two-sided."]
        if several:
            said.append(
                "Holm: the same, corrected for all pairs tested with this metric; it is what the picture shows."
            )
        return self._section(
            "Differences",
            text,
            self._picture(differences_picture(text), "Filled: the interval leaves out zero."),
            html.table(header, rows, left=(0, 1)),
            html.notes(said),
        )

    def _groups(self, text: TextResults, groups: Groups | None, part: Part, heading: str) -> Markup:
        if groups is None:
            return self._left_out(heading, text, part)
        rows = [
            ["sentences", *(f"{count:,}" for count in groups.sentences)],
            *([name, *(_stacked(score(each)) for each in groups.scores[name])] for name in groups.scores),
        ]
        return self._section(
            heading,
            text,
            self._picture(groups_picture(self.comparison, text, groups, part), "Bands: 95 % intervals."),
            html.table([groups.axis, *groups.names], rows, caption=f"BLEU 13a by {groups.axis}"),
            html.notes([INTERVALS]),
        )

    def _rates(self, text: TextResults) -> Markup:
        if not text.rates:
            return self._left_out("What goes wrong", text, "rates")
        rows = [
            [
                name,
                _stacked(figure(rates.length_ratio, ".3f")),
                *(_percent(rate) for rate in (rates.repetition.value, rates.empty.value, rates.limit_hits.value)),
            ]
            for name, rates in text.rates.items()
        ]
        header = ["system", "length ratio", "repetition", "empty", "cut at the limit"]
        said = [
            "Length ratio: tokens of the translations per token of the references.",
            "Repetition: share of the translations' tokens. Empty, cut at the limit: share of the sentences.",
        ]
        return self._section("What goes wrong", text, html.table(header, rows), html.notes(said))

    def _beams(self, text: TextResults) -> Markup:
        if not text.beams:
            return self._left_out("Size of the beam", text, "beams")
        sizes = sorted({point.size for points in text.beams.values() for point in points})
        rows = []
        for metric, shown in _BEAM_ROWS:
            for name, points in text.beams.items():
                cells = {point.size: shown(point) for point in points}
                rows.append([f"{metric}, {name}", *(cells.get(size, MISSING) for size in sizes)])
        header = ["beam", *map(str, sizes)]
        said = [
            "Of one run of each system, the one with the first seed.",
            "Score: of the model, mean over the sentences. Search errors: sentences to which a narrower beam gave a "
            "translation of better score, so that this beam has missed it.",
        ]
        return self._section(
            "Size of the beam",
            text,
            self._picture(beams_picture(self.comparison, text)),
            html.table(header, rows),
            html.notes(said),
        )

    def _examples(self, text: TextResults) -> Markup:
        if not text.examples:
            return self._left_out("Side by side", text, "examples")
        blocks = [
            html.entries(
                [
                    (f"source, line {example.number}", example.source),
                    ("reference", example.reference),
                    *((name, marked(line, example.reference)) for name, line in example.translations.items()),
                ]
            )
            for example in text.examples
        ]
        return self._section("Side by side", text, Markup("<p>{}</p>").format(LEGEND), *blocks)

    def _attention(self, text: TextResults) -> Markup:
        if not text.attention:
            return self._left_out("Where attention looked", text, "attention")
        pictures = [self._picture(picture) for picture in attention_pictures(self.comparison, text)]
        return self._section("Where attention looked", text, html.paragraph(CAPTION), html.beside(*pictures))

    # --- runs ---------------------------------------------------------------------------------------------------------

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
            "On the validation set, perplexity of a target subword, BLEU of greedy translations.",
            "Tokens are those of the target side; minutes are of training, validations included.",
        ]
        return html.section(
            heading, self._picture(curves_picture(self.comparison)), html.table(header, rows), html.notes(said)
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
            self._picture(cost_picture(self.comparison)),
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


def _stacked(text: str) -> str:
    """The interval below the figure: columns stay narrow."""
    return text.replace(" [", "\n[")


def _percent(share: float | None) -> str:
    return MISSING if share is None else f"{100 * share:.2f} %"


_BEAM_ROWS: tuple[tuple[str, Callable[[BeamPoint], str]], ...] = (
    ("BLEU 13a", lambda point: f"{point.bleu:.2f}"),
    ("chrF2", lambda point: f"{point.chrf:.2f}"),
    ("length ratio", lambda point: f"{point.length_ratio:.3f}"),
    ("score", lambda point: MISSING if point.score is None else f"{point.score:.3f}"),
    ("search errors", lambda point: _percent(point.search_errors)),
)
