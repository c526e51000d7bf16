"""Probing: how many words of the source can be told from what the encoder leaves, by position?

A small network, trained beside the finished model, gets one vector from the memory and a place (j-th subword, k-th
from the end) and says which subword stands there (Alain and Bengio 2017; for sentence vectors: Adi et al. 2017). A
vector that has lost the word cannot be made to say it; that a probe fails is no proof that it has, which is why it may
choose by the place what it reads (a gate): a row of a table needs none, a fixed vector does.

**One probe for all architectures**, of the same hidden size, updates and sentences. What differs is what it is given:

    vector        all layers' hidden and cell states side by side: all that the decoder of a fixed-vector model gets
    row           of a table, row j itself. A table is addressed: to hand over the row that is asked for is what a table
                  is, and what the vector has not. It says what is *in* the table, not that a decoder finds it
    mean of rows  the same table made one vector: what is left when nothing can be addressed. This stands beside
                  ``vector`` on equal terms

The rows are the *values*, of which contexts are made; keys are only compared with. Of a Transformer those of all
decoder layers side by side: each is a linear map of the encoder's output, and together they lose next to nothing of it.

Controls: ``place`` is the same probe that is given zeros for a vector (what the place alone tells: sentences begin
and end alike); the same probes on the memory of a model of the same configuration that nobody has trained. (Hewitt and
Liang 2019: without a control a probe's accuracy may be the probe's own.)
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nmt.data.batch import pad_rows
from nmt.device import SearchPrecision, autocast
from nmt.models.base import TranslationModel
from nmt.models.ensemble import eval_mode
from nmt.models.memory import FixedVector, Memory, MemoryTable

HIDDEN = 256
CLASSES = 1000
"""The most frequent subwords, among which a probe chooses; places of others are neither trained nor tested on."""
PLACES = 64
"""Told apart from each end; those beyond share the last."""
BATCH_SENTENCES = 32
LEARNING_RATE = 2e-3
STATISTICS_SENTENCES = 512
"""Of training, by which memories are brought to mean 0 and deviation 1: their scales differ by architecture."""
PLACE_ALONE = "place"


class MemoryProbe(nn.Module):
    """logits = W_o relu((W v) * (1 + g) + b), where g and b are looked up by place, from either end, and v is scaled.

    Args:
        sample: [vectors, dim] of training, to scale by.
        classes: number of subwords to choose among.
        generator: of the parameters.
    """

    def __init__(self, sample: Tensor, classes: int, generator: torch.Generator) -> None:
        super().__init__()
        self.mean: Tensor
        self.scale: Tensor
        deviation = sample.std(dim=0, correction=0)
        self.register_buffer("mean", sample.mean(dim=0))
        self.register_buffer("scale", torch.where(deviation > 1e-6, deviation, 1.0))  # what never changes stays 0
        self.read = nn.Linear(sample.size(1), HIDDEN)
        self.from_start = nn.Embedding(PLACES, 2 * HIDDEN)
        self.from_end = nn.Embedding(PLACES, 2 * HIDDEN)
        self.classes = nn.Linear(HIDDEN, classes)
        with torch.no_grad():
            for table in (self.from_start, self.from_end):
                table.weight.normal_(std=0.3, generator=generator)
            for layer in (self.read, self.classes):
                nn.init.xavier_uniform_(layer.weight, generator=generator)
                layer.bias.zero_()

    def forward(self, vectors: Tensor, from_start: Tensor, from_end: Tensor) -> Tensor:
        """[words, dim] and places [words] from 0 on -> [words, classes]."""
        ends = self.from_start(from_start.clamp(max=PLACES - 1)) + self.from_end(from_end.clamp(max=PLACES - 1))
        gate, shift = ends.chunk(2, dim=-1)
        logits: Tensor = self.classes(F.relu(self.read((vectors - self.mean) / self.scale) * (1 + gate) + shift))
        return logits


class Recovered(NamedTuple):
    """What the probes of one model found in the sentences they were tested on."""

    right: dict[str, list[np.ndarray]]  # by what the probe was given: of each sentence [words] bool
    widths: dict[str, int]  # numbers that it was given


class Words(NamedTuple):
    """The words of some sentences that can be asked for."""

    rows: Tensor  # [words], which sentence
    places: Tensor  # [words], from 0
    from_end: Tensor  # [words], from 0
    classes: Tensor  # [words]


def frequent(sentences: Sequence[np.ndarray]) -> np.ndarray:
    """The ids of the classes, most frequent first; [CLASSES] or fewer."""
    ids, counts = np.unique(np.concatenate(sentences), return_counts=True)
    return ids[np.argsort(-counts, kind="stable")][:CLASSES]


def words_of(source: Tensor, lengths: Tensor, classes: np.ndarray) -> Words:
    """All words of a batch that are among the classes, EOS left out. ``source`` and ``lengths`` as the encoder's."""
    lookup = torch.full((int(max(source.max(), classes.max())) + 1,), -1)
    lookup[torch.from_numpy(classes.astype(np.int64))] = torch.arange(len(classes))
    found = lookup[source]
    real = torch.arange(source.size(1)) < (lengths - 1)[:, None]
    rows, places = torch.nonzero(real & (found >= 0), as_tuple=True)
    return Words(rows, places, lengths[rows] - 2 - places, found[rows, places])


def probe(
    model: TranslationModel,
    train: Sequence[np.ndarray],
    test: Sequence[np.ndarray],
    classes: np.ndarray,
    updates: int,
    seed: int,
    device: torch.device,
    precision: SearchPrecision,
    with_place: bool = True,
) -> Recovered:
    """Train probes on some sentences and ask them about others.

    Args:
        model: in eval mode meanwhile; not changed.
        train: source ids of sentences, each with EOS; taken in random order, again and again as ``updates`` want.
        test: the same, of other sentences.
        classes: of :func:`frequent`.
        updates: of every probe.
        seed: of order and parameters.
        device: of the model.
        precision: of its products; the probes' are float32.
        with_place: also ask the probe that knows the place alone; it is the same one whatever the memory.
    """
    generator = torch.Generator().manual_seed(seed)
    sample, _ = _read(model, train[:STATISTICS_SENTENCES], classes, device, precision)
    if not with_place:
        del sample[PLACE_ALONE]
    probes = {name: MemoryProbe(each.cpu(), len(classes), generator).to(device) for name, each in sample.items()}
    optimizer = torch.optim.Adam([weight for each in probes.values() for weight in each.parameters()], LEARNING_RATE)
    for update, chosen in enumerate(_batches(len(train), updates, generator)):
        optimizer.param_groups[0]["lr"] = LEARNING_RATE * (1 - update / updates)
        found, words = _read(model, [train[row] for row in chosen], classes, device, precision)
        if len(words.rows) == 0:
            continue
        places, ends, wanted = (each.to(device) for each in words[1:])
        losses = [F.cross_entropy(each(found[name], places, ends), wanted) for name, each in probes.items()]
        optimizer.zero_grad()
        torch.autograd.backward(losses)
        optimizer.step()
    return _test(model, probes, test, classes, device, precision)


def _test(
    model: TranslationModel,
    probes: dict[str, MemoryProbe],
    test: Sequence[np.ndarray],
    classes: np.ndarray,
    device: torch.device,
    precision: SearchPrecision,
) -> Recovered:
    right: dict[str, list[np.ndarray]] = {name: [] for name in probes}
    for start in range(0, len(test), BATCH_SENTENCES):
        part = test[start : start + BATCH_SENTENCES]
        found, words = _read(model, part, classes, device, precision)
        places, ends, wanted = (each.to(device) for each in words[1:])
        bounds = np.searchsorted(words.rows.numpy(), np.arange(1, len(part)))
        for name, each in probes.items():
            with torch.inference_mode():
                hit = (each(found[name], places, ends).argmax(dim=1) == wanted).cpu().numpy()
            right[name] += np.split(hit, bounds)
    return Recovered(right, {name: each.read.in_features for name, each in probes.items()})


def _batches(size: int, updates: int, generator: torch.Generator) -> Iterator[list[int]]:
    """So many batches of rows: every row once before any again."""
    order: list[int] = []
    for _ in range(updates):
        while len(order) < min(BATCH_SENTENCES, size):
            order += torch.randperm(size, generator=generator).tolist()
        yield order[:BATCH_SENTENCES]
        order = order[BATCH_SENTENCES:]


def _read(
    model: TranslationModel,
    sentences: Sequence[np.ndarray],
    classes: np.ndarray,
    device: torch.device,
    precision: SearchPrecision,
) -> tuple[dict[str, Tensor], Words]:
    """What each probe is given for each word, [words, dim] float32, and the words."""
    source, lengths = pad_rows(sentences)
    words = words_of(source, lengths, classes)
    with torch.no_grad(), eval_mode([model]), autocast(device, precision):
        memory = model.encode(source.to(device), lengths.to(device))
    rows, places = words.rows.to(device), words.places.to(device)
    found = {name: each.float() for name, each in views(memory, rows, places).items()}
    width = next(iter(found.values())).size(1)
    return found | {PLACE_ALONE: torch.zeros(len(rows), width, device=device)}, words


def views(memory: Memory, rows: Tensor, places: Tensor) -> dict[str, Tensor]:
    """By name, what a memory has to give for words at ``places`` of sentences ``rows``: [words, dim] each."""
    if isinstance(memory, FixedVector):
        return {"vector": torch.cat([part.flatten(1) for part in memory], dim=1)[rows]}
    tables = (memory,) if isinstance(memory, MemoryTable) else memory
    values = torch.cat([_rows_of(table) for table in tables], dim=-1)  # [batch, src_len, dim]
    mask = tables[0].mask[..., None]
    mean = values.masked_fill(~mask, 0.0).sum(dim=1) / mask.sum(dim=1).clamp(min=1)  # [batch, dim]
    return {"row": values[rows, places], "mean of rows": mean[rows]}


def _rows_of(table: MemoryTable) -> Tensor:
    """Values [batch, src_len, dim], heads side by side."""
    values = table.values
    return values if values.dim() == 3 else values.transpose(1, 2).flatten(2)
