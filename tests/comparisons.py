"""A comparison made up for tests: three systems, of which the one with the fixed vector is far behind."""

import math
from itertools import combinations

from nmt.analysis.comparison.tree import (
    AttentionWeights,
    BeamPoint,
    Comparison,
    Cost,
    Curve,
    CurvePoint,
    Estimate,
    Example,
    Groups,
    PairedDifference,
    Provenance,
    Quality,
    Rates,
    Run,
    System,
    TextResults,
)

BLEU = {"seq2seq": 13.0, "bahdanau": 40.1, "transformer": 41.7}
LENGTHS = ("1-10", "11-20", "21-30", "31-40")
BEAMS = (1, 2, 4, 8, 12, 32, 64)


def comparison(seeds: int = 3) -> Comparison:
    """Everything that a comparison can hold, measured on one text."""
    names = list(BLEU)
    return Comparison(
        title="Three architectures, one budget",
        baseline="transformer",
        test="randomization",
        budget="equal in updates (2,000); unequal in minutes and parameters",
        systems=tuple(
            System(
                name, name, tuple(Run(f"{name}_s{seed}", seed, f"runs/{name}_s{seed}") for seed in range(1, seeds + 1))
            )
            for name in names
        ),
        texts=(text(seeds),),
        curves=tuple(curve(name, seed) for name in names for seed in range(1, seeds + 1)),
        cost={
            name: Cost(
                parameters=(7_800_000, 5_400_000, 7_600_000)[number],
                steps=2000.0,
                minutes=(22.0, 9.4, 11.6)[number],
                training_tokens=3.6e6,
                training_tokens_per_second=(2845.0, 4506.0, 4089.0)[number],
                peak_memory_mb=(1210.0, 1480.0, 1395.0)[number],
                sentences_per_second={1: (120.0, 150.0, 95.0)[number], 5: (46.0, 62.0, 39.0)[number]},
            )
            for number, name in enumerate(names)
        },
        provenance=Provenance(
            commands=(
                *(f"python -m nmt.train model={name} -m seed=1,2,3" for name in names),
                "python -m nmt.compare runs/*_s* --beams 1 2 4 8 12 32 64 --output docs/results/made_up",
            ),
            versions={"nmt": "0.1.0", "torch": "2.9.0", "sacrebleu": "2.6.0"},
            hardware=("2 cores of some processor", "1 thread a run"),
            data=("multi30k, fingerprint 0123456789abcdef",),
            dates=("2026-11-30 to 2026-12-01",),
        ),
    )


def run(system: str, seed: int) -> Run:
    """One training."""
    return Run(f"{system}_s{seed}", seed, f"runs/{system}_s{seed}")


def text(seeds: int = 3) -> TextResults:
    """Results on one test set."""
    names = list(BLEU)
    return TextResults(
        name="multi30k test",
        sentences=1000,
        quality={
            name: Quality(
                bleu=estimate(value, 1.4, 0.3, seeds),
                chrf=estimate(18 + value, 1.1, 0.2, seeds),
                perplexity=estimate(200 / value, 10 / value, 0.05, seeds),
                perplexity_per_word=estimate(400 / value, 15 / value, 0.1, seeds),
                bits_per_byte=estimate(20 / value, 1 / value, 0.01, seeds),
            )
            for name, value in BLEU.items()
        },
        differences=tuple(
            PairedDifference(
                metric,
                first,
                second,
                BLEU[second] - BLEU[first],
                BLEU[second] - BLEU[first] - 1.2,
                BLEU[second] - BLEU[first] + 1.2,
                p_value=0.0004 if first == "seq2seq" else 0.012,
                corrected=0.0012 if first == "seq2seq" else 0.012,
            )
            for metric in ("BLEU 13a", "chrF2")
            for first, second in combinations(names, 2)
        ),
        by_length=groups("source words", LENGTHS, (310, 520, 140, 30), -4.0, seeds),
        by_rarest_word=groups(
            "occurrences of the rarest source word", ("0", "1-10", "11-100"), (90, 400, 510), 5, seeds
        ),
        rates={
            name: Rates(
                estimate(0.93 + number / 40, 0.01, 0.004, seeds),
                estimate(0.06 / (number + 1), None, 0.002, seeds),
                estimate(0.001, None, 0.0005, seeds),
                estimate(0.004 / (number + 1), None, 0.001, seeds),
            )
            for number, name in enumerate(names)
        },
        beams={
            name: tuple(
                BeamPoint(
                    size,
                    value + 1.5 * math.log2(size) - 0.3 * math.log2(size) ** 2,
                    18 + value + math.log2(size),
                    1.02 - 0.012 * math.log2(size),
                    -0.5 + 0.02 * math.log2(size),
                    0.0 if size == 1 else 0.03 / size,
                )
                for size in BEAMS
            )
            for name, value in BLEU.items()
        },
        examples=(
            Example(
                12,
                "Ein Mann in einem blauen Hemd steht auf einer Leiter und putzt ein Fenster.",
                "A man in a blue shirt is standing on a ladder cleaning a window.",
                {
                    "seq2seq": "A man in a blue shirt is standing on a bench.",
                    "bahdanau": "A man in a blue shirt stands on a ladder and cleans a window.",
                    "transformer": "A man in a blue shirt is standing on a ladder cleaning a window.",
                },
            ),
        ),
        attention=tuple(
            AttentionWeights(
                name,
                title,
                ("▁ein", "▁Mann", "▁steht", "</s>"),
                ("▁a", "▁man", "▁stands", "</s>"),
                tuple(tuple(0.85 if row == column else 0.05 for column in range(4)) for row in range(4)),
            )
            for name, title in (
                ("bahdanau", "the only layer and head"),
                ("transformer", "layer 3 of 4, mean over 4 heads"),
            )
        ),
        notes=("BLEU 13a: nrefs:1|bs:1000|seed:12345|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0",),
        left_out={},
    )


def estimate(value: float, half: float | None, spread: float, seeds: int) -> Estimate:
    """A mean with its interval, over seeds that lie evenly around it."""
    around = tuple(value + spread * (number - (seeds - 1) / 2) for number in range(seeds))
    low, high = (None, None) if half is None else (value - half, value + half)
    return Estimate(value, low, high, spread if seeds > 1 else None, around)


def groups(axis: str, names: tuple[str, ...], sentences: tuple[int, ...], slope: float, seeds: int) -> Groups:
    """BLEU that falls or rises from group to group, by as much for all but the fixed vector, for which it is more."""
    scores = {
        name: tuple(
            estimate(max(1.0, value + slope * place * (0.9 if name == "seq2seq" else 0.4)), 2 + place, 0.4, seeds)
            for place in range(len(names))
        )
        for name, value in BLEU.items()
    }
    return Groups(axis, names, sentences, scores)


def curve(system: str, seed: int) -> Curve:
    """Twenty validations on the way to the system's BLEU."""
    speed = {"seq2seq": 0.011, "bahdanau": 0.0047, "transformer": 0.0058}[system]
    points = []
    for number in range(1, 21):
        done = 1 - math.exp(-number / 5)
        bleu = BLEU[system] * done + 0.4 * (seed - 2)
        step = 100 * number
        points.append(CurvePoint(step, 1800 * step, speed * step, 6 - 4 * done, 3000 / (1 + 12 * bleu * done), bleu))
    return Curve(system, f"{system}_s{seed}", tuple(points))
