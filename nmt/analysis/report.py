"""One evaluation as a table, and the pieces that other reports share with it."""

import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

MISSING = "-"
SIGNED = (("BLEU 13a", "bleu"), ("BLEU tok-lc", "bleu_tok_lc"), ("chrF2", "chrf"))
CHANGED = "**The text has changed since training: it is not the data this model was trained and tuned on.**"


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
        f"{metrics['checkpoint']} (step {metrics['step']}) on {text_name(metrics)}, {metrics['sentences']} sentences"
    )
    notes = [
        f"longest quarter: {quarter['bleu']['sentences']} sentences of {quarter['min_words']} or more source words",
        f"search: {search_name(metrics)}",
        f"computed on: {hardware_name(metrics)}",
        *(f"{name}: {metrics[key]['signature']}" for name, key in SIGNED),
    ]
    if text_changed(metrics):
        notes.append(CHANGED)
    table = markdown_table(["metric", "value", "95 % interval", ""], rows, left=(0, 2, 3))
    return "\n\n".join([heading, table, "\n".join(f"- {note}" for note in notes)])


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


def text_name(metrics: Mapping[str, Any]) -> str:
    """``multi30k test``, or the user's own files."""
    data = metrics["data"]
    return f"{data['name']} {metrics['split']}" if "name" in data else f"{data['source']} and {data['reference']}"


def text_changed(metrics: Mapping[str, Any]) -> bool:
    """Whether the run's data now prepares to other subwords than the model has."""
    return bool(metrics["data"].get("tokenizers_sha256", metrics["tokenizers_sha256"]) != metrics["tokenizers_sha256"])


def search_name(metrics: Mapping[str, Any]) -> str:
    """How the translations were searched."""
    search = metrics["search"]
    return f"beam {search['beam_size']}, length penalty {search['length_penalty']}, alpha {search['alpha']}"


def hardware_name(metrics: Mapping[str, Any]) -> str:
    """What the evaluation was computed on."""
    threads = f", threads: {metrics['threads']}" if metrics["device"] == "cpu" else ""
    return f"{metrics['device']}, {metrics['precision']}{threads}"
