"""Set systems side by side: quality, tests, curves, cost, in one report.

    python -m nmt.compare runs/*
    python -m nmt.compare runs/*_s1 --beams 1 2 4 8 12 32 64 --output report
    python -m nmt.compare runs/*_s* --budget steps --output report
    python -m nmt.compare runs/*_s1 --source own.en --reference own.fr --output report

Runs that differ in nothing but their seed are one system; with several seeds everything is said of systems. A run that
has no evaluation with these search options yet, or one of an older checkpoint, is evaluated first. One that is there is
taken as it is: --device, --precision and --batch-tokens are for the evaluations still to be made.
"""

import argparse
import dataclasses
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from nmt.analysis import document
from nmt.analysis.comparison.build import Options, build
from nmt.analysis.comparison.runs import LoadedRun, LoadedSystem, run_names, systems_of
from nmt.analysis.comparison.sections import BRIEF, sections, write_report
from nmt.analysis.comparison.training import BUDGETS, budget, cost
from nmt.analysis.evaluated_runs import Wanted, evaluate_together, find_evaluation
from nmt.analysis.evaluation import ParallelText, own_files
from nmt.cli import CommandParser, add_device_arguments, add_search_arguments, run, search_config
from nmt.device import resolve_device

Text = str | ParallelText
"""A split of each run's data, or text of the user's."""


def parser() -> CommandParser:
    """Command line of ``nmt.compare``."""
    parser = CommandParser("nmt.compare", __doc__)
    add = parser.add_argument
    add("runs", nargs="+", metavar="RUN", help="run folders (or checkpoint folders)")
    add(
        "--split",
        choices=["test", "validation"],
        help="of the data each run was trained on (default: test, validation where there is none; without "
        "--source only)",
    )
    add("--source", type=Path, nargs="+", metavar="FILE", help="translate these files, one sentence a line ...")
    add("--reference", type=Path, nargs="+", metavar="FILE", help="... and score against these, line by line")
    add("--no-evaluate", action="store_true", help="only use evaluations that are there")
    add("--baseline", metavar="SYSTEM", help="the system that the others are set against (default: the best by BLEU)")
    add(
        "--test",
        choices=["randomization", "bootstrap"],
        default="randomization",
        help="paired test where there is one seed: approximate randomisation or paired bootstrap (default: "
        "%(default)s)",
    )
    add("--budget", choices=list(BUDGETS), help="what the systems were given equally; refused if they were not")
    add(
        "--beams",
        type=int,
        nargs="+",
        metavar="K",
        help="sizes of the beam to try on the first text, with the first seed of each system",
    )
    add("--jobs", type=int, default=1, metavar="N", help="evaluations at once (default: %(default)s)")
    add("--title", metavar="TEXT", help="of the report")
    add("--output", type=Path, metavar="FOLDER", help="write report.html, report.md, report.json and pictures here")
    add_search_arguments(parser)
    add_device_arguments(parser)
    return parser


def main() -> None:
    arguments = parser().parse_args()
    _check(arguments)
    runs = [LoadedRun.read(name, path) for path, name in run_names(arguments.runs, _say).items()]
    texts = _texts(arguments)
    if arguments.budget is not None:  # refused before anything takes time
        budget({system.name: cost(system, []) for system in systems_of(runs)}, arguments.budget)
    if not arguments.no_evaluate:
        evaluate_together(_wanted(runs, texts, arguments), arguments.jobs, _say)
    kept = [loaded for loaded in runs if _find(loaded, texts, arguments)]
    if not kept:
        raise ValueError("no run with an evaluation: nothing to compare")
    systems = systems_of(kept)
    for system in systems:
        _find_beams(system, texts[0], arguments)
    options = Options(
        arguments.title,
        arguments.baseline,
        arguments.test,
        arguments.budget,
        shlex.join(["python", *sys.orig_argv[1:]]),
        training_text=not arguments.no_evaluate,
    )
    comparison = build(systems, list(map(_name, texts)), options, _say)
    shown = sections(comparison)
    if arguments.output is not None:  # the rest stands there
        shown = [section for section in shown if section.heading.partition(":")[0] in BRIEF]
    print(document.markdown(comparison.title, shown), end="")
    if arguments.output is not None:
        arguments.output.mkdir(exist_ok=True)
        for file in write_report(comparison, arguments.output):
            _say(f"written: {file}")


def _check(arguments: argparse.Namespace) -> None:
    """Refuse what does not fit together.

    Raises:
        ValueError: naming the option.
    """
    if len(arguments.source or ()) != len(arguments.reference or ()):
        raise ValueError("--source and --reference go together: files of sentences, as many files of translations")
    for name, numbers in (("--beams", arguments.beams or ()), ("--jobs", [arguments.jobs])):
        for number in numbers:
            if number < 1:
                raise ValueError(f"{name}: expected 1 or more, found {number}")
    output = arguments.output
    if output is not None and (output.is_file() or output.suffix in (".md", ".json", ".html")):
        raise ValueError(f"--output {output}: expected a folder, which gets report.html, report.md and report.json")
    if output is not None and not output.absolute().parent.is_dir():
        raise ValueError(f"--output {output}: no folder {output.parent}; make it first")


def _texts(arguments: argparse.Namespace) -> list[Text]:
    """What to score on: a split, text of the user's, or both.

    Raises:
        ValueError: two files of one name, which their evaluations could not be told apart by.
    """
    own = [own_files(*pair) for pair in zip(arguments.source or (), arguments.reference or (), strict=True)]
    wanted = [*([arguments.split or "test"] if arguments.split or not own else []), *own]
    names = list(map(_name, wanted))
    if len(set(names)) < len(names):
        raise ValueError(f"--source: texts need different names up to the first dot, found {', '.join(names)}")
    return wanted


def _name(text: Text) -> str:
    return text if isinstance(text, str) else text.name


def _wanted(runs: Sequence[LoadedRun], texts: Sequence[Text], arguments: argparse.Namespace) -> list[Wanted]:
    """Every evaluation that the report needs."""
    device = resolve_device(arguments.device)
    firsts = {system.first.path for system in systems_of(runs)}
    wanted = []
    for loaded in runs:
        usual = search_config(arguments, loaded.config.search)
        sizes = _sizes(arguments) if loaded.path in firsts else []
        searches = [usual, *(dataclasses.replace(usual, beam_size=size) for size in sizes if size != usual.beam_size)]
        wanted += [Wanted(loaded.path, texts[0], search, device, arguments.precision) for search in searches]
        wanted += [Wanted(loaded.path, text, usual, device, arguments.precision) for text in texts[1:]]
    return wanted


def _sizes(arguments: argparse.Namespace) -> list[int]:
    return sorted(set(arguments.beams or ()))


def _find(loaded: LoadedRun, texts: Sequence[Text], arguments: argparse.Namespace) -> bool:
    """Whether a run has an evaluation of every text; if so, it gets them."""
    search = search_config(arguments, loaded.config.search)
    for text in texts:
        found = find_evaluation(loaded.path, text, search)
        if found is None:
            which = f"--split {text}" if isinstance(text, str) else f"--source {text.data['source']} ..."
            command = f"python -m nmt.evaluate --checkpoint {loaded.path} {which} --beam-size {search.beam_size}"
            _say(f"{loaded.name}: not evaluated, so left out; run: {command}")
            return False
        loaded.evaluations[_name(text)] = found
    return True


def _find_beams(system: LoadedSystem, text: Text, arguments: argparse.Namespace) -> None:
    """The first seed with every size of the beam asked for."""
    usual = search_config(arguments, system.first.config.search)
    found = {}
    for size in _sizes(arguments):
        evaluated = find_evaluation(system.first.path, text, dataclasses.replace(usual, beam_size=size))
        if evaluated is None:
            _say(f"{system.first.name}: no evaluation with a beam of {size}, so that point is left out")
        else:
            found[size] = evaluated
    if found:
        system.first.beams[_name(text)] = found


def _say(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


if __name__ == "__main__":
    run(main)
