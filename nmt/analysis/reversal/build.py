"""Measure a reversal ablation from its runs."""

import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from nmt.analysis import document
from nmt.analysis.comparison.provenance import provenance
from nmt.analysis.comparison.runs import LoadedRun, LoadedSystem, check_comparable, training_text
from nmt.analysis.comparison.scores import Scores
from nmt.analysis.comparison.sections import plain
from nmt.analysis.comparison.training import curve
from nmt.analysis.evaluated_runs import Wanted, evaluate_together, find_evaluation, write_text
from nmt.analysis.reversal.sections import BRIEF, sections
from nmt.analysis.reversal.tree import ARMS, Effect, LagChange, PairResults, Reversal
from nmt.analysis.time_lag import time_lags
from nmt.cli import default_search
from nmt.config import SearchConfig
from nmt.data.dataset import PreparedData
from nmt.device import resolve_device
from nmt.evaluation.over_seeds import Statistics, difference_over_seeds, mean_over_seeds, sentence_perplexities
from nmt.training.resume import changes

KEY = "model.reverse_source"
BEAMS = (1, 2, 12)
"""Sizes that the paper's table 1 has, and greedy search."""

PAPER = {"test perplexity": (5.8, 4.7), "BLEU 13a, beam 12": (25.9, 30.6)}
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
    asked = [Wanted(run.path, split, each, device, "auto") for run in runs for _, split, each in _wanted(search)]
    evaluate_together(asked, jobs, log)
    for run in runs:
        for name, split, each in _wanted(search):
            found = find_evaluation(run.path, split, each)
            assert found is not None
            run.evaluations[name] = found
    results, data = [], []
    for pair, arms in zip(pairs, loaded, strict=True):
        log(f"{pair.name}: intervals and tests ...")
        text = training_text(arms[0].first, log)
        data.append(text.name)
        results.append(_measure(pair, arms, text.prepared))
    made = provenance(runs, _test(BEAMS[-1]), commands, list(dict.fromkeys(data)))
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
    for run in (run for arm in arms for run in arm.runs):
        if not run.summary:
            raise ValueError(f"{run.path}: not trained to its end; train on first")
    for one, other in zip(arms[0].runs, arms[1].runs, strict=True):
        differing = {key: both for key, both in changes(one.config, other.config).items() if key not in _OWN}
        if differing.pop(KEY, None) != ("false", "true"):
            raise ValueError(f"{one.path} and {other.path}: expected {KEY} to be false and true")
        if differing:
            named = "; ".join(f"{key} ({first}, {second})" for key, (first, second) in differing.items())
            raise ValueError(f"{one.path} and {other.path} differ in more than {KEY}: {named}")
        if one.summary["steps"] != other.summary["steps"]:
            steps = [f"{run.summary['steps']:,}" for run in (one, other)]
            raise ValueError(f"{one.path} and {other.path}: {steps[0]} and {steps[1]} updates; they must be the same")
    return arms[0], arms[1]


# --- measuring --------------------------------------------------------------------------------------------------------


def _measure(pair: ReversalPair, arms: tuple[LoadedSystem, LoadedSystem], prepared: PreparedData) -> PairResults:
    runs = [run for arm in arms for run in arm.runs]
    for name in ("validation", *map(_test, BEAMS)):
        check_comparable(runs, name)
    scores = {size: Scores(arms, _test(size)) for size in BEAMS}
    effects = [
        _effect(f"{split} perplexity", True, *(_perplexities(arm, name) for arm in arms))
        for split, name in (("validation", "validation"), ("test", _test(BEAMS[-1])))
    ]
    for metric in ("BLEU 13a", "chrF2"):
        for size, found in scores.items():
            statistics = found.statistics[metric]
            effects.append(_effect(f"{metric}, beam {size}", False, *(statistics[arm.name] for arm in arms)))
    return PairResults(
        pair.name,
        pair.model,
        pair.word_order,
        tuple(arms[0].seeds),
        int(arms[0].first.summary["steps"]),
        len(scores[BEAMS[-1]].sources),
        tuple(effects),
        scores[BEAMS[-1]].by_length(),
        tuple(curve(arm.name, run) for arm in arms for run in arm.runs),
        _lags(prepared),
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
        PAPER.get(name),
    )


def _lags(prepared: PreparedData) -> LagChange | None:
    test = prepared.test
    alignments = None if test is None else test.alignments()
    if test is None or alignments is None:
        return None
    lengths = [len(line.split()) for line in test.sources()]
    forward, backward = (time_lags(alignments, lengths, reversed_source) for reversed_source in (False, True))
    return LagChange(forward, backward)
