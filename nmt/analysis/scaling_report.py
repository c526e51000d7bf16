"""Tables and the picture of ``nmt.benchmark scaling`` and ``nmt.benchmark paths``."""

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING

from nmt.analysis.figures import COLOURS, MARKS, finish
from nmt.analysis.paths import Depth, Paths
from nmt.analysis.report import MISSING, markdown_table
from nmt.analysis.scaling import WORKS, Curve, Work, bytes_of, crossings, exponent, of_work, seconds_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MEGABYTE = 1 << 20
TITLES: dict[Work, str] = {
    "train": "a training update",
    "encode": "encoding",
    "step": "one step of decoding",
    "step, no cache": "one step of decoding without a cache",
}


def scaling_report(curves: Sequence[Curve], fitted_from: int, sentences: int) -> str:
    """Times, peaks, exponents and crossings, as Markdown."""
    parts = []
    for work in WORKS:
        group = of_work(curves, work)
        if group:
            parts += [f"### {TITLES[work].capitalize()}, {sentences} sentences", _table(group)]
    parts += [f"### Exponents, fitted from {fitted_from} tokens on", _exponents(curves, fitted_from)]
    parts += ["### Where the curves cross", "\n".join(f"- {line}" for line in _crossings(curves))]
    return "\n\n".join(parts)


def _table(group: Sequence[Curve]) -> str:
    heads = ["tokens", *(f"{curve.model}, ms" for curve in group), *(f"{curve.model}, MB" for curve in group)]
    rows = []
    for length in group[0].costs:
        costs = [curve.costs[length] for curve in group]
        times = [MISSING if cost is None else f"{cost.seconds * 1000:.2f}" for cost in costs]
        peaks = [MISSING if cost is None else f"{cost.peak_bytes / MEGABYTE:,.0f}" for cost in costs]
        rows.append([f"{length:,}", *times, *peaks])
    return markdown_table(heads, rows, left=())


def _exponents(curves: Sequence[Curve], fitted_from: int) -> str:
    """Measured beside counted."""

    def cell(values: Mapping[int, float]) -> str:
        found = exponent(values, fitted_from)
        return MISSING if found is None else f"{found:.2f}"

    rows = [
        [curve.work, curve.model, cell(seconds_of(curve)), cell(curve.counted), cell(bytes_of(curve))]
        for work in WORKS
        for curve in of_work(curves, work)
    ]
    return markdown_table(["work", "model", "time", "operations", "memory"], rows, left=(0, 1))


def _crossings(curves: Sequence[Curve]) -> list[str]:
    """For every work and two models, who is faster where."""
    lines = []
    for work in WORKS[:-1]:
        for first, second in combinations(of_work(curves, work), 2):
            times, others = seconds_of(first), seconds_of(second)
            common = sorted(times.keys() & others.keys())
            if not common:
                continue
            order = [each.model for each in (first, second)]
            faster, slower = order if times[common[0]] < others[common[0]] else order[::-1]
            points = crossings(times, others)
            where = " and at ".join(f"{point:,.0f}" for point in points)
            lines.append(
                f"{TITLES[work]}: {faster} is faster than {slower} at {common[0]:,} tokens; "
                + (f"the curves cross at {where} tokens" if points else f"and up to {common[-1]:,}")
            )
    return lines


def scaling_figure(curves: Sequence[Curve], models: Mapping[str, str]) -> "Figure":
    """Time and memory against length, both logarithmic, a panel for each work.

    Args:
        curves: to draw.
        models: architecture of each curve's model, which gives its colour.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10.5, 6.4), layout="constrained", dpi=150)
    panels = figure.subplots(2, 3, sharex=True)
    rows: list[tuple[str, Callable[[Curve], dict[int, float]], float]] = [
        ("milliseconds", seconds_of, 1000.0),
        ("MB beyond the model", bytes_of, 1 / MEGABYTE),
    ]
    for line, (axis, values, unit) in zip(panels, rows, strict=True):
        for axes, work in zip(line, WORKS[:-1], strict=True):
            for curve in of_work(curves, work):
                _draw(axes, curve, values(curve), unit, models[curve.model], "-")
            if work == "step":
                for curve in of_work(curves, "step, no cache"):
                    _draw(axes, curve, values(curve), unit, models[curve.model], "--")
            axes.set_xscale("log", base=2)
            axes.set_yscale("log")
            axes.set_ylabel(axis)
            finish(axes, TITLES[work])
    for axes in panels[1]:
        axes.set_xlabel("tokens a side")
        lengths = list(curves[0].costs)
        axes.set_xticks(lengths, [str(length) for length in lengths])
        axes.minorticks_off()
    return figure


def _draw(axes: "Axes", curve: Curve, values: Mapping[int, float], unit: float, model: str, style: str) -> None:
    name = curve.model if style == "-" else f"{curve.model}, no cache"
    heights = [value * unit for value in values.values()]
    axes.plot(list(values), heights, style, color=COLOURS[model], marker=MARKS[model], markersize=4, label=name)


# --- paths ------------------------------------------------------------------------------------------------------------


def paths_report(traced: Mapping[str, tuple[Paths, Depth]]) -> str:
    """Hand-overs between positions and serial depth, as Markdown."""
    parts = []
    for name, (paths, _) in traced.items():
        parts += [
            f"### {name}: hand-overs from source word j to target position t",
            _grid("j", paths.from_source),
            f"### {name}: hand-overs from target word s to target position t",
            _grid("s", paths.from_target),
        ]
    rows = [
        [name, f"{depth.of_short:,}", f"{depth.of_long:,}", f"{depth.per_token:g}"]
        for name, (_, depth) in traced.items()
    ]
    depth = next(iter(traced.values()))[1]
    heads = ["model", f"{depth.short} tokens a side", f"{depth.long} tokens a side", "more for each token"]
    parts += ["### Operations in a row of a training pass", markdown_table(heads, rows, left=(0,))]
    return "\n\n".join(parts)


def _grid(letter: str, rows: Sequence[Sequence[int | None]]) -> str:
    heads = ["", *(f"{letter} = {number}" for number in range(1, len(rows[0]) + 1))]
    lines = [
        [f"t = {position}", *(MISSING if value is None else str(value) for value in row)]
        for position, row in enumerate(rows, 1)
    ]
    return markdown_table(heads, lines, left=(0,))
