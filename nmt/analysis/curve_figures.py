"""Curves of :mod:`nmt.analysis.ratios` in a picture."""

from typing import TYPE_CHECKING

from nmt.analysis.figures import Style, draw_line
from nmt.analysis.ratios import Curve

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_curve(axes: "Axes", curve: Curve, look: Style, label: str, scale: float = 1.0) -> None:
    """A line through the groups that have tokens, with its intervals as a band; the groups' names below."""
    known = [place for place, mean in enumerate(curve.means) if mean.value == mean.value]
    means = [curve.means[place] for place in known]
    draw_line(axes, known, [scale * mean.value for mean in means], look, label)
    low, high = ([scale * getattr(mean, end) for mean in means] for end in ("low", "high"))
    axes.fill_between(known, low, high, color=look.colour, alpha=0.12, linewidth=0)
    axes.set_xticks(range(len(curve.names)), curve.names, rotation=45)
