"""Tables of evaluations: one run by itself, and runs side by side with significance tests.

Figures are only ever set side by side for the same sources and references; runs scored on other text get a table of
their own, and what else forbids a comparison (other subwords under a perplexity, other hardware under a speed) is said
below the table.
"""

import unicodedata
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from nmt.analysis.evaluated_runs import HYPOTHESES_FILE, REFERENCES_FILE, SOURCES_FILE
from nmt.analysis.figures import Series, scores_figure
from nmt.data.corpus import read_lines
from nmt.evaluation.metrics import Score
from nmt.evaluation.significance import Comparison, Method, paired_test
from nmt.evaluation.slices import Slice, by_source_length, scores_by_slice

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MISSING = "-"
SIGNED = (("BLEU 13a", "bleu"), ("BLEU tok-lc", "bleu_tok_lc"), ("chrF2", "chrf"))
CHANGED = "**The text has changed since training: it is not the data this model was trained and tuned on.**"


class RunFigures(NamedTuple):
    """All that is known about a run."""

    name: str
    summary: dict[str, Any]  # the run's summary.json; empty while it is not finished
    metrics: dict[str, Any] | None  # of its evaluation
    folder: Path | None  # that holds the evaluation's files


# --- one run ----------------------------------------------------------------------------------------------------------


def evaluation_report(metrics: dict[str, Any]) -> str:
    """What ``nmt.evaluate`` prints: every figure of one evaluation, with intervals and signatures."""
    quarter = metrics["longest_quarter"]
    scores = [
        (metrics["bleu"]["name"], metrics["bleu"]),
        (f"{quarter['bleu']['name']}, longest quarter", quarter["bleu"]),
        (metrics["bleu_tok_lc"]["name"], metrics["bleu_tok_lc"]),
        (metrics["chrf"]["name"], metrics["chrf"]),
    ]
    rows = [[name, f"{score['value']:.2f}", f"{score['low']:.2f} to {score['high']:.2f}", ""] for name, score in scores]
    bleu = metrics["bleu"]
    rows += [
        ["perplexity", f"{metrics['perplexity']:.2f}", "", "per target subword, EOS included, no smoothing"],
        ["perplexity per word", f"{metrics['perplexity_per_word']:.2f}", "", "comparable where subwords differ"],
        ["bits per byte", f"{metrics['bits_per_byte']:.3f}", "", "of the reference, comparable where subwords differ"],
        ["length ratio", f"{bleu['length_ratio']:.3f}", "", "tokens of the translations per token of the references"],
        ["brevity penalty", f"{bleu['brevity_penalty']:.3f}", "", "of BLEU 13a"],
        ["cut at the limit", str(metrics["limit_hits"]), "", "translations that never ended"],
        ["sentences/s", f"{metrics['sentences_per_second']:.1f}", "", "loading and scoring apart"],
        ["subwords/s", f"{metrics['tokens_per_second']:.0f}", "", "produced, EOS included"],
    ]
    heading = (
        f"{metrics['checkpoint']} (step {metrics['step']}) on {_text_name(metrics)}, {metrics['sentences']} sentences"
    )
    notes = [
        f"longest quarter: {quarter['bleu']['sentences']} sentences of {quarter['min_words']} or more source words",
        f"search: {_search(metrics)}",
        f"computed on: {_hardware(metrics)}",
        *(f"{name}: {metrics[key]['signature']}" for name, key in SIGNED),
    ]
    if _changed(metrics):
        notes.append(CHANGED)
    table = markdown_table(["metric", "value", "95 % interval", ""], rows, left=(0, 2, 3))
    return "\n\n".join([heading, table, "\n".join(f"- {note}" for note in notes)])


# --- runs side by side ------------------------------------------------------------------------------------------------

COLUMNS: list[tuple[str, Callable[[dict[str, Any], dict[str, Any]], str]]] = [
    ("model", lambda summary, metrics: str(metrics["model"])),
    ("params", lambda summary, metrics: f"{summary['parameters'] / 1e6:.2f}M"),
    ("steps", lambda summary, metrics: str(summary["steps"])),
    ("min", lambda summary, metrics: f"{summary['minutes']:.1f}"),
    ("val. ppl", lambda summary, metrics: f"{summary['best']['perplexity']:.2f}"),
    ("BLEU 13a", lambda summary, metrics: _score(metrics["bleu"])),
    ("chrF2", lambda summary, metrics: _score(metrics["chrf"])),
    ("tok-lc", lambda summary, metrics: f"{metrics['bleu_tok_lc']['value']:.1f}"),
    ("longest 1/4", lambda summary, metrics: f"{metrics['longest_quarter']['bleu']['value']:.1f}"),
    ("train tok/s", lambda summary, metrics: f"{summary['target_tokens_per_second']:.0f}"),
    ("sent/s", lambda summary, metrics: f"{metrics['sentences_per_second']:.1f}"),
]


def comparison_report(runs: Sequence[RunFigures], baseline: str | None, method: Method) -> str:
    """One Markdown section for every test set among the runs: figures, notes, paired tests.

    Args:
        runs: in the order of the rows.
        baseline: name of the run that the others of its test set are tested against; None is the best by BLEU.
        method: of the paired test.
    """
    groups = by_text(runs)
    sections = []
    if len(groups) > 1:
        sections.append(
            f"**These runs were scored on {len(groups)} different texts, one table each. "
            "Figures of different tables cannot be compared.**"
        )
    sections += [_section(group, baseline, method) for group in groups]
    unscored = [run for run in runs if run.metrics is None]
    if unscored:
        sections.append("Not evaluated, so not in a table: " + ", ".join(run.name for run in unscored))
    return "\n\n".join(sections)


def by_text(runs: Sequence[RunFigures]) -> list[list[RunFigures]]:
    """The evaluated runs in groups with the very same sources and references."""
    groups: dict[str, list[RunFigures]] = {}
    for run in runs:
        if run.metrics is not None:
            groups.setdefault(run.metrics["data"]["text_sha256"], []).append(run)
    return list(groups.values())


def _section(group: list[RunFigures], baseline: str | None, method: Method) -> str:
    metrics = [metrics_of(run) for run in group]
    rows = [[run.name, *(_cell(figure, run) for _, figure in COLUMNS)] for run in group]
    heading = f"### {_text_name(metrics[0])}, {metrics[0]['sentences']} sentences"
    parts = [heading, markdown_table(["run", *(name for name, _ in COLUMNS)], rows, left=(0, 1)), _notes(group)]
    parts.append(_by_length(group))
    if len(group) > 1:
        parts.append(_tests(group, baseline, method))
    return "\n\n".join(parts)


def _cell(figure: Callable[[dict[str, Any], dict[str, Any]], str], run: RunFigures) -> str:
    try:
        return figure(run.summary, metrics_of(run))
    except (KeyError, TypeError):  # an unfinished run has no summary
        return MISSING


def _notes(group: list[RunFigures]) -> str:
    """How the figures were made; every line says it when the runs differ."""
    metrics = [metrics_of(run) for run in group]
    quarter = metrics[0]["longest_quarter"]
    lines = [
        "[low, high]: 95 % bootstrap interval; min: minutes in the training loop, validation included; val. ppl: "
        "validation perplexity of the best checkpoint; tok-lc and longest 1/4: BLEU, the latter 13a of the "
        f"{quarter['bleu']['sentences']} sentences of {quarter['min_words']} or more source words; train tok/s: target "
        "subwords; sent/s: translation"
    ]
    notes: list[tuple[str, Callable[[dict[str, Any]], str]]] = [
        *((name, lambda m, key=key: str(m[key]["signature"])) for name, key in SIGNED),
        ("search", _search),
        ("translated on", _hardware),
        ("trained on", lambda m: _origin(m["data"])),
    ]
    for label, note in notes:
        lines.append(_same_or_each(label, [(run.name, note(metrics_of(run))) for run in group]))
    if len({m["tokenizers_sha256"] for m in metrics}) > 1:
        lines.append("**Perplexities cannot be compared here: the runs have different subwords.**")
    if len({m["data"].get("fingerprint") for m in metrics}) > 1:
        lines.append("**The runs were trained on different data: the table compares data as well as models.**")
    changed = [run.name for run in group if _changed(metrics_of(run))]
    if changed:
        lines.append(f"{', '.join(changed)}: {CHANGED}")
    unfinished = [run.name for run in group if not run.summary]
    if unfinished:
        lines.append(f"no summary.json, so not (yet) trained to the end: {', '.join(unfinished)}")
    return "\n".join(f"- {line}" for line in lines)


def _same_or_each(label: str, values: list[tuple[str, str]]) -> str:
    if len({value for _, value in values}) == 1:
        return f"{label}: {values[0][1]}"
    return f"{label}, **not the same for all**: " + "; ".join(f"{name}: {value}" for name, value in values)


# --- groups of sentences ----------------------------------------------------------------------------------------------


def by_length(group: Sequence[RunFigures]) -> tuple[list[Slice], dict[str, list[Score]]]:
    """The groups of sentences of like source length of one test set, and the scores of every run on them."""
    sources, references = (list(read_lines(_folder(group[0]) / name)) for name in (SOURCES_FILE, REFERENCES_FILE))
    slices = by_source_length(sources)
    hypotheses = {run.name: list(read_lines(_folder(run) / HYPOTHESES_FILE)) for run in group}
    return slices, {name: scores_by_slice(slices, lines, references) for name, lines in hypotheses.items()}


def length_figure(group: Sequence[RunFigures]) -> "Figure":
    """The same as a picture."""
    slices, scores = by_length(group)
    series = [Series(run.name, str(metrics_of(run)["model"]), scores[run.name]) for run in group]
    metrics = metrics_of(group[0])
    own = "name" not in metrics["data"]  # paths are too long for a title
    title = f"BLEU by source length, {metrics['split'] if own else _text_name(metrics)}"
    return scores_figure(title, "source words", [part.name for part in slices], series)


def _by_length(group: Sequence[RunFigures]) -> str:
    slices, scores = by_length(group)
    header = ["BLEU 13a by source words", *(part.name for part in slices)]
    rows = [["sentences", *(str(len(part.rows)) for part in slices)]]
    rows += [[name, *(_score(score._asdict()) for score in scores[name])] for name in scores]
    return markdown_table(header, rows, left=(0,))


# --- significance -----------------------------------------------------------------------------------------------------


def significance(group: Sequence[RunFigures], baseline: str | None, method: Method) -> dict[str, Comparison]:
    """Paired tests of the runs of one group of :func:`by_text` against the baseline, by metric.

    Raises:
        ValueError: translations and references on disk no longer match line by line.
    """
    folders = [_folder(run) for run in group]
    references = list(read_lines(folders[0] / REFERENCES_FILE))
    systems = {run.name: list(read_lines(_folder(run) / HYPOTHESES_FILE)) for run in group}
    best = max(group, key=lambda run: metrics_of(run)["bleu"]["value"]).name
    chosen = baseline if baseline in systems else best
    return {
        "BLEU 13a": paired_test(systems, references, chosen, "bleu", method),
        "chrF2": paired_test(systems, references, chosen, "chrf", method),
    }


def _tests(group: list[RunFigures], baseline: str | None, method: Method) -> str:
    tests = significance(group, baseline, method)
    bleu, chrf = tests["BLEU 13a"].results, tests["chrF2"].results
    rows = [
        [b.system, f"{b.score - bleu[0].score:+.2f}", _p(b.p_value), f"{c.score - chrf[0].score:+.2f}", _p(c.p_value)]
        for b, c in zip(bleu[1:], chrf[1:], strict=True)
    ]
    how = {"randomization": "approximate randomisation", "bootstrap": "paired bootstrap"}[method]
    return (
        f"Against {bleu[0].system} (p: how often chance alone makes so large a difference; {how}, two-sided, "
        f"{tests['BLEU 13a'].signature}):\n\n" + markdown_table(["run", "BLEU 13a", "p", "chrF2", "p"], rows, left=(0,))
    )


def _p(value: float | None) -> str:
    if value is None:
        return MISSING
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


# --- pieces -----------------------------------------------------------------------------------------------------------


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]], left: Sequence[int]) -> str:
    """A Markdown table whose columns line up in plain text too; columns in ``left`` are left-aligned, others right."""
    lines = [list(header), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    widths = [max(3, *(_width(line[column]) for line in lines)) for column in range(len(header))]
    rule = ["-" * width if column in left else "-" * (width - 1) + ":" for column, width in enumerate(widths)]
    padded = [
        [_pad(cell, width, column in left) for column, (cell, width) in enumerate(zip(line, widths, strict=True))]
        for line in lines
    ]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [padded[0], rule, *padded[1:]])


def _width(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)


def _pad(text: str, width: int, left: bool) -> str:
    space = " " * (width - _width(text))
    return text + space if left else space + text


def metrics_of(run: RunFigures) -> dict[str, Any]:
    """Figures of a run that has been evaluated."""
    assert run.metrics is not None
    return run.metrics


def _folder(run: RunFigures) -> Path:
    assert run.folder is not None
    return run.folder


def _score(score: dict[str, Any]) -> str:
    return f"{score['value']:.1f} [{score['low']:.1f}, {score['high']:.1f}]"


def _text_name(metrics: dict[str, Any]) -> str:
    data = metrics["data"]
    return f"{data['name']} {metrics['split']}" if "name" in data else f"{data['source']} and {data['reference']}"


def _origin(data: dict[str, Any]) -> str:
    return f"{data['name']}, fingerprint {data['fingerprint'][:16]}" if "name" in data else "its own data"


def _changed(metrics: dict[str, Any]) -> bool:
    """Whether the run's data now prepares to other subwords than the model has."""
    return bool(metrics["data"].get("tokenizers_sha256", metrics["tokenizers_sha256"]) != metrics["tokenizers_sha256"])


def _search(metrics: dict[str, Any]) -> str:
    search = metrics["search"]
    return f"beam {search['beam_size']}, length penalty {search['length_penalty']}, alpha {search['alpha']}"


def _hardware(metrics: dict[str, Any]) -> str:
    threads = f", threads: {metrics['threads']}" if metrics["device"] == "cpu" else ""
    return f"{metrics['device']}, {metrics['precision']}{threads}"
