"""A reversal ablation as a document: what it shows and what it does not, then the figures."""

from statistics import fmean

from nmt.analysis.comparison.figures import Interval, curves_figure, differences_figure
from nmt.analysis.comparison.pictures import as_score, with_enough
from nmt.analysis.comparison.provenance import provenance_section
from nmt.analysis.comparison.summary import figure, p_text
from nmt.analysis.comparison.tree import Estimate
from nmt.analysis.document import Entries, Notes, Paragraph, Picture, Section, Shown, Table
from nmt.analysis.figures import Series, scores_figure
from nmt.analysis.report import MISSING
from nmt.analysis.reversal.answers import answers, fall, of_lags, sooner
from nmt.analysis.reversal.figures import gains_figure, lags_figure
from nmt.analysis.reversal.tree import ARMS, MAIN, PERPLEXITY, LagChange, PairResults, Reversal
from nmt.evaluation.over_seeds import Mean

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
    if all(effect.paper is None for effect in pair.effects):
        header, rows = header[:-1], [row[:-1] for row in rows]
    seeds = ", ".join(map(str, pair.seeds))
    if len(pair.seeds) > 1:
        spread = "±: standard deviation over the seeds. "
        tested = "runs paired by seed; paired bootstrap of the sentences, and Student's t over the seeds"
    else:
        spread = ""
        tested = "paired bootstrap of the sentences; one seed, so nothing of what another seed would change is in it"
    return Section(
        heading,
        [
            Table(header, rows, caption=f"{pair.name}, {pair.steps:,} updates, seeds {seeds}"),
            Notes(
                [
                    f"{spread}Difference: reversed minus as it is. Interval and p (two-sided): {tested}.",
                    f"Test set: {pair.sentences:,} sentences. Perplexity: of a target subword, end included.",
                ]
            ),
        ],
    )


def _mean(mean: Mean) -> str:
    return figure(Estimate(*mean)._replace(low=None, high=None), ".2f")


def _together(reversal: Reversal) -> Section:
    effects = {pair.name: pair.effect(MAIN) for pair in reversal.pairs}
    drawn = differences_figure(
        "What reversing the source changes",
        f"{MAIN}: reversed minus as it is, 95 % interval",
        [Interval(name, each.difference, each.low, each.high, each.p_value) for name, each in effects.items()],
    )
    said = "; ".join(f"{name}: {each.difference:+.2f}" for name, each in effects.items())
    picture = Picture("effects", drawn, f"Change of {MAIN} by reversal. {said}.")
    rows = [
        [
            pair.name,
            found.name if found.name == MAIN else f"logarithm of {found.name}",
            f"{found.difference:+.3f}",
            f"{found.low:+.3f} to {found.high:+.3f}",
            p_text(found.p_value).removeprefix("= "),
        ]
        for pair in reversal.pairs
        for found in pair.contrasts
    ]
    header = ["control", "", "difference", "95 % interval", "p"]
    caption = f"what reversal changes in a control minus what it changes in {reversal.pairs[0].name}"
    tables = [Table(header, rows, left=(0, 1), caption=caption)] if rows else []
    return Section("All side by side", [Shown([picture], "Filled: the interval leaves out zero."), *tables])


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
    model = reversal.pairs[0].model
    known = [(pair, pair.lags) for pair in reversal.pairs if pair.lags is not None and pair.model == model]
    if not known:
        return []
    lags = Picture(
        "time_lags",
        lags_figure([(pair.name, model, lags) for pair, lags in known]),
        "Steps between reading a word and writing its translation, with the source as it is and reversed.",
    )
    effects = {pair.name: [pair.effect(name) for name in (PERPLEXITY, MAIN)] for pair, _ in known}
    gains = Picture(
        "gains",
        gains_figure([(pair.name, model, fall(lags), effects[pair.name]) for pair, lags in known]),
        "Change of the smallest lag beside that of perplexity and BLEU. "
        + " ".join(
            f"{pair.name}: {fall(lags):+.1f} steps shorter, "
            f"{', '.join(f'{each.name} {each.difference:+.2f}' for each in effects[pair.name])}."
            for pair, lags in known
        ),
    )
    table = Table(
        ["pair", "arm", "mean", "smallest", "first 5: mean", "first 5: smallest", "change of BLEU"],
        [row for pair, lags in known for row in _lag_rows(pair, lags)],
        left=(0, 1),
        caption="steps of the recurrence, means over the sentences of the test set",
    )
    said = (
        "Steps between reading a source word and writing the target word that it is aligned with, from gold alignments."
    )
    notes = [
        "mean: over all links of a sentence; smallest: of any of them; first 5: links of its first five target words.",
        f"Change of {MAIN}: reversed minus as it is.",
        "Counted in words; the models read subwords, of which there are more.",
    ]
    return [
        Section(
            "Time lags",
            [
                Paragraph(" ".join([said, *(of_lags(*each) for each in known)])),
                Shown([lags]),
                table,
                Shown([gains], "Bars: 95 % intervals. Less perplexity and more BLEU are better."),
                Notes(notes),
            ],
        )
    ]


def _lag_rows(pair: PairResults, lags: LagChange) -> list[list[str]]:
    change = pair.effect(MAIN).difference
    return [
        [
            pair.name,
            arm,
            *(f"{steps:.2f}" for steps in (of.mean, of.smallest, of.first_words, of.first_words_smallest)),
            gain,
        ]
        for arm, of, gain in zip(ARMS, lags[:2], ("", f"{change:+.2f}"), strict=True)
    ]


def _curves(reversal: Reversal) -> Section:
    main = reversal.pairs[0]
    drawn = curves_figure(
        f"{main.name}: validation while training, a line for each run", [(arm, main.model) for arm in ARMS], main.curves
    )
    picture = Picture("curves", drawn, "Validation perplexity of both arms against updates, target tokens and minutes.")
    rows = []
    for pair in reversal.pairs:
        for arm in ARMS:
            ways = [curve.points for curve in pair.curves if curve.system == arm and curve.points]
            if ways:
                lowest = [min(points, key=lambda point: point.perplexity) for points in ways]
                losses = [loss for points in ways if (loss := points[-1].training_loss) is not None]
                rows.append(
                    [
                        pair.name,
                        arm,
                        f"{fmean(point.perplexity for point in lowest):.2f}",
                        f"{fmean(point.step for point in lowest):,.0f}",
                        f"{fmean(losses):.3f}" if losses else MISSING,
                        f"{fmean(points[-1].minutes for points in ways):.1f}",
                    ]
                )
    header = ["pair", "arm", "lowest perplexity", "at update", "training loss at the end", "minutes in all"]
    notes = [
        "Means over the seeds. Perplexity of the validation set, or of the part of it that was looked at in training.",
        "Training loss: what is minimised (smoothed and with dropout where the recipe has them), mean of the updates "
        "between the last two validations. The explanation is about optimisation: it should show here, too.",
    ]
    said = [Paragraph(" ".join(map(sooner, reversal.pairs)))]
    return Section("While training", [*said, Shown([picture]), Table(header, rows, left=(0, 1)), Notes(notes)])
