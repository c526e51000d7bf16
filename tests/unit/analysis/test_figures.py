"""Pictures: what is on the axes, in which colour, and that it is the numbers given."""

from itertools import pairwise

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from nmt.analysis.attention_maps import AttentionMap, heat_map
from nmt.analysis.comparison.figures import (
    Interval,
    Panel,
    beam_figure,
    cost_figure,
    curves_figure,
    differences_figure,
    quality_figure,
)
from nmt.analysis.comparison.pictures import (
    attention_pictures,
    beams_picture,
    cost_picture,
    curves_picture,
    groups_picture,
    quality_picture,
)
from nmt.analysis.comparison.tree import CurvePoint, Estimate
from nmt.analysis.figures import COLOURS, MARKS, shades, styles, wrapped
from tests.comparisons import BLEU, comparison

SYSTEMS = [("plain", "seq2seq"), ("table", "bahdanau"), ("reversed", "seq2seq")]


def drawn(figure: Figure) -> list[Axes]:
    """Its panels, laid out: what matplotlib cannot draw, it says now."""
    figure.draw_without_rendering()
    return list(figure.axes)


def lines(axes: Axes) -> dict[str, tuple[str, str, list[float]]]:
    """Colour, mark and heights of each line that has a name."""
    return {
        str(line.get_label()): (to_hex(line.get_color()).upper(), str(line.get_marker()), list(line.get_ydata()))
        for line in axes.get_lines()
        if not str(line.get_label()).startswith("_")
    }


def test_systems_of_one_model_share_its_colour_and_are_told_apart() -> None:
    looks = styles(SYSTEMS)
    assert looks["plain"].colour == looks["reversed"].colour == COLOURS["seq2seq"] != looks["table"].colour
    assert looks["plain"].mark == looks["reversed"].mark == MARKS["seq2seq"]
    assert looks["plain"].line != looks["reversed"].line
    assert (looks["plain"].face, looks["reversed"].face) == (COLOURS["seq2seq"], "none")


def test_a_model_has_one_colour_and_one_mark_in_every_picture() -> None:
    found = comparison()
    text = found.texts[0]
    assert text.by_length is not None
    pictures = [
        curves_picture(found),
        groups_picture(found, text, text.by_length, "by_length"),
        beams_picture(found, text),
    ]
    for picture in pictures:
        for axes in drawn(picture.figure):
            named = lines(axes)
            assert {name: (colour, mark) for name, (colour, mark, _) in named.items()} == {
                name: (COLOURS[name], MARKS[name]) for name in BLEU
            }
            assert axes.get_xlabel() or axes.get_subplotspec().rowspan.stop == 1  # the row below has it
    for axes in drawn(cost_picture(found).figure):
        assert [to_hex(bar.get_facecolor()).upper() for bar in axes.patches] == [COLOURS[name] for name in BLEU]
        assert axes.get_xlabel()
    for picture in attention_pictures(found, text):
        axes = drawn(picture.figure)[0]
        name = axes.get_title(loc="left").split("\n")[0]
        assert to_hex(axes.get_images()[0].get_cmap()(1.0)).upper() == COLOURS[name]


def test_quality_shows_means_intervals_and_seeds() -> None:
    values = {
        "plain": Estimate(10.0, 9.0, 11.0, 0.5, (9.5, 10.5)),
        "table": Estimate(30.0, 28.0, 32.0),
        "reversed": Estimate(12.0),
    }
    [axes] = drawn(quality_figure("Quality", SYSTEMS, [Panel("BLEU", values)]))
    points = [(list(line.get_xdata()), list(line.get_ydata())) for line in axes.get_lines()]
    assert ([9.0, 11.0], [0, 0]) in points
    assert ([28.0, 32.0], [1, 1]) in points
    assert [([value], [place]) for value, place in ((10.0, 0), (30.0, 1), (12.0, 2))] == [
        each for each in points if len(each[0]) == 1
    ]
    assert [9.5, 10.5] in [x for x, _ in points]
    assert len(points) == 3 + 2 + 1
    assert [label.get_text() for label in axes.get_yticklabels()] == ["plain", "table", "reversed"]
    assert axes.yaxis_inverted(), "the first on top"
    panels = drawn(quality_picture(comparison(), comparison().texts[0]).figure)
    assert [each.get_xlabel() for each in panels] == ["BLEU 13a", "chrF2", "perplexity per word (less is better)"]


@pytest.mark.parametrize(
    ("low", "high", "filled"), [(0.1, 2.0, True), (-2.0, -0.1, True), (-0.1, 2.0, False), (None, None, False)]
)
def test_a_difference_is_filled_where_its_interval_leaves_out_zero(
    low: float | None, high: float | None, filled: bool
) -> None:
    rows = [Interval("b − a", 1.0, low, high, 0.0301), Interval("c − a", 5.0, 4.0, 6.0, 0.0002)]
    [axes] = drawn(differences_figure("Differences", "BLEU", rows))
    marks = [line for line in axes.get_lines() if line.get_marker() == "D"]
    assert [to_hex(mark.get_markerfacecolor()) for mark in marks] == ["#000000" if filled else "#ffffff", "#000000"]
    assert 0.0 in [line.get_xdata()[0] for line in axes.get_lines() if line.get_linestyle() == "--"]
    assert [note.get_text() for note in axes.texts] == ["p = 0.030", "p < 0.001"]


def test_curves_run_against_updates_tokens_and_minutes() -> None:
    found = comparison()
    panels = drawn(curves_figure("Curves", list(zip(BLEU, BLEU, strict=True)), found.curves))
    assert len(panels) == 6
    assert [axes.get_yscale() for axes in panels] == ["log"] * 3 + ["linear"] * 3
    assert [axes.get_xlabel() for axes in panels[3:]] == ["updates", "million target tokens", "minutes of training"]
    assert [axes.get_ylabel() for axes in panels[::3]] == ["validation perplexity", "validation BLEU 13a"]
    assert all(len(axes.get_lines()) == len(found.curves) for axes in panels)
    points = found.curves[0].points
    assert list(panels[1].get_lines()[0].get_xdata()) == [point.tokens / 1e6 for point in points]
    assert list(panels[2].get_lines()[0].get_xdata()) == [point.minutes for point in points]
    assert list(panels[5].get_lines()[0].get_ydata()) == [point.bleu for point in points]


@pytest.mark.parametrize("perplexities", [(1.12, 1.09, 1.05), (9.5, 7.0, 5.2), (3000.0, 80.0, 6.0), (4.0, 4.0, 4.0)])
def test_every_logarithmic_axis_has_ticks_to_be_read(perplexities: tuple[float, ...]) -> None:
    points = tuple(
        CurvePoint(10 * n, 100 * n, n, None, value, None if n == 2 else 5.0) for n, value in enumerate(perplexities, 1)
    )
    curve = comparison().curves[0]._replace(points=points)
    panels = drawn(curves_figure("Curves", [("seq2seq", "seq2seq")], [curve]))
    low, high = panels[0].get_ylim()
    labels = [panels[0].yaxis.get_major_formatter()(tick) for tick in panels[0].get_yticks() if low <= tick <= high]
    assert len(labels) >= 2
    assert len(set(labels)) == len(labels)
    assert len(panels[3].get_lines()[0].get_xdata()) == 2, "where BLEU was measured"
    without = curve._replace(points=tuple(point._replace(bleu=None) for point in points))
    assert len(drawn(curves_figure("Curves", [("seq2seq", "seq2seq")], [without]))) == 3


def test_cost_bars_begin_at_zero_and_carry_their_values() -> None:
    panels = [Panel("a", {"plain": Estimate(7.8), "reversed": Estimate(1234.5)}), Panel("b", {"table": Estimate(0.0)})]
    first, second = drawn(cost_figure("Cost", SYSTEMS, panels))
    assert [bar.get_width() for bar in first.patches] == [7.8, 1234.5]
    assert [bar.get_y() + bar.get_height() / 2 for bar in first.patches] == pytest.approx([0, 2])
    assert [note.get_text() for note in first.texts] == ["7.8", "1,234"]
    assert first.get_xlim()[0] == second.get_xlim()[0] == 0
    assert not first.patches[0].get_hatch()
    assert first.patches[1].get_hatch(), "the second of its model"


def test_beams_are_doubled_from_tick_to_tick() -> None:
    values = {"plain": {1: 10.0, 4: 12.0, 64: 9.0}, "table": {1: 30.0}}
    [axes] = drawn(beam_figure("Beams", SYSTEMS, [("BLEU", values)]))
    assert axes.get_xscale() == "log"
    assert [label.get_text() for label in axes.get_xticklabels()] == ["1", "4", "64"]
    assert {name: heights for name, (_, _, heights) in lines(axes).items()} == {
        "plain": [10.0, 12.0, 9.0],
        "table": [30.0],
    }
    assert axes.get_ylabel() == "BLEU"


def test_a_heat_map_names_every_token_and_shows_nothing_where_nothing_is() -> None:
    weights = np.array([[0.0, 1.0, 0.0], [0.25, 0.25, 0.5]])
    made = AttentionMap("table\nlayer 1 of 2", "bahdanau", ["ein", "$a$", "</s>"], ["a", "</s>"], weights)
    axes, bar = drawn(heat_map(made))
    assert [label.get_text().replace("\\", "") for label in axes.get_xticklabels()] == made.source
    assert [label.get_text() for label in axes.get_yticklabels()] == made.target
    assert axes.get_title(loc="left") == made.title
    assert bar.get_ylabel() == "weight"
    [image] = axes.get_images()
    np.testing.assert_array_equal(image.get_array(), weights)
    assert image.get_clim() == (0.0, 1.0)
    opaque = [shades("bahdanau")(weight)[3] for weight in (0.0, 0.25, 0.5, 1.0)]
    assert opaque[0] == 0.0
    assert opaque[-1] == 1.0
    assert all(less < more for less, more in pairwise(opaque))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("short", "short"),
        ("multi30k_de-en_fast_transformer_large", "multi30k_de-en_fast_transformer_\nlarge"),
        ("x" * 70, f"{'x' * 32}\n{'x' * 32}\n{'x' * 6}"),
        ("one\n− other", "one\n− other"),
        ("$x$", r"\$x\$"),
        ("", ""),
    ],
)
def test_long_names_are_wrapped(name: str, expected: str) -> None:
    assert wrapped(name) == expected
