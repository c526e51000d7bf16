"""A comparison in a few sentences, one for each question that a reader brings along."""

from collections.abc import Callable, Mapping

from nmt.analysis.comparison.tree import Comparison, Cost, Estimate, PairedDifference, TextResults

LEVEL = 0.05
"""A difference with a p-value below it is called more than chance."""


def summary(comparison: Comparison) -> list[tuple[str, str]]:
    """Questions and answers, those about quality once for each text."""
    answers: list[tuple[str, str]] = []
    for text in comparison.texts:
        where = f" on {text.name}" if len(comparison.texts) > 1 else ""
        answers.append((f"Which is best{where}?", best(text)))
        if len(text.quality) > 1:
            answers.append((f"Is it more than chance{where}?", significance(text, _fewest_seeds(comparison))))
    answers.append(("Under which budget?", comparison.budget))
    answers.append(("At which price?", price(comparison.cost)))
    return answers


def best(text: TextResults) -> str:
    """The order by BLEU, and where the other figures disagree about the first."""
    order = sorted(text.quality, key=lambda name: -text.quality[name].bleu.value)
    first, *others = order
    then = ", ".join(f"{name} {text.quality[name].bleu.value:.1f}" for name in others)
    sentence = f"{first}, by BLEU 13a: {score(text.quality[first].bleu)}{'; then ' if then else ''}{then}."
    rivals = {
        "chrF2": max(order, key=lambda name: text.quality[name].chrf.value),
        "perplexity per word": min(order, key=lambda name: text.quality[name].perplexity_per_word.value),
    }
    disagreeing = [f"by {metric} it is {name}" for metric, name in rivals.items() if name != first]
    return sentence if not disagreeing else f"{sentence[:-1]}; but {' and '.join(disagreeing)}."


def significance(text: TextResults, seeds: int) -> str:
    """The first two by BLEU, the pairs that cannot be told apart, and what so few seeds can say."""
    tested = [each for each in text.differences if each.metric.startswith("BLEU")]
    if not tested:
        return f"{text.left_out.get('differences', 'no test was made')}."
    first, second = sorted(text.quality, key=lambda name: -text.quality[name].bleu.value)[:2]
    sentences = [_verdict(each, first) for each in tested if {each.first, each.second} == {first, second}]
    others = [each for each in tested if {each.first, each.second} != {first, second}]
    alike = [f"{each.first} and {each.second}" for each in others if not _apart(each)]
    if others:
        sentences.append(f"Not told apart: {', '.join(alike)}." if alike else "All other pairs differ as well.")
    if seeds == 1:
        sentences.append("With one seed, this is about these models: another seed of a recipe would give another one.")
    return " ".join(sentences)


def _verdict(each: PairedDifference, first: str) -> str:
    sign, second = (1.0, each.first) if each.second == first else (-1.0, each.second)
    what = f"{first} is {sign * each.difference:.1f} BLEU"
    if each.low is not None and each.high is not None:
        low, high = sorted((sign * each.low, sign * each.high))
        what += f" [{low:.1f}, {high:.1f}]"
    what += f" ahead of {second}"
    if each.p_value is None:
        return f"{what}; no test."
    p = f"p {p_text(p_of(each))}"
    return f"Yes: {what}, {p}." if _apart(each) else f"Not by this test: {what}, {p}."


def _apart(each: PairedDifference) -> bool:
    p = p_of(each)
    return p is not None and p < LEVEL


def p_of(each: PairedDifference) -> float | None:
    """The p-value, corrected where several pairs were tested."""
    return each.p_value if each.corrected is None else each.corrected


def p_text(value: float | None) -> str:
    """``= 0.012`` or ``< 0.001``."""
    if value is None:
        return "-"
    return "< 0.001" if value < 0.001 else f"= {value:.3f}"


def price(costs: Mapping[str, Cost]) -> str:
    """Parameters, minutes and speed of all systems."""
    parts = [
        _each(costs, "parameters", lambda cost: cost.parameters / 1e6, ".1f", "M"),
        _each(costs, "minutes of training", lambda cost: cost.minutes, ".0f"),
        _each(costs, "sentences/s translated with beam 5", lambda cost: cost.sentences_per_second.get(5), ".0f"),
    ]
    sentence = "; ".join(part for part in parts if part)
    return f"{sentence[:1].upper()}{sentence[1:]}."


def _each(costs: Mapping[str, Cost], what: str, of: Callable[[Cost], float | None], form: str, unit: str = "") -> str:
    known = {name: value for name, cost in costs.items() if (value := of(cost)) is not None}
    return f"{what}: {', '.join(f'{name} {value:{form}}{unit}' for name, value in known.items())}" if known else ""


def _fewest_seeds(comparison: Comparison) -> int:
    return min(len(system.runs) for system in comparison.systems)


def score(estimate: Estimate) -> str:
    """``40.1 ± 0.3 [38.6, 41.6]``: mean, spread over the seeds, 95 % interval; what there is of them."""
    return figure(estimate, ".1f")


def figure(estimate: Estimate | None, form: str) -> str:
    """The same with other decimals, or ``-``."""
    if estimate is None:
        return "-"
    text = format(estimate.value, form)
    if estimate.spread is not None:
        text += f" ± {format(estimate.spread, form)}"
    if estimate.low is not None and estimate.high is not None:
        text += f" [{format(estimate.low, form)}, {format(estimate.high, form)}]"
    return text
