"""What ``explanation`` has measured: in words, as plain values, as pictures."""

from typing import TYPE_CHECKING, Any

from nmt.analysis.diagnosis import Finding, Subject, table
from nmt.analysis.explanation import Explanation, Mean, measure
from nmt.analysis.figures import COLOURS, finish

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def explanation(subject: Subject) -> Finding:
    """The part as ``nmt.diagnose`` has it."""
    found = measure(subject)
    figures = {"explanation": agreement_figure(found, subject.checkpoint.config.model.name)}
    return Finding("Is attention an explanation?", text(found), tree(found), figures)


def text(found: Explanation) -> str:
    """Markdown: what the numbers say, then the numbers."""
    blocks = [
        f"{found.model}, led along {found.target}: {found.sentences} sentences; means over them, 95 % intervals.",
        "\n".join(f"- {line}" for line in statements(found)),
        "Do they rank the source's words alike? Spearman's correlation for each target token:",
        table(("one", "other", "correlation"), _correlations(found), left=2),
        "How much do predictions change (total variation, 0 to 1) when a word of the source is",
        table(
            ("", *found.deleted),
            [
                [name, *map(_interval, values.values())]
                for name, values in (("left out", found.deleted), ("replaced", found.replaced))
            ],
        ),
    ]
    if found.swapped is not None:
        blocks += [
            "Two words change places: of the target tokens that looked most at one of them, the most attended place",
            table(tuple(found.swapped), [list(map(_interval, found.swapped.values()))], left=0),
        ]
    if found.elsewhere is not None:
        rows = [[how, *map(_interval, values.values())] for how, values in found.elsewhere.items()]
        header = ("weights of one step", "change of the prediction", "-log p per token before", "more -log p")
        blocks += ["The model looks elsewhere:", table(header, rows)]
    return "\n\n".join([*blocks, "\n".join(f"- {line}" for line in notes(found))])


def statements(found: Explanation) -> list[str]:
    """In words, from the numbers: a difference is called one only where its interval leaves out none."""
    attention, elsewhere, swapped = found.attention, found.elsewhere, found.swapped
    if attention is None or elsewhere is None or swapped is None or found.shuffled is None or found.ahead is None:
        return [
            "The model has no attention: what the source's words matter for can be asked of its predictions only.",
            f"Occlusion and gradient x input rank the words of the source with a correlation of "
            f"{_interval(found.occlusion_gradient)}.",
        ]
    ranks = next(iter(attention.values()))["occlusion"]
    return [
        _ranking_statement(ranks, found.occlusion_gradient, found.ahead, found.shuffled),
        _change_statement(found.deleted, found.replaced),
        _swap_statement(swapped),
        _need_statement(elsewhere),
        _verdict(ranks, found.shuffled, elsewhere["shuffled"]["more_nll"], swapped["followed less stayed"]),
    ]


def _ranking_statement(attention: Mean, measures: Mean, ahead: Mean, shuffled: Mean) -> str:
    if not attention.low > max(shuffled.high, 0.0):
        beside = "no better than shuffled weights do: they say nothing about which words matter"
    elif ahead.high < 0:
        beside = "less well than gradient x input does"
    elif ahead.low > 0:
        beside = "better than gradient x input does"
    else:
        beside = "about as well as gradient x input does"
    return (
        f"Weights rank the source's words by what leaving them out changes {beside} (rank correlation "
        f"{_interval(attention)}; gradient x input {_interval(measures)}; shuffled weights {_interval(shuffled)})."
    )


def _change_statement(deleted: dict[str, Mean], replaced: dict[str, Mean]) -> str:
    parts = []
    for name, values in (("left out", deleted), ("replaced", replaced)):
        looked, others, apart = (values[key] for key in ("looked at it", "looked elsewhere", "difference"))
        said = "more than" if apart.low > 0 else "less than" if apart.high < 0 else "no differently from"
        parts.append(
            f"{name}, the predictions that looked at it change {said} the others ({looked.value:.2f} beside "
            f"{others.value:.2f})"
        )
    return f"When a word is {'; when it is '.join(parts)}."


def _swap_statement(swapped: dict[str, Mean]) -> str:
    follows, stays, apart = (
        swapped[key] for key in ("followed the word", "stayed at the place", "followed less stayed")
    )
    if follows.sentences == 0:
        return "No token looked most at a word that changed places: nothing can be said about weights following words."
    said = (
        "Weights go with words"
        if apart.low > 0
        else "Weights stay at places"
        if apart.high < 0
        else "Weights go with words about as often as they stay at places"
    )
    return (
        f"{said}: when two words change places, the most attended one is followed in {_interval(follows, 100)} % of "
        f"the cases, and the place is kept in {_interval(stays, 100)} %."
    )


def _need_statement(elsewhere: dict[str, dict[str, Mean]]) -> str:
    shuffled, uniform = elsewhere["shuffled"], elsewhere["uniform"]
    needs = "needs" if shuffled["more_nll"].low > 0 else "is not shown to need"
    return (
        f"The model {needs} its weights: shuffled over the source at one step, they change the prediction by "
        f"{_interval(shuffled['change'])} and cost {_interval(shuffled['more_nll'])} nats a token; uniform ones cost "
        f"{_interval(uniform['more_nll'])}."
    )


def _verdict(attention: Mean, shuffled: Mean, more_nll: Mean, follows: Mean) -> str:
    tells, needs = attention.low > max(shuffled.high, 0.0), more_nll.low > 0
    if tells and needs:
        first = "the reading is part of how predictions come about, and tells something of which words they depend on"
    elif needs:
        first = "the reading is part of how predictions come about, but its weights do not tell which words matter"
    elif tells:
        first = "weights go along with which words matter, though predictions are not shown to need them"
    else:
        first = "neither that predictions need these weights nor that they tell which words matter"
    agrees = f"correlation {attention.value:.2f}, where 1 would be the same order"
    places = "" if follows.low > 0 else "that weights go where words go, "
    return (
        f"Supported: {first}. Not supported: that a weight is the importance of a word ({agrees}), {places}that the "
        "most attended word is the cause of a prediction, or anything about single sentences: these are means."
    )


def notes(found: Explanation) -> list[str]:
    """How it was measured."""
    said = [
        "Occlusion: the total variation of the next-token distributions with and without a word. Gradient x input: "
        "|(d log p(y_t) / d e) . e| summed over a word's pieces.",
        f"A word is replaced by one of {found.replacements}. The target that the model is led along stays as it was.",
    ]
    if found.attention is None:
        return said
    return [
        *said,
        "Swaps: up to 3 pairs of words a sentence, drawn. Weights are changed at one step, whose state comes from "
        "undisturbed steps; in all layers at once unless one is named.",
        "An annotation has seen the whole sentence: a weight on it is not a weight on its word alone.",
    ]


def tree(found: Explanation) -> dict[str, Any]:
    """Plain values."""
    plain = _plain(found._asdict())
    assert isinstance(plain, dict)
    return plain | {"statements": statements(found)}


def _plain(value: Any) -> Any:
    """Means as objects, what is no number as null."""
    if isinstance(value, Mean):
        return {key: _plain(each) for key, each in value._asdict().items()}
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, float) and not abs(value) < float("inf"):
        return None
    return value


def _correlations(found: Explanation) -> list[list[str]]:
    rows = [["occlusion", "gradient x input", _interval(found.occlusion_gradient)]]
    for whose, values in (found.attention or {}).items():
        name = whose if whose == "attention" else f"attention, {whose}"
        rows += [[name, other, _interval(each)] for other, each in zip(_MEASURES, values.values(), strict=True)]
    if found.shuffled is not None:
        rows.append(["attention, shuffled", "occlusion", _interval(found.shuffled)])
    return rows


_MEASURES = ("occlusion", "gradient x input")


def _interval(mean: Mean, scale: float = 1.0) -> str:
    if mean.sentences == 0:
        return "-"
    digits = 2 if scale == 1.0 else 0
    if mean.sentences == 1:
        return f"{scale * mean.value:.{digits}f} (one sentence)"
    return f"{scale * mean.value:.{digits}f} [{scale * mean.low:.{digits}f}, {scale * mean.high:.{digits}f}]"


# --- pictures ---------------------------------------------------------------------------------------------------------


def agreement_figure(found: Explanation, model: str) -> "Figure":
    """Rank correlations with their intervals; attention in the model's colour."""
    from matplotlib.figure import Figure

    rows: list[tuple[str, Mean, bool]] = [("gradient x input", found.occlusion_gradient, False)]
    rows += [(whose, values["occlusion"], True) for whose, values in (found.attention or {}).items()]
    rows += [("shuffled attention", found.shuffled, False)] if found.shuffled is not None else []
    figure = Figure(figsize=(7.0, 0.36 * len(rows) + 1.4), layout="constrained", dpi=150)
    axes = figure.add_subplot()
    axes.axvline(0.0, color="#999999", linewidth=0.8)
    labelled: set[bool] = set()
    for place, (_, value, mine) in enumerate(rows):
        axes.errorbar(
            value.value,
            place,
            xerr=_half(value),
            fmt="s" if mine else "o",
            color=COLOURS[model] if mine else "#666666",
            capsize=3,
            label=None if mine in labelled else f"attention of {model}" if mine else "beside it",
        )
        labelled.add(mine)
    axes.set_yticks(range(len(rows)), [name for name, _, _ in rows])
    axes.invert_yaxis()
    axes.set_xlim(-0.3, 1.0)
    axes.set_xlabel("rank correlation with occlusion, 95 % interval")
    finish(axes, f"Which source words matter?\n{found.model}")
    return figure


def _half(mean: Mean) -> float | None:
    half = mean.high - mean.value
    return half if half < float("inf") else None
