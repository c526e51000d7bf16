"""Text in, text out: what a program imports to translate with a trained model.

    translator = Translator.from_checkpoint("runs/X")
    [[best]] = translator.translate(["A man is sleeping."], config)
    print(best.text)

Blank lines (nothing but white space) never reach the model: blank in, blank out. All others are encoded, searched in
batches of like length, and decoded on the target side; the order and the batching of the input do not show in the
output.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from nmt import checkpoint
from nmt.config import Sampling, SearchConfig
from nmt.data.corpus import is_blank
from nmt.data.tokenizer import TokenizerPair
from nmt.device import resolve_device, resolve_search_precision
from nmt.engine import Engine, Request, TorchEngine
from nmt.formats.ctranslate2_engine import CTranslate2Engine
from nmt.search import Hypothesis, check


class Translation(NamedTuple):
    """One translation of one line."""

    text: str
    score: float  # log_probability / penalty(length), see nmt/search.py
    log_probability: float  # natural logarithm, of all subwords and EOS
    ids: list[int]  # target subwords, without EOS
    tokens: list[str]  # the same as pieces, with the mark of a word's beginning
    length: int  # |y| as the length penalty counts it: subwords, EOS included if there is one
    finished: bool  # False: cut at the length limit


BLANK = Translation(text="", score=0.0, log_probability=0.0, ids=[], tokens=[], length=0, finished=True)
"""The translation of a blank line. No model made it: it has no probability."""


class Translator:
    """An engine and the tokenizers of the models behind it.

    Args:
        engine: what translates ids.
        tokenizers: of both sides.
    """

    def __init__(self, engine: Engine, tokenizers: TokenizerPair) -> None:
        self.engine = engine
        self.tokenizers = tokenizers

    @classmethod
    def from_checkpoint(
        cls, paths: str | Path | Sequence[str | Path], device: str = "auto", precision: str = "fp32"
    ) -> "Translator":
        """Load a run folder or a checkpoint folder, or several for an ensemble.

        Args:
            paths: what ``nmt.checkpoint.load`` takes.
            device: auto, cpu, cuda, cuda:N.
            precision: fp32, bf16 or auto. In bf16 the rounding of a product depends on the size of the batch, so that
                hypotheses of almost equal score may change places.

        Raises:
            ValueError: no checkpoint there, a damaged one, tokenizers that differ, an unknown device or precision.
        """
        where = resolve_device(device)
        paths = [paths] if isinstance(paths, (str, Path)) else paths
        loaded = [checkpoint.load(path, where) for path in paths]
        if not loaded:
            raise ValueError("no checkpoint named: a translator needs one or more")
        for other in loaded[1:]:
            if other.tokenizers.digest != loaded[0].tokenizers.digest:
                raise ValueError(
                    f"{loaded[0].path} and {other.path} have different tokenizers: the models of an ensemble must be "
                    "trained on the same prepared data"
                )
        models = [each.model for each in loaded]
        return cls(TorchEngine(models, where, resolve_search_precision(precision, where)), loaded[0].tokenizers)

    @classmethod
    def from_export(
        cls, folder: str | Path, device: str = "auto", workers: int = 1, threads: int | None = None
    ) -> "Translator":
        """Load a folder that ``nmt.export`` wrote for ctranslate2.

        Args:
            folder: where it is.
            device: auto, cpu, cuda, cuda:N.
            workers: batches that are translated at once.
            threads: of each of them, on a CPU; None: CTranslate2's choice.

        Raises:
            ValueError: no such folder, a damaged one, the package ``ctranslate2`` is missing, an unknown device.
        """
        engine = CTranslate2Engine(Path(folder), device, workers, threads)
        return cls(engine, engine.tokenizers)

    def translate(
        self,
        lines: Iterable[str],
        config: SearchConfig,
        n_best: int = 1,
        sampling: Sampling | None = None,
        first_number: int = 0,
    ) -> list[list[Translation]]:
        """The ``n_best`` or fewer translations of every line, best first, in the order of the input.

        Args:
            lines: one sentence each.
            config: search options.
            n_best: wanted for each line.
            sampling: draw ``n_best`` translations of each line instead, in the order of drawing.
            first_number: of the first line; samples go with a line's number and text.

        Raises:
            ValueError: an option out of range.
        """
        check(config, n_best, sampling)
        sources = list(lines)
        results: list[list[Translation]] = [[BLANK] for _ in sources]
        spoken = [place for place, line in enumerate(sources) if not is_blank(line)]
        encoded = self.tokenizers.source.encode_batch([sources[place] for place in spoken])
        rows = {place: ids for place, ids in zip(spoken, encoded, strict=True) if ids}
        hypotheses_each = config.beam_size if sampling is None else n_best
        batches = list(batches_by_length(rows, config.batch_tokens // hypotheses_each))
        requests = (
            Request(
                [rows[place] for place in batch],
                config,
                n_best,
                sampling=sampling,
                keys=None if sampling is None else [first_number + place for place in batch],
            )
            for batch in batches
        )
        for batch, found in zip(batches, self.engine.run(requests), strict=True):
            for place, hypotheses in zip(batch, found, strict=True):
                results[place] = [self._decode(hypothesis) for hypothesis in hypotheses]
        return results

    def stream(
        self,
        lines: Iterable[str],
        config: SearchConfig,
        buffer_size: int,
        n_best: int = 1,
        sampling: Sampling | None = None,
    ) -> Iterator[tuple[str, list[Translation]]]:
        """Every line with its translations, in order, read and translated ``buffer_size`` lines at a time.

        Raises:
            ValueError: an option out of range.
        """
        if buffer_size < 1:
            raise ValueError(f"buffer size (--buffer-size): expected 1 or more lines, found {buffer_size}")
        remaining = iter(lines)
        number = 0
        while buffer := list(islice(remaining, buffer_size)):
            yield from zip(buffer, self.translate(buffer, config, n_best, sampling, number), strict=True)
            number += len(buffer)

    def _decode(self, hypothesis: Hypothesis) -> Translation:
        target, ids = self.tokenizers.target, hypothesis.tokens
        return Translation(
            text=target.decode(ids),
            score=hypothesis.score,
            log_probability=hypothesis.log_probability,
            ids=ids,
            tokens=target.pieces(ids),
            length=len(ids) + int(hypothesis.finished),
            finished=hypothesis.finished,
        )


def batches_by_length(rows: dict[int, list[int]], budget: int) -> Iterator[list[int]]:
    """Keys of ``rows`` in batches of like length: number of rows x longest row (EOS included) is ``budget`` at most.

    A row that is longer than the budget is a batch of its own. Long rows come first, so that what does not fit into
    memory shows at once.
    """
    batch: list[int] = []
    for place in sorted(rows, key=lambda place: len(rows[place]), reverse=True):
        if batch and (len(batch) + 1) * (len(rows[batch[0]]) + 1) > budget:
            yield batch
            batch = []
        batch.append(place)
    if batch:
        yield batch
