"""Evaluations of runs, on disk: where they lie, how they are written, and whether they are still true.

An evaluation is a folder, ``<run>/evaluation/<split>_beam5/``: ``hypotheses.txt``, ``references.txt`` (untouched) and
``sources.txt``, line by line, so that anybody's ``sacrebleu references.txt -i hypotheses.txt`` gives the same figures;
``likelihoods.tsv``, -log p(reference | source) of each line and its target subwords, EOS included; ``scores.txt``, the
model's score of each translation, which the search maximises (evaluations made before it was kept lack it); and
``metrics.json``, which is written last: where it stands, the evaluation is whole.
"""

import json
import os
import signal
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import torch

from nmt.analysis.evaluation import Evaluation, ParallelText, evaluate, split_of, usable_split, weights_digest
from nmt.checkpoint import load, load_config, resolve
from nmt.cli import default_search, naming
from nmt.config import SearchConfig, to_tree
from nmt.data.store import read_text
from nmt.device import cores, limit_threads, resolve_search_precision
from nmt.evaluation.likelihood import Likelihood

METRICS_FILE = "metrics.json"
HYPOTHESES_FILE = "hypotheses.txt"
REFERENCES_FILE = "references.txt"
SOURCES_FILE = "sources.txt"
LIKELIHOODS_FILE = "likelihoods.tsv"
SCORES_FILE = "scores.txt"


class Evaluated(NamedTuple):
    """An evaluation on disk."""

    folder: Path
    metrics: dict[str, Any]

    @property
    def sources(self) -> list[str]:
        """The text, line by line."""
        return read_text(self.folder / SOURCES_FILE)

    @property
    def references(self) -> list[str]:
        """Its reference translation."""
        return read_text(self.folder / REFERENCES_FILE)

    @property
    def hypotheses(self) -> list[str]:
        """The model's."""
        return read_text(self.folder / HYPOTHESES_FILE)

    @property
    def likelihoods(self) -> list[Likelihood]:
        """Of each reference."""
        lines = [line.split("\t") for line in read_text(self.folder / LIKELIHOODS_FILE)]
        return [Likelihood(float(nll), int(tokens)) for nll, tokens in lines]

    @property
    def scores(self) -> list[float] | None:
        """The model's of each translation; None where they were not kept."""
        path = self.folder / SCORES_FILE
        return [float(line) for line in read_text(path)] if path.is_file() else None


def evaluate_run(
    path: Path,
    split: str | ParallelText,
    search: SearchConfig,
    device: torch.device,
    precision: str,
    log: Callable[[str], None],
    output: Path | None = None,
) -> Evaluated:
    """Evaluate a run's best checkpoint, or the checkpoint at ``path``, and write the result.

    Args:
        path: a run folder or a checkpoint folder.
        split: ``test`` or ``validation`` of the data the run was trained on, or text of one's own.
        search: how to translate.
        device: where to compute.
        precision: fp32, bf16 or auto.
        log: takes progress for people.
        output: the folder to write; None is the usual one (:func:`evaluation_folder`).
    """
    checkpoint = load(path, device)
    given = checkpoint.tokenizers if checkpoint.config.init_from is not None else None  # else they follow from the data
    text = split_of(checkpoint.config.data, split, log, given) if isinstance(split, str) else split
    numbers = resolve_search_precision(precision, device)
    log(f"{checkpoint.path}: translating {len(text.sources)} sentences ({text.name}), {device}, {numbers}")
    evaluation = evaluate(checkpoint, text, search, device, numbers)
    folder = output or evaluation_folder(path, text.name, search)
    write(evaluation, folder)
    return Evaluated(folder, evaluation.metrics)


class Wanted(NamedTuple):
    """An evaluation to be made; arguments of :func:`evaluate_run`."""

    path: Path
    split: str | ParallelText
    search: SearchConfig
    device: torch.device
    precision: str


def evaluate_together(wanted: Sequence[Wanted], jobs: int, log: Callable[[str], None]) -> None:
    """Make several evaluations; each is on disk afterwards.

    Args:
        wanted: what to evaluate; what :func:`find_evaluation` has already is not made again.
        jobs: processes that work at once and share the cores; with one there is no other process.
        log: takes progress for people (other processes write theirs to stderr).
    """
    missing = [each for each in wanted if find_evaluation(each.path, each.split, each.search) is None]
    if jobs == 1 or len(missing) < 2:
        for each in missing:
            evaluate_run(*each, log)
        return
    threads = max(1, cores() // jobs)
    with ProcessPoolExecutor(jobs, get_context("spawn"), _in_another_process, (threads,)) as pool:
        for done in [pool.submit(_evaluate_there, each) for each in missing]:
            done.result()


def _in_another_process(threads: int) -> None:
    limit_threads(threads)
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends it without a word; the process that waits says it


def _evaluate_there(wanted: Wanted) -> None:
    evaluate_run(*wanted, _say)


def _say(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


def find_evaluation(path: Path, split: str | ParallelText, search: SearchConfig) -> Evaluated | None:
    """The evaluation of a run that :func:`evaluate_run` has written, if it is of this model, text and search."""
    name = usable_split(load_config(resolve(path)).data, split) if isinstance(split, str) else split.name
    folder = evaluation_folder(path, name, search)
    metrics = read_metrics(folder)
    if metrics is not None and not isinstance(split, str) and metrics["data"]["text_sha256"] != split.digest:
        return None  # another file of that name
    if metrics is None or metrics.get("weights_sha256") != weights_digest(resolve(path)):
        return None
    # The folder's name leaves out what is usual, and what is usual may have changed since.
    if metrics["search"] != to_tree(search) | {"batch_tokens": metrics["search"]["batch_tokens"]}:
        return None
    return Evaluated(folder, metrics)


def evaluation_folder(path: Path, split: str, search: SearchConfig) -> Path:
    """Where an evaluation lies: ``<run>/evaluation/<split>_beam<k>``, plus what else is not as usual.

    Args:
        path: a run folder, whose best checkpoint is meant, or a checkpoint folder, whose name then goes into the name.
        split: name of the text.
        search: options that differ from ``configs/search/beam.yaml`` and can change a translation are in the name.
    """
    name = f"{split}_beam{search.beam_size}"
    usual = to_tree(default_search() or search)
    for key, value in to_tree(search).items():
        if key not in ("beam_size", "batch_tokens") and value != usual[key]:
            name += f"_{key}={value}"
    checkpoint = resolve(path)
    if checkpoint.parent.name != "checkpoints":  # a copy, away from its run
        return checkpoint / "evaluation" / name
    run = checkpoint.parent.parent
    return run / "evaluation" / (name if path.resolve() == run.resolve() else f"{name}_{checkpoint.name}")


# --- files ------------------------------------------------------------------------------------------------------------


def write(evaluation: Evaluation, folder: Path) -> None:
    """Write the six files, each whole or not at all, ``metrics.json`` last."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / METRICS_FILE).unlink(missing_ok=True)
    for name, lines in (
        (SOURCES_FILE, evaluation.text.sources),
        (REFERENCES_FILE, evaluation.text.references),
        (HYPOTHESES_FILE, evaluation.hypotheses),
        (SCORES_FILE, [f"{score:.6f}" for score in evaluation.scores]),
        (LIKELIHOODS_FILE, [f"{likelihood.nll:.6f}\t{likelihood.tokens}" for likelihood in evaluation.likelihoods]),
    ):
        write_text(folder / name, "".join(f"{line}\n" for line in lines))
    write_text(folder / METRICS_FILE, json.dumps(evaluation.metrics, indent=2, ensure_ascii=False) + "\n")


def write_text(path: Path, text: str) -> None:
    """Write a file under a temporary name, then rename it: no reader ever sees half of it."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with naming(path):
            temporary.write_text(text, encoding="utf-8", newline="\n")
        os.replace(temporary, path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise


def read_metrics(folder: Path) -> dict[str, Any] | None:
    """The figures of an evaluation, or None where there is no (whole) one."""
    try:
        text = (folder / METRICS_FILE).read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    try:
        metrics: dict[str, Any] = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"{folder / METRICS_FILE}: damaged ({error}); delete it and evaluate again") from error
    return metrics
