"""The part ``exposure``: what a model makes of prefixes that it has never been trained to read.

In training the word before is always the reference's; in translation it is the model's own (Bengio et al. 2015; Ranzato
et al. 2016 call it exposure bias). Behind a prefix of its own the reference has no next word of its own, so *what* is
compared must be said. Here it is always -log p of a reference token behind a changed prefix less that of **the same
token behind the true prefix**, of the same length, with the same source and memory: an *excess*, in nats per token.

1. *Corruption in steps.* A share p of the tokens of the reference's prefix is replaced; what is replaced at a smaller p
   stays so at a larger one. By **words drawn** from how often they occur (they know nothing of the model), and by the
   model's **own slips**: drawn from what it predicts at that place behind the true prefix, the true token left out. All
   tokens of the reference are predicted, at every p the same ones: what is replaced afterwards has no part in that.
2. *Its own prefixes.* The first t tokens of the model's own translation stand for the first t of the reference, and the
   next :data:`NEXT` tokens of the reference are predicted (the true ones among them are read in between). Beside it as
   many words drawn, **in the places where the two differ**: the same number of wrong tokens (Hamming distance), in the
   same places, without anything of the model in them.

An excess alone is no mismatch: who reads the prefix at all is misled by a false one, and a model that ignores it has an
excess of 0. Mismatch is what its own prefixes cost *more than as many words drawn*; that they cost more the longer they
are is that mistakes add up (He et al. 2021 ask the same of language models; Wang and Sennrich 2020 of translation).
What remains mixed: a prefix that says the same in other words is no mistake, and yet goes on differently from the
reference; and one that is shifted by a word counts as wrong in all places behind it.
"""

import zlib
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from nmt.analysis.diagnosis import LeftOut, Pair, Subject, model_name
from nmt.analysis.ratios import Bins, Curve, Grouped, Ratio, bins, curve, grouped, ratios
from nmt.data.batch import Batch, collate
from nmt.device import autocast
from nmt.forced import PROJECTED_ROWS
from nmt.models.base import TranslationModel
from nmt.models.ensemble import eval_mode
from nmt.models.memory import Memory, select_rows
from nmt.tokens import BOS, EOS, PAD
from nmt.translation import batches_by_length

BATCH_TOKENS = 4096
COUNTED_SENTENCES = 20000
"""Of training, for how often words occur."""
LEVELS = (0.1, 0.2, 0.4)
"""Shares of a prefix that are replaced."""
DRAWN, SLIPS = "words drawn", "own slips"
CUTS = (1, 2, 4, 6, 8, 12, 16, 24, 32, 48)
"""Lengths of prefixes of the model's own."""
NEXT = 5
"""Tokens predicted behind one."""
PLACES = (1, 2, 3, 5, 8, 12, 16, 20, 30, 50)


class Corrupted(NamedTuple):
    """The excess at one share of replaced tokens."""

    level: float
    excess: Ratio
    by_place: Curve  # of the predicted token in the target


class Exposure(NamedTuple):
    """What the part has measured; all differences are nats per token."""

    model: str
    architecture: str
    pairs: int
    translations: str  # how its own were made
    words_from: str  # where words are drawn
    nll: Ratio  # behind the true prefix
    corrupted: dict[str, list[Corrupted]]  # words drawn, own slips
    slips_less_drawn: Ratio  # at the largest share
    differing: Curve  # share of the tokens of its own prefixes that are not the reference's, by length of the prefix
    own: Curve  # excess behind its own prefixes
    drawn: Curve  # behind as many words drawn
    own_all: Ratio  # over all lengths
    drawn_all: Ratio
    own_less_drawn: Ratio
    own_less_drawn_by_length: Curve


class _Asked(NamedTuple):
    """One pair, and all that was asked about it: -log p [tgt_len] behind the true and the corrupted prefix; at each cut
    -log p [next] behind the true one, its own, words drawn."""

    true: np.ndarray
    corrupted: dict[tuple[str, float], np.ndarray]
    cuts: dict[int, tuple[np.ndarray, np.ndarray, np.ndarray]]
    differing: dict[int, float]


def measure(subject: Subject) -> Exposure:
    """Ask everything of pairs with references.

    Raises:
        LeftOut: there are no references.
    """
    pairs, own = subject.referenced, [each.ids for each in subject.translations]
    draw, words_from = _words(subject)
    generator = np.random.Generator(np.random.PCG64([subject.seed, zlib.crc32(b"exposure")]))
    asked: list[_Asked | None] = [None] * len(pairs)
    lengths = {row: max(len(pair.source_ids), len(pair.target_ids)) for row, pair in enumerate(pairs)}
    with torch.inference_mode(), eval_mode([subject.checkpoint.model]), autocast(subject.device, subject.precision):
        for rows in batches_by_length(lengths, BATCH_TOKENS):
            found = _ask(subject, [pairs[row] for row in rows], [own[row] for row in rows], draw, generator)
            for row, each in zip(rows, found, strict=True):
                asked[row] = each
    beam = subject.search.beam_size
    how = "greedy search" if beam == 1 else f"beam search, beam size {beam}"
    return _summary(subject, [each for each in asked if each is not None], how, words_from)


def _words(subject: Subject) -> tuple[Callable[[np.random.Generator, int], np.ndarray], str]:
    """What draws target subwords by how often they occur: in training where it can be had, else in the references."""
    try:
        target = subject.prepared.train.target
    except LeftOut:
        rows, whence = [np.array(pair.target_ids) for pair in subject.referenced], "the references"
    else:
        generator = np.random.Generator(np.random.PCG64([subject.seed, zlib.crc32(b"words drawn")]))
        chosen = generator.choice(len(target), min(len(target), COUNTED_SENTENCES), replace=False)
        rows, whence = [np.asarray(target[row]) for row in chosen.tolist()], "the training text"
    counts = np.bincount(np.concatenate(rows))
    counts[[token for token in (PAD, BOS, EOS) if token < len(counts)]] = 0
    shares = counts / counts.sum()
    return lambda generator, number: generator.choice(len(shares), number, p=shares), whence


# --- asking -----------------------------------------------------------------------------------------------------------


def _ask(
    subject: Subject,
    pairs: Sequence[Pair],
    own: Sequence[Sequence[int]],
    draw: Callable[[np.random.Generator, int], np.ndarray],
    generator: np.random.Generator,
) -> list[_Asked]:
    """One batch of pairs with the model's own translations of them."""
    model = subject.checkpoint.model
    batch = collate([pair.source_ids for pair in pairs], [pair.target_ids for pair in pairs], range(len(pairs)))
    chance = generator.random(batch.target_out.shape)
    words = other_words(batch.target_out.numpy(), draw, generator)  # [batch, tgt_len], none of them the true one
    on_device = batch.to(subject.device)
    memory = model.encode(on_device.source, on_device.source_lengths)
    features = model.decode(on_device.target_in, memory)
    true = _nll(model, features, on_device.target_out, on_device.target_mask)
    wanted = torch.from_numpy(chance < max(LEVELS)) & (batch.target_out != EOS) & batch.target_mask
    slips = _slips(model, features, on_device, wanted, generator)
    corrupted = {}
    for kind, others in ((DRAWN, words), (SLIPS, slips)):
        for level in LEVELS:
            changed = np.where((chance < level) & wanted.numpy(), others, batch.target_out.numpy())
            target_in = _shifted(torch.from_numpy(changed), batch).to(subject.device)
            decoded = model.decode(target_in, memory)
            corrupted[kind, level] = _nll(model, decoded, on_device.target_out, on_device.target_mask)
    found = [
        _Asked(true[row, :size], {key: each[row, :size] for key, each in corrupted.items()}, {}, {})
        for row, size in enumerate(batch.target_lengths.tolist())
    ]
    for cut in CUTS:
        _ask_behind(model, memory, batch, own, words, cut, subject.device, found)
    return found


def _ask_behind(
    model: TranslationModel,
    memory: Memory,
    batch: Batch,
    own: Sequence[Sequence[int]],
    words: np.ndarray,
    cut: int,
    device: torch.device,
    found: list[_Asked],
) -> None:
    """Put into ``found`` what follows the first ``cut`` tokens of the model's own, where both sides are so long."""
    lengths = batch.target_lengths.tolist()
    rows = [row for row, ids in enumerate(own) if len(ids) >= cut and lengths[row] > cut]
    if not rows:
        return
    reference = batch.target_out.numpy()[rows, : cut + NEXT]  # [rows, cut + next], some shorter than that
    mine = reference.copy()
    mine[:, :cut] = [own[row][:cut] for row in rows]
    differs = mine != reference
    place = torch.tensor(rows)
    part = Batch(*(each[place] for each in batch))
    selected = select_rows(memory, place.to(device))
    width = reference.shape[1]
    mask = part.target_mask[:, :width].clone()
    mask[:, :cut] = False
    target_out, mask = part.target_out[:, :width].to(device), mask.to(device)
    values = []
    for prefix in (mine, np.where(differs, words[rows][:, :width], reference)):
        target_in = _shifted(torch.from_numpy(prefix), part).to(device)
        values.append(_nll(model, model.decode(target_in, selected), target_out, mask))
    for number, row in enumerate(rows):
        span = slice(cut, min(lengths[row], width))
        found[row].cuts[cut] = (found[row].true[span], values[0][number, span], values[1][number, span])
        found[row].differing[cut] = float(differs[number, :cut].mean())


def _shifted(target_out: Tensor, batch: Batch) -> Tensor:
    """``target_in`` of changed tokens [rows, width]: BOS, then all but the last; PAD where the batch has it."""
    width = target_out.size(1)
    target_in = target_out.roll(1, dims=1)
    target_in[:, 0] = BOS
    return target_in.masked_fill(~batch.target_mask[:, :width], PAD)


def _nll(model: TranslationModel, features: Tensor, target_out: Tensor, mask: Tensor) -> np.ndarray:
    """-log p of the tokens where the mask is, 0 elsewhere: [rows, width] float64."""
    values = torch.zeros(mask.shape, dtype=torch.float64)
    real, tokens = features[mask], target_out[mask]
    parts = [
        torch.log_softmax(model.project(some), dim=-1, dtype=torch.float32).gather(1, ids[:, None])[:, 0]
        for some, ids in zip(_parts(real), _parts(tokens), strict=True)
    ]
    values[mask.cpu()] = -torch.cat(parts).double().cpu()
    found: np.ndarray = values.numpy()
    return found


def _parts(rows: Tensor) -> list[Tensor]:
    """A few rows at a time, so that not all logits exist at once."""
    return [rows[start : start + PROJECTED_ROWS] for start in range(0, len(rows), PROJECTED_ROWS)]


def _slips(
    model: TranslationModel, features: Tensor, batch: Batch, wanted: Tensor, generator: np.random.Generator
) -> np.ndarray:
    """Where they are wanted, tokens drawn from the model's predictions, the true one and those that are no words left
    out: [batch, tgt_len]."""
    slips = batch.target_out.cpu().clone()
    drawing = torch.Generator().manual_seed(int(generator.integers(1 << 62)))
    at = wanted.to(features.device)
    parts = []
    for some, true in zip(_parts(features[at]), _parts(batch.target_out[at]), strict=True):
        logits = model.project(some).float()
        logits[:, [PAD, BOS, EOS]] = -torch.inf
        logits.scatter_(1, true[:, None], -torch.inf)
        parts.append(torch.multinomial(logits.softmax(dim=-1).cpu(), 1, generator=drawing)[:, 0])
    if parts:
        slips[wanted] = torch.cat(parts)
    return slips.numpy()


def other_words(
    true: np.ndarray, draw: Callable[[np.random.Generator, int], np.ndarray], generator: np.random.Generator
) -> np.ndarray:
    """A word drawn for every token, another than it: [batch, tgt_len]. Where there is no other, the token itself."""
    others = true.copy()
    for _ in range(_ATTEMPTS):
        same = others == true
        others[same] = draw(generator, int(same.sum()))
    return others


_ATTEMPTS = 20


# --- summing up -------------------------------------------------------------------------------------------------------


def _summary(subject: Subject, asked: Sequence[_Asked], translations: str, words_from: str) -> Exposure:
    seed = subject.seed
    places = [np.arange(1, len(each.true) + 1) for each in asked]
    axis = bins(np.concatenate(places), PLACES)
    groups = list(map(axis.place, places))
    corrupted: dict[str, list[Corrupted]] = {DRAWN: [], SLIPS: []}
    for kind in corrupted:
        for level in LEVELS:
            excess = [each.corrupted[kind, level] - each.true for each in asked]
            by_place = curve(grouped(excess, groups, len(axis.names)), axis, seed)
            corrupted[kind].append(Corrupted(level, _all(excess, seed), by_place))
    last = LEVELS[-1]
    apart = [each.corrupted[SLIPS, last] - each.corrupted[DRAWN, last] for each in asked]
    cuts = [cut for cut in CUTS if any(cut in each.cuts for each in asked)]
    if not cuts:
        raise LeftOut("no own translation and reference of two tokens or more: nothing can follow a prefix")
    own = _by_cut([{cut: mine - true for cut, (true, mine, _) in each.cuts.items()} for each in asked], cuts)
    drawn = _by_cut([{cut: other - true for cut, (true, _, other) in each.cuts.items()} for each in asked], cuts)
    own_less_drawn = Grouped(own.sums - drawn.sums, own.counts)
    differing = _by_cut([{cut: np.array([value]) for cut, value in each.differing.items()} for each in asked], cuts)
    at = Bins(list(map(str, cuts)), list(map(float, cuts)), lambda found: found)
    return Exposure(
        model=model_name(subject.checkpoint),
        architecture=subject.checkpoint.config.model.name,
        pairs=len(asked),
        translations=translations,
        words_from=words_from,
        nll=_all([each.true for each in asked], seed),
        corrupted=corrupted,
        slips_less_drawn=_all(apart, seed),
        differing=curve(differing, at, seed),
        own=curve(own, at, seed),
        drawn=curve(drawn, at, seed),
        own_all=ratios(_together(own), seed)[0],
        drawn_all=ratios(_together(drawn), seed)[0],
        own_less_drawn=ratios(_together(own_less_drawn), seed)[0],
        own_less_drawn_by_length=curve(own_less_drawn, at, seed),
    )


def _all(values: Sequence[np.ndarray], seed: int) -> Ratio:
    return ratios(grouped(values, [np.zeros(len(own), dtype=np.int64) for own in values], 1), seed)[0]


def _by_cut(values: Sequence[dict[int, np.ndarray]], cuts: Sequence[int]) -> Grouped:
    """Of each sentence, values by cut."""
    empty = np.empty(0)
    flat = [np.concatenate([own.get(cut, empty) for cut in cuts]) for own in values]
    groups = [np.repeat(np.arange(len(cuts)), [len(own.get(cut, empty)) for cut in cuts]) for own in values]
    return grouped(flat, groups, len(cuts))


def _together(data: Grouped) -> Grouped:
    return Grouped(data.sums.sum(axis=1, keepdims=True), data.counts.sum(axis=1, keepdims=True))
