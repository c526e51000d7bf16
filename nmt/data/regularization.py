"""Subword regularisation: training pairs are cut into other subwords every epoch.

BPE-dropout (Provilkov, Emelianenko and Voita 2020) where the subwords are BPE: each merge is skipped with the rate's
probability. Sampling from the unigram model (Kudo 2018) where they are unigram: a segmentation is drawn with
probability proportional to its own to the power of alpha.

What a row is cut into follows from (seed, epoch, row, side) and from nothing else: not from what was cut before it, in
which process, or beside which other rows. A row that occurs twice in an epoch (a mixture) is cut the same way twice.
"""

from typing import Literal

import numpy as np

from nmt.data.batch import Batch, collate
from nmt.data.segmentation import Segmenter, segmenter
from nmt.data.store import SIDES, PairDataset, Side
from nmt.data.tokenizer import TokenizerPair
from nmt.tokens import EOS


class SubwordSampler:
    """Cuts pairs of training anew.

    Args:
        dataset: with its text.
        tokenizers: that its ids were made with.
        kind: of their subwords.
        rate: of BPE-dropout, or alpha of the unigram model.
        seed: of the run.
        longest: most subwords a side, EOS included. A row that a draw makes longer is taken as it is stored, in its
            best segmentation: it is one of the few that are nearly too long even so.

    Raises:
        DataError: the data set keeps no text.
    """

    def __init__(
        self,
        dataset: PairDataset,
        tokenizers: TokenizerPair,
        kind: Literal["bpe", "unigram"],
        rate: float,
        seed: int,
        longest: int,
    ) -> None:
        self._dataset = dataset
        source = segmenter(kind, tokenizers.source, rate)
        target = source if tokenizers.joint else segmenter(kind, tokenizers.target, rate)
        self._segmenters: dict[Side, Segmenter] = {"source": source, "target": target}
        self._text = {side: dataset.text(side) for side in SIDES}
        self._seed = seed
        self._longest = longest

    def batch(self, epoch: int, rows: np.ndarray) -> Batch:
        """The pairs ``rows`` as they are cut in an epoch, in that order."""
        source, target = (self._cut(side, epoch, rows) for side in SIDES)
        return collate(source, target, rows.tolist())

    def _cut(self, side: Side, epoch: int, rows: np.ndarray) -> list[list[int] | np.ndarray]:
        segment = self._segmenters[side]
        stored = getattr(self._dataset, side)
        text = self._text[side]
        cut: list[list[int] | np.ndarray] = []
        for row, seed in zip(rows.tolist(), row_seeds(self._seed, epoch, side, rows).tolist(), strict=True):
            ids = [*segment.sample(text[row], seed), EOS]
            cut.append(ids if len(ids) <= self._longest else stored[row])
        return cut


def row_seeds(seed: int, epoch: int, side: Side, rows: np.ndarray) -> np.ndarray:
    """[len(rows)] of 31 bits, one for each row of a side in an epoch of a run: hashes (splitmix64, Steele et al. 2014),
    so that no two rows, epochs or sides have related ones."""
    [base] = np.random.SeedSequence([seed, epoch, SIDES.index(side)]).generate_state(1, np.uint64)
    state = base + (rows.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)  # modulo 2^64, as all here
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray((state ^ (state >> np.uint64(31))) >> np.uint64(33))
