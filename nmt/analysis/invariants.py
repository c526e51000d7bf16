"""What every model promises whatever it has learned, asked of one checkpoint: the contract of ``nmt/models/base.py``.

    padding         a padded position has no weight, changes no feature, gets no gradient: exactly
    all padding     a source without a real token is read as nothing: zero weights, a zero context, no NaN
    batch           a sentence gives the same alone and beside longer ones, within the rounding of its products
    future          target token t changes no feature before t and sends no gradient to them: exactly
    steps           decoding step by step gives the features of teacher forcing, within rounding

Each has the largest deviation that was found. "Exactly" is zero, bit for bit: what is hidden is multiplied by 0, so
nothing of it may be left, and both sides of a comparison are computed in one shape and one order. Beside it stands how
large the same quantity is where it *may* be: a check that could have seen nothing says so instead of passing.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple, cast

import torch
from torch import Tensor

from nmt.analysis.relevance import reading_from
from nmt.data.batch import collate
from nmt.device import SearchPrecision, autocast, tf32
from nmt.models.base import TranslationModel
from nmt.models.ensemble import eval_mode
from nmt.models.memory import FixedVector, Memory, MemoryTable
from nmt.tokens import EOS

ROUNDING = {"fp32": 2e-5, "bf16": 0.1}
"""Largest difference that rounding may make, as a share of the largest feature. The size of a batch decides in which
order products are summed. In fp32 (a unit of 1e-7) that made 3e-7 to 3e-6 in trained models on a CPU, through 100
recurrent steps, too; in bf16 products are rounded to a unit of 0.004 to 0.008, several times on the way, and it made
0.006. A sentence that sees its neighbours is off by a good part of its features. A GPU does not round factors to TF32
meanwhile.
"""

SUMS = 1e-5
"""Largest difference of a row of weights from 1: softmax is in float32 in any case."""

MOST_PAIRS = 6
MOST_TARGET = 24
"""Pairs that are looked at, and tokens of each target: as many rows, and a pass back through each."""

State = Literal["holds", "broken", "does not apply"]


class Invariant(NamedTuple):
    """One promise and what was found."""

    name: str
    promise: str
    tolerance: float  # the largest deviation that is none
    deviation: float | None  # the largest that was found, infinite where there are values that are no numbers
    seen: float | None  # how large the same is where it may be; None: deviations are relative to it already
    reason: str | None = None  # why it does not apply

    @property
    def state(self) -> State:
        """What to make of it."""
        if self.deviation is None:
            return "does not apply"
        return "holds" if self.deviation <= self.tolerance else "broken"


class _Rows(NamedTuple):
    """Pairs, then a mate that is longer than any of them, then a row whose source is all padding."""

    source: Tensor  # [batch, src_len]
    source_lengths: Tensor  # [batch]
    target: Tensor  # [batch, tgt_len], what the decoder reads
    real: Tensor  # [batch, tgt_len], bool

    @property
    def padding(self) -> Tensor:
        """Of the source, [batch, src_len]."""
        return torch.arange(self.source.size(1), device=self.source.device) >= self.source_lengths[:, None]


def invariants(
    model: TranslationModel,
    pairs: Sequence[tuple[Sequence[int], Sequence[int]]],
    vocabularies: tuple[int, int],
    device: torch.device,
    precision: SearchPrecision,
) -> list[Invariant]:
    """Check them all.

    Args:
        model: in eval mode meanwhile.
        pairs: subwords of source (without EOS) and target; :func:`spread` chooses some.
        vocabularies: sizes of source and target.
        device: of the model.
        precision: of its products.
    """
    pairs = [(source, target[:MOST_TARGET]) for source, target in spread(pairs)]
    rows = _rows(pairs, device)
    rounding = ROUNDING[precision]
    with eval_mode([model]):
        found = []
        with _asking(device, precision):
            found += [*_weights(model, rows), _padding_features(model, rows, vocabularies), _nothing(model, rows)]
            found += [_batch(model, pairs, rows, rounding), _steps(model, rows, rounding)]
            found += [_future_features(model, pairs, vocabularies[1], device)]
        with _asking(device, precision, gradients=True):
            found += [_padding_gradients(model, rows), _future_gradients(model, pairs, device)]
    order = {name: place for place, name in enumerate(NAMES)}
    return sorted(found, key=lambda each: order[each.name])


NAMES = (
    "padding: weights",
    "padding: features",
    "padding: gradients",
    "all padding: weights",
    "all padding: context",
    "weights sum to 1",
    "batch",
    "future: features",
    "future: gradients",
    "steps",
)


def spread(pairs: Sequence[tuple[Sequence[int], Sequence[int]]]) -> list[tuple[Sequence[int], Sequence[int]]]:
    """Some of the pairs, from the shortest source to the longest."""
    ordered = sorted(pairs, key=lambda pair: len(pair[0]))
    count = min(MOST_PAIRS, len(ordered))
    places = {round(number * (len(ordered) - 1) / max(count - 1, 1)) for number in range(count)}
    return [ordered[place] for place in sorted(places)]


@contextmanager
def _asking(device: torch.device, precision: SearchPrecision, gradients: bool = False) -> Iterator[None]:
    """As in a search, or with gradients: for those without cuDNN, which has no way back through a recurrent layer in
    eval mode."""
    if gradients:
        with torch.backends.cudnn.flags(enabled=False), torch.enable_grad(), autocast(device, precision):
            yield
    else:
        with torch.inference_mode(), tf32(device, False), autocast(device, precision):
            yield


def _rows(pairs: Sequence[tuple[Sequence[int], Sequence[int]]], device: torch.device) -> _Rows:
    longest_source, longest_target = (max((pair[side] for pair in pairs), key=len) for side in (0, 1))
    mate = [*longest_source, *longest_source[:8]], [*longest_target, *longest_target[:3]]
    sources = [[*source, EOS] for source, _ in (*pairs, mate)]
    targets = [list(target) for _, target in (*pairs, mate)]
    return _collated([*sources, []], [*targets, targets[0]], device)


def _collated(sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]], device: torch.device) -> _Rows:
    batch = collate(sources, targets, range(len(sources))).to(device)
    return _Rows(batch.source, batch.source_lengths, batch.target_in, batch.target_mask)


def _largest(values: Tensor) -> float:
    """Magnitude; infinite where one is no number."""
    if values.numel() == 0:
        return 0.0
    if not bool(values.isfinite().all()):
        return math.inf
    return float(values.abs().max())


def _exact(name: str, promise: str, deviation: float, seen: float) -> Invariant:
    """One that has to be zero; where nothing is seen at all it says nothing."""
    if deviation == 0.0 and seen == 0.0:
        return Invariant(name, promise, 0.0, None, 0.0, "there is nothing to see where there may be something, either")
    return Invariant(name, promise, 0.0, deviation, seen)


# --- padding ----------------------------------------------------------------------------------------------------------


def _weights(model: TranslationModel, rows: _Rows) -> list[Invariant]:
    """Of padded positions, of a row of padding, and their sums."""
    promises = {
        "padding: weights": "no weight on a padded position",
        "all padding: weights": "no weight in a row that is all padding",
        "weights sum to 1": "a row of weights is a distribution",
    }
    if not model.attends:
        reason = "it reads one fixed vector and has no weights"
        return [Invariant(name, promise, 0.0, None, None, reason) for name, promise in promises.items()]
    weights = model.attention(rows.target, model.encode(rows.source, rows.source_lengths))
    by_place = weights.permute(0, 4, 1, 2, 3)  # [batch, src_len, layers, heads, tgt_len]
    sums = weights[:-1].sum(dim=-1).permute(0, 3, 1, 2)[rows.real[:-1]]  # [target tokens, layers, heads]
    seen = _largest(weights[:-1])
    one, other, third = promises.items()
    return [
        _exact(*one, _largest(by_place[:-1][rows.padding[:-1]]), seen),
        _exact(*other, _largest(weights[-1]), seen),
        Invariant(*third, SUMS, _largest(sums - 1), None),
    ]


def _padding_features(model: TranslationModel, rows: _Rows, vocabularies: tuple[int, int]) -> Invariant:
    """Any subwords may stand in the padding of both sides; elsewhere they are seen."""
    source, target = (
        (ids + 1) % vocabulary for ids, vocabulary in zip((rows.source, rows.target), vocabularies, strict=True)
    )
    features = model(rows.source, rows.source_lengths, rows.target)
    garbage = model(
        torch.where(rows.padding, source, rows.source),
        rows.source_lengths,
        torch.where(rows.real, rows.target, target),
    )
    other = model(torch.where(rows.padding, rows.source, source), rows.source_lengths, rows.target)
    return _exact(
        "padding: features",
        "what stands in the padding changes no feature",
        _largest((garbage - features)[rows.real].float()),
        _largest((other - features)[rows.real].float()),
    )


def _nothing(model: TranslationModel, rows: _Rows) -> Invariant:
    """The last row reads zeros, whatever its table holds; the first, with the same noise in its table, does not."""
    name, promise = "all padding: context", "a source that is all padding gives a zero context, and no NaN"
    memory = model.encode(rows.source, rows.source_lengths)
    features = model.decode(rows.target, memory).float()
    finite = 0.0 if bool(features[-1].isfinite().all()) else math.inf
    if isinstance(memory, FixedVector):
        last, first = (max(_largest(part[row].float()) for part in memory) for row in (-1, 0))
        return _exact(name, promise, max(last, finite), first)
    changed = (model.decode(rows.target, _noisy(memory, (0, -1))).float() - features).abs()
    return _exact(name, promise, max(_largest(changed[-1][rows.real[-1]]), finite), _largest(changed[0][rows.real[0]]))


def _noisy(memory: Memory, rows: Sequence[int]) -> Memory:
    """Keys and values of some rows are others."""
    if isinstance(memory, MemoryTable):
        keys, values = memory.keys.clone(), memory.values.clone()
        for part in (keys, values):
            for row in rows:
                part[row] = _noise(part[row].shape, part.device).to(part.dtype)
        return MemoryTable(keys, values, memory.mask)
    return cast(Memory, tuple(_noisy(cast(MemoryTable, table), rows) for table in memory))


def _noise(shape: Sequence[int], device: torch.device) -> Tensor:
    return torch.randn(tuple(shape), generator=torch.Generator().manual_seed(1)).to(device)


def _padding_gradients(model: TranslationModel, rows: _Rows) -> Invariant:
    """Of the features of all real target tokens, for every vector that was read."""
    source, target = _gradients(model, rows, rows.real)
    hidden = [source[rows.padding], target[~rows.real]]
    seen = [source[~rows.padding], target[rows.real]]
    return _exact(
        "padding: gradients",
        "no gradient to the vector of a padded position",
        max(map(_largest, hidden)),
        max(map(_largest, seen)),
    )


def _gradients(model: TranslationModel, rows: _Rows, of: Tensor) -> list[Tensor]:
    """d (a random sum of some features) / d (vectors of source and target): [batch, length, dim] each.

    Args:
        model: with gradients on.
        rows: what it reads.
        of: bool [batch, tgt_len], the target positions whose features count.
    """
    embeddings = cast(Any, model).embeddings
    vectors = [
        table(ids).detach().clone().requires_grad_()
        for table, ids in ((embeddings.source, rows.source), (embeddings.target, rows.target))
    ]
    places = [
        torch.arange(ids.size(1), device=ids.device).expand(ids.size(0), -1) for ids in (rows.source, rows.target)
    ]
    with reading_from(embeddings, *vectors):
        features = model(places[0], rows.source_lengths, places[1])
    total = (features[of].float() @ _noise(features.shape[-1:], features.device)).sum()
    return list(torch.autograd.grad(total, vectors, materialize_grads=True))


# --- batch, steps, future ---------------------------------------------------------------------------------------------


def _batch(
    model: TranslationModel, pairs: Sequence[tuple[Sequence[int], Sequence[int]]], rows: _Rows, rounding: float
) -> Invariant:
    together = model(rows.source, rows.source_lengths, rows.target).float()
    worst = 0.0
    for row, (source, target) in enumerate(pairs):
        own = _collated([[*source, EOS]], [target], rows.source.device)
        alone = model(own.source, own.source_lengths, own.target)[0].float()  # [tgt_len, dim]
        worst = max(worst, _share(together[row, : len(alone)] - alone, alone))
    return Invariant("batch", "a sentence gives the same alone and beside longer ones", rounding, worst, None)


def _share(difference: Tensor, of: Tensor) -> float:
    """The largest difference as a share of the largest number."""
    largest, scale = _largest(difference), _largest(of)
    return largest / scale if 0 < scale < math.inf else largest if scale == 0 else math.inf


def _steps(model: TranslationModel, rows: _Rows, rounding: float) -> Invariant:
    memory = model.encode(rows.source, rows.source_lengths)
    forced = model.decode(rows.target, memory).float()[rows.real]
    stepped = TranslationModel.decode(model, rows.target, memory).float()[rows.real]  # a loop over steps
    deviation = _share(stepped - forced, forced)
    return Invariant("steps", "decoding step by step gives the features of teacher forcing", rounding, deviation, None)


def _future_features(
    model: TranslationModel, pairs: Sequence[tuple[Sequence[int], Sequence[int]]], vocabulary: int, device: torch.device
) -> Invariant:
    """A row for each token of a target, in which that token is another."""
    early, late = 0.0, 0.0
    for pair in pairs:
        rows = _copies(pair, device)
        places = torch.arange(len(rows.target), device=device)
        other = rows.target.clone()
        other[places, places] = (other[places, places] + 1) % vocabulary
        memory = model.encode(rows.source, rows.source_lengths)
        changed = (model.decode(other, memory) - model.decode(rows.target, memory)).float()
        before = places < places[:, None]  # [row, tgt_len]: the changed token is number `row`
        early, late = max(early, _largest(changed[before])), max(late, _largest(changed[~before]))
    return _exact("future: features", "a target token changes no feature before it", early, late)


def _future_gradients(
    model: TranslationModel, pairs: Sequence[tuple[Sequence[int], Sequence[int]]], device: torch.device
) -> Invariant:
    """A row for each token of a target, whose gradient is that of the features at it."""
    later, seen = 0.0, 0.0
    for pair in pairs:
        rows = _copies(pair, device)
        places = torch.arange(len(rows.target), device=device)
        _, target = _gradients(model, rows, places == places[:, None])
        after = places > places[:, None]  # [row, tgt_len]
        later, seen = max(later, _largest(target[after])), max(seen, _largest(target[~after]))
    return _exact("future: gradients", "a feature has no gradient to a later target token", later, seen)


def _copies(pair: tuple[Sequence[int], Sequence[int]], device: torch.device) -> _Rows:
    """As many rows of one pair as its target has tokens."""
    source, target = pair
    return _collated([[*source, EOS] for _ in target], [target for _ in target], device)
