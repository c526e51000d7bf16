"""Pictures of time lags: reversal shortens some paths and lengthens others, and what that is worth."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from nmt.analysis.figures import COLOURS, quiet, wrapped
from nmt.analysis.reversal.tree import ARMS, Effect, LagChange

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_GREY = "#999999"
_MARKS = "osD^vP"
"""Of recipes, which have the colour of their model; names beside marks would lie upon each other."""


def lags_figure(pairs: Sequence[tuple[str, str, LagChange]]) -> "Figure":
    """The distribution of lags before and after, a panel for each pair.

    Args:
        pairs: name, model, lags.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(1.2 + 3.0 * len(pairs), 3.4), layout="constrained", dpi=150)
    panels = figure.subplots(1, len(pairs), squeeze=False, sharey=True)[0]
    longest = max(max(lags.counts) for _, _, change in pairs for lags in change[:2])
    for axes, (name, model, change) in zip(panels, pairs, strict=True):
        for lags, look, label in zip(change[:2], ("-", "--"), ARMS, strict=True):
            total = sum(lags.counts.values())
            shares = [100 * lags.counts.get(lag, 0) / total for lag in range(longest + 1)]
            colour = _GREY if look == "-" else COLOURS[model]
            axes.step(range(longest + 1), shares, look, where="mid", color=colour, linewidth=1.5, label=label)
        axes.set_title(wrapped(name), loc="left", fontsize="medium")
        axes.set_xlabel("time lag, steps")
        quiet(axes)
    panels[0].set_ylabel("% of links")
    panels[0].legend(frameon=False, fontsize="small")
    return figure


def gains_figure(pairs: Sequence[tuple[str, str, float, Sequence[Effect]]]) -> "Figure":
    """The change of the smallest lag against the change of figures, a panel for each figure.

    Args:
        pairs: name, model, steps by which the smallest lag is shorter, effects (of the same figures for all).
    """
    from matplotlib.figure import Figure

    names = [effect.name for effect in pairs[0][3]]
    figure = Figure(figsize=(1.0 + 3.6 * len(names), 3.6), layout="constrained", dpi=150)
    panels = figure.subplots(1, len(names), squeeze=False)[0]
    for place, (axes, name) in enumerate(zip(panels, names, strict=True)):
        axes.axhline(0, color="#000000", linewidth=1, linestyle="--")
        axes.axvline(0, color="#000000", linewidth=1, linestyle="--")
        for (label, model, fall, effects), mark in zip(pairs, _MARKS, strict=False):
            effect, colour = effects[place], COLOURS[model]
            axes.plot([fall, fall], [effect.low, effect.high], color=colour, linewidth=2)
            axes.plot(fall, effect.difference, mark, color=colour, markerfacecolor="white", markersize=8, label=label)
        axes.set_xlabel("smallest lag: steps shorter by reversal")
        axes.set_ylabel(f"change of {name}")
        axes.margins(x=0.15)
        quiet(axes)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, map(wrapped, labels), loc="outside lower left", ncols=3, frameon=False, fontsize="small")
    return figure
