"""The embedded demo data: English-German pairs from a synchronous grammar, with gold word alignments.

No source: the grammar and its words are our own. ``demo_nouns``, ``demo_verbs``, ``demo_auxiliaries`` and
``demo_lexicon`` hold the words, ``demo_morphology`` their forms; ``demo_syntax``, ``demo_clause`` and ``demo_sentence``
say phrases, clauses and sentences in both languages; ``demo_sampling`` and the ``demo_sample_*`` files under it choose
what is said. The same seed gives the same pairs on every machine.

What makes German a function of English here: the English past is the German preterite, the perfect the perfect; *you*
is du; a person's noun is masculine unless the English word is feminine; the order of the German middle field is fixed
(see ``demo_clause``); nothing follows a relative clause that could belong to it or to the clause around it.

Lengths. ``min_words``, ``max_words`` and ``mean_words`` speak of English words; a German sentence is kept between the
same minimum and maximum. The length wished for is drawn first, from a gamma-shaped distribution with a long tail.

Alignment. A word is what stands between spaces, punctuation included. A link says "this German word is (part of) the
translation of that English word":

- content words link to their translation, function words to the function word that does the same work; all the words
  of a compound expression link to a German word that says it alone (*in the* - im, *two hundred* - zweihundert);
- *do*, *be* of a progressive and the English verb all link to the German finite verb if there is only one; in a
  compound tense, auxiliary links to auxiliary and participle to participle; *to* of *wants to* links to the modal;
- a separable prefix that stands apart links to the English particle (*gets up* - steht auf: gets-steht, up-auf), to the
  verb if there is no particle (*opens* - macht auf); joined, verb and prefix are one word with all these links;
- *not a* links to kein; *of* and *to* of a genitive or dative that German says by case link to the first word of the
  noun phrase; a reflexive pronoun links to the verb;
- um-zu: *in order* - um, *to* - zu; a gerund links to zu and to the infinitive;
- a German word without any counterpart (the preposition of *remembers her* - erinnert sich an sie) has no link.

Word orders. ``german`` is German. In ``monotone`` the same German words follow their (first) English word, words that
share one keep their German order, and an unlinked word goes with the German word after it; ``reversed`` is its mirror
image. In both, the commas inside the sentence, which mark German clauses, are gone; the first word takes the capital
and the last one the final mark, as in any sentence.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from itertools import accumulate
from math import exp, log
from typing import Literal, NamedTuple

from nmt.data.demo_draw import Draw
from nmt.data.demo_sampling import Sampler
from nmt.data.demo_sentence import Sentence, spell

WordOrder = Literal["german", "monotone", "reversed"]
Alignment = tuple[tuple[int, int], ...]

_SHAPE = 1.5  # of the length distribution: above 1, so that the shortest sentences are not the most frequent
_PATIENCE = 3000  # draws for one length before giving up
_SPARE = 200  # sentences of one length kept for later


class DemoPair(NamedTuple):
    source: str
    target: str
    alignment: Alignment  # links (source word, target word), 0-based, sorted


def generate(
    *,
    seed: int,
    train_pairs: int,
    validation_pairs: int,
    test_pairs: int,
    word_order: WordOrder,
    min_words: int,
    max_words: int,
    mean_words: float,
) -> dict[str, list[DemoPair]]:
    """The splits ``train``, ``validation`` and ``test``: all sources distinct, within and across splits.

    The test set is drawn first and validation second, so neither depends on how much training data is asked for.
    Raises ValueError for an unknown word order, impossible lengths, or more pairs than the lengths allow.
    """
    if word_order not in ("german", "monotone", "reversed"):
        raise ValueError(f"word_order is {word_order!r}; it must be german, monotone or reversed")
    counts = {"test": test_pairs, "validation": validation_pairs, "train": train_pairs}
    for name, count in counts.items():
        if count < 0:
            raise ValueError(f"{name}_pairs is {count}; it must not be negative")
    stream = sentences(seed=seed, min_words=min_words, max_words=max_words, mean_words=mean_words)
    splits = {name: [to_pair(next(stream), word_order) for _ in range(count)] for name, count in counts.items()}
    return {name: splits[name] for name in ("train", "validation", "test")}


def sentences(*, seed: int, min_words: int, max_words: int, mean_words: float) -> Iterator[Sentence]:
    """An endless stream of analysed sentences with distinct sources."""
    if not 3 <= min_words < max_words:
        raise ValueError(f"lengths {min_words}..{max_words}: the shortest is at least 3 and below the longest")
    if not min_words < mean_words < (min_words + max_words) / 2:
        raise ValueError(
            f"mean_words is {mean_words}; it must be above min_words ({min_words}) and below the middle of the range "
            f"({(min_words + max_words) / 2}), because the distribution has a long tail"
        )
    draw = Draw(seed)
    sampler = Sampler(draw)
    lengths = range(min_words, max_words + 1)
    cumulative = list(accumulate(_length_weights(lengths, mean_words)))
    seen: set[str] = set()
    spare: dict[int, list[Sentence]] = {length: [] for length in lengths}  # drawn for another length
    while True:
        wish = lengths[bisect_right(cumulative, int(draw.random() * cumulative[-1]))]
        yield _sentence(sampler, wish, lengths, spare, seen)


def _sentence(
    sampler: Sampler, wish: int, lengths: range, spare: dict[int, list[Sentence]], seen: set[str]
) -> Sentence:
    """A new sentence of the wished length. Those that come out longer or shorter wait in ``spare`` for their turn."""
    for _ in range(_PATIENCE):
        while spare[wish]:
            sentence = spare[wish].pop()
            text = source_text(sentence)
            if text not in seen and sentence.make_target() in lengths:
                seen.add(text)
                return sentence
        sentence = sampler.sentence(wish)
        words = sentence.make_source()
        if words in lengths and len(spare[words]) < _SPARE:
            spare[words].append(sentence)
    raise ValueError(f"found no new sentence of {wish} words: ask for fewer pairs or for longer sentences")


def _length_weights(lengths: range, mean: float) -> list[int]:
    """Gamma-shaped weights over the lengths with the given mean, as whole numbers: the same on every machine."""

    def weights(scale: float) -> list[int]:
        steps = [length - lengths[0] + 0.5 for length in lengths]
        return [round(1e6 * exp((_SHAPE - 1) * log(step / steps[-1]) - (step - steps[-1]) / scale)) for step in steps]

    low, high = 0.05, 1e6
    for _ in range(60):
        scale = (low * high) ** 0.5
        found = weights(scale)
        if sum(length * weight for length, weight in zip(lengths, found, strict=True)) < mean * sum(found):
            low = scale
        else:
            high = scale
    return weights(high)


def source_text(sentence: Sentence) -> str:
    mark = "?" if sentence.question else "."
    return spell([word.text for word in sentence.source], sentence.source_commas, mark)


def to_pair(sentence: Sentence, word_order: WordOrder) -> DemoPair:
    """Spells an analysed sentence out, with its target words in the given order."""
    position = {id(word): index for index, word in enumerate(sentence.source)}
    links = [sorted({position[id(source)] for source in word.sources}) for word in sentence.words]
    order = list(range(len(links)))
    if word_order != "german":
        keys = [0] * len(links)
        following = len(position)
        for index in reversed(order):
            following = keys[index] = links[index][0] if links[index] else following
        order.sort(key=lambda index: (keys[index], index))
        if word_order == "reversed":
            order.reverse()
    texts = [sentence.words[index].text for index in order]
    commas = sentence.target_commas if word_order == "german" else set()
    target = spell(texts, commas, "?" if sentence.question else ".")
    alignment = sorted((source, place) for place, index in enumerate(order) for source in links[index])
    return DemoPair(source_text(sentence), target, tuple(alignment))
