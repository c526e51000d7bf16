"""Set runs side by side: one table, intervals, significance tests.

    python -m nmt.compare runs/*
    python -m nmt.compare runs/a_s1 runs/b_s1 --baseline runs/a_s1 --output report.md
    python -m nmt.compare runs/*_s1 --source own.en --reference own.fr --output report

A run that has no evaluation with these search options yet, or one of an older checkpoint, is evaluated first. One that
is there is taken as it is: --device, --precision and --batch-tokens are for the evaluations still to be made.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from nmt.analysis.evaluated_runs import evaluate_run, find_evaluation, write_text
from nmt.analysis.evaluation import ParallelText, own_files
from nmt.analysis.report import (
    RunFigures,
    by_length,
    by_text,
    comparison_report,
    length_figure,
    metrics_of,
    significance,
)
from nmt.checkpoint import CheckpointError, load_config, resolve
from nmt.cli import CommandParser, add_device_arguments, add_search_arguments, run, search_config
from nmt.device import resolve_device


def parser() -> CommandParser:
    """Command line of ``nmt.compare``."""
    parser = CommandParser("nmt.compare", __doc__)
    add = parser.add_argument
    add("runs", nargs="+", metavar="RUN", help="run folders (or checkpoint folders)")
    add(
        "--split",
        choices=["test", "validation"],
        default="test",
        help="of the data each run was trained on (default: %(default)s; validation where there is no test split)",
    )
    add("--source", type=Path, metavar="FILE", help="translate this file instead, one sentence a line ...")
    add("--reference", type=Path, metavar="FILE", help="... and score against this one, line by line")
    add("--no-evaluate", action="store_true", help="only use evaluations that are there")
    add("--baseline", metavar="RUN", help="test the others against this one (default: the best by BLEU)")
    add(
        "--test",
        choices=["randomization", "bootstrap"],
        default="randomization",
        help="paired test: approximate randomisation or paired bootstrap resampling (default: %(default)s)",
    )
    add(
        "--output",
        type=Path,
        metavar="PATH",
        help="also write the report here: FILE.md, FILE.json with every figure, or a folder for both and the pictures",
    )
    add_search_arguments(parser)
    add_device_arguments(parser)
    return parser


def main() -> None:
    arguments = parser().parse_args()
    if (arguments.source is None) != (arguments.reference is None):
        raise ValueError("--source and --reference go together: one file of sentences, one of their translations")
    if arguments.output is not None and arguments.output.suffix not in ("", ".md", ".json"):
        raise ValueError(f"--output {arguments.output}: expected a folder, or a name that ends in .md or .json")
    if arguments.output is not None and not arguments.output.parent.is_dir():
        raise ValueError(f"--output {arguments.output}: no folder {arguments.output.parent}; make it first")
    names = _names(arguments.runs)
    if arguments.baseline is not None and _plain(arguments.baseline) not in names:
        raise ValueError(f"--baseline {arguments.baseline}: none of the runs; they are {', '.join(names)}")
    runs = [_figures(Path(path), name, arguments) for path, name in names.items()]
    if not any(figures.metrics for figures in runs):
        raise ValueError("no run with an evaluation: nothing to compare")
    baseline = None if arguments.baseline is None else names[_plain(arguments.baseline)]
    if any(figures.name == baseline and figures.metrics is None for figures in runs):
        raise ValueError(
            f"--baseline {arguments.baseline}: not evaluated; leave out --no-evaluate to evaluate it first"
        )
    report = comparison_report(runs, baseline, arguments.test)
    print(report)
    if arguments.output is not None:
        _write(arguments.output, report, runs, _tree(runs, baseline, arguments))


def _write(output: Path, report: str, runs: list[RunFigures], tree: dict[str, Any]) -> None:
    """The report under the name asked for: one file, or a folder with both forms and the pictures."""
    every_figure = json.dumps(tree, indent=2, ensure_ascii=False)
    if output.suffix:
        write_text(output, (every_figure if output.suffix == ".json" else report) + "\n")
        return
    output.mkdir(exist_ok=True)
    write_text(output / "report.json", every_figure + "\n")
    pictures = []
    for group in by_text(runs):
        name = f"bleu_by_length_{metrics_of(group[0])['split']}.png"
        length_figure(group).savefig(output / name)
        pictures.append(f"![BLEU by source length]({name})")
    write_text(output / "report.md", "\n\n".join([report, *pictures]) + "\n")


def _names(paths: list[str]) -> dict[str, str]:
    """Path -> what to call it: the folder's name, or the whole path where two runs share a name. Others are skipped.

    Raises:
        ValueError: none of the paths is a run.
    """
    found = []
    for path in dict.fromkeys(map(_plain, paths)):
        try:
            resolve(path)
            found.append(path)
        except CheckpointError as error:
            _say(f"skipped: {error}")
    if not found:
        raise ValueError("none of these is a run with a checkpoint: " + ", ".join(paths))
    names = [_short(Path(path)) for path in found]
    return {path: name if names.count(name) == 1 else path for path, name in zip(found, names, strict=True)}


def _short(path: Path) -> str:
    return f"{path.parent.parent.name}/{path.name}" if path.parent.name == "checkpoints" else path.resolve().name


def _plain(path: str) -> str:
    return str(Path(path))  # without a slash at the end


def _figures(path: Path, name: str, arguments: argparse.Namespace) -> RunFigures:
    """Everything about a run; it is evaluated if need be and allowed."""
    summary: dict[str, Any] = {}
    if (path / "summary.json").is_file():
        summary = json.loads((path / "summary.json").read_text(encoding="utf-8"))
    search = search_config(arguments, load_config(resolve(path)).search)
    own = own_files(arguments.source, arguments.reference) if arguments.source else None
    split: str | ParallelText = own or arguments.split
    done = find_evaluation(path, split, search)
    if done is None and arguments.no_evaluate:
        which = (
            f"--source {arguments.source} --reference {arguments.reference}" if own else f"--split {arguments.split}"
        )
        options = f"--checkpoint {path} {which} --beam-size {search.beam_size}"
        _say(f"{name}: not evaluated; run: python -m nmt.evaluate {options}")
    elif done is None:
        device = resolve_device(arguments.device)
        done = evaluate_run(path, split, search, device, arguments.precision, _say)
    return RunFigures(name, summary, done.metrics if done else None, done.folder if done else None)


def _tree(runs: list[RunFigures], baseline: str | None, arguments: argparse.Namespace) -> dict[str, Any]:
    """The report as plain values."""
    groups = [group for group in by_text(runs) if len(group) > 1]
    return {
        "runs": [{"name": figures.name, "summary": figures.summary, "metrics": figures.metrics} for figures in runs],
        "test": arguments.test,
        "significance": [
            {
                metric: {"signature": done.signature, "results": [result._asdict() for result in done.results]}
                for metric, done in significance(group, baseline, arguments.test).items()
            }
            for group in groups
        ],
        "bleu_by_source_length": [
            {
                "groups": [part.name for part in slices],
                "runs": {name: [score._asdict() for score in values] for name, values in scores.items()},
            }
            for slices, scores in map(by_length, by_text(runs))
        ],
    }


def _say(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


if __name__ == "__main__":
    run(main)
