"""Tables of a comparison, from the records of its runs."""

import statistics
from collections.abc import Callable, Sequence
from typing import Any

Record = dict[str, Any]
"""A run: ``model``, ``side``, ``order``, ``round``, ``toolkit``, ``probe``; ``speed`` (measure.Speed) or ``error``."""


def markdown(title: str, records: Sequence[Record]) -> str:
    """Everything as Markdown: for each model speeds, ratios and probe rates, and at the end what failed."""
    parts = [title]
    for model in dict.fromkeys(record["model"] for record in records):
        runs = [record for record in records if record["model"] == model]
        good = [record for record in runs if "speed" in record]
        parts.append(f"### {model}: target tokens/s")
        parts.append(_speeds(runs))
        if ratio := ratio_table(good, _rate):
            parts.append(f"### {model}: ours / peer, in the same round: median (lowest to highest)")
            parts.append(ratio)
        parts.append(f"### {model}: 2048 x 2048 matrix product just before each run, GFLOP/s, fp32 / bf16")
        parts.append(probe_rates(runs))
    parts += failures(records, lambda record: f"{record['model']}, {record['side']}")
    parts += [f"**{warning}**" for warning in warnings(records)]
    return "\n\n".join(parts) + "\n"


def ratios(records: Sequence[Record], our_side: str, peer: str, rate: Callable[[Record], float]) -> list[float]:
    """Our rate divided by a peer's, round by round, where both ran."""
    rates = {(record["side"], record["round"]): rate(record) for record in records}
    return [
        rates[our_side, number] / rates[peer, number]
        for number in sorted({record["round"] for record in records})
        if (our_side, number) in rates and (peer, number) in rates
    ]


def ratio_table(records: Sequence[Record], rate: Callable[[Record], float]) -> str:
    """Every side of ours over every peer, of runs that went well; empty if one of them is missing."""
    ours, peers = names(records, ours=True), names(records, ours=False)
    if not ours or not peers:
        return ""
    rows = [[side, *(spread(ratios(records, side, peer, rate)) for peer in peers)] for side in ours]
    return table(["side", *peers], rows)


def failures(records: Sequence[Record], name: Callable[[Record], str]) -> list[str]:
    """What went wrong, with the end of its log."""
    return [
        f"**{name(record)}, round {record['round']} failed:**\n\n```\n{record['error']}\n```"
        for record in records
        if "error" in record
    ]


def warnings(records: Sequence[Record]) -> list[str]:
    """What makes the numbers incomparable."""
    good = [record for record in records if "speed" in record]
    found = [
        f"{record['model']}, {record['side']}: {record['speed']['unknown']} unknown words: not the same subwords"
        for record in good
        if record["speed"]["unknown"] > 0.001 * record["speed"]["tokens_per_update"] * record["speed"]["updates"]
    ]
    priorities = {record["speed"]["niceness"] for record in good}
    if len(priorities) > 1:
        found.append(f"the sides ran at different priorities (nice {sorted(priorities)})")
    threads = {record["speed"]["threads"] for record in good}
    if len(threads) > 1:
        found.append(f"the sides ran with different numbers of threads ({sorted(threads)})")
    return found


def _rate(record: Record) -> float:
    return float(record["speed"]["tokens_per_second"])


def names(records: Sequence[Record], ours: bool) -> list[str]:
    """Our sides, or the others."""
    return list(dict.fromkeys(run["side"] for run in records if (run["toolkit"] == "nmt") == ours))


def _speeds(runs: Sequence[Record]) -> str:
    rounds = sorted({run["round"] for run in runs})
    rows = []
    for side in side_names(runs):
        own = [run for run in runs if run["side"] == side]
        cells = {run["round"]: f"{_rate(run):,.0f}" if "speed" in run else "failed" for run in own}
        good = [run for run in own if "speed" in run]
        facts = ["", "", ""]
        if good:
            speed = good[0]["speed"]
            facts = [
                f"{speed['parameters'] / 1e6:.2f}M",
                f"{statistics.median(run['speed']['tokens_per_update'] for run in good):,.0f}",
                f"{statistics.median(run['speed']['padding'] for run in good):.1%}",
            ]
        median = f"**{statistics.median(_rate(run) for run in good):,.0f}**" if good else ""
        rows.append([side, *facts, *(cells.get(number, "") for number in rounds), median])
    head = ["side", "parameters", "real tokens an update", "target padding", *(f"round {n}" for n in rounds), "median"]
    return table(head, rows)


def spread(values: Sequence[float]) -> str:
    """Median, lowest and highest."""
    return f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})" if values else ""


def probe_rates(runs: Sequence[Record]) -> str:
    """A table of the rates of a matrix product just before each run."""
    rounds = sorted({run["round"] for run in runs})
    rows = []
    for side in side_names(runs):
        cells = {run["round"]: _probe(run) for run in runs if run["side"] == side}
        rows.append([side, *(cells.get(number, "") for number in rounds)])
    return table(["before", *(f"round {n}" for n in rounds)], rows)


def _probe(run: Record) -> str:
    if "probe" not in run:
        return ""
    fp32, bf16 = run["probe"]["fp32"], run["probe"]["bf16"]
    return f"{fp32:.0f} / {'-' if bf16 is None else f'{bf16:.0f}'}"


def side_names(runs: Sequence[Record]) -> list[str]:
    """Names in the order of the first round, whichever way round the others were run."""
    return list(dict.fromkeys(run["side"] for run in sorted(runs, key=lambda run: int(run["order"]))))


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table; every column but the first is right-aligned."""
    lines = [list(head), ["---", *["--:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
