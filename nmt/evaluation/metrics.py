"""BLEU and chrF of a corpus, by sacrebleu alone, each with the signature that says how it was counted.

Figures of different variants are never comparable, so a score carries the name of its variant:

* ``13a``: sacrebleu's default BLEU (Post 2018) on cased, detokenised text. What ``sacrebleu ref -i hyp`` prints.
* ``tok-lc``: BLEU on Moses-tokenised, lower-cased text, as most Multi30k papers report it. Hypothesis and reference are
  both tokenised here, by sacremoses (the Python port of Moses' ``tokenizer.perl``) with the rules of the target
  language, no splitting at hyphens, no punctuation normalisation; sacrebleu then counts without a tokenizer of its own.
* chrF: chrF2 (Popovic 2015), character 6-grams, no word order; the sacrebleu default.

Intervals are sacrebleu's own 95 % bootstrap intervals: 1000 resamples, seed 12345 (as for its command, the environment
variable SACREBLEU_SEED changes the seed; the signature says which one it was).
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple, cast

from sacrebleu.metrics.base import Metric
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.significance import PairedTest, Result

Variant = Literal["13a", "tok-lc"]

RESAMPLES = 1000
"""Bootstrap resamples behind every interval."""


class Score(NamedTuple):
    """One corpus score; ``low`` and ``high`` bound its 95 % interval and are None when none was asked for."""

    name: str  # "BLEU 13a", "BLEU tok-lc", "chrF2"
    value: float  # 0 to 100
    signature: str  # sacrebleu's, without which the value means nothing
    sentences: int
    low: float | None = None
    high: float | None = None
    brevity_penalty: float | None = None  # BLEU only
    length_ratio: float | None = None  # BLEU only: hypothesis tokens per reference token


def bleu(
    hypotheses: Sequence[str],
    references: Sequence[str],
    variant: Variant = "13a",
    language: str = "en",
    interval: bool = False,
) -> Score:
    """Corpus BLEU against one reference per sentence.

    Args:
        hypotheses: detokenised text, one string per sentence.
        references: the untouched references, in the same order.
        variant: see the module's docstring.
        language: of the target side; only ``tok-lc`` looks at it.
        interval: also bootstrap the 95 % interval.

    Raises:
        ValueError: no sentences, unequal counts (both are named), or something that is not a list of strings.
    """
    check(hypotheses, references)
    if variant == "13a":
        metric, tokenizer = BLEU(tokenize="13a"), ""
    else:
        metric, tokenizer = BLEU(tokenize="none", lowercase=True, force=True), _moses_name(language)
        hypotheses, references = moses_tokenize(hypotheses, language), moses_tokenize(references, language)
    result = metric.corpus_score(hypotheses, [references])
    low, high, signature = _interval(metric, hypotheses, references, interval)
    return Score(
        name=f"BLEU {variant}",
        value=float(result.score),
        signature=signature.replace("tok:none", f"tok:{tokenizer}") if tokenizer else signature,
        sentences=len(hypotheses),
        low=low,
        high=high,
        brevity_penalty=result.bp,
        length_ratio=result.sys_len / result.ref_len if result.ref_len else 0.0,
    )


def chrf(hypotheses: Sequence[str], references: Sequence[str], interval: bool = False) -> Score:
    """Corpus chrF2 against one reference per sentence; arguments and errors as for :func:`bleu`."""
    check(hypotheses, references)
    metric = CHRF()
    result = metric.corpus_score(hypotheses, [references])
    low, high, signature = _interval(metric, hypotheses, references, interval)
    return Score(result.name, float(result.score), signature, len(hypotheses), low, high)


def _interval(
    metric: Metric, hypotheses: Sequence[str], references: Sequence[str], wanted: bool
) -> tuple[float | None, float | None, str]:
    """Both ends of the 95 % interval, and the signature with the resamples and their seed; or the bare signature.

    Through sacrebleu's test of one system against nothing: the ``n_bootstrap`` of its metrics computes the same but
    stops with a TypeError when some resamples score exactly 0 (sacrebleu 2.6.0, chrF).
    """
    if not wanted:
        return None, None, str(metric.get_signature())
    test = PairedTest([("", hypotheses)], {"metric": metric}, [references], test_type="bs", n_samples=RESAMPLES)
    signatures, scores = test()
    (name,) = signatures
    result = cast(Result, scores[name][0])
    mean, half_width = cast(float, result.mean), cast(float, result.ci)
    return float(mean - half_width), float(mean + half_width), str(signatures[name])


def check(hypotheses: Sequence[str], references: Sequence[str]) -> None:
    """Refuse what sacrebleu would score without complaint: other counts, nothing at all, wrongly nested lists.

    Raises:
        ValueError: saying what was found.
    """
    for name, lines in (("hypotheses", hypotheses), ("references", references)):
        if isinstance(lines, str) or not all(isinstance(line, str) for line in lines):
            raise ValueError(f"{name}: expected a flat list with one string per sentence")
    if len(hypotheses) != len(references):
        raise ValueError(f"{len(hypotheses)} hypotheses but {len(references)} references: they must match line by line")
    if not hypotheses:
        raise ValueError("no sentences to score: hypotheses and references are both empty")


def moses_tokenize(lines: Sequence[str], language: str) -> list[str]:
    """Tokenise as Moses' ``tokenizer.perl -no-escape`` does; general rules only for a language Moses does not know."""
    from sacremoses import MosesTokenizer

    tokenizer = MosesTokenizer(lang=language)
    return [tokenizer.tokenize(line, escape=False, return_str=True) for line in lines]


def _moses_name(language: str) -> str:
    import sacremoses

    return f"sacremoses-{sacremoses.__version__}-{language}"
