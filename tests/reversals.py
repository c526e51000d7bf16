"""Reversal ablations made up for tests."""

from nmt.analysis.comparison.tree import Curve, CurvePoint, Estimate, Groups, Provenance
from nmt.analysis.reversal.tree import ARMS, MAIN, PERPLEXITY, Contrast, Effect, LagChange, PairResults, Reversal
from nmt.analysis.time_lag import Lags
from nmt.evaluation.over_seeds import Mean

PAPER = {PERPLEXITY: (5.8, 4.7), MAIN: (25.9, 30.6)}


def effect(name: str, forward: float, change: float, half: float, p_value: float, main: bool = True) -> Effect:
    """A change of a figure by reversal, with an interval of twice ``half``."""
    means = [Mean(value, value - 1, value + 1, 0.3, (value,) * 3) for value in (forward, forward + change)]
    paper = PAPER.get(name) if main else None
    less = "perplexity" in name
    return Effect(name, less, means[0], means[1], change, change - half, change + half, p_value, paper)


def lags(smallest: float) -> Lags:
    return Lags(10.0, smallest, 9.0, smallest + 1, {2: 3, 9: 4, int(smallest): 2})


def curve(arm: str, *perplexities: float) -> Curve:
    """Validations after 10, 20, ... updates."""
    points = [
        CurvePoint(10 * number, 100 * number, 0.5 * number, 5.0 / number, perplexity, None)
        for number, perplexity in enumerate(perplexities, 1)
    ]
    return Curve(arm, f"run_{arm}", tuple(points))


def pair(
    name: str = "seq2seq",
    bleu: float = 3.0,
    p_value: float = 0.01,
    fall: float | None = 4.0,
    contrast: tuple[float, float] | None = None,
    **changes: object,
) -> PairResults:
    """A recipe with and without reversal.

    Args:
        name: begins with its model.
        bleu: what reversal changes; perplexity falls by a third of it.
        p_value: of both.
        fall: of the smallest lag, in steps.
        contrast: of a control, in BLEU, with the p-value; that of log perplexity is a tenth of it.
        changes: other fields.
    """
    half = 1.0 if p_value < 0.05 else 9.0
    made = PairResults(
        name,
        name.split(",")[0],
        None,
        (1, 2, 3),
        1200,
        500,
        (
            effect(PERPLEXITY, 12.0, -bleu / 3, half / 3, p_value, contrast is None),
            effect(MAIN, 20.0, bleu, half, p_value, contrast is None),
        ),
        Groups(
            "source words", ("1-10", "11-20"), (300, 200), {arm: (Estimate(20, 18, 22), Estimate(10)) for arm in ARMS}
        ),
        (curve(ARMS[0], 30.0, 20.0, 16.0), curve(ARMS[1], 25.0, 15.0, 13.0)),
        None if fall is None else LagChange(lags(6 + fall), lags(6), 0.5, 0.25),
        ()
        if contrast is None
        else tuple(
            Contrast(name, scale * contrast[0], scale * contrast[0] - 1, scale * contrast[0] + 1, contrast[1])
            for name, scale in ((PERPLEXITY, -0.1), (MAIN, 1.0))
        ),
    )
    return made._replace(**changes)  # type: ignore[arg-type]


def reversal(*pairs: PairResults) -> Reversal:
    return Reversal("Title", pairs, Provenance(("make",), {"nmt": "0"}, (), (), ()))
