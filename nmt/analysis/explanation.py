"""The part ``explanation``: do attention weights say why the model predicts what it predicts?

Three questions, asked of sentences along the model's own translation (or a given one):

1. *Do weights rank source words as other measures of importance do?* Spearman's rank correlation over the words of the
   source, for each target token, mean over the sentence: attention with occlusion and with gradient x input, beside the
   two with each other, which is what agreement can be expected, and beside shuffled weights, which is none.
2. *When a word moves, do weights move; when it changes, does the output change where they pointed?* Two words swapped:
   does the most attended word follow? A word replaced or deleted: how much do predictions change that looked at it, and
   how much the others?
3. *Do predictions need these weights?* The same with weights shuffled or uniform at one step (see ``interventions``).

The report says in words what the numbers support, and no more.
"""

import zlib
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from nmt.alignment import choose, memberships, words
from nmt.analysis.attention_maps import forced_attention
from nmt.analysis.diagnosis import LeftOut, Sentence, Subject, model_name
from nmt.analysis.interventions import Effect, Elsewhere, look_elsewhere
from nmt.analysis.relevance import changes, gradient_x_input
from nmt.data.batch import collate
from nmt.tokens import EOS
from nmt.translation import batches_by_length

FEWEST_WORDS = 3
"""Of a source: the ranks of fewer say next to nothing."""

SWAPS = 3
"""Pairs of words that change places, of each sentence."""

BATCH_TOKENS = 2048


class Mean(NamedTuple):
    """A mean over sentences with its 95 % interval (Student's t)."""

    value: float
    low: float
    high: float
    sentences: int


class Explanation(NamedTuple):
    """What the part has measured; None where the model has no attention."""

    model: str
    sentences: int
    target: str  # what it was led along
    replacements: str  # where the words come from that stand in for others
    occlusion_gradient: Mean  # rank correlations
    attention: dict[str, dict[str, Mean]] | None  # whose weights -> occlusion, gradient
    ahead: Mean | None  # attention's correlation with occlusion less that of gradient x input, sentence by sentence
    shuffled: Mean | None  # shuffled weights with occlusion
    deleted: dict[str, Mean]  # change of predictions that looked at the word / at others / difference; all
    replaced: dict[str, Mean]
    swapped: dict[str, Mean] | None  # shares: followed, stayed, elsewhere; the first less the second
    elsewhere: dict[str, dict[str, Mean]] | None  # how -> change, nll, more_nll


class _Asked(NamedTuple):
    """One sentence and all that was asked about it."""

    occlusion: np.ndarray  # [tgt_len, words]
    replacement: np.ndarray  # [tgt_len, words]
    gradient: np.ndarray  # [tgt_len, words]
    attention: dict[str, np.ndarray]  # [tgt_len, words], by whose they are; the one asked for first
    swaps: list[tuple[int, int, np.ndarray]]  # words that changed places, and the weights after that


def measure(subject: Subject) -> Explanation:
    """Ask everything of the first sentences.

    Raises:
        LeftOut: no sentence is long enough.
    """
    chosen = [sentence for sentence in subject.first(subject.sentences) if len(sentence.source.split()) >= FEWEST_WORDS]
    if not chosen:
        raise LeftOut(f"no sentence of {FEWEST_WORDS} or more source words: ranks of fewer say next to nothing")
    others, whence = _replacements(subject, chosen)
    generator = np.random.Generator(np.random.PCG64([subject.seed, zlib.crc32(b"explanation")]))
    asked = [_ask(subject, sentence, others, generator) for sentence in chosen]
    attends = subject.checkpoint.model.attends
    of_gradient = [_rank_agreement(each.occlusion, each.gradient) for each in asked]
    shuffles = ahead = None
    if attends:
        shuffles = [_rank_agreement(generator.permuted(_first(each), axis=1), each.occlusion) for each in asked]
        of_attention = [_rank_agreement(_first(each), each.occlusion) for each in asked]
        ahead = [one - other for one, other in zip(of_attention, of_gradient, strict=True)]
    return Explanation(
        model=model_name(subject.checkpoint),
        sentences=len(chosen),
        target="the given references" if subject.references is not None else "its own translations",
        replacements=whence,
        occlusion_gradient=mean(of_gradient),
        attention=_agreements(asked) if attends else None,
        ahead=None if ahead is None else mean(ahead),
        shuffled=None if shuffles is None else mean(shuffles),
        deleted=_where(asked, [each.occlusion for each in asked]),
        replaced=_where(asked, [each.replacement for each in asked]),
        swapped=_followed(asked) if attends else None,
        elsewhere=_elsewhere(subject, chosen) if attends else None,
    )


def mean(values: Sequence[float] | np.ndarray) -> Mean:
    """Of one value a sentence; those that are no number are left out."""
    from scipy.special import stdtrit  # quantiles of Student's distribution

    known = np.array([value for value in values if np.isfinite(value)], dtype=np.float64)
    if len(known) == 0:
        return Mean(float("nan"), float("nan"), float("nan"), 0)
    half = float("inf")
    if len(known) > 1:
        half = float(stdtrit(len(known) - 1, 0.975)) * float(known.std(ddof=1)) / len(known) ** 0.5
    return Mean(float(known.mean()), float(known.mean()) - half, float(known.mean()) + half, len(known))


def rank_correlation(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Spearman's, of each row of two matrices [rows, columns]: [rows]; NaN where a row is all the same."""
    from scipy.stats import rankdata

    ranks = [rankdata(each, axis=1) for each in (one, other)]
    first, second = (each - each.mean(axis=1, keepdims=True) for each in ranks)
    scale = np.sqrt((first**2).sum(axis=1) * (second**2).sum(axis=1))
    product = (first * second).sum(axis=1)
    found: np.ndarray = np.divide(product, scale, out=np.full(len(one), np.nan), where=scale > 0)
    return found


def _rank_agreement(one: np.ndarray, other: np.ndarray) -> float:
    """Mean over the target tokens for which it can be said."""
    known = rank_correlation(one, other)
    known = known[np.isfinite(known)]
    return float(known.mean()) if len(known) else float("nan")


def _first(asked: _Asked) -> np.ndarray:
    return next(iter(asked.attention.values()))


# --- asking -----------------------------------------------------------------------------------------------------------


def _replacements(subject: Subject, chosen: Sequence[Sentence]) -> tuple[list[str], str]:
    """Words to stand in for others: of training where it can be had, else of the sentences themselves."""
    try:
        train = subject.prepared.train
    except LeftOut:
        return sorted({word for sentence in chosen for word in sentence.source.split()}), "the sentences themselves"
    generator = np.random.Generator(np.random.PCG64(subject.seed))
    rows = generator.choice(len(train), min(len(train), 2000), replace=False)
    decode = subject.checkpoint.tokenizers.source.decode
    return sorted({word for row in rows.tolist() for word in decode(train.source[row]).split()}), "the training text"


def _ask(subject: Subject, sentence: Sentence, others: Sequence[str], generator: np.random.Generator) -> _Asked:
    model, tokenizers = subject.checkpoint.model, subject.checkpoint.tokenizers
    own = sentence.source.split()
    vocabulary = tokenizers.target.vocabulary_size

    def replaced(place: int) -> str:
        candidates = [word for word in generator.choice(others, 8) if word != own[place]]
        return str(candidates[0]) if candidates else own[place]

    deletions = [[*own[:k], *own[k + 1 :]] for k in range(len(own))]
    replacements = [[*own[:k], replaced(k), *own[k + 1 :]] for k in range(len(own))]
    pairs = _pairs_to_swap(own, generator)
    encoded = tokenizers.source.encode_batch([" ".join(line) for line in [*deletions, *replacements]])
    changed = changes(
        model, sentence.source_ids, encoded, sentence.target_ids, vocabulary, subject.device, subject.precision
    ).T  # [tgt_len, 2 * words]
    gradient = gradient_x_input(model, sentence.source_ids, sentence.target_ids, vocabulary, subject.device)
    attention: dict[str, np.ndarray] = {}
    swaps = []
    if model.attends:
        attention = _views(subject, sentence)
        for k, other in pairs:
            line = own.copy()
            line[k], line[other] = own[other], own[k]
            moved = sentence._replace(source=" ".join(line), source_ids=tokenizers.source.encode(" ".join(line)))
            swaps.append((k, other, next(iter(_views(subject, moved).values()))))
    columns = _columns(subject, sentence)
    return _Asked(changed[:, : len(own)], changed[:, len(own) :], np.abs(gradient @ columns), attention, swaps)


def _pairs_to_swap(own: Sequence[str], generator: np.random.Generator) -> list[tuple[int, int]]:
    """Places of different words, of each sentence a few."""
    every = [(k, other) for k in range(len(own)) for other in range(k + 1, len(own)) if own[k] != own[other]]
    picked = generator.permutation(len(every))[:SWAPS]
    return [every[place] for place in sorted(picked.tolist())]


def _columns(subject: Subject, sentence: Sentence) -> np.ndarray:
    """Shares of the source's subwords (and EOS) in its words, without EOS's own column: [subwords + 1, words]."""
    spans = subject.checkpoint.tokenizers.source.source_spans(sentence.source)
    found: np.ndarray = memberships(sentence.source, spans, end=True).numpy()[:, : len(words(sentence.source))]
    return found


def _views(subject: Subject, sentence: Sentence) -> dict[str, np.ndarray]:
    """Weights on the source's words, [tgt_len, words], by whose they are: as --align, every layer, the mean."""
    weights = forced_attention(subject, sentence).double()  # [tgt_len, layers, heads, src_len]
    columns = _columns(subject, sentence)
    layers, heads = weights.shape[1:3]
    chosen, attention = choose(weights, subject.choice).weights.numpy(), weights.numpy()
    views = {"as --align" if layers * heads > 1 else "attention": chosen @ columns}
    if layers > 1:
        views |= {f"layer {n + 1}, mean of heads": attention[:, n].mean(axis=1) @ columns for n in range(layers)}
        views["mean of all layers"] = attention.mean(axis=(1, 2)) @ columns
    return views


# --- answers ----------------------------------------------------------------------------------------------------------


def _agreements(asked: Sequence[_Asked]) -> dict[str, dict[str, Mean]]:
    return {
        whose: {
            "occlusion": mean([_rank_agreement(each.attention[whose], each.occlusion) for each in asked]),
            "gradient": mean([_rank_agreement(each.attention[whose], each.gradient) for each in asked]),
        }
        for whose in asked[0].attention
    }


def _where(asked: Sequence[_Asked], change: Sequence[np.ndarray]) -> dict[str, Mean]:
    """How much predictions change, [tgt_len, words] of each sentence: all; those whose most attended word it was, the
    others, and the difference of the two."""
    found = {"all": mean([float(each.mean()) for each in change])}
    if not asked[0].attention:
        return found
    looked, others = [], []
    for each, changed in zip(asked, change, strict=True):
        at = np.zeros(changed.shape, dtype=bool)
        at[np.arange(len(changed)), _first(each).argmax(axis=1)] = True
        looked.append(float(changed[at].mean()))
        others.append(float(changed[~at].mean()))
    apart = [one - other for one, other in zip(looked, others, strict=True)]
    return found | {"looked at it": mean(looked), "looked elsewhere": mean(others), "difference": mean(apart)}


def _followed(asked: Sequence[_Asked]) -> dict[str, Mean]:
    """Of the target tokens whose most attended word was one of two that changed places: what is most attended then."""
    shares: dict[str, list[float]] = {"followed the word": [], "stayed at the place": [], "went elsewhere": []}
    for each in asked:
        follows = stays = asked_of = 0
        before = _first(each).argmax(axis=1)  # [tgt_len]
        for k, other, after in each.swaps:
            now = after.argmax(axis=1)
            for old, new in ((k, other), (other, k)):
                at = before == old
                asked_of += int(at.sum())
                follows += int((now[at] == new).sum())
                stays += int((now[at] == old).sum())
        if asked_of:
            for name, count in zip(shares, (follows, stays, asked_of - follows - stays), strict=True):
                shares[name].append(count / asked_of)
    both = zip(shares["followed the word"], shares["stayed at the place"], strict=True)
    found = {name: mean(values) for name, values in shares.items()}
    return found | {"followed less stayed": mean([one - other for one, other in both])}


def _elsewhere(subject: Subject, chosen: Sequence[Sentence]) -> dict[str, dict[str, Mean]]:
    model = subject.checkpoint.model
    layers = forced_attention(subject, chosen[0]).size(1)
    how = [Elsewhere("shuffled"), Elsewhere("uniform")]
    how += [Elsewhere("shuffled", layer + 1) for layer in range(layers)] if layers > 1 else []
    lengths = {i: 1 + max(len(each.source_ids), len(each.target_ids)) for i, each in enumerate(chosen)}
    parts: list[list[Effect]] = []
    for number, rows in enumerate(batches_by_length(lengths, BATCH_TOKENS)):
        batch = collate([[*chosen[i].source_ids, EOS] for i in rows], [chosen[i].target_ids for i in rows], rows)
        seed = subject.seed + number
        parts.append(look_elsewhere(model, batch.to(subject.device), how, subject.device, subject.precision, seed))
    found = {}
    for place, each in enumerate(how):
        change, nll, other = (np.concatenate([part[place][field] for part in parts]) for field in range(3))
        found[str(each)] = {"change": mean(change), "nll": mean(nll), "more_nll": mean(other - nll)}
    return found
