"""Tables of what :mod:`nmt.benchmark` has measured, and the facts about the machine that belong beside them."""

from collections.abc import Sequence
from statistics import median

import torch

from nmt.analysis.benchmark_rounds import GrowthFigures, TrainingFigures, TranslationFigures
from nmt.analysis.report import markdown_table
from nmt.analysis.training_memory import Peak, Point
from nmt.analysis.training_speed import STAGES, Stage
from nmt.device import cores, has_bf16
from nmt.machine import processor

MEGABYTE = 1 << 20


def machine(device: torch.device) -> dict[str, str | int | bool]:
    """What the figures depend on beside the program."""
    facts: dict[str, str | int | bool] = {
        "cpu": processor(),
        "cores": cores(),
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu",
        "bf16": has_bf16(device),
    }
    return facts


def machine_line(facts: dict[str, str | int | bool]) -> str:
    """The facts in a sentence."""
    bf16 = "bf16 products in hardware" if facts["bf16"] else "no bf16 products in hardware: bf16 is emulated, slowly"
    where = "" if facts["device"] == "cpu" else f"{facts['device']}; "
    together = "" if facts.get("processes", 1) == 1 else f"{facts['processes']} processes; "
    cores = f"{facts['cores']} cores, {facts['threads']} threads"
    return f"{together}{where}{facts['cpu']}, {cores}; torch {facts['torch']}; {bf16}"


def training_report(figures: Sequence[TrainingFigures]) -> str:
    """Two Markdown tables: speed, and where the time goes. Medians over rounds, lowest and highest in brackets."""
    speed = [
        [
            each.model,
            each.precision,
            f"{each.parameters / 1e6:.1f} M",
            _spread([item.tokens_per_second for item in each.rounds], "{:,.0f}"),
            _spread([item.sentences_per_second for item in each.rounds], "{:,.0f}"),
            f"{median([item.tally.padding for item in each.rounds]):.1%}",
            f"{median([item.tally.target_padding for item in each.rounds]):.1%}",
            "-" if each.peak is None else f"{each.peak.peak / MEGABYTE:,.0f} MB",
            f"{median([item.tally.operations / item.tally.target_tokens for item in each.rounds]) / 1e6:.1f}",
            f"{median([item.product_rate for item in each.rounds]) / 1e9:,.0f}",
            _spread([item.utilisation for item in each.rounds], "{:.0%}"),
        ]
        for each in figures
    ]
    heads = [
        "model",
        "precision",
        "parameters",
        "target tokens/s",
        "sentences/s",
        "padding",
        "target padding",
        "peak memory",
        "MFLOP/token",
        "products GFLOP/s",
        "MFU",
    ]
    stages = [
        [
            each.model,
            each.precision,
            f"{1000 * sum(each.stages.values()):,.1f}",
            *(f"{1000 * each.stages[stage]:,.1f} ({_share(each, stage):.0%})" for stage in STAGES),
        ]
        for each in figures
    ]
    return "\n\n".join(
        [
            markdown_table(heads, speed, left=(0, 1)),
            "Milliseconds of one update, timed stage by stage (apart from the figures above):",
            markdown_table(["model", "precision", "update", *STAGES], stages, left=(0, 1)),
        ]
    )


def memory_report(points: Sequence[tuple[Point, Peak]]) -> str:
    """A Markdown table of peaks, in MB."""
    rows = [
        [
            f"{point.batch_tokens:,}",
            f"{point.vocabulary:,}",
            f"{point.longest:,}",
            *(f"{number / MEGABYTE:,.0f}" for number in (peak.peak, peak.at_rest, peak.states, peak.rest)),
            f"{4 * point.batch_tokens * point.vocabulary / MEGABYTE:,.0f}",
        ]
        for point, peak in points
    ]
    heads = [
        "batch tokens",
        "vocabulary",
        "longest sentence",
        "peak MB",
        "of it before training",
        "parameters, gradients, Adam",
        "the rest",
        "(logits of a batch, never kept whole)",
    ]
    return markdown_table(heads, rows, left=())


def translation_report(figures: Sequence[TranslationFigures]) -> str:
    """Two Markdown tables: the steady state of every search, and what starting costs.

    Medians over rounds, lowest and highest in brackets. The factor is that of sentences/s over the first model in its
    first setting with the same search, round by round.
    """
    speed = [
        [
            each.model,
            str(each.setting),
            str(search.beam_size),
            _spread([item.passes[place].sentences_per_second for item in each.rounds], "{:,.1f}"),
            _spread([item.passes[place].tokens_per_second for item in each.rounds], "{:,.0f}"),
            _spread(_factors(each, figures[0], place), "{:.2f}"),
            "-" if score is None else f"{score.value:.2f}",
        ]
        for each in figures
        for place, (search, score) in enumerate(zip(each.searches, each.scores, strict=True))
    ]
    starts = [
        [
            each.model,
            str(each.setting),
            _spread([item.load for item in each.rounds], "{:.2f}"),
            _spread([item.first for item in each.rounds], "{:.2f}"),
            _spread([item.again for item in each.rounds], "{:.2f}"),
            f"{median([item.peak for item in each.rounds]) / MEGABYTE:,.0f} MB",
        ]
        for each in figures
    ]
    heads = ["model", "setting", "beam", "sentences/s", "target tokens/s", "times the first", "BLEU 13a"]
    parts = [
        markdown_table(heads, speed, left=(0, 1)),
        "Seconds to load, then for some sentences the first time and again, and peak memory:",
        markdown_table(["model", "setting", "load", "first", "again", "peak memory"], starts, left=(0, 1)),
    ]
    return "\n\n".join(parts + sorted({score.signature for each in figures for score in each.scores if score}))


def _factors(figures: TranslationFigures, first: TranslationFigures, place: int) -> list[float]:
    return [
        own.passes[place].sentences_per_second / other.passes[place].sentences_per_second
        for own, other in zip(figures.rounds, first.rounds, strict=True)
    ]


def growth_report(figures: Sequence[GrowthFigures]) -> str:
    """A Markdown table: milliseconds per target token at every length, and the last over the first."""
    lengths = figures[0].task.lengths
    rows = []
    for each in figures:
        cells = [each.milliseconds(place) for place in range(len(lengths))]
        growth = [last / first for first, last in zip(cells[0], cells[-1], strict=True)]
        name = each.model if each.task.cached else f"{each.model}, no cache"
        rows.append(
            [
                name,
                each.task.precision,
                str(each.task.search.beam_size),
                *(_spread(values, "{:.3f}") for values in cells),
                _spread(growth, "{:.2f}"),
            ]
        )
    heads = ["model", "precision", "beam", *(f"{length:,} tokens" for length in lengths), "last / first"]
    return markdown_table(heads, rows, left=(0, 1))


def _spread(values: list[float], form: str) -> str:
    if len(values) == 1:
        return form.format(values[0])
    return f"{form.format(median(values))} ({form.format(min(values))}-{form.format(max(values))})"


def _share(figures: TrainingFigures, stage: Stage) -> float:
    return figures.stages[stage] / sum(figures.stages.values())
