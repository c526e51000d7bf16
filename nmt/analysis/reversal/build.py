"""Measure a reversal ablation from its runs."""

import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from nmt.analysis import document
from nmt.analysis.comparison.provenance import provenance
from nmt.analysis.comparison.runs import LoadedRun, LoadedSystem, check_comparable, training_text
from nmt.analysis.comparison.scores import Scores
from nmt.analysis.comparison.sections import plain
from nmt.analysis.comparison.training import curve
from nmt.analysis.evaluated_runs import Wanted, evaluate_together, find_evaluation, write_text
from nmt.analysis.reversal.sections import BRIEF, sections
from nmt.analysis.reversal.tree import ARMS, MAIN, PERPLEXITY, Contrast, Effect, LagChange, PairResults, Reversal
from nmt.analysis.time_lag import time_lag, time_lags
from nmt.cli import default_search
from nmt.config import SearchConfig
from nmt.data.dataset import PreparedData
from nmt.device import resolve_device
from nmt.evaluation.over_seeds import Statistics, difference_over_seeds, mean_over_seeds, sentence_perplexities
from nmt.evaluation.significance import paired_test
from nmt.training.resume import changes

KEY = "model.reverse_source"
BEAMS = (1, 2, 12)
"""Sizes that the paper's table 1 has, and greedy search."""

PAPER = {PERPLEXITY: (5.8, 4.7), MAIN: (25.9, 30.6)}
"""Sutskever et al. (2014), section 3.3. Their BLEU is of tokenised text, by another script."""

_OWN = ("tag", "seed", "runs")


class ReversalPair(NamedTuple):
    """Runs of one recipe, with the source as it is and reversed."""

    name: str
    model: str
    word_order: str | None  # of the target, where that was chosen
    forward: Mapping[int, Path]  # by seed, the source as it is
    backward: Mapping[int, Path]  # reversed


def write_report(
    title: str,
    pairs: Sequence[ReversalPair],
    output: Path,
    commands: Sequence[str],
    jobs: int,
    log: Callable[[str], None],
) -> str:
    """Evaluate what is not evaluated, and write report.html, report.md, report.json and pictures.

    Args:
        title: of the report.
        pairs: the first is what it is about, the others are controls.
        output: a folder, made if need be.
        commands: that were given, for the record.
        jobs: evaluations at once.
        log: takes progress for people.

    Returns:
        What says most of it, as Markdown.

    Raises:
        ValueError: runs that are not finished, that differ in more than the reversal, or of other seeds.
    """
    loaded = [_load(pair) for pair in pairs]
    search = default_search()
    assert search is not None, "a checkout has its configs"
    device = resolve_device("auto")
    runs = [run for arms in loaded for arm in arms for run in arm.runs]
    asked = [Wanted(run.path, split, options, device, "auto") for run in runs for _, split, options in _wanted(search)]
    evaluate_together(asked, jobs, log)
    for run in runs:
        for name, split, options in _wanted(search):
            found = find_evaluation(run.path, split, options)
            assert found is not None
            run.evaluations[name] = found
    measured = [_Measured(pair, arms) for pair, arms in zip(pairs, loaded, strict=True)]
    results, data = [], []
    for each in measured:
        log(f"{each.pair.name}: intervals and tests ...")
        text = training_text(each.arms[0].first, log)
        data.append(text.name)
        results.append(each.results(_lags(text.prepared), None if each is measured[0] else measured[0]))
    made = provenance(runs, _test(BEAMS[-1]), commands, list(dict.fromkeys(data)))
    made = made._replace(commands=tuple(dict.fromkeys(made.commands)))  # a run's own command may be among those given
    reversal = Reversal(title, tuple(results), made)
    output.mkdir(parents=True, exist_ok=True)
    shown = sections(reversal)
    document.write(title, shown, output)
    text_of_tree = json.dumps(plain(reversal), indent=1, ensure_ascii=False, allow_nan=False)
    write_text(output / "report.json", text_of_tree + "\n")
    log(f"written: {output}")
    return document.markdown(title, [part for part in shown if part.heading.partition(":")[0] in BRIEF])


def _wanted(search: SearchConfig) -> list[tuple[str, str, SearchConfig]]:
    """(name, split, search) of every evaluation of a run."""
    greedy = dataclasses.replace(search, beam_size=1)
    tests = [(_test(size), "test", dataclasses.replace(search, beam_size=size)) for size in BEAMS]
    return [("validation", "validation", greedy), *tests]


def _test(beam_size: int) -> str:
    return f"test, beam {beam_size}"


# --- may they be compared? --------------------------------------------------------------------------------------------


def _load(pair: ReversalPair) -> tuple[LoadedSystem, LoadedSystem]:
    """Both arms.

    Raises:
        ValueError: they are no such pair.
    """
    if set(pair.forward) != set(pair.backward) or not pair.forward:
        found = [" ".join(map(str, sorted(arm))) or "none" for arm in (pair.forward, pair.backward)]
        raise ValueError(f"{pair.name}: both arms need the same seeds, found {found[0]} and {found[1]}")
    arms = [
        LoadedSystem(name, [LoadedRun.read(runs[seed].name, runs[seed]) for seed in sorted(runs)])
        for name, runs in zip(ARMS, (pair.forward, pair.backward), strict=True)
    ]
    for arm, runs in zip(arms, (pair.forward, pair.backward), strict=True):
        for seed, run in zip(sorted(runs), arm.runs, strict=True):
            if not run.summary:
                raise ValueError(f"{run.path}: not trained to its end; train on first")
            if run.config.seed != seed:
                raise ValueError(f"{run.path}: its seed is {run.config.seed}, expected {seed}")
    first = arms[0].first
    for arm, expected in zip(arms, (False, True), strict=True):
        for run in arm.runs:
            if getattr(run.config.model, "reverse_source", None) is not expected:
                raise ValueError(f"{run.path}: stands for {arm.name}; expected {KEY} to be false and true in the arms")
            differing = changes(first.config, run.config)
            differing = {key: both for key, both in differing.items() if key not in (*_OWN, KEY)}
            if differing:
                named = "; ".join(f"{key} ({one}, {other})" for key, (one, other) in differing.items())
                raise ValueError(f"{first.path} and {run.path} differ in more than {KEY}: {named}")
            if run.summary["steps"] != first.summary["steps"]:
                steps = [f"{each.summary['steps']:,}" for each in (first, run)]
                raise ValueError(f"{first.path} and {run.path}: {steps[0]} and {steps[1]} updates, expected the same")
    return arms[0], arms[1]


# --- measuring --------------------------------------------------------------------------------------------------------

_METRICS: tuple[tuple[Literal["BLEU 13a", "chrF2"], Literal["bleu", "chrf"]], ...] = (
    ("BLEU 13a", "bleu"),
    ("chrF2", "chrf"),
)


class _Measured:
    """A pair with its scores."""

    def __init__(self, pair: ReversalPair, arms: tuple[LoadedSystem, LoadedSystem]) -> None:
        self.pair = pair
        self.arms = arms
        runs = [run for arm in arms for run in arm.runs]
        for name in ("validation", *map(_test, BEAMS)):
            check_comparable(runs, name)
        self.scores = {size: Scores(arms, _test(size)) for size in BEAMS}
        self.widest = self.scores[BEAMS[-1]]

    def results(self, lags: LagChange | None, main: "_Measured | None") -> PairResults:
        """Everything about the pair; ``main`` is what a control is set against."""
        perplexities = [("validation perplexity", "validation"), (PERPLEXITY, _test(BEAMS[-1]))]
        return PairResults(
            self.pair.name,
            self.pair.model,
            self.pair.word_order,
            tuple(self.arms[0].seeds),
            int(self.arms[0].first.summary["steps"]),
            len(self.widest.sources),
            tuple(
                effect._replace(paper=PAPER.get(effect.name) if main is None else None)
                for effect in (
                    *(_effect(name, True, *(_perplexities(arm, at) for arm in self.arms)) for name, at in perplexities),
                    *(self._score(metric, key, size) for metric, key in _METRICS for size in BEAMS),
                )
            ),
            self.widest.by_length(),
            tuple(curve(arm.name, run) for arm in self.arms for run in arm.runs),
            lags,
            () if main is None else self._contrasts(main),
        )

    def _score(self, metric: Literal["BLEU 13a", "chrF2"], key: Literal["bleu", "chrf"], size: int) -> Effect:
        scores = self.scores[size]
        effect = _effect(f"{metric}, beam {size}", False, *(scores.statistics[metric][arm] for arm in ARMS))
        if len(self.arms[0].runs) > 1:
            return effect
        lines = {arm: scores.hypotheses[arm][0] for arm in ARMS}  # of two models, so sacrebleu's own test
        p_value = paired_test(lines, scores.references, ARMS[0], key, "bootstrap").results[1].p_value
        assert p_value is not None
        return effect._replace(p_value=p_value)

    def _contrasts(self, main: "_Measured") -> tuple[Contrast, ...]:
        """Whether reversal does something else here than to the main pair; nothing where sentences or seeds differ."""
        if self.widest.sources != main.widest.sources or self.arms[0].seeds != main.arms[0].seeds:
            return ()
        found = {
            PERPLEXITY: difference_over_seeds(main._log_perplexity_changes(), self._log_perplexity_changes()),
            MAIN: difference_over_seeds(main._bleu_changes(), self._bleu_changes()),
        }
        return tuple(Contrast(name, each.difference, each.low, each.high, each.p_value) for name, each in found.items())

    def _bleu_changes(self) -> list[Statistics]:
        return _changes(*(self.widest.statistics["BLEU 13a"][arm] for arm in ARMS))

    def _log_perplexity_changes(self) -> list[Statistics]:
        per_token = (_perplexities(arm, _test(BEAMS[-1])) for arm in self.arms)
        return _changes(
            *([Statistics(run.rows, lambda total: float(total[0] / total[1])) for run in runs] for runs in per_token)
        )


def _perplexities(arm: LoadedSystem, name: str) -> list[Statistics]:
    found = []
    for run in arm.runs:
        likelihoods = run.evaluations[name].likelihoods
        found.append(sentence_perplexities([each.nll for each in likelihoods], [each.tokens for each in likelihoods]))
    return found


def _effect(name: str, less_is_better: bool, forward: Sequence[Statistics], backward: Sequence[Statistics]) -> Effect:
    found = difference_over_seeds(forward, backward)
    return Effect(
        name,
        less_is_better,
        mean_over_seeds(forward),
        mean_over_seeds(backward),
        found.difference,
        found.low,
        found.high,
        found.p_value,
        None,
    )


def _changes(forward: Sequence[Statistics], backward: Sequence[Statistics]) -> list[Statistics]:
    """What reversal changes, seed by seed, as a figure that can be compared like any other."""
    return [_change(*runs) for runs in zip(forward, backward, strict=True)]


def _change(forward: Statistics, backward: Statistics) -> Statistics:
    width = forward.rows.shape[1]
    return Statistics(
        np.hstack([forward.rows, backward.rows]),
        lambda total: backward.figure(total[width:]) - forward.figure(total[:width]),
    )


def _lags(prepared: PreparedData) -> LagChange | None:
    test = prepared.test
    alignments = None if test is None else test.alignments()
    if test is None or alignments is None:
        return None
    lengths = [len(line.split()) for line in test.sources()]
    forward, backward = (time_lags(alignments, lengths, reversed_source) for reversed_source in (False, True))
    changed = [
        time_lag(source, target, words, True) - time_lag(source, target, words, False)
        for links, words in zip(alignments, lengths, strict=True)
        for source, target in set(links)
    ]
    shorter, longer = (sum(sign * each > 0 for each in changed) / len(changed) for sign in (-1, 1))
    return LagChange(forward, backward, shorter, longer)
