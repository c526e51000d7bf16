"""What a reversal ablation says, in sentences: every word of them follows from its figures."""

from collections.abc import Sequence
from statistics import fmean

from nmt.analysis.comparison.summary import LEVEL, p_text
from nmt.analysis.reversal.tree import ARMS, MAIN, PERPLEXITY, Contrast, Effect, LagChange, PairResults, Reversal


def answers(reversal: Reversal) -> list[tuple[str, str]]:
    """Questions that a reader brings along, and what these runs answer."""
    main, *controls = reversal.pairs
    found = [("What do these runs show?", shown(main)), ("As in the paper?", _beside_the_paper(main))]
    attending = [pair for pair in controls if pair.model != main.model]
    if attending:
        said = " ".join(_attending(pair, main) for pair in attending)
        found.append(("And where the decoder reads every position?", said))
    ordered = [pair for pair in controls if pair.model == main.model and pair.lags is not None]
    if ordered and main.lags is not None:
        found.append(("Does the gain follow the time lag?", _follows(ordered, main)))
    found.append(("What do they not show?", _limits(reversal)))
    return found


# --- the effect -------------------------------------------------------------------------------------------------------


def shown(pair: PairResults) -> str:
    """The effect on BLEU and on perplexity in one sentence."""
    bleu, perplexity = pair.effect(MAIN), pair.effect(PERPLEXITY)
    return (
        f"Reversing the source of {pair.name} {_verb(bleu)} {MAIN} ({_change(bleu)}), and {_verb(perplexity)} "
        f"{PERPLEXITY} ({_change(perplexity)}), over {_seeds(pair)}."
    )


def _certain(effect: Effect | Contrast) -> bool:
    return effect.p_value < LEVEL


def _verb(effect: Effect) -> str:
    if not _certain(effect):
        return "makes no difference that can be told from chance in"
    return "improves" if (effect.difference < 0) == effect.less_is_better else "worsens"


def _change(effect: Effect) -> str:
    return f"{effect.forward.value:.2f} to {effect.backward.value:.2f}, {_by(effect)}"


def _by(effect: Effect | Contrast) -> str:
    return f"{effect.difference:+.2f} [{effect.low:+.2f}, {effect.high:+.2f}], p {p_text(effect.p_value)}"


def _seeds(pair: PairResults) -> str:
    count = len(pair.seeds)
    return "one seed (chance of the seed is not in the interval)" if count == 1 else f"{count} seeds"


def _beside_the_paper(pair: PairResults) -> str:
    told = []
    for effect in (pair.effect(PERPLEXITY), pair.effect(MAIN)):
        assert effect.paper is not None, "the first pair has the paper's figures"
        theirs = effect.paper[1] - effect.paper[0]
        direction = "the same direction" if theirs * effect.difference > 0 else "not the same direction"
        doubt = "" if _certain(effect) else ", but within chance"
        told.append(
            f"{effect.name}: {effect.paper[0]} to {effect.paper[1]} there ({theirs:+.1f}), {effect.difference:+.2f} "
            f"here: {direction}{doubt}"
        )
    return f"{'; '.join(told)}. Levels cannot be compared: another corpus, other sizes, another way of counting BLEU."


# --- controls ---------------------------------------------------------------------------------------------------------


def _attending(pair: PairResults, main: PairResults) -> str:
    """Whether the effect vanishes, as it should if it is one of the fixed vector."""
    each = [f"By {name}: {_change(pair.effect(name))}; {_vanishes(pair, main, name)}" for name in (PERPLEXITY, MAIN)]
    return f"{pair.name}. {'. '.join(each)}."


def _vanishes(pair: PairResults, main: PairResults, name: str) -> str:
    own, theirs, found = pair.effect(name), main.effect(name), pair.contrast(name)
    if not _certain(theirs):
        return f"{main.name} shows no effect that could be missing here"
    if found is None:
        return "other sentences or seeds, so the two effects cannot be tested"
    beside = f"{_beside(found)} beside {main.name}"
    if not _certain(found):
        return f"not decided whether that is less, {beside}"
    if found.difference * theirs.difference > 0:
        return f"not as the explanation predicts, the effect is larger here, {beside}"
    if not _certain(own):
        return f"as the explanation predicts, nothing is left that can be told from chance, {beside}"
    if own.difference * theirs.difference > 0:
        return f"smaller, as the explanation predicts, but not gone, {beside}"
    return f"not as the explanation predicts, the effect is the other way round, {beside}"


def _beside(found: Contrast) -> str:
    return f"{_by(found)} in its logarithm" if found.name == PERPLEXITY else _by(found)


def _follows(ordered: Sequence[PairResults], main: PairResults) -> str:
    """Whether a recipe gains more than the main one where its smallest lag falls by more, and less where by less."""
    each = " ".join(_follows_in(name, ordered, main) for name in (PERPLEXITY, MAIN))
    return f"Reversal makes the smallest lag of {main.name} {_steps(main)}. {each}"


def _follows_in(name: str, ordered: Sequence[PairResults], main: PairResults) -> str:
    verdicts, each = set(), []
    for pair in ordered:
        verdict, found = _as_predicted(name, pair, main), pair.contrast(name)
        verdicts.add(verdict)
        why = "other sentences or seeds" if found is None else _beside(found)
        each.append(f"{pair.name}, {_steps(pair)}: {verdict} ({why})")
    if "not as predicted" in verdicts:
        overall = "no"
    elif "not decided" in verdicts or "as predicted" not in verdicts:
        overall = "not decided"
    else:
        overall = "yes"
    return f"By {name}, beside {main.name}: {overall}. {'; '.join(each)}."


def _as_predicted(name: str, pair: PairResults, main: PairResults) -> str:
    found = pair.contrast(name)
    if found is None:
        return "not decided"
    assert pair.lags is not None, "or it would not be asked for"
    assert main.lags is not None
    more = fall(pair.lags) - fall(main.lags)
    if abs(more) < 1:
        # About as much: a gain that differs speaks against the lag, one that does not speaks for nothing.
        return "not as predicted" if _certain(found) else "by as much, so nothing else is predicted"
    if not _certain(found):
        return "not decided"
    better = (found.difference < 0) == pair.effect(name).less_is_better
    return "as predicted" if (more > 0) == better else "not as predicted"


def _steps(pair: PairResults) -> str:
    assert pair.lags is not None
    steps = fall(pair.lags)
    return f"{abs(steps):.1f} steps {'shorter' if steps > 0 else 'longer'}"


def fall(lags: LagChange) -> float:
    """Steps by which reversal makes the smallest lag shorter, mean over the sentences."""
    return lags.forward.smallest - lags.backward.smallest


def of_lags(pair: PairResults, lags: LagChange) -> str:
    """What reversal does to the lags, in one sentence."""
    before, after = lags.forward, lags.backward
    return (
        f"{pair.name}: reversal makes {lags.shorter:.0%} of the links shorter and {lags.longer:.0%} longer, the mean "
        f"goes from {before.mean:.1f} to {after.mean:.1f}, the smallest from {before.smallest:.1f} to "
        f"{after.smallest:.1f}."
    )


# --- training ---------------------------------------------------------------------------------------------------------


def sooner(pair: PairResults) -> str:
    """When one arm reaches the lowest perplexity of the other, means over the seeds."""
    ways = [_mean_curve(pair, arm) for arm in ARMS]
    if not all(ways):
        return f"{pair.name}: no validations on record."
    lowest = [min(way.values()) for way in ways]
    better = 0 if lowest[0] < lowest[1] else 1
    ahead, behind = ways[better], ways[1 - better]
    reached = next(step for step, perplexity in ahead.items() if perplexity <= lowest[1 - better])
    at = next(step for step, perplexity in behind.items() if perplexity == lowest[1 - better])
    return (
        f"{pair.name}: the lowest validation perplexity with the {ARMS[1 - better]}, {lowest[1 - better]:.2f} at "
        f"update {at:,}, is reached with the {ARMS[better]} by update {reached:,}."
    )


def _mean_curve(pair: PairResults, arm: str) -> dict[int, float]:
    """Perplexity by update, of the updates at which all seeds were looked at."""
    ways = [{point.step: point.perplexity for point in each.points} for each in pair.curves if each.system == arm]
    common = sorted(set.intersection(*map(set, ways))) if ways else []
    return {step: fmean(way[step] for way in ways) for step in common}


# --- limits -----------------------------------------------------------------------------------------------------------


def _limits(reversal: Reversal) -> str:
    main, *controls = reversal.pairs
    told = []
    if len(main.seeds) == 1:
        told.append("With one seed they are about two models, not about the recipe.")
    elif len(main.seeds) == 2:
        told.append("Two seeds hardly tell how much seeds differ: intervals are wide, and an effect can go unseen.")
    if not controls:
        told.append("Without controls nothing says why there is an effect or none.")
    told.append(
        f"It is one size of model on one corpus after {main.steps:,} updates: whether more updates would change it, "
        "and whether it is so at the paper's size (12 million pairs, four layers of 1,000 cells), cannot be told."
    )
    told.append("Reversal changes which paths are short; the vector stays as narrow as it was.")
    return " ".join(told)
