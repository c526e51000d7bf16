"""What :mod:`nmt.benchmark` measures, in rounds that take turns, and the figures that come of it.

Neighbours on a machine move everything: what is to be compared is measured once in every round, one after the other.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

from nmt.analysis.training_memory import Peak, measure_peak
from nmt.analysis.training_speed import Round, Stage, TrainingBench
from nmt.analysis.translation_speed import GrowthTask, Measured, Setting, TranslationTask
from nmt.config import SearchConfig
from nmt.device import Precision
from nmt.evaluation.metrics import Score, bleu
from nmt.training.distributed import Processes

Say = Callable[[str], None]
"""Takes a line of progress."""


# --- training ---------------------------------------------------------------------------------------------------------


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


def training_rounds(
    benches: Mapping[tuple[str, Precision], TrainingBench],
    rounds: int,
    seconds: float,
    warm_up: int,
    with_memory: bool,
    processes: Processes,
    say: Say,
) -> list[TrainingFigures]:
    """Train all benches in turns, then look at stages and peak memory of each.

    Args:
        benches: by name and number format.
        rounds: measurements of each.
        seconds: of each measurement.
        warm_up: updates before each.
        with_memory: whether to measure peak memory; process 0 alone does.
        processes: that train together.
        say: for progress.

    Raises:
        ValueError: a process that measured memory was killed.
    """
    done: dict[tuple[str, Precision], list[Round]] = {key: [] for key in benches}
    for number in range(1, rounds + 1):
        for (name, precision), bench in benches.items():
            measured = bench.measure(seconds, warm_up)
            done[name, precision].append(measured)
            say(
                f"round {number}: {name} {precision} {measured.tokens_per_second:,.0f} target tokens/s, "
                f"products {measured.product_rate / 1e9:,.0f} GFLOP/s, MFU {measured.utilisation:.0%}"
            )
    figures = []
    for (name, precision), bench in benches.items():
        say(f"{name} {precision}: stages of an update, peak memory")
        peak = _peak(bench) if with_memory and processes.is_main else None
        processes.meet("measuring memory")
        stages = bench.breakdown(max(2, warm_up))
        figures.append(TrainingFigures(name, precision, bench.parameters, done[name, precision], peak, stages))
    return figures


def _peak(bench: TrainingBench) -> Peak:
    dataset, budget = bench.loader.dataset, bench.config.training.batch_tokens
    return measure_peak(bench.config, dataset, bench.vocabularies, budget, bench.device, bench.precision)


# --- translation ------------------------------------------------------------------------------------------------------


class TranslationFigures(NamedTuple):
    """A model in one setting, with all searches."""

    model: str
    setting: Setting
    searches: tuple[SearchConfig, ...]
    rounds: list[Measured]
    scores: list[Score | None]  # of each search; None: there is no reference

    def tree(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "model": self.model,
            "setting": self.setting._asdict(),
            "searches": [
                asdict(search) | {"bleu": None if score is None else score._asdict()}
                for search, score in zip(self.searches, self.scores, strict=True)
            ],
            "rounds": [
                {
                    "load_seconds": each.load,
                    "first_seconds": each.first,
                    "again_seconds": each.again,
                    "peak_bytes": each.peak,
                    "passes": [
                        {
                            "seconds": one.seconds,
                            "sentences": one.sentences,
                            "tokens": one.tokens,
                            "sentences_per_second": one.sentences_per_second,
                            "tokens_per_second": one.tokens_per_second,
                        }
                        for one in each.passes
                    ],
                }
                for each in self.rounds
            ],
        }


def translation_rounds(
    tasks: Mapping[tuple[str, Setting], TranslationTask], rounds: int, references: Sequence[str] | None, say: Say
) -> list[TranslationFigures]:
    """Translate with all models and settings in turns.

    Args:
        tasks: by name and setting.
        rounds: measurements of each.
        references: of the lines; None: no score.
        say: for progress.

    Raises:
        ValueError: what a translator or a search refuses, or a process that was killed.
    """
    done: dict[tuple[str, Setting], list[Measured]] = {key: [] for key in tasks}
    for number in range(1, rounds + 1):
        for (name, setting), task in tasks.items():
            measured = task.measure()
            done[name, setting].append(measured)
            passes = ", ".join(
                f"beam {search.beam_size} {one.sentences_per_second:,.1f} sentences/s"
                for search, one in zip(task.searches, measured.passes, strict=True)
            )
            say(f"round {number}: {name} {setting}: {passes}")
    return [
        TranslationFigures(
            name,
            setting,
            task.searches,
            done[name, setting],
            [None if references is None else bleu(one.texts, references) for one in done[name, setting][0].passes],
        )
        for (name, setting), task in tasks.items()
    ]


class GrowthFigures(NamedTuple):
    """What a token costs a model at different lengths."""

    model: str
    task: GrowthTask
    rounds: list[list[float]]  # seconds for each length

    def milliseconds(self, place: int) -> list[float]:
        """For one target token at the length of this place, one for each round."""
        tokens = self.task.sentences * self.task.lengths[place]
        return [1000 * seconds[place] / tokens for seconds in self.rounds]

    def tree(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "model": self.model,
            "precision": self.task.precision,
            "cached": self.task.cached,
            "search": asdict(self.task.search),
            "sentences": self.task.sentences,
            "lengths": list(self.task.lengths),
            "seconds": self.rounds,
        }


def growth_rounds(tasks: Sequence[tuple[str, GrowthTask]], rounds: int, say: Say) -> list[GrowthFigures]:
    """Translate to forced lengths with all models in turns.

    Args:
        tasks: with the name of each one's model.
        rounds: measurements of each.
        say: for progress.

    Raises:
        ValueError: what a checkpoint refuses, or a process that was killed.
    """
    figures = [GrowthFigures(name, task, []) for name, task in tasks]
    for number in range(1, rounds + 1):
        for each in figures:
            each.rounds.append(each.task.measure())
            spent = sum(each.rounds[-1])
            say(f"round {number}: {each.model}, beam {each.task.search.beam_size}, {_cache(each.task)}: {spent:.1f} s")
    return figures


def _cache(task: GrowthTask) -> str:
    return "as it is" if task.cached else "without its cache"
