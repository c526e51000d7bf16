"""What attention stands beside when it is measured as an aligner: chance, the diagonal, IBM Model 1, and what others
have published. Each gives weights as attention does, [target words, source words + 1], the last column for nothing."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from nmt.analysis.gold import GoldPair, Side
from nmt.analysis.word_attention import means, shares
from nmt.data.store import PairDataset
from nmt.data.tokenizer import TokenizerPair
from nmt.lexicon import Lexicon, Pair, learn

CELLS = 60_000_000
"""Source subword x target subword of all pairs that a lexicon is learned from; some 20 bytes each."""


def chance(sizes: Sequence[tuple[int, int]], seed: int) -> list[np.ndarray]:
    """Every source word is as likely as any other, drawn anew for each target word.

    Args:
        sizes: source and target words of each pair.
        seed: of the draw.
    """
    generator = np.random.Generator(np.random.PCG64(seed))
    drawn = (generator.random((target, source)) for source, target in sizes)
    return [np.concatenate([weights, np.zeros((len(weights), 1))], axis=1) for weights in drawn]


def diagonal(sizes: Sequence[tuple[int, int]]) -> list[np.ndarray]:
    """The source word that stands where the target word stands, at the same fraction of its sentence."""
    found = []
    for source, target in sizes:
        distance = np.abs((np.arange(target)[:, None] + 0.5) / target - (np.arange(source) + 0.5) / source)
        found.append(np.concatenate([1.0 - distance, np.zeros((target, 1))], axis=1))
    return found


class Learned(NamedTuple):
    """A lexicon and what it was learned from."""

    lexicon: Lexicon
    pairs: int
    of: int  # pairs that there are


def learn_lexicon(train: PairDataset, tokenizers: TokenizerPair, seed: int, inverse: bool = False) -> Learned:
    """IBM Model 1 over the subwords of a run's training pairs, or of as many of them as :data:`CELLS` allow.

    Args:
        train: prepared pairs.
        tokenizers: of both sides.
        seed: of the choice among more pairs.
        inverse: from target to source.
    """
    order = np.random.Generator(np.random.PCG64(seed)).permutation(len(train))
    cells = np.cumsum(train.source_lengths[order].astype(np.int64) * train.target_lengths[order])
    chosen = np.sort(order[: max(1, int(np.searchsorted(cells, CELLS)))]).tolist()

    def pairs() -> Iterator[Pair]:
        for row in chosen:
            source, target = train.source[row][:-1], train.target[row][:-1]  # without EOS
            yield (target, source) if inverse else (source, target)

    sizes = (tokenizers.source.vocabulary_size, tokenizers.target.vocabulary_size)
    return Learned(learn(pairs(), sizes[::-1] if inverse else sizes), len(chosen), len(train))


def lexicon_weights(lexicon: Lexicon, tokenizers: TokenizerPair, source: Side, target: Side) -> np.ndarray:
    """Which source word explains each target word: p(a_t = j | pair) of the subwords, brought to words as attention is;
    the last column is the empty word's."""
    given = lexicon.of(tokenizers.source.encode(source.text), tokenizers.target.encode(target.text))
    posterior = given / np.maximum(given.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny)
    of_pieces = np.roll(posterior, -1, axis=1)  # the empty word, which came first, is last as EOS is
    rows = means(shares(tokenizers.target, target))[:-1, :-1]
    found: np.ndarray = rows.T @ of_pieces @ shares(tokenizers.source, source)
    return found


class Published(NamedTuple):
    """A figure of somebody else for the same test set."""

    aligner: str
    aer: float  # fractions of 1
    precision: float
    recall: float


WPT2003 = "WPT 2003, English-French (Mihalcea and Pedersen 2003)"

_WPT2003_COUNTS = (447, 4038, 17438)  # pairs, sure links, possible links with the sure ones

PUBLISHED_SOURCE = "https://github.com/lilt/alignment-scripts; trained on the Hansards, the test set's own domain"
PUBLISHED = (
    Published("fast_align, en-fr", 0.164, 0.800, 0.901),
    Published("fast_align, fr-en", 0.159, 0.813, 0.887),
    Published("fast_align, grow-diag", 0.105, 0.908, 0.878),
    Published("fast_align, grow-diag-final", 0.121, 0.877, 0.883),
    Published("MGIZA, en-fr", 0.080, 0.914, 0.929),
    Published("MGIZA, fr-en", 0.098, 0.916, 0.883),
    Published("MGIZA, grow-diag", 0.059, 0.975, 0.897),
    Published("MGIZA, grow-diag-final", 0.062, 0.955, 0.916),
)


def published(pairs: Sequence[GoldPair]) -> tuple[Published, ...]:
    """What is known of this test set; nothing where it is none that we know (by its counts of pairs and links)."""
    found = (len(pairs), sum(len(pair.sure) for pair in pairs), sum(len(pair.possible) for pair in pairs))
    return PUBLISHED if found == _WPT2003_COUNTS else ()
