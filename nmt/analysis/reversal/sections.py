"""A reversal ablation as a document: what it shows and what it does not, then the figures."""

from collections.abc import Sequence
from itertools import pairwise

from nmt.analysis.comparison.figures import Interval, curves_figure, differences_figure
from nmt.analysis.comparison.pictures import as_score, with_enough
from nmt.analysis.comparison.provenance import provenance_section
from nmt.analysis.comparison.summary import LEVEL, figure, p_text
from nmt.analysis.comparison.tree import Estimate
from nmt.analysis.document import Entries, Notes, Paragraph, Picture, Section, Shown, Table
from nmt.analysis.figures import Series, scores_figure
from nmt.analysis.report import MISSING
from nmt.analysis.reversal.figures import lags_figure
from nmt.analysis.reversal.tree import ARMS, Effect, LagChange, PairResults, Reversal
from nmt.evaluation.over_seeds import Mean

MAIN = "BLEU 13a, beam 12"
PERPLEXITY = "test perplexity"

BRIEF = ("In short", "The effect", "Control", "Time lags")
"""Sections that say most; a control's goes on with its name."""


def sections(reversal: Reversal) -> list[Section]:
    """The whole document."""
    main, *controls = reversal.pairs
    return [
        Section("In short", [Entries(answers(reversal))]),
        _effects(main, "The effect"),
        *(_effects(pair, f"Control: {pair.name}") for pair in controls),
        *([_together(reversal)] if controls else []),
        _by_length(main),
        *_lags(reversal),
        _curves(reversal),
        provenance_section(reversal.provenance),
    ]


# --- in words ---------------------------------------------------------------------------------------------------------


def answers(reversal: Reversal) -> list[tuple[str, str]]:
    """Questions of a reader; every word of the answers follows from the figures."""
    main, *controls = reversal.pairs
    found = [
        ("What does this run show?", shown(main)),
        ("As in the paper?", _beside_the_paper(main)),
    ]
    attending = [pair for pair in controls if pair.model != main.model]
    if attending:
        found.append(("Where the decoder reads every position?", " ".join(_control(pair, main) for pair in attending)))
    ordered = [pair for pair in reversal.pairs if pair.lags is not None and pair.model == main.model]
    if len(ordered) > 1:
        found.append(("Does the gain follow the time lag?", _follows(ordered)))
    found.append(("What does it not show?", _limits(main)))
    return found


def shown(pair: PairResults) -> str:
    """The effect on BLEU and on perplexity in one sentence."""
    bleu, perplexity = pair.effect(MAIN), pair.effect(PERPLEXITY)
    return (
        f"Reversing the source of {pair.name} {_verb(bleu)} {MAIN} ({_change(bleu)}), and {_verb(perplexity)} "
        f"{PERPLEXITY} ({_change(perplexity)}), over {_seeds(pair)}."
    )


def _verb(effect: Effect) -> str:
    if effect.p_value >= LEVEL:
        return "makes no difference that can be told from chance in"
    return "improves" if (effect.difference < 0) == effect.less_is_better else "worsens"


def _change(effect: Effect) -> str:
    return (
        f"{effect.forward.value:.2f} to {effect.backward.value:.2f}, {effect.difference:+.2f} "
        f"[{effect.low:+.2f}, {effect.high:+.2f}], p {p_text(effect.p_value)}"
    )


def _seeds(pair: PairResults) -> str:
    count = len(pair.seeds)
    return "one seed (chance of the seed is not in the interval)" if count == 1 else f"{count} seeds"


def _beside_the_paper(pair: PairResults) -> str:
    told = []
    for name in (PERPLEXITY, MAIN):
        effect = pair.effect(name)
        assert effect.paper is not None
        theirs = effect.paper[1] - effect.paper[0]
        same = "the same direction" if theirs * effect.difference > 0 else "the other direction"
        certain = "" if effect.p_value < LEVEL else ", if it is one at all"
        told.append(
            f"{name}: {effect.paper[0]} to {effect.paper[1]} there ({theirs:+.1f}), {effect.difference:+.2f} here: "
            f"{same}{certain}"
        )
    return f"{'; '.join(told)}. Levels cannot be compared: another corpus, other sizes, another way of counting BLEU."


def _control(pair: PairResults, main: PairResults) -> str:
    told = []
    for name in (PERPLEXITY, MAIN):
        ours, theirs = main.effect(name), pair.effect(name)
        if theirs.p_value >= LEVEL:
            verdict = "no effect that can be told from chance, as expected if the lag is the reason"
            if theirs.low <= ours.difference <= theirs.high:
                verdict += (
                    "; but the interval holds the effect on the fixed vector as well, so it is not shown to be less"
                )
        elif theirs.high < ours.low or theirs.low > ours.high:
            verdict = "another effect than that on the fixed vector: the intervals do not meet"
        else:
            verdict = "an effect as well: reversal then does something here that the fixed vector does not explain"
        told.append(f"{name}: {_change(theirs)}: {verdict}")
    return f"{pair.name}: {'. '.join(told)}."


def _follows(pairs: Sequence[PairResults]) -> str:
    """Whether the order of the recipes by the fall of the smallest lag is that by the gain, for both figures."""
    by_fall = sorted(pairs, key=_fall, reverse=True)
    verdicts = []
    for name in (PERPLEXITY, MAIN):
        gains = [_gain(pair.effect(name)) for pair in by_fall]
        if gains != sorted(gains, reverse=True):
            verdicts.append(f"{name}: no, the gains have another order")
        elif all(one[1] > other[2] for one, other in pairwise(gains)):
            verdicts.append(f"{name}: yes, in this order")
        else:
            verdicts.append(f"{name}: in this order, but intervals of neighbours meet")
    each = "; ".join(
        f"{pair.name}: smallest lag of a sentence {_fall(pair):+.1f} steps shorter, {PERPLEXITY} "
        f"{pair.effect(PERPLEXITY).difference:+.2f}, BLEU {pair.effect(MAIN).difference:+.2f}"
        for pair in by_fall
    )
    return f"{each}. {'. '.join(verdicts)}."


def _gain(effect: Effect) -> tuple[float, float, float]:
    """How much better, and the lower and the upper end of the interval."""
    if effect.less_is_better:
        return -effect.difference, -effect.high, -effect.low
    return effect.difference, effect.low, effect.high


def _fall(pair: PairResults) -> float:
    assert pair.lags is not None
    return pair.lags.forward.smallest - pair.lags.backward.smallest


def _limits(pair: PairResults) -> str:
    seeds = "With one seed it is about two models, not about the recipe. " if len(pair.seeds) == 1 else ""
    return (
        f"{seeds}It is one size of model on one corpus after {pair.steps:,} updates: whether more updates would close "
        "the gap, and whether it is so at the paper's size (12 million pairs, four layers of 1,000 cells), cannot "
        "be told from it. Reversal changes which paths are short; the vector stays as narrow as it was."
    )


# --- figures ----------------------------------------------------------------------------------------------------------


def _effects(pair: PairResults, heading: str) -> Section:
    rows = [
        [
            effect.name,
            _mean(effect.forward),
            _mean(effect.backward),
            f"{effect.difference:+.2f}",
            f"{effect.low:+.2f} to {effect.high:+.2f}",
            p_text(effect.p_value).removeprefix("= "),
            MISSING if effect.paper is None else f"{effect.paper[0]} to {effect.paper[1]}",
        ]
        for effect in pair.effects
    ]
    header = ["", *ARMS, "difference", "95 % interval", "p", "Sutskever et al."]
    if pair.model != "seq2seq":
        header, rows = header[:-1], [row[:-1] for row in rows]
    seeds = ", ".join(map(str, pair.seeds))
    spread = "±: standard deviation over the seeds. " if len(pair.seeds) > 1 else ""
    return Section(
        heading,
        [
            Table(header, rows, caption=f"{pair.name}, {pair.steps:,} updates, seeds {seeds}"),
            Notes(
                [
                    f"{spread}Difference: reversed less as it is, runs paired by seed; interval and p (two-sided): "
                    "paired bootstrap of the sentences, and Student's t over the seeds where there are several.",
                    f"Test set: {pair.sentences:,} sentences. Perplexity: of a target subword, end included.",
                ]
            ),
        ],
    )


def _mean(mean: Mean) -> str:
    return figure(Estimate(*mean)._replace(low=None, high=None), ".2f")


def _together(reversal: Reversal) -> Section:
    rows = [
        Interval(pair.name, effect.difference, effect.low, effect.high, effect.p_value)
        for pair in reversal.pairs
        for effect in [pair.effect(MAIN)]
    ]
    drawn = differences_figure(
        "What reversing the source changes", f"{MAIN}: reversed less as it is, 95 % interval", rows
    )
    said = "; ".join(f"{row.name}: {row.difference:+.2f}" for row in rows)
    picture = Picture("effects", drawn, f"Change of {MAIN} by reversal. {said}.")
    return Section("All side by side", [Shown([picture], "Filled: the interval leaves out zero.")])


def _by_length(pair: PairResults) -> Section:
    groups = pair.by_length
    drawable = with_enough(groups)
    series = [
        Series(
            name,
            pair.model,
            [as_score(*each) for each in zip(drawable.scores[name], drawable.sentences, strict=True)],
        )
        for name in ARMS
    ]
    drawn = scores_figure(f"{pair.name}: BLEU by source length, beam 12", groups.axis, drawable.names, series)
    picture = Picture("by_length", drawn, f"BLEU of both arms by source length, groups {', '.join(drawable.names)}.")
    rows = [
        ["sentences", *map(str, groups.sentences)],
        *([name, *(figure(each, ".1f") for each in groups.scores[name])] for name in ARMS),
    ]
    return Section(
        "By source length", [Shown([picture], "Bands: 95 % intervals."), Table([groups.axis, *groups.names], rows)]
    )


def _lags(reversal: Reversal) -> list[Section]:
    known = [(pair, pair.lags) for pair in reversal.pairs if pair.lags is not None and pair.model == "seq2seq"]
    if not known:
        return []
    rows = [_lag_row(pair, lags) for pair, lags in known]
    picture = Picture(
        "time_lags",
        lags_figure([(pair.name, lags, pair.effect(MAIN)) for pair, lags in known]),
        "How many steps lie between reading a word and writing its translation, with the source as it is and reversed; "
        "and the change of the smallest lag beside the change of BLEU.",
    )
    header = ["", "mean", "reversed", "smallest", "reversed", "first 5 words", "reversed", "change of BLEU"]
    return [
        Section(
            "Time lags",
            [
                Paragraph(
                    "Reversal shortens some paths and lengthens others: steps of the recurrence between reading a "
                    "source word and writing the target word that it is aligned with, from gold alignments."
                ),
                Shown([picture]),
                Table(header, rows, caption="steps, means over the sentences of the test set"),
                Notes(
                    [
                        "mean: over all links of a sentence; smallest: of any link of it; first 5 words: mean over the "
                        "links of the first five target words.",
                        "Counted in words; the models read subwords, of which there are more.",
                    ]
                ),
            ],
        )
    ]


def _lag_row(pair: PairResults, lags: LagChange) -> list[str]:
    ours, theirs = lags.forward, lags.backward
    values = [ours.mean, theirs.mean, ours.smallest, theirs.smallest, ours.first_words, theirs.first_words]
    return [pair.name, *(f"{value:.2f}" for value in values), f"{pair.effect(MAIN).difference:+.2f}"]


def _curves(reversal: Reversal) -> Section:
    main = reversal.pairs[0]
    drawn = curves_figure(
        f"{main.name}: validation while training, a line for each run", [(arm, main.model) for arm in ARMS], main.curves
    )
    rows = []
    for arm in ARMS:
        for curve in (curve for curve in main.curves if curve.system == arm and curve.points):
            best = min(curve.points, key=lambda point: point.perplexity)
            rows.append([curve.run, arm, f"{best.perplexity:.2f}", f"{best.step:,}", f"{curve.points[-1].minutes:.1f}"])
    picture = Picture("curves", drawn, "Validation perplexity of both arms against updates, target tokens and minutes.")
    header = ["run", "", "lowest perplexity", "at update", "minutes in all"]
    return Section("While training", [Shown([picture]), Table(header, rows, left=(0, 1))])
