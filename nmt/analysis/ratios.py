"""Means over the tokens of groups, with intervals that resample sentences: the tokens of one sentence are no
independent draws (Koehn 2004). A token's value counts once in the sum and once in the number, so that a group is a
ratio of sums.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

RESAMPLES = 1000


class Ratio(NamedTuple):
    """A mean over tokens, and its 95 % interval by bootstrap over sentences."""

    value: float
    low: float
    high: float
    tokens: int  # what it is a mean of


class Curve(NamedTuple):
    """A mean by groups along an axis."""

    names: list[str]
    means: list[Ratio]
    slope: Ratio  # by one step of the axis


class Grouped(NamedTuple):
    """Sums over the tokens of each sentence that belong to a group."""

    sums: np.ndarray  # [sentences, groups] float64
    counts: np.ndarray  # [sentences, groups] int64, tokens


def grouped(values: Sequence[np.ndarray], groups: Sequence[np.ndarray], number: int) -> Grouped:
    """Add up by sentence and group.

    Args:
        values: of each sentence, [tokens].
        groups: the group of every token, [tokens], 0 to number - 1; -1 is in none.
        number: of groups.
    """
    sums, counts = np.zeros((len(values), number)), np.zeros((len(values), number), dtype=np.int64)
    for row, (own, places) in enumerate(zip(values, groups, strict=True)):
        known = places >= 0
        sums[row] = np.bincount(places[known], own[known].astype(np.float64), minlength=number)
        counts[row] = np.bincount(places[known], minlength=number)
    return Grouped(sums, counts)


def resampled(data: Grouped, seed: int) -> np.ndarray:
    """Means of each group: [1 + RESAMPLES, groups], first those of the sentences as they are; NaN without a token.

    The same seed draws the same sentences, so that resamples of two measures of one set can be subtracted.
    """
    size = len(data.sums)
    generator = np.random.Generator(np.random.PCG64(seed))
    drawn = generator.multinomial(size, np.full(size, 1 / size), size=RESAMPLES)
    weights = np.concatenate([np.ones((1, size), dtype=drawn.dtype), drawn])  # [1 + resamples, sentences]
    sums, counts = weights @ data.sums, weights @ data.counts
    means: np.ndarray = np.divide(sums, counts, out=np.full(sums.shape, np.nan), where=counts > 0)
    return means


def ratios(data: Grouped, seed: int) -> list[Ratio]:
    """The mean of each group with its interval."""
    means, tokens = resampled(data, seed), data.counts.sum(axis=0)
    return [interval(means[:, place], int(tokens[place])) for place in range(means.shape[1])]


def interval(means: np.ndarray, tokens: int) -> Ratio:
    """Of [1 + resamples] means; those without a token are left out."""
    known = means[1:][np.isfinite(means[1:])]
    if not np.isfinite(means[0]) or len(known) == 0:
        return Ratio(float("nan"), float("nan"), float("nan"), tokens)
    low, high = np.quantile(known, (0.025, 0.975))
    return Ratio(float(means[0]), float(low), float(high), tokens)


def slope(data: Grouped, at: Sequence[float], seed: int) -> Ratio:
    """How much a mean grows by one step along an axis: the least-squares line through the groups' means, each with the
    weight of its tokens.

    Args:
        data: groups along the axis.
        at: where each group lies on it.
        seed: of the bootstrap.
    """
    weights = data.counts.sum(axis=0).astype(np.float64)
    return interval(_slopes(resampled(data, seed), np.asarray(at, dtype=np.float64), weights), int(weights.sum()))


def _slopes(means: np.ndarray, at: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Of each row of means [rows, groups]: [rows]; NaN where fewer than two groups have tokens."""
    known = np.isfinite(means)
    weight = np.where(known, weights, 0.0)
    total = np.maximum(weight.sum(axis=1, keepdims=True), 1e-300)
    x = at - (weight * at).sum(axis=1, keepdims=True) / total
    spread = (weight * x**2).sum(axis=1)
    rise = (weight * x * np.where(known, means, 0.0)).sum(axis=1)
    found: np.ndarray = np.divide(rise, spread, out=np.full(len(means), np.nan), where=spread > 1e-12)
    return found


def show(found: Ratio, digits: int = 2, scale: float = 1.0) -> str:
    """``0.50 [0.40, 0.60]``, or a dash for nothing."""
    if not np.isfinite(found.value):
        return "-"
    value, low, high = (f"{scale * each:.{digits}f}" for each in found[:3])
    return f"{value} [{low}, {high}]"


def curve(data: Grouped, axis: "Bins", seed: int) -> Curve:
    """Means of the groups of an axis, and their slope."""
    return Curve(axis.names, ratios(data, seed), slope(data, axis.at, seed))


class Bins(NamedTuple):
    """Neighbouring positions or lengths in groups."""

    names: list[str]
    at: list[float]  # the mean place of each on the axis
    place: Callable[[np.ndarray], np.ndarray]  # values, 1 or more, to groups


def bins(values: np.ndarray, bounds: Sequence[int]) -> Bins:
    """Groups of whole numbers from 1 on by their highest value; one more is above the last bound, if any value is.

    Args:
        values: all that will be put into groups.
        bounds: the highest value of each.
    """
    edges = np.asarray(bounds)
    top = int(values.max(initial=1))
    used = int(np.searchsorted(edges, top)) + 1  # groups up to that of the highest value
    lows = [1, *(edges + 1).tolist()]
    names = [
        f"over {bounds[-1]}" if place == len(bounds) else _range(lows[place], bounds[place]) for place in range(used)
    ]
    groups = np.searchsorted(edges, values)
    inside = [values[groups == place] for place in range(used)]
    at = [float(own.mean()) if len(own) else float(low) for own, low in zip(inside, lows, strict=False)]
    return Bins(names, at, lambda found: np.searchsorted(edges, found))


def _range(low: int, high: int) -> str:
    return str(low) if low == high else f"{low}-{high}"


def plain(value: Any) -> Any:
    """Named tuples as objects, what is no finite number as null: a tree for JSON."""
    if hasattr(value, "_asdict"):
        return {key: plain(each) for key, each in value._asdict().items()}
    if isinstance(value, dict):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value
