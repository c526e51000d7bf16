"""What ``alignment_quality`` has measured: in words, as plain values, as pictures."""

from typing import TYPE_CHECKING, Any

from nmt.analysis.aligners import PUBLISHED_SOURCE
from nmt.analysis.alignment_error import Quality
from nmt.analysis.alignment_quality import AlignmentQuality, Ranked, measure
from nmt.analysis.diagnosis import Finding, Subject, table
from nmt.analysis.figures import COLOURS, finish

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SHOWN = 8
"""Of the ranking, in the text; all of it is in the JSON."""


def alignment(subject: Subject) -> Finding:
    """The part as ``nmt.diagnose`` has it."""
    found = measure(subject)
    figures = {"alignment_error": aligners_figure(found, subject.checkpoint.config.model.name)}
    if found.layers * found.heads > 1:
        figures["alignment_by_head"] = heads_figure(found)
    return Finding("Attention as alignment", text(found), tree(found), figures)


def text(found: AlignmentQuality) -> str:
    """Markdown: what the numbers say, then the numbers."""
    rows = [[row.aligner, row.how, *_cells(row.quality)] for row in found.rows]
    rows += [
        [f"published: {each.aligner}", "all pairs", f"{100 * each.aer:.1f}", _percent(each.precision, each.recall)]
        for each in found.published
    ]
    ranking = [[str(each.setting), str(each.extraction), *_rates(each)] for each in found.ranking[:SHOWN]]
    blocks = [
        f"{found.model} against {found.gold}: {found.pairs:,} pairs, force-decoded. What had to be chosen was chosen "
        f"on {found.pairs - found.reported_pairs:,} of them, and figures are of the other {found.reported_pairs:,}.",
        "\n".join(f"- {line}" for line in statements(found)),
        table(("aligner", "links", "AER %", "precision % / recall %"), rows, left=2),
        "The best settings, by the half that they were chosen on:",
        table(("weights", "links", "AER %, chosen on", "AER %, reported"), ranking, left=2),
        "\n".join(f"- {line}" for line in notes(found)),
    ]
    return "\n\n".join(blocks)


def statements(found: AlignmentQuality) -> list[str]:
    """In words, from the numbers."""
    rows = {row.aligner: row.quality for row in found.rows}
    best, diagonal, uniform = rows["attention, best"], rows["diagonal"], rows["uniform"]
    said = [
        f"Attention, which nobody told of words that belong together, has an alignment error rate of "
        f"{100 * best.aer:.1f} % [{100 * best.low:.1f}, {100 * best.high:.1f}]; a word at random has "
        f"{100 * uniform.aer:.1f} %, the diagonal {100 * diagonal.aer:.1f} %."
    ]
    if not best.high < diagonal.low:
        said.append("That is not clearly better than the diagonal: nothing is shown of alignment that was learned.")
    if found.against_lexicon is not None:
        value, low, high = (100 * each for each in found.against_lexicon)
        verdict = "which is better" if high < 0 else "which is worse" if low > 0 else "which may be chance"
        said.append(
            f"Beside IBM Model 1, learned from {found.lexicon}: {value:+.1f} points of AER [{low:+.1f}, {high:+.1f}], "
            f"{verdict}."
        )
    said.append(_step_statement(found.ranking))
    usual = rows["attention, as --align"]
    said.append(
        f"What `nmt.translate --align` shows by default has {100 * usual.aer:.1f} %"
        + (
            ": the setting costs little."
            if usual.aer - best.aer < 0.01
            else f", {100 * (usual.aer - best.aer):.1f} more."
        )
    )
    return said


def _step_statement(ranking: list[Ranked]) -> str:
    """Predicting a word or reading it: the best setting of each, as it was reported."""
    first = {each.setting.step: each for each in reversed(ranking)}
    output, given = first["output"].reported, first["input"].reported
    nearer = "reads" if given < output else "predicts"
    return (
        f"The step that {nearer} a word is the nearer to its alignment: {100 * output:.1f} % at the step that predicts "
        f"it, {100 * given:.1f} % at the step that reads it."
    )


def notes(found: AlignmentQuality) -> list[str]:
    """How it was measured."""
    said = [
        "AER = 1 - (|A & S| + |A & P|) / (|A| + |S|), precision = |A & P| / |A|, recall = |A & S| / |S| over all "
        "sentences (Och and Ney 2003); intervals of 95 % from 1,000 sets of sentences drawn from the sentences.",
        "A word's weight is the sum over its source pieces and the mean over its target pieces; argmax leaves weight "
        "on EOS out of account.",
        "That attention agrees with links does not make it the reason of a translation: see the part `explanation`.",
    ]
    if found.lexicon is not None:
        said.append("IBM Model 1 (Brown et al. 1993) has 5 iterations; each direction has its own way to links.")
    if found.published:
        said.append(f"Published figures: {PUBLISHED_SOURCE}. They are of all pairs, not of a half.")
    return said + found.notes


def tree(found: AlignmentQuality) -> dict[str, Any]:
    """Plain values."""
    rows = [{"aligner": row.aligner, "links": row.how} | _quality(row.quality) for row in found.rows]
    ranking = [
        each.setting._asdict()
        | {"links": str(each.extraction), "aer_chosen_on": each.chosen_on, "aer_reported": each.reported}
        for each in found.ranking
    ]
    return found._asdict() | {
        "rows": rows,
        "ranking": ranking,
        "published": [each._asdict() for each in found.published],
        "statements": statements(found),
    }


def _quality(each: Quality) -> dict[str, Any]:
    return {("number_of_links" if key == "links" else key): value for key, value in each._asdict().items()}


def _cells(each: Quality) -> list[str]:
    return [
        f"{100 * each.aer:.1f} [{100 * each.low:.1f}, {100 * each.high:.1f}]",
        _percent(each.precision, each.recall),
    ]


def _percent(precision: float, recall: float) -> str:
    return f"{100 * precision:.1f} / {100 * recall:.1f}"


def _rates(each: Ranked) -> list[str]:
    return [f"{100 * each.chosen_on:.1f}", f"{100 * each.reported:.1f}"]


# --- pictures ---------------------------------------------------------------------------------------------------------


def aligners_figure(found: AlignmentQuality, model: str) -> "Figure":
    """AER of every aligner with its interval; attention in the model's colour."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.5, 0.34 * (len(found.rows) + len(found.published)) + 1.4), layout="constrained", dpi=150)
    axes = figure.add_subplot()
    names = [row.aligner + (f": {row.how}" if "both" in row.aligner else "") for row in found.rows]
    for place, row in enumerate(found.rows):
        mine = row.aligner.startswith("attention")
        value, low, high = (100 * each for each in row.quality[:3])
        axes.errorbar(
            value,
            place,
            xerr=[[max(0.0, value - low)], [max(0.0, high - value)]],
            fmt="s" if mine else "o",
            color=COLOURS[model] if mine else "#666666",
            capsize=3,
            label={True: model, False: "others, same sentences"}[mine] if place in (0, len(found.rows) - 1) else None,
        )
    for place, each in enumerate(found.published, len(found.rows)):
        axes.plot(
            100 * each.aer, place, "D", color="#AAAAAA", label="published" if each is found.published[0] else None
        )
        names.append(each.aligner)
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.set_xlim(left=0)
    axes.set_xlabel("alignment error rate in %, 95 % interval (less is better)")
    finish(axes, f"Attention beside gold links\n{found.model}")
    return figure


def heads_figure(found: AlignmentQuality) -> "Figure":
    """AER by argmax of every layer and head, at the step that predicts a word and at the one that reads it."""
    from matplotlib.figure import Figure

    titles = {"output": "at the step that predicts the word", "input": "at the step that reads the word"}
    figure = Figure(
        figsize=(2.6 + 1.1 * (found.heads + 1), 1.6 + 0.45 * (found.layers + 1)), layout="constrained", dpi=150
    )
    axes = figure.subplots(1, 2, sharey=True)
    values = [value for rows in found.by_layer_and_head.values() for row in rows for value in row]
    for panel, (step, rows) in zip(axes, found.by_layer_and_head.items(), strict=True):
        image = panel.imshow([[100 * value for value in row] for row in rows], "viridis_r", aspect="auto")
        image.set_clim(100 * min(values), 100 * max(values))
        _numbers(panel, rows, (min(values) + max(values)) / 2)
        panel.set_xticks(range(found.heads + 1), [*map(str, range(1, found.heads + 1)), "mean"])
        panel.set_yticks(range(found.layers + 1), [*map(str, range(1, found.layers + 1)), "mean"])
        panel.set_xlabel("head")
        panel.set_title(titles[step], fontsize="small")
    axes[0].set_ylabel("decoder layer")
    figure.suptitle(f"{found.model}: alignment error rate in %, argmax", fontsize="medium")
    return figure


def _numbers(axes: "Axes", rows: list[list[float]], middle: float) -> None:
    for y, row in enumerate(rows):
        for x, value in enumerate(row):
            colour = "white" if value > middle else "black"
            axes.text(x, y, f"{100 * value:.0f}", ha="center", va="center", fontsize="x-small", color=colour)
