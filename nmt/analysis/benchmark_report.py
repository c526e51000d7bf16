"""Tables of what :mod:`nmt.benchmark` has measured, and the facts about the machine that belong beside them."""

import platform
from collections.abc import Sequence
from statistics import median
from typing import Any, NamedTuple

import torch

from nmt.analysis.report import markdown_table
from nmt.analysis.training_memory import Peak, Point
from nmt.analysis.training_speed import STAGES, Round, Stage
from nmt.device import Precision, cores, has_bf16

MEGABYTE = 1 << 20


class TrainingFigures(NamedTuple):
    """A model in one number format."""

    model: str
    precision: Precision
    parameters: int
    rounds: list[Round]
    peak: Peak | None  # None: not measured
    stages: dict[Stage, float]  # seconds of a mean update

    def tree(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "model": self.model,
            "precision": self.precision,
            "parameters": self.parameters,
            "rounds": [
                {
                    **each.tally._asdict(),
                    "seconds": each.seconds,
                    "product_rate": each.product_rate,
                    "tokens_per_second": each.tokens_per_second,
                    "sentences_per_second": each.sentences_per_second,
                    "padding": each.tally.padding,
                    "target_padding": each.tally.target_padding,
                    "mfu": each.utilisation,
                }
                for each in self.rounds
            ],
            "peak_bytes": None if self.peak is None else self.peak.peak,
            "stage_seconds": self.stages,
        }


def machine(device: torch.device) -> dict[str, str | int | bool]:
    """What the figures depend on beside the program."""
    facts: dict[str, str | int | bool] = {
        "cpu": _processor(),
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


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as stream:
            for line in stream:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


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


def _spread(values: list[float], form: str) -> str:
    if len(values) == 1:
        return form.format(values[0])
    return f"{form.format(median(values))} ({form.format(min(values))}-{form.format(max(values))})"


def _share(figures: TrainingFigures, stage: Stage) -> float:
    return figures.stages[stage] / sum(figures.stages.values())
