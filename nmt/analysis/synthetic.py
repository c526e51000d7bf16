"""What speed and memory are measured on where no corpus and no trained model are at hand: random subwords in sentences
of realistic lengths, and random parameters.

What a training step costs depends on the lengths of its pairs and not on what they say, so the lengths follow those of
a real corpus and the subwords are uniform over the vocabulary. Lengths are those of Multi30k German-English in 8,000
joint subwords (29,000 pairs; EOS counted), fitted by a log-normal distribution that keeps both sides correlated:

    m = exp(N(2.682, 0.295)) target tokens            n = m exp(N(0.021, 0.169)) source tokens

rounded and kept between 4 and 53, the corpus's shortest and longest. Mean 15.3 target and 15.8 source tokens, as there.

A model of random parameters (:func:`write_checkpoint`) never ends a sentence by itself, so that a search's limit alone
decides how long its translations are.
"""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from nmt import checkpoint
from nmt.config import TrainConfig
from nmt.data.store import SIDES, PairDataset, RowWriter
from nmt.data.tokenizer import Tokenizer, TokenizerPair
from nmt.models import build
from nmt.models.embedding import Embeddings
from nmt.tokens import BOS, EOS, PAD, UNK

FIRST_SUBWORD = 4  # the ids before are reserved


class Lengths(NamedTuple):
    """Tokens of each pair, EOS included."""

    source: np.ndarray  # [pairs] int64
    target: np.ndarray  # [pairs] int64


def corpus_lengths(pairs: int, seed: int) -> Lengths:
    """Lengths as in a corpus of image descriptions; the module's docstring has the distribution."""
    generator = np.random.default_rng(seed)
    target = np.exp(generator.normal(2.682, 0.295, pairs))
    source = target * np.exp(generator.normal(0.021, 0.169, pairs))
    return Lengths(*(np.clip(np.rint(side), 4, 53).astype(np.int64) for side in (source, target)))


def uniform_lengths(pairs: int, longest: int, seed: int) -> Lengths:
    """Every length from 2 to ``longest`` as often as any other, both sides alike; the last pair is the longest."""
    lengths = np.random.default_rng(seed).integers(2, longest, pairs, endpoint=True)
    lengths[-1] = longest
    return Lengths(lengths, lengths)


def write_pairs(folder: Path, lengths: Lengths, vocabulary: int, seed: int) -> PairDataset:
    """Write pairs of these lengths as a prepared training split, and open it.

    Args:
        folder: of the files.
        lengths: of the pairs.
        vocabulary: subwords of each side.
        seed: of the subwords.

    Raises:
        ValueError: the vocabulary has no subwords but the reserved ones.
    """
    _check_vocabulary(vocabulary)
    generator = np.random.default_rng(seed)
    for side, counts in zip(SIDES, lengths, strict=True):
        words = generator.integers(FIRST_SUBWORD, vocabulary, int(counts.sum()) - len(counts))
        writer = RowWriter(folder, "train", side, vocabulary)
        writer.write([row.tolist() for row in np.split(words, np.cumsum(counts - 1)[:-1])])  # which adds EOS
        writer.close()
    return PairDataset(folder, "train", (vocabulary, vocabulary))


def _check_vocabulary(vocabulary: int) -> None:
    if vocabulary <= FIRST_SUBWORD:
        raise ValueError(f"vocabulary: expected more than the {FIRST_SUBWORD} reserved subwords, found {vocabulary}")


# --- a model to translate with ----------------------------------------------------------------------------------------


def random_sentences(lengths: Sequence[int], vocabulary: int, seed: int) -> list[str]:
    """Text of so many subwords (EOS counted, 2 or more) of :func:`word_tokenizer`, drawn uniformly."""
    generator = np.random.default_rng(seed)
    return [
        " ".join(map(_word, generator.integers(FIRST_SUBWORD, vocabulary, length - 1).tolist())) for length in lengths
    ]


def word_tokenizer(vocabulary: int) -> Tokenizer:
    """A SentencePiece model each of whose subwords is a word.

    Raises:
        ValueError: the vocabulary has no subwords but the reserved ones.
    """
    import sentencepiece

    _check_vocabulary(vocabulary)
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=map(_word, range(FIRST_SUBWORD, vocabulary)),
        model_writer=model,
        model_type="word",
        vocab_size=vocabulary,
        pad_id=PAD,
        unk_id=UNK,
        bos_id=BOS,
        eos_id=EOS,
        minloglevel=2,
    )
    return Tokenizer(model.getvalue())


def _word(number: int) -> str:
    return f"w{number}"


def write_checkpoint(folder: Path, config: TrainConfig, vocabulary: int) -> None:
    """Save a model of random parameters that reads and writes the words of :func:`random_sentences`.

    Raises:
        ValueError: the vocabulary has no subwords but the reserved ones.
        ConfigError: sizes that do not fit together.
    """
    tokenizer = word_tokenizer(vocabulary)
    model = build(config.model, vocabulary, vocabulary, config.seed)
    for module in model.modules():
        if isinstance(module, Embeddings):
            _rule_out_eos(module)
    checkpoint.save(folder, model.state_dict(), TokenizerPair(tokenizer, tokenizer), config, step=0)


@torch.no_grad()
def _rule_out_eos(embeddings: Embeddings) -> None:
    """Logits scatter around zero: that of EOS is zero or, where there is a bias, far below; never among the best."""
    embeddings.output_matrix[EOS] = 0.0
    if embeddings.output_bias is not None:
        embeddings.output_bias[EOS] = -100.0
