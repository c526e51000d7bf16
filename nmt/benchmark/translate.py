"""Translate and say how fast it goes, text in, text out.

For every model and setting, in rounds that take turns, a fresh process loads the checkpoint, translates --warm-up
sentences twice, and then, for every beam size, all sentences. Figures are medians over the rounds, lowest and highest
in brackets. Tokens are those of the translations, EOS included; BLEU is of the first round.

  load     from the checkpoint's folder to a translator that is ready; Python and torch have been imported
  first    the --warm-up sentences, with a translator that has done nothing yet; no part of any rate
  again    the same sentences once more: what is missing to `first` is the cost of starting

Without --checkpoint: models of random parameters and sentences of random words, as long as those of Multi30k; every
translation has as many tokens as its source.

With --lengths: milliseconds per target token, encoding included, in batches of --sentences whose sources and
translations all have exactly so many tokens. Transformers are measured without their cache as well: there every step
decodes all tokens before it once more.
"""

import argparse
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import torch

from nmt.analysis.benchmark_report import growth_report, translation_report
from nmt.analysis.benchmark_rounds import growth_rounds, translation_rounds
from nmt.analysis.synthetic import corpus_lengths, random_sentences, write_checkpoint
from nmt.analysis.translation_speed import EXPORTED, GrowthTask, Setting, TranslationTask, spread_sample
from nmt.benchmark.options import MODELS, VOCABULARY, config_of, positive, say
from nmt.checkpoint import load_config, resolve
from nmt.cli import default_search
from nmt.config import SearchConfig, TransformerConfig
from nmt.data.corpus import is_blank, read_lines
from nmt.device import resolve_device, resolve_search_precision
from nmt.formats import is_exported
from nmt.search import check
from nmt.training.distributed import Processes

SENTENCES = 1000
AT_ONCE = 8
"""Sentences of a batch where lengths are forced."""

SET_OTHERWISE = {"training.device": "--device", "training.precision": "--precision"}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of this command alone."""
    add = parser.add_argument
    add(
        "--checkpoint",
        nargs="+",
        type=Path,
        metavar="PATH",
        help="run folders (their best checkpoint), checkpoints, or what nmt.export wrote for ctranslate2",
    )
    add("--input", type=Path, metavar="FILE", help="text to translate, also .gz, .xz or .zst")
    add("--reference", type=Path, metavar="FILE", help="its translation, line by line: gives the BLEU beside the speed")
    add(
        "--models",
        nargs="+",
        metavar="MODEL",
        help="without --checkpoint: T, R, S (the sizes of configs/experiment/benchmark_*.yaml) or the name of any "
        "other experiment (default: T R S)",
    )
    add("--vocabulary", type=positive, metavar="N", help=f"of random models, subwords a side (default: {VOCABULARY})")
    add(
        "--sentences",
        type=positive,
        metavar="N",
        help=f"random ones (default: {SENTENCES}); with --lengths, of a batch (default: {AT_ONCE})",
    )
    add("--beam-size", nargs="+", type=positive, default=[1, 5], metavar="K", help="1 is greedy (default: 1 5)")
    add(
        "--batch-tokens",
        type=positive,
        metavar="N",
        help="source tokens searched at once, hypotheses included (default: that of nmt.translate)",
    )
    add("--patience", type=float, metavar="P", help="when a search stops (default: that of nmt.translate)")
    add(
        "--precision",
        nargs="+",
        choices=["fp32", "bf16", "int8", "auto"],
        default=["fp32"],
        help="number format of matrix products; auto: bf16 if the hardware has it (default: fp32)",
    )
    add("--shortlist", type=Path, metavar="FILE", help="with --checkpoint: also with this shortlist (nmt.shortlist)")
    add(
        "--workers",
        nargs="+",
        type=positive,
        default=[1],
        metavar="N",
        help="processes that translate and share the --threads (default: 1)",
    )
    add("--rounds", type=positive, default=3, metavar="N", help="measurements of each (default: %(default)s)")
    add("--warm-up", type=positive, default=32, metavar="N", help="sentences before each (default: %(default)s)")
    add("--lengths", nargs="+", type=positive, metavar="N", help="target tokens: measure growth instead")


def measure(arguments: argparse.Namespace, processes: Processes) -> dict[str, Any]:
    """Measure every model in every setting; the report goes to stdout, all figures are returned."""
    _check(arguments, processes)
    device = resolve_device(arguments.device)
    precisions = list(dict.fromkeys(resolve_search_precision(name, device) for name in arguments.precision))
    progress = partial(say, processes)
    with _checkpoints(arguments) as checkpoints:
        searches = _searches(arguments, next(iter(checkpoints.values())))
        if arguments.lengths is not None:
            growing = _growth_tasks(arguments, checkpoints, precisions, searches)
            growth = growth_rounds(growing, arguments.rounds, progress)
            print(growth_report(growth), flush=True)
            return {"growth": [each.tree() for each in growth]}
        lines, references = _text(arguments)
        common = (arguments.device, torch.get_num_threads(), searches, tuple(lines))
        tasks = {
            (name, setting): TranslationTask(path, setting, *common, spread_sample(lines, arguments.warm_up))
            for name, path in checkpoints.items()
            for setting in _settings(arguments, [EXPORTED] if is_exported(path) else precisions)
        }
        figures = translation_rounds(tasks, arguments.rounds, references, progress)
        print(translation_report(figures), flush=True)
        return {"translate": [each.tree() for each in figures]}


def _check(arguments: argparse.Namespace, processes: Processes) -> None:
    """Refuse options that do not go together.

    Raises:
        ValueError: naming them.
    """
    if processes.size > 1:
        raise ValueError("translate: is measured in one process; start it without torchrun")
    trained = arguments.checkpoint is not None
    files = {"--input": arguments.input, "--reference": arguments.reference, "--shortlist": arguments.shortlist}
    only = {
        "--checkpoint": {"--models": arguments.models, "--set": arguments.set, "--vocabulary": arguments.vocabulary},
        "random models": files,
        "--lengths": files | {"--workers": arguments.workers != [1]},
    }
    for what, here in (("--checkpoint", trained), ("random models", not trained), ("--lengths", arguments.lengths)):
        found = [option for option, value in only[what].items() if here and value]
        if found:
            raise ValueError(f"{found[0]}: does nothing with {what}; leave it out")
    if trained and arguments.lengths is None:
        if arguments.input is None:
            raise ValueError("--input: a trained model needs text to translate; give --input FILE, or --lengths")
        if arguments.sentences is not None:
            raise ValueError("--sentences: does nothing with --input; leave it out")
    if arguments.lengths is not None and min(arguments.lengths) < 2:
        raise ValueError("--lengths: expected 2 or more (a subword and EOS), found 1")


@contextmanager
def _checkpoints(arguments: argparse.Namespace) -> Iterator[dict[str, Path]]:
    """What to translate with: folders by the name that the report has for them."""
    if arguments.checkpoint is not None:
        exported = [path for path in arguments.checkpoint if is_exported(path)]
        if exported and (arguments.lengths or arguments.shortlist):
            raise ValueError(
                f"--checkpoint {exported[0]}: an exported model; --lengths and --shortlist need checkpoints"
            )
        yield {str(path): path if path in exported else resolve(path) for path in arguments.checkpoint}
        return
    names = list(dict.fromkeys(arguments.models or MODELS))
    configs = {name: config_of(name, arguments.set, SET_OTHERWISE, None) for name in names}
    with tempfile.TemporaryDirectory() as folder:
        for name, config in configs.items():
            write_checkpoint(Path(folder, name), config, arguments.vocabulary or VOCABULARY)
        yield {name: Path(folder, name) for name in names}


def _searches(arguments: argparse.Namespace, first: Path) -> tuple[SearchConfig, ...]:
    """One for every beam size: as ``nmt.translate`` searches, or to the length of the source."""
    usual = default_search() or load_config(first).search
    if arguments.checkpoint is None:
        usual = replace(usual, min_length=0, max_length_a=1.0, max_length_b=0)
    if arguments.batch_tokens is not None:
        usual = replace(usual, batch_tokens=arguments.batch_tokens)
    if arguments.patience is not None:
        usual = replace(usual, patience=arguments.patience)
    searches = tuple(replace(usual, beam_size=size) for size in dict.fromkeys(arguments.beam_size))
    for search in searches:
        check(search)
    return searches


def _text(arguments: argparse.Namespace) -> tuple[list[str], list[str] | None]:
    """What to translate, and references if there are any.

    Raises:
        ValueError: nothing to translate, or another number of references.
    """
    if arguments.input is None:
        lengths = corpus_lengths(arguments.sentences or SENTENCES, seed=1).source.tolist()
        return random_sentences(lengths, arguments.vocabulary or VOCABULARY, seed=1), None
    lines = list(read_lines(arguments.input))
    if all(map(is_blank, lines)):
        raise ValueError(f"--input {arguments.input}: holds no sentence")
    references = None if arguments.reference is None else list(read_lines(arguments.reference))
    if references is not None and len(references) != len(lines):
        raise ValueError(
            f"--reference {arguments.reference}: {len(references)} lines, but {arguments.input} has {len(lines)}: "
            "they must match line by line"
        )
    return lines, references


def _settings(arguments: argparse.Namespace, precisions: Sequence[str]) -> list[Setting]:
    shortlists = [None] if arguments.shortlist is None else [None, str(arguments.shortlist)]
    return [Setting(*each) for each in product(precisions, shortlists, dict.fromkeys(arguments.workers))]


def _growth_tasks(
    arguments: argparse.Namespace,
    checkpoints: dict[str, Path],
    precisions: Sequence[str],
    searches: tuple[SearchConfig, ...],
) -> list[tuple[str, GrowthTask]]:
    """Every model in every number format with every search; Transformers without their cache as well."""
    lengths, sentences = tuple(sorted(set(arguments.lengths))), arguments.sentences or AT_ONCE
    common = (arguments.device, torch.get_num_threads())
    return [
        (name, GrowthTask(path, cached, precision, *common, search, lengths, sentences))
        for name, path in checkpoints.items()
        for precision, search in product(precisions, searches)
        for cached in ((True, False) if isinstance(load_config(path).model, TransformerConfig) else (True,))
    ]
