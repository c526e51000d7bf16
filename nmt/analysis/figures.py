"""Pictures of finished models. A model has one colour and one mark everywhere (Okabe and Ito's palette: safe for the
colour-blind, told apart in grey by the marks), and the light grey of a grid that stays behind the data."""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from nmt.evaluation.metrics import Score

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure

COLOURS = {"seq2seq": "#D55E00", "bahdanau": "#0072B2", "transformer": "#009E73"}
MARKS = {"seq2seq": "o", "bahdanau": "s", "transformer": "^"}
GRID = "#DDDDDD"
_LINES = ("-", "--", ":", "-.")  # of several systems of one model


class Style(NamedTuple):
    """How a system is drawn wherever it is drawn."""

    colour: str  # of its model
    mark: str  # of its model
    line: str  # tells systems of one model apart
    face: str  # of the mark: filled, or hollow for every other system of a model


class Series(NamedTuple):
    """One run in a picture."""

    name: str
    model: str
    scores: Sequence[Score]


def styles(systems: Sequence[tuple[str, str]]) -> Mapping[str, Style]:
    """A style for each (name, model)."""
    seen: dict[str, int] = {}
    found = {}
    for name, model in systems:
        number = seen[model] = seen.get(model, -1) + 1
        colour = COLOURS[model]
        found[name] = Style(colour, MARKS[model], _LINES[number % len(_LINES)], "none" if number % 2 else colour)
    return found


def scores_figure(title: str, axis: str, names: Sequence[str], series: Sequence[Series]) -> "Figure":
    """BLEU of groups of sentences, with 95 % intervals as bands; the number of sentences stands below each group.

    Args:
        title: of the picture.
        axis: what the groups differ in.
        names: of the groups, from left to right.
        series: a line each, with a score for every group.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.5, 4.2), layout="constrained", dpi=150)
    axes = figure.add_subplot()
    looks = styles([(run.name, run.model) for run in series])
    places = range(len(names))
    for run in series:
        look = looks[run.name]
        draw_line(axes, places, [score.value for score in run.scores], look, wrapped(run.name))
        low, high = ([getattr(score, end) for score in run.scores] for end in ("low", "high"))
        axes.fill_between(places, low, high, color=look.colour, alpha=0.15, linewidth=0)
    sizes = [score.sentences for score in series[0].scores]
    axes.set_xticks(places, [f"{name}\n{size:,}" for name, size in zip(names, sizes, strict=True)])
    axes.set_xlabel(f"{axis} (below: sentences)")
    axes.set_ylabel("BLEU 13a")
    axes.set_ylim(bottom=0)
    finish(axes, title)
    return figure


def draw_line(axes: "Axes", x: Sequence[float], y: Sequence[float], look: Style, label: str | None) -> None:
    """One line with a mark at every point."""
    axes.plot(
        x, y, look.line, color=look.colour, marker=look.mark, markerfacecolor=look.face, markersize=5, label=label
    )


def finish(axes: "Axes", title: str) -> None:
    """What every picture has: title, legend, a quiet grid, no box."""
    axes.set_title(title, loc="left", fontsize="medium")
    axes.legend(frameon=False)
    quiet(axes)


def quiet(axes: "Axes") -> None:
    """A grid that stays behind the data, and no box."""
    axes.grid(color=GRID, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def shades(model: str) -> "Colormap":
    """From nothing at all, so that the page shows through, to the colour of the model."""
    from matplotlib.colors import LinearSegmentedColormap, to_rgb

    colour = to_rgb(COLOURS[model])
    return LinearSegmentedColormap.from_list(model, [(*colour, 0.0), (*colour, 1.0)])


def plain(text: str) -> str:
    """Not to be taken for a formula."""
    return text.replace("$", r"\$")


def wrapped(name: str, width: int = 32) -> str:
    """A long name on several lines, cut after what joins its parts where that can be; its own line breaks stay."""
    lines: list[str] = []
    for line in name.split("\n"):
        lines.append("")
        for part in re.findall(r"[^ _/.-]*[ _/.-]?", line):
            for piece in (part[at : at + width] for at in range(0, len(part), width)):
                if len(lines[-1]) + len(piece) > width:
                    lines.append("")
                lines[-1] += piece
    return plain("\n".join(lines))


@cache
def scripts() -> list[str]:
    """Fonts for words of any language: matplotlib's own, and those of this machine that have what it lacks."""
    from matplotlib.font_manager import fontManager

    there = set(fontManager.get_font_names())
    return ["DejaVu Sans", *(name for name in _OTHER_SCRIPTS if name in there)]


_OTHER_SCRIPTS = (
    *("Noto Sans CJK SC", "Noto Sans CJK JP", "WenQuanYi Zen Hei", "Droid Sans Fallback", "Arial Unicode MS"),
    *("PingFang SC", "Hiragino Sans", "Apple SD Gothic Neo", "Microsoft YaHei", "Yu Gothic", "Malgun Gothic"),
    *("Noto Sans Devanagari", "Noto Sans Bengali", "Noto Sans Tamil", "Noto Sans Telugu", "Nirmala UI"),
    *("Noto Sans Thai", "Noto Sans Ethiopic", "Noto Sans Khmer", "Noto Sans Myanmar", "Leelawadee UI"),
)
