"""Drawn segmentations: the library's best one without chance, the right probabilities, the same in every process."""

import io
import itertools
import math
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any, Literal

import pytest
import sentencepiece

from nmt.data.segmentation import BPEDropout, UnigramSampling, segmenter
from nmt.data.tokenizer import Tokenizer
from nmt.tokens import BOS, EOS, PAD, UNK

Kind = Literal["bpe", "unigram"]
KINDS: tuple[Kind, Kind] = ("bpe", "unigram")


def sentences(count: int) -> list[str]:
    generator = random.Random(4)
    syllables = [a + b for a in "bdfgklmnprst" for b in "aeiou"]
    words = ["".join(generator.choices(syllables, k=generator.randint(1, 4))) for _ in range(200)]
    return [" ".join(generator.choices(words, k=generator.randint(1, 12))) for _ in range(count)]


LINES = sentences(250)
ODD = [
    "", "  ", "b", "☃", "☃☃ ☃", "ba☃ba☃☃ba", " \u3000ba  da ", "</s> <unk> <0x41>", "ﬁ ½ ①", "\u2581ba\u2581",
    "日本語 ba", "e\u0301 é", "🙂🙂 ba", "ba\x00da\tba", "b" * 300,
]  # fmt: skip


def trained(kind: Kind, lines: list[str] = LINES, **options: Any) -> Tokenizer:
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=model, model_type=kind, pad_id=PAD, unk_id=UNK, bos_id=BOS,
        eos_id=EOS, minloglevel=2, **({"vocab_size": 150} | options),
    )  # fmt: skip
    return Tokenizer(model.getvalue())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"byte_fallback": True, "vocab_size": 400, "hard_vocab_limit": False},
        {"normalization_rule_name": "identity"},
        {"split_by_whitespace": False},
        {"character_coverage": 0.98},
    ],
    ids=str,
)
def test_without_chance_it_is_the_best_segmentation(kind: Kind, options: dict[str, Any]) -> None:
    """Next to no dropout; an alpha that gives the best segmentation all of the probability."""
    tokenizer = trained(kind, **options)
    drawing = segmenter(kind, tokenizer, 1e-12 if kind == "bpe" else 1e5)
    for seed, line in enumerate(LINES + ODD):
        assert drawing.sample(line, seed) == tokenizer.encode(line), line


@pytest.mark.parametrize("kind", KINDS)
def test_a_draw_spells_the_same_text(kind: Kind) -> None:
    tokenizer = trained(kind, byte_fallback=True, vocab_size=400, hard_vocab_limit=False)
    drawing = segmenter(kind, tokenizer, 0.3 if kind == "bpe" else 0.03)
    for seed, line in enumerate(LINES + ODD):
        assert tokenizer.decode(drawing.sample(line, seed)) == tokenizer.decode(tokenizer.encode(line))
    assert len({tuple(drawing.sample(" ".join(LINES[:3]), seed)) for seed in range(50)}) > 45


# --- distributions ----------------------------------------------------------------------------------------------------

DRAWS = 6000


def assert_drawn_from(probabilities: dict[tuple[str, ...], float], found: Counter[tuple[str, ...]]) -> None:
    """Each outcome within five standard deviations of its expected number."""
    assert math.isclose(sum(probabilities.values()), 1.0, rel_tol=1e-9)
    assert set(found) <= set(probabilities)
    for outcome, probability in probabilities.items():
        deviation = (DRAWS * probability * (1 - probability)) ** 0.5
        assert abs(found[outcome] - DRAWS * probability) < 5 * deviation + 1, outcome


def test_bpe_dropout_is_what_the_algorithm_makes_of_every_toss() -> None:
    """All outcomes of the tosses of a word, each with its probability: merges in turn, each left out at the rate."""
    tokenizer, rate = trained("bpe"), 0.3
    pieces = tokenizer.normal_pieces()
    word = max(itertools.chain(*map(str.split, LINES)), key=lambda word: (len(tokenizer.encode(word)) == 2, len(word)))
    expected: Counter[tuple[str, ...]] = Counter()

    def toss(symbols: list[str], refused: frozenset[tuple[int, int, int]], probability: float) -> None:
        """``refused``: merges left out, by where the parts begin and the second ends."""
        starts = [sum(map(len, symbols[:i])) for i in range(len(symbols) + 1)]
        open_merges = [
            (-pieces[symbols[i] + symbols[i + 1]][1], i)
            for i in range(len(symbols) - 1)
            if symbols[i] + symbols[i + 1] in pieces and (starts[i], starts[i + 1], starts[i + 2]) not in refused
        ]
        if not open_merges:
            expected[tuple(symbols)] += probability  # type: ignore[assignment]
            return
        _, i = min(open_merges)
        toss([*symbols[:i], symbols[i] + symbols[i + 1], *symbols[i + 2 :]], refused, probability * (1 - rate))
        toss(symbols, refused | {(starts[i], starts[i + 1], starts[i + 2])}, probability * rate)

    toss(list("▁" + word), frozenset(), 1.0)
    assert len(expected) > 5
    drawing = BPEDropout(tokenizer, rate)
    found = Counter(tuple(tokenizer.pieces(drawing.sample(word, seed))) for seed in range(DRAWS))
    assert_drawn_from(dict(expected), found)


def all_cuts(text: str, pieces: set[str]) -> list[tuple[str, ...]]:
    found = []
    for marks in itertools.product((False, True), repeat=len(text) - 1):
        cuts = [0, *(i + 1 for i, mark in enumerate(marks) if mark), len(text)]
        cut = tuple(text[begin:end] for begin, end in itertools.pairwise(cuts))
        if all(piece in pieces for piece in cut):
            found.append(cut)
    return found


@pytest.mark.parametrize("alpha", [0.05, 0.2])
def test_unigram_sampling_has_the_probabilities_of_all_segmentations(alpha: float) -> None:
    tokenizer = trained("unigram")
    pieces = tokenizer.normal_pieces()
    spelled = max(("▁" + word for word in " ".join(LINES).split()), key=lambda word: len(all_cuts(word, set(pieces))))
    weights = {cut: math.exp(alpha * sum(pieces[piece][1] for piece in cut)) for cut in all_cuts(spelled, set(pieces))}
    assert len(weights) > 5
    drawing = UnigramSampling(tokenizer, alpha)
    found = Counter(tuple(tokenizer.pieces(drawing.sample(spelled[1:], seed))) for seed in range(DRAWS))
    assert_drawn_from({cut: weight / sum(weights.values()) for cut, weight in weights.items()}, found)


# --- the same everywhere ----------------------------------------------------------------------------------------------

_ELSEWHERE = """
import sys
from pathlib import Path
from nmt.data.segmentation import segmenter
from nmt.data.tokenizer import Tokenizer
drawing = segmenter(sys.argv[1], Tokenizer(Path(sys.argv[2]).read_bytes()), float(sys.argv[3]))
for seed, line in reversed(list(enumerate(sys.argv[4:]))):
    print(seed, drawing.sample(line, seed))
"""


@pytest.mark.parametrize("kind", KINDS)
def test_another_process_draws_the_same(kind: Kind, tmp_path: Path) -> None:
    """In another order, too: what was drawn before decides nothing."""
    tokenizer, rate = trained(kind), 0.3 if kind == "bpe" else 0.03
    (tmp_path / "model").write_bytes(tokenizer.model_bytes)
    command = [sys.executable, "-c", _ELSEWHERE, kind, str(tmp_path / "model"), str(rate), *LINES[:40]]
    drawing = segmenter(kind, tokenizer, rate)
    expected = [f"{seed} {drawing.sample(line, seed)}" for seed, line in enumerate(LINES[:40])]
    found = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    assert found[::-1] == expected
