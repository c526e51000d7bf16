"""The sections of a comparison that are about one text: scores, tests, groups, rates, beams, translations."""

from collections.abc import Callable

from nmt.analysis.attention_maps import CAPTION
from nmt.analysis.comparison.marks import LEGEND, differences
from nmt.analysis.comparison.pictures import (
    attention_pictures,
    beams_picture,
    differences_picture,
    groups_picture,
    quality_picture,
)
from nmt.analysis.comparison.scores import FEWEST
from nmt.analysis.comparison.summary import figure, p_text, score
from nmt.analysis.comparison.tree import BeamPoint, Comparison, Groups, Part, TextResults
from nmt.analysis.document import Block, Entries, Notes, Paragraph, Section, Shown, Table
from nmt.analysis.report import MISSING
from nmt.evaluation.significance import Method

INTERVALS = "[low, high]: 95 % interval. ±: standard deviation over the seeds, where there are several."


class TextSections:
    """Every section of one text, whether there is something to show or the reason why not."""

    def __init__(self, comparison: Comparison, text: TextResults) -> None:
        """
        Args:
            comparison: that the text is of.
            text: to show.
        """
        self.comparison = comparison
        self.text = text

    def scores(self) -> list[Section]:
        """What is measured."""
        return [
            self._quality(),
            self._differences(),
            self._groups(self.text.by_length, "by_length", "By source length"),
            self._groups(self.text.by_rarest_word, "by_rarest_word", "By rarest source word"),
            self._rates(),
        ]

    def closer(self) -> list[Section]:
        """What is seen from near."""
        return [self._beams(), self._examples(), self._attention()]

    def _section(self, heading: str, *blocks: Block) -> Section:
        several = len(self.comparison.texts) > 1
        return Section(f"{heading}: {self.text.name}" if several else heading, blocks)

    def _left_out(self, heading: str, part: Part) -> Section:
        return self._section(heading, Paragraph(f"Left out: {self.text.left_out.get(part, 'not measured')}."))

    def _quality(self) -> Section:
        rows = [
            [
                name,
                *map(_stacked, (score(quality.bleu), score(quality.chrf))),
                *(_stacked(figure(each, ".2f")) for each in (quality.perplexity_per_word, quality.perplexity)),
                _stacked(figure(quality.bits_per_byte, ".3f")),
            ]
            for name, quality in self.text.quality.items()
        ]
        header = ["system", "BLEU 13a", "chrF2", "perplexity per word", "perplexity", "bits per byte"]
        return self._section(
            "Quality",
            Shown([quality_picture(self.comparison, self.text)]),
            Table(header, rows, caption=f"{self.text.name}, {self.text.sentences:,} sentences"),
            Notes(
                [INTERVALS, "Perplexity is of a target subword: only for systems with the same ones.", *self.text.notes]
            ),
        )

    def _differences(self) -> Section:
        if not self.text.differences:
            return self._left_out("Differences", "differences")
        several = any(each.corrected is not None for each in self.text.differences)
        rows = []
        for each in self.text.differences:
            ends = MISSING if each.low is None or each.high is None else f"{each.low:+.2f} to {each.high:+.2f}"
            row = [f"{each.second} − {each.first}", each.metric, f"{each.difference:+.2f}", ends]
            corrected = [p_text(each.corrected).removeprefix("= ")] if several else []
            rows.append([*row, p_text(each.p_value).removeprefix("= "), *corrected])
        header = ["pair", "metric", "difference", "95 % interval", "p", *(["p, Holm"] if several else [])]
        said = [f"p: how often chance alone would make so large a difference, two-sided; by {self._test()}."]
        if several:
            said.append(
                "Holm: the same, corrected for all pairs tested with this metric; it is what the picture shows."
            )
        return self._section(
            "Differences",
            Shown([differences_picture(self.text)], "Filled: the interval leaves out zero."),
            Table(header, rows, left=(0, 1)),
            Notes(said),
        )

    def _test(self) -> str:
        if min(len(system.runs) for system in self.comparison.systems) > 1:
            return "paired bootstrap of the sentences and Student's t over the seeds, runs paired by seed"
        return _TESTS[self.comparison.test]

    def _groups(self, groups: Groups | None, part: Part, heading: str) -> Section:
        if groups is None:
            return self._left_out(heading, part)
        rows = [
            ["sentences", *(f"{count:,}" for count in groups.sentences)],
            *([name, *(_stacked(score(each)) for each in groups.scores[name])] for name in groups.scores),
        ]
        return self._section(
            heading,
            Shown([groups_picture(self.comparison, self.text, groups, part)], "Bands: 95 % intervals."),
            Table([groups.axis, *groups.names], rows, caption=f"BLEU 13a by {groups.axis}"),
            Notes([INTERVALS, f"Fewer than {FEWEST} sentences have no interval."]),
        )

    def _rates(self) -> Section:
        if not self.text.rates:
            return self._left_out("What goes wrong", "rates")
        rows = [
            [
                name,
                _stacked(figure(rates.length_ratio, ".3f")),
                *(_percent(rate) for rate in (rates.repetition.value, rates.empty.value, rates.limit_hits.value)),
            ]
            for name, rates in self.text.rates.items()
        ]
        header = ["system", "length ratio", "repetition", "empty", "cut at the limit"]
        said = [
            "Length ratio: tokens of the translations per token of the references.",
            "Repetition: share of n-grams that their translation has had before. Empty, cut at the limit: share of the "
            "sentences.",
        ]
        return self._section("What goes wrong", Table(header, rows), Notes(said))

    def _beams(self) -> Section:
        if not self.text.beams:
            return self._left_out("Size of the beam", "beams")
        sizes = sorted({point.size for points in self.text.beams.values() for point in points})
        rows = []
        for metric, shown in _BEAM_ROWS:
            for name, points in self.text.beams.items():
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
            Shown([beams_picture(self.comparison, self.text)]),
            Table(header, rows),
            Notes(said),
        )

    def _examples(self) -> Section:
        if not self.text.examples:
            return self._left_out("Side by side", "examples")
        blocks = [
            Entries(
                [
                    (f"source, line {example.number}", example.source),
                    ("reference", example.reference),
                    *((name, differences(line, example.reference)) for name, line in example.translations.items()),
                ]
            )
            for example in self.text.examples
        ]
        return self._section("Side by side", Paragraph(LEGEND), *blocks)

    def _attention(self) -> Section:
        if not self.text.attention:
            return self._left_out("Where attention looked", "attention")
        pictures = attention_pictures(self.comparison, self.text)
        return self._section("Where attention looked", Paragraph(CAPTION), Shown(pictures))


def _stacked(text: str) -> str:
    """The interval below the figure: columns stay narrow."""
    return text.replace(" [", "\n[")


def _percent(share: float | None) -> str:
    return MISSING if share is None else f"{100 * share:.2f} %"


_TESTS: dict[Method, str] = {
    "randomization": "approximate randomisation of the sentences (perplexity: paired bootstrap)",
    "bootstrap": "paired bootstrap of the sentences",
}
_BEAM_ROWS: tuple[tuple[str, Callable[[BeamPoint], str]], ...] = (
    ("BLEU 13a", lambda point: f"{point.bleu:.2f}"),
    ("chrF2", lambda point: f"{point.chrf:.2f}"),
    ("length ratio", lambda point: f"{point.length_ratio:.3f}"),
    ("score", lambda point: MISSING if point.score is None else f"{point.score:.3f}"),
    ("search errors", lambda point: _percent(point.search_errors)),
)
