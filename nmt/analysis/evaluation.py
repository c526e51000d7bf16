"""Score one checkpoint on one text: what ``nmt.evaluate`` prints and ``nmt.compare`` sets side by side."""

import hashlib
import math
import platform
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import torch

from nmt.checkpoint import MODEL_FILE, Checkpoint
from nmt.config import DataConfig, FilesData, HubData, SearchConfig, to_tree
from nmt.data.corpus import in_step, read_lines
from nmt.data.dataset import prepare
from nmt.data.tokenizer import TokenizerPair
from nmt.device import SearchPrecision
from nmt.engine import TorchEngine
from nmt.evaluation.likelihood import Likelihood
from nmt.evaluation.metrics import bleu, check, chrf
from nmt.scorer import Scorer
from nmt.translator import Translator

BATCH_TOKENS = 4096
"""Tokens a side scored by teacher forcing at once; a longer pair stands alone."""


class ParallelText(NamedTuple):
    """Sentences to translate and the references they are measured against."""

    name: str  # of the split, or of the user's file
    sources: list[str]
    references: list[str]
    data: dict[str, str]  # where it comes from: data set and fingerprint, or files

    @property
    def digest(self) -> str:
        """SHA-256 of all sources and references: equal only for the same test set."""
        lines = "\n".join([*self.sources, *self.references])
        return hashlib.sha256(lines.encode("utf-8")).hexdigest()


class Evaluation(NamedTuple):
    """Translations and every figure about them."""

    text: ParallelText
    hypotheses: list[str]
    likelihoods: list[Likelihood]  # of each reference
    scores: list[float]  # the model's of each translation: what the search maximises
    metrics: dict[str, Any]  # plain values, ready for JSON


# --- what to score ----------------------------------------------------------------------------------------------------


def usable_split(config: DataConfig, split: str) -> str:
    """``validation`` where a test set is asked for and the data names none; else ``split``."""
    if isinstance(config, FilesData):
        has_test = config.test is not None
    elif isinstance(config, HubData) and config.folder is not None:
        has_test = config.folder_splits.test is not None
    elif isinstance(config, HubData):
        has_test = config.splits.test is not None or config.held_out_pairs is not None
    else:
        has_test = True
    return split if has_test else "validation"


def split_of(
    config: DataConfig, split: str, log: Callable[[str], None], tokenizers: TokenizerPair | None = None
) -> ParallelText:
    """The validation or test split of a data configuration, prepared (with the run's tokenizers, where it was given
    some) or taken from the cache.

    Data without a test split gives the validation split, and says so.

    Raises:
        DataError: the data cannot be had.
    """
    if usable_split(config, split) != split:
        log(f"data {config.name} has no {split} split: scoring on its validation split")
    name = usable_split(config, split)
    data = prepare(config, log, tokenizers)
    dataset = data.test if name == "test" else data.validation
    assert dataset is not None
    origin = {"name": config.name, "fingerprint": data.fingerprint, "tokenizers_sha256": data.tokenizers.digest}
    return ParallelText(name, dataset.sources(), dataset.references(), origin)


def own_files(source: Path, reference: Path) -> ParallelText:
    """The user's own line-aligned files.

    Raises:
        ValueError: a file is missing or no UTF-8, they differ in length (both counts are named) or are empty.
    """
    pairs = list(in_step(read_lines(source), read_lines(reference), str(source), str(reference)))
    if not pairs:
        raise ValueError(f"{source}: no lines to translate")
    return ParallelText(
        source.name.split(".")[0],
        [line for line, _ in pairs],
        [line for _, line in pairs],
        {"source": str(source), "reference": str(reference)},
    )


# --- scoring ----------------------------------------------------------------------------------------------------------


def evaluate(
    checkpoint: Checkpoint, text: ParallelText, search: SearchConfig, device: torch.device, precision: SearchPrecision
) -> Evaluation:
    """Translate a test set and score the translations.

    Time is that of translating alone: neither loading nor scoring counts.
    """
    engine = TorchEngine([checkpoint.model], device, precision)
    translator = Translator(engine, checkpoint.tokenizers, search)
    started = time.perf_counter()
    translations = translator.translate(text.sources)
    seconds = time.perf_counter() - started
    hypotheses = [translation.text for translation in translations]
    produced = sum(translation.length for translation in translations)  # subwords, EOS included
    check(hypotheses, text.references)
    scorer = Scorer([checkpoint.model], checkpoint.tokenizers, device, precision)
    likelihoods = [
        Likelihood(-score.log_probability, score.length)
        for score in scorer.score(zip(text.sources, text.references, strict=True), BATCH_TOKENS)
    ]
    nll, tokens = (sum(values) for values in zip(*likelihoods, strict=True))
    return Evaluation(
        text,
        hypotheses,
        likelihoods,
        [translation.score for translation in translations],
        {
            "model": checkpoint.config.model.name,
            "checkpoint": str(checkpoint.path),
            "step": checkpoint.step,
            "weights_sha256": weights_digest(checkpoint.path),
            "tokenizers_sha256": checkpoint.tokenizers.digest,
            "split": text.name,
            "data": {**text.data, "text_sha256": text.digest},
            "sentences": len(hypotheses),
            **_scores(hypotheses, text, checkpoint.config.data.target),
            **_per_unit(Likelihood(nll, tokens), text.references),
            "limit_hits": sum(not translation.finished for translation in translations),
            "seconds": seconds,
            "sentences_per_second": len(hypotheses) / seconds,
            "tokens_per_second": produced / seconds,
            "search": to_tree(search),
            "device": str(device),
            "precision": precision,
            "threads": torch.get_num_threads(),
            "versions": {
                "python": platform.python_version(),
                **{name: version(name) for name in ("torch", "sentencepiece", "sacrebleu", "sacremoses")},
            },
        },
    )


def _per_unit(likelihood: Likelihood, references: Sequence[str]) -> dict[str, Any]:
    """Perplexity per subword, and in units that models with other subwords share."""
    words = sum(len(line.split()) + 1 for line in references)  # the end of a sentence is one more thing to predict
    size = sum(len(line.encode("utf-8")) + 1 for line in references)
    return {
        "perplexity": likelihood.perplexity,
        "perplexity_per_word": Likelihood(likelihood.nll, words).perplexity,
        "bits_per_byte": likelihood.nll / size / math.log(2),
        "nll": likelihood.nll,
        "target_tokens": likelihood.tokens,
    }


def _scores(hypotheses: list[str], text: ParallelText, language: str) -> dict[str, Any]:
    """BLEU and chrF with intervals, of all sentences and of the longest quarter."""
    longest = longest_quarter(text.sources)
    return {
        "bleu": bleu(hypotheses, text.references, interval=True)._asdict(),
        "bleu_tok_lc": bleu(hypotheses, text.references, "tok-lc", language, interval=True)._asdict(),
        "chrf": chrf(hypotheses, text.references, interval=True)._asdict(),
        "longest_quarter": {
            "min_words": min(len(text.sources[i].split()) for i in longest),
            "bleu": bleu(
                [hypotheses[i] for i in longest], [text.references[i] for i in longest], interval=True
            )._asdict(),
        },
    }


def longest_quarter(sources: Sequence[str]) -> list[int]:
    """Positions of the longest quarter (rounded up) by white-space separated source words, in their order.

    Of sentences of equal length, the earlier ones are taken first: the choice depends on the sources alone.
    """
    by_length = sorted(range(len(sources)), key=lambda i: -len(sources[i].split()))  # sorted() keeps ties in order
    return sorted(by_length[: math.ceil(len(sources) / 4)])


def weights_digest(checkpoint: Path) -> str:
    """SHA-256 of a checkpoint's weights: tells whether an evaluation is of this very model."""
    with open(checkpoint / MODEL_FILE, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
