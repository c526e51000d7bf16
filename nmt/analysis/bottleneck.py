"""The part ``bottleneck``: what is lost between the source and the decoder, before any word has been written.

Every prefix is the reference's own: no mistake of the model's can play a part (``exposure`` is about those). Two views:

1. *-log p of the reference's tokens, by the length of the source and by the place in the target* (a place as a share of
   the length stands in for the place in the source, as far as word order is alike), and BLEU of the model's own
   translations in the same groups. Long sentences differ from short ones in more than length: a slope is a symptom.
2. *Probing* (see ``probing``): how many words of the source can be told from the memory, by place and length. This is
   what a bottleneck means: a word that is not in the memory cannot be translated.

Of probing the figure to go by is the share of those words that the place alone does not tell,
(right with memory - right by place alone) / (words - right by place alone): sentences begin and end alike, and what is
guessed from that is not memory.
"""

import zlib
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from nmt.analysis.diagnosis import LeftOut, Subject, model_name
from nmt.analysis.probing import PLACE_ALONE, Recovered, frequent, probe
from nmt.analysis.ratios import Bins, Curve, Grouped, Ratio, bins, curve, grouped, interval, ratios, resampled
from nmt.data.batch import collate
from nmt.device import autocast
from nmt.evaluation.metrics import Score
from nmt.evaluation.slices import by_source_length, scores_by_slice
from nmt.forced import force
from nmt.models import build
from nmt.models.base import TranslationModel
from nmt.translation import batches_by_length

BATCH_TOKENS = 4096
LENGTHS = (5, 10, 15, 20, 25, 30, 40, 60, 80)
"""Subwords of a source, EOS left out, in groups."""
PLACES = (1, 2, 3, 5, 8, 12, 16, 20, 30, 50)
"""Subwords counted from an end, in groups."""
FIFTHS = 5
FEWEST_TOKENS = 200
"""In a group, for it to be one of the two that are set against each other."""


class Probed(NamedTuple):
    """What one probe found."""

    given: str  # vector, row, mean of rows, place
    trained: bool  # the model's memory; False: one of the same configuration that nobody has trained
    width: int  # numbers that the probe was given
    accuracy: Ratio
    beyond_place: Ratio  # share of the words that the place alone does not tell
    by_length: Curve  # beyond_place in each of the three
    from_start: Curve
    from_end: Curve
    accuracy_by_length: Curve
    shortest_to_longest: tuple[str, str, Ratio]  # names of groups, and how far beyond_place differs: longest - shortest


class Probing(NamedTuple):
    """All probes, and what they were asked."""

    sentences: int  # trained on
    updates: int
    tested: int  # sentences
    classes: int
    covered: float  # share of the words tested on that are among the classes
    most_frequent: Ratio  # accuracy of always saying the subword that is most frequent in training
    probes: list[Probed]


class Bottleneck(NamedTuple):
    """What the part has measured."""

    model: str
    architecture: str  # seq2seq, bahdanau, transformer
    pairs: int
    nll: Ratio  # per target token, EOS included
    nll_by_length: Curve  # of the source
    nll_by_place: Curve  # of the target
    nll_by_share: Curve  # of the target's length
    lengths: list[str]  # groups by words of the source
    bleu: list[Score]
    probing: Probing | str  # a reason why not


def measure(subject: Subject) -> Bottleneck:
    """Ask everything of pairs with references.

    Raises:
        LeftOut: there are no references.
    """
    pairs = subject.referenced
    lengths = np.array([len(pair.source_ids) - 1 for pair in pairs])
    values = token_nll(subject)
    sizes = [len(own) for own in values]
    places = [np.arange(1, size + 1) for size in sizes]
    shares = [np.minimum((own - 1) * FIFTHS // size, FIFTHS - 1) for own, size in zip(places, sizes, strict=True)]
    by_length = bins(lengths, LENGTHS)
    by_place = bins(np.concatenate(places), PLACES)
    of_length = [np.full(size, group) for size, group in zip(sizes, by_length.place(lengths), strict=True)]
    slices = by_source_length([pair.source for pair in pairs])
    hypotheses = [each.text for each in subject.translations]
    try:
        probing: Probing | str = probe_memory(subject)
    except LeftOut as reason:
        probing = str(reason)
    seed = subject.seed
    fifth = Bins([f"{20 * n}-{20 * n + 20} %" for n in range(FIFTHS)], [float(n) for n in range(FIFTHS)], np.asarray)
    return Bottleneck(
        model=model_name(subject.checkpoint),
        architecture=subject.checkpoint.config.model.name,
        pairs=len(pairs),
        nll=ratios(grouped(values, [np.zeros(size, dtype=np.int64) for size in sizes], 1), seed)[0],
        nll_by_length=curve(grouped(values, of_length, len(by_length.names)), by_length, seed),
        nll_by_place=curve(grouped(values, list(map(by_place.place, places)), len(by_place.names)), by_place, seed),
        nll_by_share=curve(grouped(values, shares, FIFTHS), fifth, seed),
        lengths=[each.name for each in slices],
        bleu=scores_by_slice(slices, hypotheses, [pair.reference for pair in pairs]),
        probing=probing,
    )


def token_nll(subject: Subject) -> list[np.ndarray]:
    """-log p of every reference token after the true ones before it, EOS included: of each pair [tgt_len] float64."""
    pairs = subject.referenced
    values: list[np.ndarray] = [np.empty(0)] * len(pairs)
    lengths = {row: max(len(pair.source_ids), len(pair.target_ids)) for row, pair in enumerate(pairs)}
    for rows in batches_by_length(lengths, BATCH_TOKENS):
        batch = collate([pairs[row].source_ids for row in rows], [pairs[row].target_ids for row in rows], rows)
        with autocast(subject.device, subject.precision):
            found = force([subject.checkpoint.model], batch.to(subject.device)).log_probabilities
        assert found is not None
        for row, own in zip(rows, found.double().cpu().numpy(), strict=True):
            values[row] = -own[: len(pairs[row].target_ids)]
    return values


# --- probing ----------------------------------------------------------------------------------------------------------


def probe_memory(subject: Subject) -> Probing:
    """Probes of the model's memory and of an untrained one's.

    Raises:
        LeftOut: the training text cannot be had, or there is no sentence to test on that it lacks.
    """
    data = subject.prepared.train
    generator = np.random.Generator(np.random.PCG64([subject.seed, zlib.crc32(b"probing")]))
    rows = generator.choice(len(data), min(len(data), subject.probe_sentences), replace=False)
    train = [np.asarray(data.source[row]) for row in rows.tolist()]
    known = {own.tobytes() for own in (each.astype(np.int64) for each in train)}
    sources = [np.asarray(pair.source_ids, dtype=np.int64) for pair in subject.referenced]
    test = [each for each in sources if each.tobytes() not in known]
    classes = frequent([each[:-1] for each in train])
    words = np.concatenate([each[:-1] for each in test] or [np.empty(0, dtype=np.int64)])
    counted = int(np.isin(words, classes).sum())
    if counted == 0:
        raise LeftOut("no sentence to test probes on that they are not trained on")
    found: list[Probed] = []
    alone: list[np.ndarray] = []
    for trained in (True, False):
        model = subject.checkpoint.model if trained else untrained(subject)
        subject.log(f"bottleneck: probes of {'the' if trained else 'an untrained'} model's memory ...")
        recovered = probe(
            model,
            train,
            test,
            classes,
            subject.probe_updates,
            subject.seed,
            subject.device,
            subject.precision,
            with_place=trained,
        )
        alone = alone or recovered.right[PLACE_ALONE]
        found += [_probed(recovered, name, alone, trained, test, classes, subject.seed) for name in recovered.right]
    always = [own[np.isin(own, classes)] == classes[0] for own in (each[:-1] for each in test)]
    everywhere = [np.zeros(len(own), dtype=np.int64) for own in always]
    return Probing(
        sentences=len(train),
        updates=subject.probe_updates,
        tested=len(test),
        classes=len(classes),
        covered=counted / len(words),
        most_frequent=ratios(grouped(always, everywhere, 1), subject.seed)[0],
        probes=found,
    )


def untrained(subject: Subject) -> TranslationModel:
    """A model of the same configuration with the random parameters that training starts from, of another seed."""
    config, tokenizers = subject.checkpoint.config, subject.checkpoint.tokenizers
    sizes = tokenizers.source.vocabulary_size, tokenizers.target.vocabulary_size
    return build(config.model, *sizes, config.seed + 1).to(subject.device).eval()


def _probed(
    recovered: Recovered,
    given: str,
    alone: Sequence[np.ndarray],
    trained: bool,
    test: Sequence[np.ndarray],
    classes: np.ndarray,
    seed: int,
) -> Probed:
    right = recovered.right[given]
    asked = [np.isin(each[:-1], classes) for each in test]
    starts = [np.flatnonzero(own) + 1 for own in asked]
    ends = [len(own) - at + 1 for own, at in zip(asked, starts, strict=True)]
    lengths = np.array([len(own) for own in asked])
    axes = bins(lengths, LENGTHS), bins(np.concatenate(starts), PLACES), bins(np.concatenate(ends), PLACES)
    of_length = [np.full(len(at), group) for at, group in zip(starts, axes[0].place(lengths), strict=True)]
    groups = of_length, list(map(axes[1].place, starts)), list(map(axes[2].place, ends))
    zeros = [np.zeros(len(at), dtype=np.int64) for at in starts]
    beyond = [_beyond(right, alone, own, len(axis.names)) for own, axis in zip(groups, axes, strict=True)]
    by_length, from_start, from_end = (curve(own, axis, seed) for own, axis in zip(beyond, axes, strict=True))
    plain = grouped(right, of_length, len(axes[0].names))
    return Probed(
        given,
        trained,
        recovered.widths[given],
        ratios(grouped(right, zeros, 1), seed)[0],
        ratios(_beyond(right, alone, zeros, 1), seed)[0],
        by_length,
        from_start,
        from_end,
        accuracy_by_length=curve(plain, axes[0], seed),
        shortest_to_longest=ends_of(beyond[0], plain.counts, axes[0], seed),
    )


def _beyond(
    right: Sequence[np.ndarray], alone: Sequence[np.ndarray], groups: Sequence[np.ndarray], number: int
) -> Grouped:
    """Words told beyond what their place tells, of those it does not tell; a negative share is worse than the place."""
    with_memory, by_place = grouped(right, groups, number), grouped(alone, groups, number)
    rest = with_memory.counts - by_place.sums.astype(np.int64)
    return Grouped(with_memory.sums - by_place.sums, rest)


def ends_of(data: Grouped, tokens: np.ndarray, axis: Bins, seed: int) -> tuple[str, str, Ratio]:
    """The first and the last group with tokens enough, and the mean of the last less that of the first.

    Args:
        data: groups along the axis.
        tokens: [sentences, groups], by which a group has enough.
        axis: whose names they have.
        seed: of the bootstrap.
    """
    totals = tokens.sum(axis=0)
    enough = np.flatnonzero(totals >= min(FEWEST_TOKENS, totals.max()))
    first, last = int(enough[0]), int(enough[-1])
    means = resampled(data, seed)
    apart = interval(means[:, last] - means[:, first], int(totals[first] + totals[last]))
    return axis.names[first], axis.names[last], apart
