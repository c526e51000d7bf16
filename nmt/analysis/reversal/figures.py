"""The picture of time lags: reversal shortens some paths and lengthens others, and what that is worth."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from nmt.analysis.figures import COLOURS, plain, quiet, wrapped
from nmt.analysis.reversal.tree import ARMS, Effect, LagChange

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_GREY = "#999999"


def lags_figure(pairs: Sequence[tuple[str, LagChange, Effect]]) -> "Figure":
    """A panel for each pair with the distribution of lags before and after, and one that sets the change of the
    smallest lag against the change of BLEU.

    Args:
        pairs: name, lags, effect on BLEU.
    """
    from matplotlib.figure import Figure

    colour = COLOURS["seq2seq"]
    figure = Figure(figsize=(3.2 * (len(pairs) + 1), 3.6), layout="constrained", dpi=150)
    *panels, last = figure.subplots(1, len(pairs) + 1)
    longest = max(max(lags.counts) for _, change, _ in pairs for lags in change)
    for axes, (name, change, _) in zip(panels, pairs, strict=True):
        for lags, look, label in zip(change, ("-", "--"), ARMS, strict=True):
            total = sum(lags.counts.values())
            shares = [100 * lags.counts.get(lag, 0) / total for lag in range(longest + 1)]
            face = _GREY if look == "-" else colour
            axes.step(range(longest + 1), shares, look, where="mid", color=face, linewidth=1.5, label=label)
        axes.set_title(wrapped(name), loc="left", fontsize="medium")
        axes.set_xlabel("time lag, steps")
        quiet(axes)
    panels[0].set_ylabel("% of links")
    panels[0].legend(frameon=False, fontsize="small")
    last.axhline(0, color="#000000", linewidth=1, linestyle="--")
    for name, change, effect in pairs:
        fall = change.forward.smallest - change.backward.smallest
        last.plot([fall, fall], [effect.low, effect.high], color=colour, linewidth=2)
        last.plot(fall, effect.difference, "o", color=colour, markersize=7)
        last.annotate(
            plain(name.split(", ")[-1]),
            (fall, effect.difference),
            xytext=(6, 4),
            textcoords="offset points",
            fontsize="small",
        )
    last.set_xlabel("smallest lag: steps shorter by reversal")
    last.set_ylabel("change of BLEU 13a, beam 12")
    last.margins(x=0.25)
    quiet(last)
    return figure
