"""BLEU and chrF: the same figures as sacrebleu's command, and no score for what cannot be scored."""

import json
import math
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from nmt.evaluation.metrics import bleu, chrf, moses_tokenize

REFERENCES = [
    "Der Mann sieht den alten Hund.",
    "Die Frau kauft heute ein rotes T-Shirt.",
    "Es regnet, z.B. morgen, im ganzen Land.",
    "Kinder spielen im Garten!",
] * 5
HYPOTHESES = [
    "Der Mann sieht einen alten Hund.",
    "die Frau kauft ein rotes T-Shirt.",
    "Es regnet, z.B. heute, im ganzen Land.",
    "Ein Kind spielt im Garten!",
] * 5


def plain_bleu(hypotheses: list[list[str]], references: list[list[str]]) -> float:
    """Papineni et al. (2002), section 2.3, from tokens; no smoothing."""
    log_precision = 0.0
    for order in range(1, 5):
        hits = total = 0
        for ours, theirs in zip(hypotheses, references, strict=True):
            found = Counter(tuple(ours[i : i + order]) for i in range(len(ours) - order + 1))
            wanted = Counter(tuple(theirs[i : i + order]) for i in range(len(theirs) - order + 1))
            hits += sum((found & wanted).values())
            total += sum(found.values())
        log_precision += math.log(hits / total) / 4
    ratio = sum(map(len, references)) / sum(map(len, hypotheses))
    return 100 * math.exp(log_precision + min(0.0, 1 - ratio))


def test_the_command_of_sacrebleu_prints_the_same(tmp_path: Path) -> None:
    (tmp_path / "hyp").write_text("".join(f"{line}\n" for line in HYPOTHESES), encoding="utf-8")
    (tmp_path / "ref").write_text("".join(f"{line}\n" for line in REFERENCES), encoding="utf-8")
    command = [sys.executable, "-m", "sacrebleu", str(tmp_path / "ref"), "-i", str(tmp_path / "hyp"), "-b", "-w", "6"]
    for metric, score in (("bleu", bleu(HYPOTHESES, REFERENCES)), ("chrf", chrf(HYPOTHESES, REFERENCES))):
        printed = subprocess.run([*command, "-m", metric], capture_output=True, text=True, check=True).stdout
        assert float(printed) == pytest.approx(score.value, abs=1e-6)
        assert 0 < score.value < 100


def test_tok_lc_is_bleu_of_moses_tokens_in_lower_case() -> None:
    score = bleu(HYPOTHESES, REFERENCES, "tok-lc", "de")
    tokens = [[line.lower().split() for line in moses_tokenize(lines, "de")] for lines in (HYPOTHESES, REFERENCES)]
    assert score.value == pytest.approx(plain_bleu(*tokens), abs=1e-9)
    assert score.value != pytest.approx(bleu(HYPOTHESES, REFERENCES).value, abs=0.1)
    assert "case:lc" in score.signature
    assert "tok:sacremoses-" in score.signature
    assert "-de|" in score.signature


def test_moses_knows_the_language() -> None:
    line = "Er kommt z.B. heute, bzw. morgen, im T-Shirt."
    assert moses_tokenize([line], "de") == ["Er kommt z.B. heute , bzw. morgen , im T-Shirt ."]
    assert moses_tokenize(['l\'eau & "moi"'], "fr") == ['l\' eau & " moi "']  # and nothing is escaped


def test_interval_holds_the_score_and_is_the_same_every_time() -> None:
    for metric in (bleu, chrf):
        first, again = metric(HYPOTHESES, REFERENCES, interval=True), metric(HYPOTHESES, REFERENCES, interval=True)
        assert first == again
        assert first.low is not None
        assert first.high is not None
        assert first.low < first.value < first.high
        assert "bs:1000|seed:12345" in first.signature
        assert metric(HYPOTHESES, REFERENCES).low is None


def test_interval_is_the_one_the_command_of_sacrebleu_prints(tmp_path: Path) -> None:
    (tmp_path / "hyp").write_text("".join(f"{line}\n" for line in HYPOTHESES), encoding="utf-8")
    (tmp_path / "ref").write_text("".join(f"{line}\n" for line in REFERENCES), encoding="utf-8")
    command = [sys.executable, "-m", "sacrebleu", tmp_path / "ref", "-i", tmp_path / "hyp", "-m", "bleu", "chrf"]
    printed = subprocess.run([*command, "--confidence", "-w", "4"], capture_output=True, text=True, check=True).stdout
    for own, score in zip(
        json.loads(printed), (metric(HYPOTHESES, REFERENCES, interval=True) for metric in (bleu, chrf)), strict=True
    ):
        assert score.low == pytest.approx(own["confidence_mean"] - own["confidence_var"], abs=2e-4)
        assert score.high == pytest.approx(own["confidence_mean"] + own["confidence_var"], abs=2e-4)
        assert score.signature == own["signature"]


def test_interval_of_a_model_that_gets_almost_nothing_right() -> None:
    """Some resamples score exactly 0, others do not; sacrebleu's own n_bootstrap stops with a TypeError here."""
    for score in (
        chrf(["x", "y", "the"], ["a", "b", "the"], True),
        bleu(["x", "y", "the"], ["a", "b", "the"], interval=True),
    ):
        assert score.low is not None
        assert score.high is not None
        assert score.low <= score.value <= score.high


def test_length_ratio_and_brevity_penalty() -> None:
    score = bleu(["a b c d e f"] * 3, ["a b c d e f g h i j k l"] * 3)
    assert score.length_ratio == pytest.approx(0.5)
    assert score.brevity_penalty == pytest.approx(math.exp(1 - 2))
    perfect = bleu(REFERENCES, REFERENCES)
    assert (perfect.value, perfect.brevity_penalty, perfect.length_ratio) == pytest.approx((100, 1, 1))


def test_blank_translations_score_zero() -> None:
    assert bleu([""] * 4, REFERENCES[:4], interval=True).value == 0
    assert chrf([""] * 4, REFERENCES[:4], interval=True).value == 0


@pytest.mark.parametrize("metric", [bleu, chrf])
def test_what_cannot_be_scored_is_refused(metric) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match="1 hypotheses but 2 references"):
        metric(["a"], ["a", "b"])
    with pytest.raises(ValueError, match="2 hypotheses but 1 references"):
        metric(["a", "b"], ["a"])
    with pytest.raises(ValueError, match="no sentences"):
        metric([], [])
    with pytest.raises(ValueError, match="references: expected a flat list"):
        metric(["a"], [["a"]])
    with pytest.raises(ValueError, match="hypotheses: expected a flat list"):
        metric("a", ["a"])
