"""What ``exposure`` has measured: in words, as plain values, as pictures."""

from typing import TYPE_CHECKING, Any

from nmt.analysis.curve_figures import draw_curve
from nmt.analysis.diagnosis import Finding, Subject, table
from nmt.analysis.exposure import DRAWN, NEXT, SLIPS, Exposure, measure
from nmt.analysis.figures import COLOURS, MARKS, Style, finish
from nmt.analysis.ratios import plain, show

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def exposure(subject: Subject) -> Finding:
    """The part as ``nmt.diagnose`` has it."""
    found = measure(subject)
    return Finding("What prefixes of its own cost", text(found), tree(found), {"exposure": exposure_figure(found)})


def text(found: Exposure) -> str:
    """Markdown: what the numbers say, then the numbers."""
    levels = [
        [
            f"{kind}, {100 * each.level:.0f} %",
            show(each.excess),
            *(show(mean) for mean in each.by_place.means),
            show(each.by_place.slope, 3),
        ]
        for kind, own in found.corrupted.items()
        for each in own
    ]
    places = found.corrupted[DRAWN][0].by_place.names
    curves = [
        ("tokens that differ, %", found.differing, 0, 100.0, 2),
        ("its own", found.own, 2, 1.0, 3),
        (DRAWN, found.drawn, 2, 1.0, 3),
        ("its own less words drawn", found.own_less_drawn_by_length, 2, 1.0, 3),
    ]
    behind = [
        [name, *(show(mean, digits, scale) for mean in curve.means), show(curve.slope, steep, scale)]
        for name, curve, digits, scale, steep in curves
    ]
    return "\n\n".join(
        [
            f"{found.model}: {found.pairs:,} pairs; -log p per token behind the true prefix {show(found.nll)} nats. "
            "Below: how much more the same tokens cost behind another; 95 % intervals by bootstrap over sentences.",
            "\n".join(f"- {line}" for line in statements(found)),
            "A share of the prefix replaced: excess, all tokens, and by place in the target:",
            table(("replaced by", "all", *places, "slope"), levels),
            f"Its own first t tokens instead of the reference's, and the reference's next {NEXT}: excess by t:",
            table(("prefix", *found.own.names, "slope"), behind),
            "\n".join(f"- {line}" for line in notes(found)),
        ]
    )


def statements(found: Exposure) -> list[str]:
    """In words, from the numbers: a difference is called one only where its interval leaves out none."""
    return [_corruption(found), _own(found), _verdict(found)]


def _corruption(found: Exposure) -> str:
    drawn, slips, apart = found.corrupted[DRAWN][-1], found.corrupted[SLIPS][-1], found.slips_less_drawn
    share = f"{100 * drawn.level:.0f} %"
    if not (drawn.excess.low > 0 or slips.excess.low > 0):
        return f"False prefixes do not throw it off: with {share} replaced, the excess is {show(drawn.excess)} nats."
    beside = "more than" if apart.low > 0 else "less than" if apart.high < 0 else "as much as"
    slope = drawn.by_place.slope
    late = "late ones more" if slope.low > 0 else "late ones less" if slope.high < 0 else "late ones no more"
    return (
        f"It leans on the prefix: with {share} of it replaced by words drawn, tokens cost {show(drawn.excess)} nats "
        f"more, {late} than early ones ({show(slope, 3)} a place). Slips of its own in the same places cost "
        f"{show(slips.excess)}, {beside} those."
    )


def _own(found: Exposure) -> str:
    own, slope = found.own_all, found.own.slope
    if not own.low > 0:
        return f"Behind prefixes of its own the reference's tokens cost no more ({show(own)} nats)."
    if slope.low > 0:
        grows = "the more the longer they are: differences from the reference add up"
    elif slope.high < 0:
        grows = "the less the longer they are"
    else:
        grows = "no more the longer they are: nothing is shown to add up"
    return (
        f"Behind prefixes of its own the reference's tokens cost {show(own)} nats more than behind true ones, {grows} "
        f"({show(slope, 3)} a token)."
    )


def _verdict(found: Exposure) -> str:
    own, drawn, apart = found.own_all, found.drawn_all, found.own_less_drawn
    growth = found.own_less_drawn_by_length.slope
    if not own.low > 0:
        said = "not shown: what it has written itself does not make it predict worse"
    elif apart.low > 0:
        more = ", and ever more with the prefix's length" if growth.low > 0 else ""
        said = (
            f"shown: its own prefixes cost {show(apart)} nats more than equally many words drawn in the same places "
            f"({show(drawn)}){more}"
        )
    else:
        beside = "less than" if apart.high < 0 else "as much as"
        said = (
            f"not shown: its own prefixes cost {beside} equally many words drawn in the same places ({show(drawn)}; "
            f"difference {show(apart)}). It depends on its prefix, as a translator should, and pays for a false one "
            "whoever has written it"
        )
    return (
        f"Exposure mismatch: {said}. Source and memory are the same in every comparison, so that no bottleneck has a "
        "part in it. Not to be told from this: how much of the cost is no mistake but another way to say the same, "
        "which goes on differently from the one reference there is."
    )


def notes(found: Exposure) -> list[str]:
    """How it was measured."""
    return [
        f"Words are drawn by how often they occur in {found.words_from}; slips from the model's predictions behind the "
        "true prefix, the true token left out. What is replaced at a smaller share stays so at a larger one.",
        f"Its own prefixes: {found.translations}. Words drawn beside them replace the reference's tokens in the places "
        "where the two differ. A prefix shifted by one word differs everywhere behind it.",
        "Longer prefixes are of longer sentences: differences along t are of other sentences, too; those between the "
        "rows of a column are not.",
    ]


def tree(found: Exposure) -> dict[str, Any]:
    """Plain values."""
    made = plain(found)
    assert isinstance(made, dict)
    return made | {"statements": statements(found)}


def exposure_figure(found: Exposure) -> "Figure":
    """The excess by place at each share of replaced tokens, and behind its own prefixes by their length."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11.0, 4.2), layout="constrained", dpi=150)
    left, right = figure.subplots(1, 2)
    colour, mark = COLOURS[found.architecture], MARKS[found.architecture]
    for kind, tint, face in ((DRAWN, "#666666", "none"), (SLIPS, colour, colour)):
        for each, line in zip(found.corrupted[kind], (":", "--", "-"), strict=True):
            label = f"{kind}, {100 * each.level:.0f} %"
            draw_curve(left, each.by_place, Style(tint, mark, line, face), label)
    left.set_xlabel("place in the target")
    left.set_ylabel("more -log p per token, nats")
    finish(left, f"A share of the prefix replaced\n{found.model}")
    left.set_ylim(top=1.3 * left.get_ylim()[1])
    left.legend(frameon=False, ncols=2)  # above the curves
    draw_curve(right, found.own, Style(colour, mark, "-", colour), "its own")
    draw_curve(right, found.drawn, Style("#666666", mark, "--", "none"), "words drawn where they differ")
    right.set_xlabel("tokens of the prefix")
    right.set_ylabel("more -log p per token, nats")
    finish(right, f"Its own prefix, and the reference's next {NEXT} tokens")
    return figure
