"""Translate a file with one toolkit, a clock beside it; started by ``compare_peers.py`` in that toolkit's environment.

    python translate_runner.py TASK.json RESULT.json

For all toolkits alike: the clock of loading starts when everything is imported and stops when a translator is ready.
The first sentences are translated twice, which is no part of a rate. Then, for every beam size, the clock starts with a
list of lines and stops with a list of translated lines, SentencePiece on both sides included. Each beam's translations
go to RESULT.json.beamK, a line each.
"""

import json
import os
import sys
import time
import types
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

sys.path[0] = os.getcwd()  # not this folder: its modules are not meant for the toolkit

Pieces = list[list[str]]
PATIENCE = 1.0  # a sentence is done when so many times the beam's width have ended


@dataclass(frozen=True)
class Task:
    """What to do, in plain values."""

    toolkit: str
    model: str  # where it is, in the toolkit's own format
    tokenizers: list[str]  # SentencePiece models of source and target
    input: str
    beams: list[int]
    alpha: float  # the score of a translation y is log p(y) / |y|^alpha
    batch_tokens: int  # source tokens at once, hypotheses included
    warm_up: int  # sentences
    workers: int  # translate batches at the same time
    threads: int  # of each
    precision: str  # as the toolkit calls it
    longest: int = 256  # target tokens of a translation
    shortlist: str | None = None  # ours: restricts the output layer
    whole_beam: bool = False  # of OpenNMT-py: a sentence is done when as many have ended as the beam is wide


def translate_nmt(task: Task) -> Callable[[], Callable[[list[str], int], list[str]]]:
    """This project: it cuts subwords itself."""
    import torch

    from nmt.cli import default_search
    from nmt.translator import Translator

    torch.set_num_threads(task.threads)
    usual = default_search()
    assert usual is not None, "configs/search/beam.yaml is missing"
    config = replace(
        usual,
        length_penalty="simple",
        alpha=task.alpha,
        max_length_a=0.0,
        max_length_b=task.longest,
        patience=PATIENCE,
        batch_tokens=task.batch_tokens,
    )

    def load() -> Callable[[list[str], int], list[str]]:
        translator = Translator.load(task.model, "cpu", task.precision, task.shortlist, task.workers, task.threads)

        def translate(lines: list[str], beam: int) -> list[str]:
            search = replace(config, beam_size=beam)
            return [best.text for best in translator.translate(lines, search)]

        return translate

    return load


def translate_ctranslate2(task: Task) -> Callable[[], Callable[[list[str], int], list[str]]]:
    """CTranslate2; its model appends EOS to the source by itself. Its length penalty is a power of the length."""
    import ctranslate2  # type: ignore[import-not-found, unused-ignore]

    def load() -> Callable[[list[str], int], list[str]]:
        translator = ctranslate2.Translator(
            task.model,
            device="cpu",
            compute_type=task.precision,
            inter_threads=task.workers,
            intra_threads=task.threads,
        )

        def translate(pieces: Pieces, beam: int) -> Pieces:
            results = translator.translate_batch(
                pieces,
                beam_size=beam,
                length_penalty=task.alpha,
                patience=PATIENCE,
                max_decoding_length=task.longest,
                max_batch_size=task.batch_tokens // beam,
                batch_type="tokens",
            )
            return [result.hypotheses[0] for result in results]

        return with_subwords(task, translate)

    return load


def translate_opennmt(task: Task) -> Callable[[], Callable[[list[str], int], list[str]]]:
    """OpenNMT-py, through the engine behind ``onmt_translate``. What three of its text transforms import, none of them
    used here, is replaced by empty modules; and torch, more careful than when it was written, is told that the options
    in its checkpoints are harmless."""
    import argparse

    import torch

    for name in ("fasttext", "ahocorasick", "spacy"):
        sys.modules.setdefault(name, types.ModuleType(name))
    import onmt.bin.translate  # type: ignore[import-not-found]
    from onmt.inference_engine import InferenceEnginePY  # type: ignore[import-not-found]
    from onmt.utils.parse import ArgumentParser  # type: ignore[import-not-found]

    torch.serialization.add_safe_globals([argparse.Namespace])
    torch.set_num_threads(task.threads)

    def load() -> Callable[[list[str], int], list[str]]:
        words = ["-model", task.model, "-src", task.input, "-output", os.devnull, "-max_length", str(task.longest)]
        words += ["-length_penalty", "avg", "-alpha", str(task.alpha), "-batch_type", "tokens"]
        options = onmt.bin.translate._get_parser().parse_args(words)
        ArgumentParser.validate_translate_opts(options)
        ArgumentParser._get_all_transform_translate(options)
        ArgumentParser._validate_transforms_opts(options)
        ArgumentParser.validate_translate_opts_dynamic(options)
        engine = InferenceEnginePY(options)

        def translate(pieces: Pieces, beam: int) -> Pieces:
            engine.translator.beam_size = beam
            engine.translator.n_best = beam if task.whole_beam else 1
            engine.opt.batch_size = task.batch_tokens // beam
            _, found = engine.infer_list([" ".join([*row, "</s>"]) for row in pieces])
            return [best.split() for best, *_ in found]

        return with_subwords(task, translate)

    return load


def with_subwords(task: Task, translate: Callable[[Pieces, int], Pieces]) -> Callable[[list[str], int], list[str]]:
    """Text to text, from pieces to pieces."""
    import sentencepiece

    source, target = (sentencepiece.SentencePieceProcessor(model_file=path) for path in task.tokenizers)

    def whole(lines: list[str], beam: int) -> list[str]:
        pieces = [source.encode_as_pieces(line) for line in lines]
        return [str(target.decode_pieces(found)) for found in translate(pieces, beam)]

    return whole


TOOLKITS = {"nmt": translate_nmt, "ctranslate2": translate_ctranslate2, "opennmt": translate_opennmt}


def run(task: Task, result: Path) -> dict[str, Any]:
    """All that the comparison wants to know; see the module."""
    with open(task.input, encoding="utf-8", newline="\n") as stream:
        lines = [line.removesuffix("\n") for line in stream]
    load = TOOLKITS[task.toolkit](task)
    started = time.perf_counter()
    translate = load()
    loaded = time.perf_counter()
    starts = [timed(translate, lines[: task.warm_up], task.beams[0])[0] for _ in range(2)]
    passes = []
    for beam in task.beams:
        timed(translate, lines[: task.warm_up], beam)
        seconds, found = timed(translate, lines, beam)
        if len(found) != len(lines):
            raise RuntimeError(f"{len(found)} translations of {len(lines)} sentences")
        Path(f"{result}.beam{beam}").write_text("".join(f"{line}\n" for line in found), encoding="utf-8")
        passes.append({"beam": beam, "seconds": seconds, "sentences": len(lines)})
    niceness = os.nice(0) if hasattr(os, "nice") else 0
    return {
        "load": loaded - started,
        "first": starts[0],
        "again": starts[1],
        "passes": passes,
        "niceness": niceness,
        "threads": task.threads * task.workers,
    }


def timed(translate: Callable[[list[str], int], list[str]], lines: list[str], beam: int) -> tuple[float, list[str]]:
    """Seconds, and the translations."""
    started = time.perf_counter()
    found = translate(lines, beam)
    return time.perf_counter() - started, found


if __name__ == "__main__":
    written = Path(sys.argv[2])
    answer = run(Task(**json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))), written)
    written.write_text(json.dumps(answer) + "\n", encoding="utf-8")
