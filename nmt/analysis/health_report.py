"""What ``health`` has found: a verdict made from the numbers, tables, plain values, a picture."""

import math
from typing import TYPE_CHECKING, Any

from nmt.analysis.coverage import BINS, REACHED, Spread
from nmt.analysis.diagnosis import Finding, Subject, table
from nmt.analysis.figures import COLOURS, MARKS, Style, draw_line, finish
from nmt.analysis.health import FEWEST_LONG, LONG, Attention, Health, Sign, measure, signs
from nmt.analysis.invariants import Invariant
from nmt.analysis.stalls import LOOP, ORDER, STUCK, UNIT, Variety

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PICTURE = "attention_by_position"

MOST_EXAMPLES = 3
"""Sentences shown of each sign."""

MOST_LETTERS = 160
"""Shown of a sentence."""


def health(subject: Subject) -> Finding:
    """The part as ``nmt.diagnose`` has it."""
    found = measure(subject)
    figures = {}
    if found.attention is not None:
        figures[PICTURE] = position_figure(found.attention, subject.checkpoint.config.model.name, found.model)
    return Finding("Health", text(found), tree(found), figures, tuple(figures), failure(found))


def failure(found: Health) -> str | None:
    """What must not be, in a line; None: nothing of the kind."""
    broken = [each for each in found.invariants if each.state == "broken"]
    if not broken:
        return None
    said = [f"{each.name} ({each.promise}: off by {_number(each.deviation)})" for each in broken]
    return f"{found.model} breaks what every model promises: {'; '.join(said)}"


def verdict(found: Health) -> list[str]:
    """One line for the invariants, one for the signs."""
    states = [each.state for each in found.invariants]
    counts = [states.count(state) for state in ("holds", "does not apply")]
    apart = f", {counts[1]} do not apply" if counts[1] else ""
    broken = failure(found)
    first = f"**Broken**: {broken}." if broken else f"Invariants: {counts[0]} hold, none is broken{apart}."
    seen = signs(found)
    looked = [each for each in seen if each.value is not None]
    worth = [f"{each.name} ({_number(each.value)}, expected {_range(each)})" for each in looked if each.found]
    if worth:
        return [first, f"**Look at**: {'; '.join(worth)}."]
    return [first, f"Nothing found: none of {len(looked)} signs is out of its range."]


def text(found: Health) -> str:
    """Markdown: the verdict, then what it was made from."""
    blocks = [
        f"{found.model}, led along {found.target}: {len(found.sentences)} sentences.",
        "\n".join(f"- {line}" for line in verdict(found)),
        "What every model promises, whatever it has learned:",
        table(("invariant", "", "state", "off by", "at most", "where it may be"), _invariants(found), left=3),
        "How this one behaves:",
        table(("sign", "worth a look because", "expected", "", "found"), _signs(found), left=4),
    ]
    if found.attention is not None:
        blocks += _attention_blocks(found.attention)
    blocks += ["Outputs and references:", table(_VARIETY, _varieties(found), left=1)]
    examples = _examples(found)
    if examples:
        blocks += ["Where it was seen:", examples]
    return "\n\n".join([*blocks, "\n".join(f"- {line}" for line in notes(found))])


def notes(found: Health) -> list[str]:
    """How it was measured."""
    said = [
        "Exact invariants are zero bit for bit; the others are shares of the largest feature, within rounding. *Where "
        "it may be* is the size of the same quantity in places where it is allowed: the check would have seen as much.",
        f"Loop: up to {UNIT} subwords, {LOOP} times or more in a row, and more often than in the source. "
        f"{ORDER}-grams are of subwords.",
        "A sign is a reason to look, not a defect: ranges are rules of thumb, whose reasons stand beside them.",
    ]
    if found.attention is None:
        return said
    return [
        *said,
        f"Weights are those of {found.attention.weights_of} (`--align-layer`, `--align-head`); other layers may read "
        f"what these do not. Reached: a weight of {REACHED} and twice the uniform one, from some target token. "
        "Coverage: weight received / what uniform weights would give. EOS is no source subword here.",
        f"Attention that stays: the same source position has the most weight at {STUCK} steps in a row.",
        "An annotation has seen the whole sentence: what is not reached may have been read through its neighbours.",
    ]


def _invariants(found: Health) -> list[list[str]]:
    rows = []
    for each in found.invariants:
        numbers = [_number(each.deviation), _number(each.tolerance), _number(each.seen)]
        if each.state == "does not apply":
            rows.append([each.name, each.promise, f"does not apply: {each.reason}", "-", "-", "-"])
        else:
            rows.append([each.name, each.promise, each.state, *numbers])
    return rows


def _signs(found: Health) -> list[list[str]]:
    return [
        [
            each.name,
            each.reason,
            _range(each),
            "**look**" if each.found else "",
            f"not measured: {each.missing}" if each.value is None else _value(each, found),
        ]
        for each in signs(found)
    ]


def _value(sign: Sign, found: Health) -> str:
    """With its sentences, where it is a share of them."""
    number = _number(sign.value)
    return f"{number} ({len(sign.sentences)} of {len(found.own)})" if sign.sentences else number


def _attention_blocks(attention: Attention) -> list[str]:
    groups = [("all sentences", attention.every)]
    groups += [(f"{LONG} subwords or more", attention.long)] if attention.long is not None else []
    header = ["", "sentences", "entropy", "reached, first 3/4", "last 1/4", "sentences, any of last 1/4", "on EOS"]
    rows = []
    for name, each in groups:
        numbers = (each.entropy, each.reached_before, each.reached_last, each.sentences_last, each.end)
        rows.append([name, str(each.sentences), *map(_number, numbers)])
    blocks = [f"What attention reaches of the source ({attention.weights_of}):", table(header, rows)]
    if attention.long is None:
        few = "none" if not attention.long_sentences else f"only {attention.long_sentences}"
        blocks.append(
            f"Sentences of {LONG} source subwords or more: {few}, too few to be spoken of apart ({FEWEST_LONG})."
        )
    heads = attention.entropy_by_head
    if len(heads) * len(heads[0]) > 1:
        rows = [[f"layer {number}", *map(_number, row)] for number, row in enumerate(heads, 1)]
        header = ["entropy of", *(f"head {number}" for number in range(1, len(heads[0]) + 1))]
        blocks.append(table(header, rows))
    return blocks


_VARIETY = ("", "inputs", "different", "most frequent", "different words", "different pairs", "length / references")


def _varieties(found: Health) -> list[list[str]]:
    rows = [[*_variety("own translations", found.outputs), _number(found.length_ratio)]]
    if found.references is not None:
        rows.append([*_variety("references", found.references), ""])
    return rows


def _variety(name: str, each: Variety) -> list[str]:
    counts = [str(each.inputs), str(each.outputs), f"{each.times} times" if each.times > 1 else "once"]
    return [name, *counts, _number(each.distinct_1), _number(each.distinct_2)]


def _examples(found: Health) -> str:
    lines = []
    for sign in signs(found):
        for place in sign.sentences[:MOST_EXAMPLES]:
            sentence = found.own[place]
            lines.append(f"- {sign.name}: *{_cut(sentence.source)}* - *{_cut(sentence.target)}*")
        more = len(sign.sentences) - MOST_EXAMPLES
        if more > 0:
            lines.append(f"- {sign.name}: {more} more")
    return "\n".join(lines)


def _cut(line: str) -> str:
    """Not longer than can be read."""
    return line if len(line) <= MOST_LETTERS else f"{line[:MOST_LETTERS]} ..."


def _range(sign: Sign) -> str:
    if sign.low is not None and sign.high is not None:
        return f"{_number(sign.low)} to {_number(sign.high)}"
    if sign.low is not None:
        return f"{_number(sign.low)} or more"
    return f"{_number(sign.high)} or less" if sign.high else "none"


def _number(value: float | None) -> str:
    if value is None or math.isnan(value):
        return "-"
    if math.isinf(value):
        return "not a number"
    if value in (0, 1):
        return f"{value:.0f}"
    if abs(value) < 0.005:
        return f"{value:.0e}"
    return f"{value:.2f}" if abs(value) < 1000 else f"{value:.0f}"


# --- plain values -----------------------------------------------------------------------------------------------------


def tree(found: Health) -> dict[str, Any]:
    """Plain values; null is what is no number, or was not measured."""
    return {
        "model": found.model,
        "target": found.target,
        "sentences": len(found.sentences),
        "verdict": verdict(found),
        "broken": failure(found),
        "invariants": [_invariant_tree(each) for each in found.invariants],
        "signs": [
            {
                "name": each.name,
                "value": _plain(each.value),
                "low": each.low,
                "high": each.high,
                "found": each.found,
                "reason": each.reason,
                "missing": each.missing,
                "sources": [found.own[place].source for place in each.sentences],
                "outputs": [found.own[place].target for place in each.sentences],
            }
            for each in signs(found)
        ],
        "attention": None if found.attention is None else _attention_tree(found.attention),
        "outputs": _plain(found.outputs._asdict()),
        "references": None if found.references is None else _plain(found.references._asdict()),
        "length_ratio": found.length_ratio,
    }


def _invariant_tree(each: Invariant) -> dict[str, Any]:
    return {**_plain(each._asdict()), "state": each.state}


def _attention_tree(attention: Attention) -> dict[str, Any]:
    return {
        "weights_of": attention.weights_of,
        "all": _plain(attention.every._asdict()),
        "long": None if attention.long is None else _plain(attention.long._asdict()),
        "long_from": LONG,
        "long_sentences": attention.long_sentences,
        "entropy_by_layer_and_head": _plain(attention.entropy_by_head),
    }


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


# --- picture ----------------------------------------------------------------------------------------------------------


def position_figure(attention: Attention, model: str, name: str) -> "Figure":
    """Entropy by position in the target; coverage and what is reached by position in the source."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11.0, 3.8), layout="constrained", dpi=150)
    panels = figure.subplots(1, 3)
    groups = [("all sentences", attention.every, "-", COLOURS[model])]
    if attention.long is not None:
        groups.append((f"{LONG} subwords or more", attention.long, "--", "none"))
    for label, each, line, face in groups:
        look = Style(COLOURS[model], MARKS[model], line, face)
        _panels(panels, each, look, f"{label} ({each.sentences})")
    panels[1].axhline(1.0, color="#999999", linewidth=0.8)
    for axes, title, axis, top in (
        (panels[0], "entropy (1: uniform)", "target", 1.0),
        (panels[1], "coverage (1: as if uniform)", "source", None),
        (panels[2], f"reached (weight {REACHED} or more)", "source", 1.0),
    ):
        finish(axes, title)
        axes.set_xlabel(f"relative position in the {axis}")
        axes.set_ylim(bottom=0.0, top=None if top is None else top * 1.04)
        axes.set_xlim(0.0, 1.0)
    figure.suptitle(f"{name}\n{attention.weights_of}", fontsize="medium")
    return figure


def _panels(panels: Any, each: Spread, look: Style, label: str) -> None:
    places = [(part + 0.5) / BINS for part in range(BINS)]
    drawn: list[tuple[Axes, list[float]]] = [
        (panels[0], each.entropy_by_target),
        (panels[1], each.coverage_by_source),
        (panels[2], each.reached_by_source),
    ]
    for axes, values in drawn:
        draw_line(axes, places, values, look, label)
