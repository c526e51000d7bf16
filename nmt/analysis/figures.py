"""Pictures of finished models. A model has one colour and one mark everywhere (Okabe and Ito's palette: safe for the
colour-blind, told apart in grey by the marks), and the light grey of a grid that stays behind the data."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from nmt.evaluation.metrics import Score

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = {"seq2seq": "#D55E00", "bahdanau": "#0072B2", "transformer": "#009E73"}
MARKS = {"seq2seq": "o", "bahdanau": "s", "transformer": "^"}
_LINES = ("-", "--", ":", "-.")  # of several runs of one model


class Series(NamedTuple):
    """One run in a picture."""

    name: str
    model: str
    scores: Sequence[Score]


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
    styles = line_styles([(run.name, run.model) for run in series])
    places = range(len(names))
    for run in series:
        colour = COLOURS[run.model]
        axes.plot(
            places,
            [score.value for score in run.scores],
            styles[run.name],
            color=colour,
            marker=MARKS[run.model],
            label=run.name,
        )
        low, high = ([getattr(score, end) for score in run.scores] for end in ("low", "high"))
        axes.fill_between(places, low, high, color=colour, alpha=0.15, linewidth=0)
    sizes = [score.sentences for score in series[0].scores]
    axes.set_xticks(places, [f"{name}\n{size:,}" for name, size in zip(names, sizes, strict=True)])
    axes.set_xlabel(f"{axis} (below: sentences)")
    axes.set_ylabel("BLEU 13a")
    axes.set_ylim(bottom=0)
    finish(axes, title)
    return figure


def line_styles(runs: Sequence[tuple[str, str]]) -> Mapping[str, str]:
    """A dash pattern for each (name, model): runs of one model share its colour, so they differ in this."""
    seen: dict[str, int] = {}
    styles = {}
    for name, model in runs:
        seen[model] = seen.get(model, -1) + 1
        styles[name] = _LINES[seen[model] % len(_LINES)]
    return styles


def finish(axes: "Axes", title: str) -> None:
    """What every picture has: title, legend, a quiet grid, no box."""
    axes.set_title(title, loc="left", fontsize="medium")
    axes.legend(frameon=False)
    axes.grid(color="#DDDDDD", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
