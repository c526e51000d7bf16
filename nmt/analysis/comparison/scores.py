"""What systems score on one text, and which differences are more than chance.

With several seeds everything is said of recipes, by :mod:`nmt.evaluation.over_seeds`. With one, BLEU and chrF have
sacrebleu's own intervals and paired tests; its tests know no perplexity, so that is tested as with several seeds.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import combinations
from typing import Literal, NamedTuple

import numpy as np

from nmt.analysis.comparison.runs import LoadedSystem
from nmt.analysis.comparison.tree import Estimate, Groups, PairedDifference, Quality
from nmt.analysis.evaluated_runs import Evaluated
from nmt.evaluation.metrics import bleu
from nmt.evaluation.over_seeds import (
    Statistics,
    difference_over_seeds,
    mean_over_seeds,
    sentence_perplexities,
    sentence_scores,
)
from nmt.evaluation.significance import Method, holm, paired_test
from nmt.evaluation.slices import LENGTHS, Slice, by_rarest_word, by_source_length

Metric = Literal["BLEU 13a", "chrF2", "perplexity per word"]
METRICS: tuple[Metric, ...] = ("BLEU 13a", "chrF2", "perplexity per word")

SHORT_STEPS = (3, 6, 9, 12, 15, 18, 21)
"""Longest source of each group, in words, for a text without longer ones."""

FEWEST = 10
"""Sentences of a group whose score has an interval: resampling a few tells nothing."""

_SACREBLEU: Mapping[str, Literal["bleu", "chrf"]] = {"BLEU 13a": "bleu", "chrF2": "chrf"}


class Pairing(NamedTuple):
    """Which runs are set against which: run i of one system against run i of any other."""

    runs: Mapping[str, list[int]]  # by system: places in its runs
    note: str  # what is to be said about it


def pair(systems: Sequence[LoadedSystem]) -> Pairing | None:
    """Runs of equal seeds, of those seeds that all systems have; where they have none in common but one run each, that.

    None where there is nothing to be paired.
    """
    common = sorted(set.intersection(*(set(system.seeds) for system in systems)))
    if common:
        left_out = sorted({seed for system in systems for seed in system.seeds} - set(common))
        note = f"tested with the seeds that all have: not with {', '.join(map(str, left_out))}" if left_out else ""
        return Pairing({system.name: [system.seeds.index(seed) for seed in common] for system in systems}, note)
    if all(len(system.runs) == 1 for system in systems):
        return Pairing({system.name: [0] for system in systems}, "the runs have different seeds")
    return None


class Scores:
    """Scores of systems on one text. All of it is read from the evaluations on disk."""

    def __init__(self, systems: Sequence[LoadedSystem], text: str) -> None:
        """
        Args:
            systems: whose runs have an evaluation of the text.
            text: its name.
        """
        self.systems = {system.name: [run.evaluations[text] for run in system.runs] for system in systems}
        first = next(iter(self.systems.values()))[0]
        self.sources = first.sources
        self.references = first.references
        self.words = [len(line.split()) + 1 for line in self.references]  # the end is one more thing to predict
        self.bytes = [len(line.encode("utf-8")) + 1 for line in self.references]

    @cached_property
    def hypotheses(self) -> dict[str, list[list[str]]]:
        """Translations by system and run."""
        return {name: [each.hypotheses for each in evaluations] for name, evaluations in self.systems.items()}

    @cached_property
    def statistics(self) -> dict[Metric, dict[str, list[Statistics]]]:
        """What each run's figures are made of, sentence by sentence."""
        return {
            "BLEU 13a": {
                name: [sentence_scores(lines, self.references) for lines in runs]
                for name, runs in self.hypotheses.items()
            },
            "chrF2": {
                name: [sentence_scores(lines, self.references, "chrf") for lines in runs]
                for name, runs in self.hypotheses.items()
            },
            "perplexity per word": {
                name: [sentence_perplexities(_nll(each), self.words) for each in evaluations]
                for name, evaluations in self.systems.items()
            },
        }

    def quality(self) -> dict[str, Quality]:
        """Every figure of every system, with intervals."""
        same_subwords = len({each.metrics["tokenizers_sha256"] for runs in self.systems.values() for each in runs}) == 1
        return {name: self._quality(name, runs, same_subwords) for name, runs in self.systems.items()}

    def _quality(self, name: str, runs: Sequence[Evaluated], same_subwords: bool) -> Quality:
        tokens = [[each.tokens for each in run.likelihoods] for run in runs]
        per_token = [sentence_perplexities(_nll(run), counts) for run, counts in zip(runs, tokens, strict=True)]
        return Quality(
            bleu=self._score(name, runs, "BLEU 13a"),
            chrf=self._score(name, runs, "chrF2"),
            perplexity=_estimate(per_token) if same_subwords else None,
            perplexity_per_word=_estimate(self.statistics["perplexity per word"][name]),
            bits_per_byte=_estimate([_bits(_nll(run), self.bytes) for run in runs]),
        )

    def _score(self, name: str, runs: Sequence[Evaluated], metric: Metric) -> Estimate:
        if len(runs) > 1:
            return _estimate(self.statistics[metric][name])
        score = runs[0].metrics[_SACREBLEU[metric]]
        return Estimate(score["value"], score["low"], score["high"], None, (score["value"],))

    # --- differences --------------------------------------------------------------------------------------------------

    def differences(self, baseline: str, pairing: Pairing, method: Method) -> tuple[PairedDifference, ...]:
        """Every pair of systems on every metric; those with the baseline first."""
        names = [baseline, *(name for name in self.systems if name != baseline)]
        found: list[PairedDifference] = []
        for metric in METRICS:
            of_metric = [self._difference(metric, *names, pairing, method) for names in combinations(names, 2)]
            corrected = holm([each.p_value for each in of_metric if each.p_value is not None])
            if len(of_metric) > 1:
                of_metric = [each._replace(corrected=p) for each, p in zip(of_metric, corrected, strict=True)]
            found += of_metric
        return tuple(found)

    def _difference(
        self, metric: Metric, first: str, second: str, pairing: Pairing, method: Method
    ) -> PairedDifference:
        ours, theirs = (
            [self.statistics[metric][name][place] for place in pairing.runs[name]] for name in (first, second)
        )
        found = difference_over_seeds(ours, theirs)
        p_value = found.p_value
        if found.seeds == 1 and metric in _SACREBLEU:
            lines = {name: self.hypotheses[name][pairing.runs[name][0]] for name in (first, second)}
            tested = paired_test(lines, self.references, first, _SACREBLEU[metric], method).results[1].p_value
            assert tested is not None
            p_value = tested
        return PairedDifference(metric, first, second, found.difference, found.low, found.high, p_value, None)

    # --- groups of sentences ------------------------------------------------------------------------------------------

    def by_length(self) -> Groups:
        """By source words; in short steps where all sentences are short."""
        longest = max(len(source.split()) for source in self.sources)
        bounds = LENGTHS if longest > SHORT_STEPS[-1] else SHORT_STEPS
        return self._groups("source words", by_source_length(self.sources, bounds))

    def by_rarest_word(self, counts: Counter[str]) -> Groups:
        """By how often the rarest source word occurs in training."""
        slices = by_rarest_word(self.sources, counts)
        return self._groups("occurrences in training of the rarest source word", slices)

    def _groups(self, axis: str, slices: Sequence[Slice]) -> Groups:
        return Groups(
            axis,
            tuple(part.name for part in slices),
            tuple(len(part.rows) for part in slices),
            {name: tuple(self._group(name, part) for part in slices) for name in self.systems},
        )

    def _group(self, name: str, part: Slice) -> Estimate:
        if len(self.systems[name]) > 1:
            runs = self.statistics["BLEU 13a"][name]
            found = _estimate([Statistics(run.rows[part.rows], run.figure) for run in runs])
        else:
            (lines,) = self.hypotheses[name]
            score = bleu([lines[row] for row in part.rows], [self.references[row] for row in part.rows], interval=True)
            found = Estimate(score.value, score.low, score.high, None, (score.value,))
        return found if len(part.rows) >= FEWEST else found._replace(low=None, high=None)


def _nll(evaluated: Evaluated) -> list[float]:
    return [each.nll for each in evaluated.likelihoods]


def _bits(nll: Sequence[float], size: Sequence[int]) -> Statistics:
    return Statistics(np.array([nll, size], dtype=np.float64).T, lambda total: float(total[0] / total[1] / math.log(2)))


def _estimate(runs: Sequence[Statistics]) -> Estimate:
    return Estimate(*mean_over_seeds(runs))
