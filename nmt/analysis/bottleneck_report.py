"""What ``bottleneck`` has measured: in words, as plain values, as pictures."""

from typing import TYPE_CHECKING, Any

from nmt.analysis.bottleneck import Bottleneck, Probed, Probing, measure
from nmt.analysis.curve_figures import draw_curve
from nmt.analysis.diagnosis import Finding, Subject, table
from nmt.analysis.figures import COLOURS, MARKS, Style, finish
from nmt.analysis.probing import PLACE_ALONE
from nmt.analysis.ratios import Curve, Ratio, plain, show

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MATERIAL = 0.05
"""A fall of what can be told from a memory that is worth the name: 5 of 100 words."""

NOTICEABLE = 0.01
"""1 of 100 words: smaller differences of two memories are not spoken of, however certain."""

READ = {"vector": "the fixed vector", "row": "the row of the word", "mean of rows": "the mean of all rows"}


def bottleneck(subject: Subject) -> Finding:
    """The part as ``nmt.diagnose`` has it."""
    found = measure(subject)
    return Finding("What the memory keeps", text(found), tree(found), {"bottleneck": bottleneck_figure(found)})


def text(found: Bottleneck) -> str:
    """Markdown: what the numbers say, then the numbers."""
    blocks = [
        f"{found.model}: {found.pairs:,} pairs; 95 % intervals by bootstrap over sentences.",
        "\n".join(f"- {line}" for line in statements(found)),
    ]
    if isinstance(found.probing, Probing):
        blocks += _probing_blocks(found.probing)
    blocks += [
        "-log p per target token behind the true prefix, nats, by subwords of the source:",
        _across("source", found.nll_by_length),
        "by place in the target:",
        _across("place", found.nll_by_place),
        "by place as a share of the target:",
        _across("share", found.nll_by_share),
        "BLEU 13a of its own translations by words of the source:",
        table(
            ("source", *found.lengths),
            [
                ["BLEU", *(f"{each.value:.1f} [{each.low:.1f}, {each.high:.1f}]" for each in found.bleu)],
                ["sentences", *(str(each.sentences) for each in found.bleu)],
            ],
        ),
        "\n".join(f"- {line}" for line in notes(found)),
    ]
    return "\n\n".join(blocks)


def _probing_blocks(probing: Probing) -> list[str]:
    main = _main(probing)
    rows = [
        [
            PLACE_ALONE + " alone" if each.given == PLACE_ALONE else READ[each.given],
            _whose(each),
            str(each.width) if each.given != PLACE_ALONE else "-",
            show(each.accuracy, 1, 100),
            show(each.beyond_place, 1, 100) if each.given != PLACE_ALONE else "-",
        ]
        for each in probing.probes
    ]
    rows.append(["always the most frequent subword", "-", "-", show(probing.most_frequent, 1, 100), "-"])
    header = ("a probe is given", "memory of", "numbers", "right, %", "of what the place does not tell, %")
    shown = [each for each in probing.probes if each.given != PLACE_ALONE]
    blocks = ["Which subword of the source stands at a place?", table(header, rows, left=2)]
    for name, of in (
        ("by subwords of the source", "by_length"),
        ("by place from the start", "from_start"),
        ("by place from the end", "from_end"),
    ):
        curves = [(f"{READ[each.given]}, {_whose(each)}", getattr(each, of)) for each in shown]
        blocks += [
            f"Of what the place does not tell, %, {name}:",
            table(
                ("", *getattr(main, of).names, "slope"),
                [
                    [label, *(show(mean, 0, 100) for mean in own.means), show(own.slope, 2, 100)]
                    for label, own in curves
                ],
            ),
        ]
    return blocks


def statements(found: Bottleneck) -> list[str]:
    """In words, from the numbers: a difference is called one only where its interval leaves out none."""
    said = []
    if isinstance(found.probing, Probing):
        said += [_recovery(found.probing), *_controls(found.probing)]
    said += [_by_length(found.nll_by_length), _verdict(found.probing)]
    return said


def _recovery(probing: Probing) -> str:
    main = _main(probing)
    shortest, longest, apart = main.shortest_to_longest
    low, high = (_of(main.by_length, name) for name in (shortest, longest))
    if shortest == longest:
        by_length = "all sentences are of like length"
    else:
        change = "fewer" if _falls(apart) else "more" if apart.low > MATERIAL else "about as many"
        by_length = (
            f"{show(low, 0, 100)} % of sources of {shortest} subwords and {show(high, 0, 100)} % of those of "
            f"{longest}: {change} of long ones (difference {show(apart, 0, 100)})"
        )
    return (
        f"Of the source's subwords that their place does not tell, {show(main.beyond_place, 0, 100)} % can be told "
        f"from {READ[main.given]}; {by_length}. {_ends(main)}"
    )


def _ends(main: Probed) -> str:
    start, end = main.from_start.slope, main.from_end.slope
    far = [name for name, slope in (("start", start), ("end", end)) if _falls(slope, 10)]
    if len(far) == 2:
        return "Words far from both ends are lost first."
    if far:
        return f"The farther from the {far[0]} a word stands, the less of it is left."
    return "Where a word stands makes little difference."


def _falls(change: Ratio, times: int = 1) -> bool:
    """Whether a change, so many times, is a fall that is worth the name, and certain."""
    return change.high < 0 and times * change.value < -MATERIAL


def _controls(probing: Probing) -> list[str]:
    main = _main(probing)
    fresh = next(each for each in probing.probes if not each.trained and each.given == main.given)
    a, b = main.beyond_place, fresh.beyond_place
    told_apart = abs(a.value - b.value) > NOTICEABLE
    training = "more" if told_apart and a.low > b.high else "less" if told_apart and a.high < b.low else "about as much"
    said = [
        f"The memory of an untrained model of this configuration tells {show(b, 0, 100)} %: training has made it tell "
        f"{training}."
    ]
    mean = next((each for each in probing.probes if each.trained and each.given == "mean of rows"), None)
    if mean is not None:
        shortest, longest, apart = mean.shortest_to_longest
        falls = "falls as sentences grow" if _falls(apart) else "hardly falls as sentences grow"
        said.append(
            f"Made one vector, the mean of its rows, the same table tells {show(mean.beyond_place, 0, 100)} %, which "
            f"{falls} ({shortest} to {longest} subwords: {show(apart, 0, 100)}): words are kept apart by rows."
        )
    return said


def _by_length(nll: Curve) -> str:
    slope = nll.slope
    if slope.value != slope.value:
        return "All sources are of like length: nothing can be said about -log p by length."
    how = "rises" if slope.low > 0 else "falls" if slope.high < 0 else "neither rises nor falls"
    return f"-log p of a target token {how} with the source's length: {show(slope, 2, 10)} nats for 10 subwords more."


def _verdict(probing: Probing | str) -> str:
    beside = (
        "That is said of the memory alone: prefixes were true, so that no mistake of the model's own has a part in it. "
        "A slope of -log p or BLEU over length is no proof of it: long sentences are harder in other ways, too."
    )
    if isinstance(probing, str):
        return f"Bottleneck: cannot be told, there is no probing ({probing}). {beside}"
    main = _main(probing)
    _, _, apart = main.shortest_to_longest
    if main.beyond_place.high <= MATERIAL:
        said = "the memory tells next to nothing of the source, at any length"
    elif _falls(apart):
        said = "shown: the longer the sentence, the smaller the share of its words that can be told from the memory"
    elif main.beyond_place.low >= 1 - MATERIAL:
        said = "not shown: the memory keeps words whatever the length"
    else:
        said = "not shown: what can be told is less than all, but not less of longer sentences"
    return f"Bottleneck: {said}. {beside}"


def notes(found: Bottleneck) -> list[str]:
    """How it was measured."""
    said = []
    if isinstance(found.probing, Probing):
        asked = found.probing
        said = [
            f"Probes: one hidden layer, {asked.updates:,} updates on {asked.sentences:,} training sentences, tested on "
            f"{asked.tested:,} others; the {asked.classes:,} most frequent subwords ({100 * asked.covered:.0f} % of "
            "those tested on). The same probe, sentences and updates for every memory.",
            "A row is handed to the probe by its number, as a table is addressed: that says what is in the table, not "
            "that a decoder finds it. The vector's probe may choose by place what it reads. Widths differ by model.",
            "A failing probe is no proof that the word is gone: a larger one, or more updates, may find more.",
        ]
    else:
        said.append(f"No probing: {found.probing}.")
    return [*said, "The last group of a curve may hold few sentences: see its interval."]


def _main(probing: Probing) -> Probed:
    """The vector's probe, or the rows'."""
    return next(each for each in probing.probes if each.trained and each.given in ("vector", "row"))


def _whose(probe: Probed) -> str:
    return "the model" if probe.trained else "an untrained one"


def _of(curve: Curve, name: str) -> Ratio:
    return curve.means[curve.names.index(name)]


def _across(name: str, curve: Curve) -> str:
    return table(
        (name, *curve.names, "slope"),
        [
            ["-log p", *map(show, curve.means), show(curve.slope, 3)],
            ["tokens", *(f"{each.tokens:,}" for each in curve.means), ""],
        ],
    )


def tree(found: Bottleneck) -> dict[str, Any]:
    """Plain values."""
    made = plain(found)
    assert isinstance(made, dict)
    return made | {"statements": statements(found)}


# --- pictures ---------------------------------------------------------------------------------------------------------

_LINES = {("vector", True): "-", ("row", True): "-", ("mean of rows", True): "--", (PLACE_ALONE, True): ":"}


def bottleneck_figure(found: Bottleneck) -> "Figure":
    """Accuracy of probes by length, and from either end; -log p by length."""
    from matplotlib.figure import Figure

    probing = found.probing if isinstance(found.probing, Probing) else None
    panels = 3 if probing is not None else 1
    figure = Figure(figsize=(5.0 * panels, 4.0), layout="constrained", dpi=150)
    axes = figure.subplots(1, panels, squeeze=False)[0]
    colour = COLOURS[found.architecture]
    if probing is not None:
        for place, (of, name) in enumerate(
            (("by_length", "subwords of the source"), ("from_start", "place from the start"))
        ):
            for each in probing.probes:
                if each.given == PLACE_ALONE:
                    continue
                line = _LINES[each.given, True] if each.trained else ":"
                look = Style(colour if each.trained else "#666666", MARKS[found.architecture], line, "none")
                draw_curve(axes[place], getattr(each, of), look, f"{READ[each.given]}, {_whose(each)}", 100)
            axes[place].set_xlabel(name)
            axes[place].set_ylabel("told beyond the place, %")
            axes[place].set_ylim(-10, 105)
            finish(axes[place], "Words of the source in the memory" if place == 0 else found.model)
    look = Style(colour, MARKS[found.architecture], "-", colour)
    draw_curve(axes[-1], found.nll_by_length, look, "true prefixes")
    axes[-1].set_xlabel("subwords of the source")
    axes[-1].set_ylabel("-log p per target token, nats")
    axes[-1].set_ylim(bottom=0)
    finish(axes[-1], "Likelihood" if probing is not None else f"Likelihood\n{found.model}")
    return figure
