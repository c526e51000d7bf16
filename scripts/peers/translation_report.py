"""Tables of a comparison of translation, from the records of its runs.

A record has ``side``, ``order``, ``round``, ``toolkit``, ``probe``; and ``result`` (translation.py) or ``error``.
"""

import statistics
from collections.abc import Sequence
from typing import Any

from .report import Record, failures, names, probe_rates, ratio_table, side_names, table


def markdown(title: str, records: Sequence[Record]) -> str:
    """Everything as Markdown: for each beam size speeds and ratios, then what starting takes, probe rates, failures."""
    parts = [title]
    good = [record for record in records if "result" in record]
    for place, one in enumerate(good[0]["result"]["passes"] if good else []):
        parts += [f"### Beam {one['beam']}: sentences/s", _speeds(records, good, place)]
        if ratio := ratio_table(good, lambda record, place=place: _rate(record, place)):
            heading = f"### Beam {one['beam']}: ours / peer, in the same round: median (lowest to highest)"
            parts += [heading, ratio]
    parts += ["### Seconds to load, then for the first sentences at first and again: medians", _starts(good)]
    parts += ["### 2048 x 2048 matrix product just before each run, GFLOP/s, fp32 / bf16", probe_rates(records)]
    parts += failures(records, lambda record: str(record["side"]))
    parts += [f"**{warning}**" for warning in warnings(good)]
    return "\n\n".join(parts) + "\n"


def warnings(records: Sequence[Record]) -> list[str]:
    """What makes the numbers incomparable."""
    found = [
        f"the sides ran with different {what} ({sorted(values)})"
        for what, values in (
            ("numbers of threads", {record["result"]["threads"] for record in records}),
            ("priorities (nice)", {record["result"]["niceness"] for record in records}),
        )
        if len(values) > 1
    ]
    beams = {one["beam"]: [] for record in records for one in record["result"]["passes"]}
    for record in records:
        for one in record["result"]["passes"]:
            beams[one["beam"]].append(one["bleu"])
    return found + [
        f"beam {beam}: the sides' BLEU differs by {max(values) - min(values):.2f}: not the same work"
        for beam, values in beams.items()
        if max(values) - min(values) > ALIKE
    ]


ALIKE = 0.5
"""BLEU that rounding and different ways to stop a search may make."""


def _passes(records: Sequence[Record], side: str, place: int) -> list[dict[str, Any]]:
    return [record["result"]["passes"][place] for record in records if record["side"] == side]


def _rate(record: Record, place: int) -> float:
    return float(record["result"]["passes"][place]["sentences_per_second"])


def _speeds(records: Sequence[Record], good: Sequence[Record], place: int) -> str:
    rounds = sorted({record["round"] for record in records})
    ours = names(good, ours=True)
    reference = _passes(good, ours[0], place)[0]["texts"] if ours else None
    rows = []
    for side in side_names(records):
        cells = {
            record["round"]: f"{_rate(record, place):,.1f}" if "result" in record else "failed"
            for record in records
            if record["side"] == side
        }
        facts = ["", "", "", ""]
        if passes := _passes(good, side, place):
            facts = [
                f"**{statistics.median(one['sentences_per_second'] for one in passes):,.1f}**",
                f"{statistics.median(one['tokens'] / one['seconds'] for one in passes):,.0f}",
                f"{passes[0]['bleu']:.2f}",
                "" if reference is None else str(_same(passes[0]["texts"], reference)),
            ]
        rows.append([side, *(cells.get(number, "") for number in rounds), *facts])
    same = f"same text as {ours[0]}" if ours else ""
    return table(["side", *(f"round {n}" for n in rounds), "median", "target tokens/s", "BLEU 13a", same], rows)


def _same(one: Sequence[str], other: Sequence[str]) -> int:
    return sum(ours == theirs for ours, theirs in zip(one, other, strict=True))


def _starts(records: Sequence[Record]) -> str:
    rows = []
    for side in side_names(records):
        own = [record["result"] for record in records if record["side"] == side]
        rows.append([side, *(f"{statistics.median(one[what] for one in own):.2f}" for what in STARTS)])
    return table(["side", *STARTS], rows)


STARTS = ("load", "first", "again")
