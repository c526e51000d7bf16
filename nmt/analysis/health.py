"""The part ``health``: is anything wrong with this checkpoint that no score says?

First what must hold whatever the model has learned (``invariants``); then signs in how it behaves: how attention is
spread and what it reaches (``coverage``), whether generation stalls, whether outputs belong to their inputs
(``stalls``). Each sign has the range that is expected, with a reason; outside it, it is worth a look and no more.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from nmt.alignment import choose
from nmt.analysis.attention_maps import forced_attention
from nmt.analysis.coverage import Read, Spread, entropy, read, spread
from nmt.analysis.diagnosis import LeftOut, Sentence, Subject, model_name
from nmt.analysis.invariants import Invariant, invariants
from nmt.analysis.stalls import STUCK, Stay, Variety, longest_stay, loops, repeats, variety
from nmt.evaluation.metrics import bleu
from nmt.tokens import EOS

LONG = 30
"""Source subwords of a sentence that counts as long."""

FEWEST_LONG = 5
"""Long sentences that can be spoken of apart."""


class Attention(NamedTuple):
    """How the source is read, along the targets."""

    weights_of: str  # layer and head
    every: Spread
    long: Spread | None  # sentences of LONG subwords or more; None: fewer than FEWEST_LONG
    long_sentences: int
    entropy_by_head: list[list[float]]  # [layers][heads], of each one's own weights


class Stalls(NamedTuple):
    """Sentences (by number, from 0) in whose translation by the model something has stalled."""

    stuck: list[int] | None  # attention stays at a word; None: no attention
    stuck_on_end: list[int] | None  # attention stays at EOS
    loops: list[int]
    repeats: list[int]
    cut: list[int]  # at the length limit
    empty: list[int]


class Health(NamedTuple):
    """All that was found."""

    model: str
    target: str  # what it was led along
    sentences: list[Sentence]  # that were read
    own: list[Sentence]  # with translations by the model
    invariants: list[Invariant]
    attention: Attention | None  # None: the model has none
    stalls: Stalls
    outputs: Variety
    references: Variety | None  # the same of references, where there are any
    length_ratio: float | None  # words of own translations / words of references


def measure(subject: Subject) -> Health:
    """Look at the first sentences.

    Raises:
        LeftOut: there are none.
    """
    sentences = [each for each in subject.first(subject.sentences) if each.source_ids]
    if not sentences:
        raise LeftOut("no sentence that has subwords")
    own = sentences
    if subject.references is not None:
        lines = tuple(each.source for each in sentences)
        own = replace(subject, lines=lines, references=None).first(len(lines))
    attends = subject.checkpoint.model.attends
    reads, heads, stays = _read(subject, sentences) if attends else ([], [], [])
    if attends and own is not sentences:
        stays = [longest_stay(_chosen(subject, each)) for each in own]
    references = _references(subject, sentences)
    outputs = {each.source: each.target for each in own}
    known = {source: references[source] for source in outputs if references.get(source, "").strip()}
    tokenizers = subject.checkpoint.tokenizers
    return Health(
        model=model_name(subject.checkpoint),
        target="its own translations" if subject.references is None else "the given references",
        sentences=sentences,
        own=own,
        invariants=invariants(
            subject.checkpoint.model,
            [(each.source_ids, each.target_ids) for each in sentences],
            (tokenizers.source.vocabulary_size, tokenizers.target.vocabulary_size),
            subject.device,
            subject.precision,
        ),
        attention=_attention(subject, sentences, reads, heads) if attends else None,
        stalls=_stalls(own, stays if attends else None),
        outputs=variety(outputs),
        references=variety(known) if known else None,
        length_ratio=bleu([outputs[source] for source in known], list(known.values())).length_ratio if known else None,
    )


def _chosen(subject: Subject, sentence: Sentence) -> np.ndarray:
    """Weights of the layer and head asked for, [tgt_len, src_len]."""
    weights: np.ndarray = choose(forced_attention(subject, sentence), subject.choice).weights.double().numpy()
    return weights


def _read(subject: Subject, sentences: Sequence[Sentence]) -> tuple[list[Read], list[np.ndarray], list[Stay]]:
    """Of each sentence: the weights asked for, the entropy of each layer and head [tgt_len, layers, heads], and how
    long they stay."""
    reads, heads, stays = [], [], []
    for sentence in sentences:
        attention = forced_attention(subject, sentence).double()  # [tgt_len, layers, heads, src_len]
        weights = choose(attention, subject.choice).weights.numpy()
        reads.append(read(weights))
        heads.append(entropy(attention.numpy()))
        stays.append(longest_stay(weights))
    return reads, heads, stays


def _attention(
    subject: Subject, sentences: Sequence[Sentence], reads: Sequence[Read], heads: Sequence[np.ndarray]
) -> Attention:
    long = [one for one, sentence in zip(reads, sentences, strict=True) if len(sentence.source_ids) >= LONG]
    return Attention(
        choose(forced_attention(subject, sentences[0]), subject.choice).title,
        spread(reads),
        spread(long) if len(long) >= FEWEST_LONG else None,
        len(long),
        np.concatenate(heads).mean(axis=0).tolist(),
    )


def _stalls(own: Sequence[Sentence], stays: Sequence[Stay] | None) -> Stalls:
    said = [each.target_ids[:-1] if each.target_ids[-1] == EOS else each.target_ids for each in own]
    stuck = on_end = None
    if stays is not None:
        at_end = [stay.place == len(each.source_ids) for stay, each in zip(stays, own, strict=True)]
        long = [stay.steps >= STUCK for stay in stays]
        stuck, on_end = (
            [n for n, (stays_long, ends) in enumerate(zip(long, at_end, strict=True)) if stays_long and ends == wanted]
            for wanted in (False, True)
        )
    return Stalls(
        stuck,
        on_end,
        [n for n, tokens in enumerate(said) if loops(own[n].source_ids, tokens)],
        [n for n, tokens in enumerate(said) if repeats(tokens) and not repeats(own[n].source_ids)],
        [n for n, each in enumerate(own) if each.target_ids[-1] != EOS],
        [n for n, each in enumerate(own) if not each.target.strip()],
    )


def _references(subject: Subject, sentences: Sequence[Sentence]) -> dict[str, str]:
    """By source; none for sentences of the user's without references."""
    if subject.references is not None:
        return {each.source: each.target for each in sentences}
    if subject.lines is not None:
        return {}
    validation = subject.prepared.validation
    pairs = zip(validation.sources(), validation.references(), strict=True)
    return {" ".join(source.split()): reference for source, reference in pairs}


# --- what to make of it -----------------------------------------------------------------------------------------------


class Sign(NamedTuple):
    """A figure with the range that is expected of a trained model."""

    name: str
    value: float | None
    low: float | None  # below it is worth a look
    high: float | None  # above it is worth a look
    reason: str  # why there
    missing: str | None = None  # why there is no value
    sentences: Sequence[int] = ()  # where it was seen, numbers in ``own``

    @property
    def found(self) -> bool:
        """Whether it is worth a look."""
        if self.value is None:
            return False
        return self.value < (-math.inf if self.low is None else self.low) or self.value > (
            math.inf if self.high is None else self.high
        )


def signs(found: Health) -> list[Sign]:
    """All of them, in the order of the report."""
    return [*_signs_of_attention(found), *_signs_of_stalls(found), *_signs_of_outputs(found)]


def _signs_of_attention(found: Health) -> list[Sign]:
    attention = found.attention
    none = "it reads one fixed vector: no attention weights" if attention is None else None
    entropy_, end, last = None, None, None
    name = "last quarter reached / rest reached"
    if attention is not None:
        longer = attention.long or attention.every
        entropy_, end = attention.every.entropy, attention.every.end
        if longer.reached_before > 0 and not math.isnan(longer.reached_last):
            last = longer.reached_last / longer.reached_before
        name += f" ({longer.sentences} sentences of {LONG} or more subwords)" if attention.long else " (all sentences)"
    no_last = none or ("nothing is reached, or no source has four subwords" if last is None else None)
    return [
        Sign("entropy of attention", entropy_, None, 0.9, "1 is uniform: weights tell no position from another", none),
        Sign("weight on EOS", end, None, 0.5, "more than half of what is read is no word", none),
        Sign(name, last, 0.5, None, "half as likely to be read as the rest: ends are left out", no_last),
    ]


def _signs_of_stalls(found: Health) -> list[Sign]:
    stalls, none = found.stalls, "it reads one fixed vector: no attention weights"
    rows: list[tuple[str, list[int] | None, float, str]] = [
        (f"attention stays at a word for {STUCK} steps", stalls.stuck, 0.05, "few subwords become so many"),
        (f"attention stays at EOS for {STUCK} steps", stalls.stuck_on_end, 0.05, "no word is looked at most meanwhile"),
        ("loops", stalls.loops, 0.01, "of 4,014 references none has any that its source has not"),
        ("a 4-gram comes twice", stalls.repeats, 0.05, "of references 0.1 to 2.6 %, where none does in the source"),
        ("cut at the length limit", stalls.cut, 0.01, "a trained model ends its sentences"),
        ("empty", stalls.empty, 0.0, "no sentence has nothing as its translation"),
    ]
    return [
        Sign(name, None if places is None else len(places) / len(found.own), None, high, reason,
             none if places is None else None, places or ())
        for name, places, high, reason in rows
    ]  # fmt: skip


def _signs_of_outputs(found: Health) -> list[Sign]:
    outputs, references = found.outputs, found.references
    none = "no references: those of validation, or --input with --reference" if references is None else None
    few = outputs.inputs < FEWEST_INPUTS
    one = f"fewer than {FEWEST_INPUTS} different inputs" if few else None
    pairs = None if references is None or not references.distinct_2 else outputs.distinct_2 / references.distinct_2
    return [
        Sign("different outputs / different inputs", None if few else outputs.unique_ratio, 0.9, None,
             "a tenth of the sentences has the translation of another", one),
        Sign("inputs with the most frequent output", None if few else outputs.times / outputs.inputs, None,
             max(0.05, 1 / outputs.inputs), "one answer to everything begins like this", one),
        Sign("different pairs of words, beside references", pairs, 0.5, None,
             "half the variety of people's words", none or ("references without pairs" if pairs is None else None)),
        Sign("length / references", found.length_ratio, 0.8, 1.25,
             "at 0.8 the brevity penalty takes a fifth of BLEU", none),
    ]  # fmt: skip


FEWEST_INPUTS = 10
"""Different inputs from which shares of equal outputs say something."""
