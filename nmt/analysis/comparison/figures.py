"""Pictures of a comparison: how good, by how much, how soon, at which price, how wide a beam.

A system has the same colour, mark and line in each of them (:mod:`nmt.analysis.figures`).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from nmt.analysis.comparison.tree import Curve, CurvePoint, Estimate
from nmt.analysis.figures import GRID, Style, draw_line, plain, quiet, styles, wrapped

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ROW = 0.36
"""Inches from one system to the next."""


class Panel(NamedTuple):
    """One figure of all systems."""

    axis: str  # name and unit
    values: Mapping[str, Estimate]  # by system; one that lacks the figure is not in it


class Interval(NamedTuple):
    """One difference between two systems."""

    name: str  # "transformer - bahdanau"
    difference: float
    low: float | None
    high: float | None
    p_value: float | None


Systems = Sequence[tuple[str, str]]
"""(name, model), in the order of the tables."""


def quality_figure(title: str, systems: Systems, panels: Sequence[Panel]) -> "Figure":
    """A dot and its interval for each system, a panel for each figure; small hollow dots are single seeds."""
    from matplotlib.figure import Figure

    names = [name for name, _ in systems]
    figure = Figure(
        figsize=(1.0 + _room(names) + 2.9 * len(panels), 1.25 + ROW * _lines(names)), layout="constrained", dpi=150
    )
    row = figure.subplots(1, len(panels), squeeze=False, sharey=True)[0]
    looks = styles(systems)
    for axes, panel in zip(row, panels, strict=True):
        for place, (name, _) in enumerate(systems):
            if name in panel.values:
                _dot(axes, panel.values[name], place, looks[name])
        axes.set_xlabel(plain(panel.axis))
        _rows(axes, names)
    figure.suptitle(plain(title), x=0.01, ha="left", fontsize="medium")
    return figure


def _dot(axes: "Axes", estimate: Estimate, place: int, look: Style) -> None:
    if estimate.low is not None and estimate.high is not None:
        axes.plot([estimate.low, estimate.high], [place, place], color=look.colour, linewidth=2, solid_capstyle="butt")
    axes.plot(estimate.value, place, look.mark, color=look.colour, markerfacecolor=_filled(look), markersize=8)
    if len(estimate.seeds) > 1:
        below = [place + 0.27] * len(estimate.seeds)
        axes.plot(estimate.seeds, below, look.mark, color=look.colour, markerfacecolor="none", markersize=3.5)


def _filled(look: Style) -> str:
    """Hollow marks hide the line behind them."""
    return look.face if look.face != "none" else "white"


def differences_figure(title: str, axis: str, rows: Sequence[Interval]) -> "Figure":
    """A forest plot: each difference with its interval beside the line of no difference.

    Filled where the interval leaves zero out; the p-value stands at the right. Black: a difference is no model's.
    """
    from matplotlib.figure import Figure

    names = [row.name for row in rows]
    figure = Figure(figsize=(5.5 + _room(names), 1.2 + ROW * _lines(names)), layout="constrained", dpi=150)
    axes = figure.add_subplot()
    axes.axvline(0, color="#000000", linewidth=1, linestyle="--")
    for place, row in enumerate(rows):
        apart = row.low is not None and row.high is not None and (row.low > 0 or row.high < 0)
        if row.low is not None and row.high is not None:
            axes.plot([row.low, row.high], [place, place], color="#000000", linewidth=1.6)
        axes.plot(
            row.difference, place, "D", color="#000000", markerfacecolor="#000000" if apart else "white", markersize=6
        )
        if row.p_value is not None:
            p = "p < 0.001" if row.p_value < 0.001 else f"p = {row.p_value:.3f}"
            axes.annotate(p, (1.01, place), xycoords=("axes fraction", "data"), va="center", fontsize="small")
    axes.set_xlabel(plain(axis))
    _rows(axes, names)
    axes.set_title(plain(title), loc="left", fontsize="medium")
    return figure


def _room(names: Sequence[str]) -> float:
    """Inches that the names take beside a picture."""
    return 0.2 + 0.085 * max(len(line) for name in names for line in wrapped(name).split("\n"))


def _lines(names: Sequence[str]) -> float:
    """Rows that the names take."""
    most = max(wrapped(name).count("\n") + 1 for name in names)
    return len(names) * max(1.0, 0.55 * most)


def _rows(axes: "Axes", names: Sequence[str]) -> None:
    """A row for each name, the first on top."""
    axes.set_yticks(range(len(names)), [wrapped(name) for name in names])
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.grid(color=GRID, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)


def curves_figure(title: str, systems: Systems, curves: Sequence[Curve]) -> "Figure":
    """Validation perplexity and BLEU against updates, target tokens and minutes; a line for each run."""
    from matplotlib.figure import Figure

    with_bleu = any(point.bleu is not None for curve in curves for point in curve.points)
    figure = Figure(figsize=(10.5, 6.2 if with_bleu else 3.6), layout="constrained", dpi=150)
    panels = figure.subplots(1 + with_bleu, 3, squeeze=False, sharex="col", sharey="row")
    looks = styles(systems)
    named: set[str] = set()
    for curve in curves:
        label = None if curve.system in named else wrapped(curve.system)
        named.add(curve.system)
        for column, (_, place) in enumerate(_SCALES):
            points = [(place(point), point.perplexity) for point in curve.points]
            _run(panels[0][column], points, looks[curve.system], label)
            if with_bleu:
                points = [(place(point), point.bleu) for point in curve.points if point.bleu is not None]
                _run(panels[1][column], points, looks[curve.system], label)
    for axes in panels[0]:
        _logarithmic(axes)
    for line, name in zip(panels, ("validation perplexity", "validation BLEU 13a"), strict=False):
        line[0].set_ylabel(name)
    for axes, (name, _) in zip(panels[-1], _SCALES, strict=True):
        axes.set_xlabel(name)
    for axes in panels.flat:
        quiet(axes)
    _name(figure, title, panels[0][0])
    return figure


_SCALES: tuple[tuple[str, Callable[[CurvePoint], float]], ...] = (
    ("updates", lambda point: point.step),
    ("million target tokens", lambda point: point.tokens / 1e6),
    ("minutes of training", lambda point: point.minutes),
)


def _logarithmic(axes: "Axes") -> None:
    """A logarithmic axis with enough ticks also within a decade, written as people write numbers."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

    axes.set_yscale("log")
    low, high = axes.get_ylim()
    axes.yaxis.set_major_locator(MaxNLocator(6) if high < 5 * low else LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    axes.yaxis.set_minor_locator(NullLocator())


def _name(figure: "Figure", title: str, axes: "Axes") -> None:
    """The title of all panels, and below them one legend for all."""
    figure.suptitle(plain(title), x=0.01, ha="left", fontsize="medium")
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower left", ncols=min(4, len(labels)), frameon=False)


def _run(axes: "Axes", points: Sequence[tuple[float, float]], look: Style, label: str | None) -> None:
    x, y = [place for place, _ in points], [value for _, value in points]
    every = max(1, len(points) // 8)  # marks that can be told apart
    axes.plot(
        x,
        y,
        look.line,
        color=look.colour,
        linewidth=1.3,
        marker=look.mark,
        markerfacecolor=look.face,
        markersize=4,
        markevery=every,
        label=label,
    )


def cost_figure(title: str, systems: Systems, panels: Sequence[Panel]) -> "Figure":
    """Bars from zero, a panel for each kind of cost, the value at the end of each bar."""
    from matplotlib.figure import Figure

    columns = min(3, len(panels))
    lines = -(-len(panels) // columns)
    names = [name for name, _ in systems]
    size = (1.0 + _room(names) + 2.9 * columns, 0.4 + lines * (0.85 + ROW * _lines(names)))
    figure = Figure(figsize=size, layout="constrained", dpi=150)
    grid = list(figure.subplots(lines, columns, squeeze=False, sharey=True).flat)
    looks = styles(systems)
    for axes, panel in zip(grid, panels, strict=False):
        for place, (name, _) in enumerate(systems):
            if name in panel.values:
                value, look = panel.values[name].value, looks[name]
                hatch = "" if look.face != "none" else "////"
                axes.barh(place, value, height=0.62, color=look.face, edgecolor=look.colour, hatch=hatch)
                axes.annotate(
                    f"{value:,.3g}" if value < 100 else f"{value:,.0f}",
                    (value, place),
                    xytext=(3, 0),
                    textcoords="offset points",
                    va="center",
                    fontsize="small",
                )
        axes.set_xlim(0, 1.28 * max(each.value for each in panel.values.values()) or 1.0)
        axes.set_xlabel(plain(panel.axis))
        axes.locator_params(axis="x", nbins=4)
        _rows(axes, names)
        axes.grid(visible=False, axis="y")
    for axes in grid[len(panels) :]:
        axes.remove()
    figure.suptitle(plain(title), x=0.01, ha="left", fontsize="medium")
    return figure


def beam_figure(
    title: str, systems: Systems, panels: Sequence[tuple[str, Mapping[str, Mapping[int, float]]]]
) -> "Figure":
    """Figures against the size of the beam, which is doubled from tick to tick.

    Args:
        title: of the picture.
        systems: to draw.
        panels: (axis, system -> size -> value).
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(1.0 + 3.2 * len(panels), 3.7), layout="constrained", dpi=150)
    row = figure.subplots(1, len(panels), squeeze=False)[0]
    looks = styles(systems)
    sizes = sorted({size for _, values in panels for curve in values.values() for size in curve})
    for axes, (axis, values) in zip(row, panels, strict=True):
        for name, curve in values.items():
            draw_line(axes, list(curve), list(curve.values()), looks[name], wrapped(name))
        axes.set_xscale("log", base=2)
        axes.set_xticks(sizes, [str(size) for size in sizes])
        axes.minorticks_off()
        axes.set_xlabel("beam size")
        axes.set_ylabel(plain(axis))
        quiet(axes)
    _name(figure, title, row[0])
    return figure
