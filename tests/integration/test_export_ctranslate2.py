"""A Transformer written for CTranslate2 computes what it computed here, and its engine answers as the search does."""

import itertools
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from nmt.checkpoint import Checkpoint
from nmt.config import Sampling, SearchConfig, TransformerConfig
from nmt.data.tokenizer import TokenizerPair, train_tokenizers
from nmt.engine import Request, TorchEngine
from nmt.formats import Options, ctranslate2, ctranslate2_engine
from nmt.formats.ctranslate2_engine import CTranslate2Engine
from nmt.models import build
from nmt.models.transformer import Transformer
from nmt.search import Hypothesis
from nmt.tokens import BOS, EOS, PAD
from tests.model_configs import TRANSFORMER, shake
from tests.oracles import log_probability, options
from tests.tiny_run import compose_config

TEXT = ["ein hund läuft", "eine frau liest ein buch", "zwei kinder spielen im park", "ein mann schläft"] * 5
TIE = 1e-3
CONFIG = compose_config("model=transformer")
VARIANTS = list(
    itertools.product(
        ["pre", "post"], ["none", "two-way", "three-way"], ["relu", "gelu"], ["sinusoidal", "learned", "none"]
    )
)


@pytest.fixture(scope="module")
def tokenizers() -> dict[bool, TokenizerPair]:
    """Joint and separate ones; the separate ones of different sizes."""
    joint = replace(CONFIG.data.tokenizer, vocabulary_size=40, joint=True)
    separate = replace(joint, joint=False, vocabulary_size=36, source_vocabulary_size=40)
    return {each.joint: train_tokenizers(each, TEXT, TEXT, len(TEXT), seed=1) for each in (joint, separate)}


def make(config: TransformerConfig, tokenizers: TokenizerPair) -> Checkpoint:
    """An untrained model with opinions. Like a trained one it ends, and finds PAD and BOS improbable."""
    model = build(config, tokenizers.source.vocabulary_size, tokenizers.target.vocabulary_size, seed=1)
    assert isinstance(model, Transformer)
    shake(model)
    last = model.decoder_norm if config.norm == "pre" else model.decoder_layers[-1].feedforward_residual.norm
    tables = model.embeddings
    with torch.no_grad():
        last.weight[0], last.bias[0] = 0.0, 1.0  # one feature that is always 1: what it meets is a bias
        output = tables.target_table if tables.output_table is None else tables.output_table
        output[:, 0], output[EOS, 0], output[[PAD, BOS], 0] = 0.0, 1.2, -15.0
    tree = replace(CONFIG, model=config)
    return Checkpoint(model.eval(), tokenizers, tree, Path("nowhere"), step=1)


def written(made: Checkpoint, folder: Path, quantization: str | None = None) -> Path:
    folder.mkdir(exist_ok=True)
    ctranslate2.export(made, folder, Options(quantization))
    return folder


def sentences(size: int, count: int = 24, longest: int = 14) -> list[list[int]]:
    generator = random.Random(count)
    return [generator.choices(range(4, size), k=generator.randint(1, longest)) for _ in range(count)]


def answers(engine: TorchEngine | CTranslate2Engine, sources: Sequence[list[int]], config: SearchConfig, n_best: int):
    [found] = engine.run([Request(sources, config, n_best)])
    return found


def here(made: Checkpoint) -> TorchEngine:
    return TorchEngine([made.model], torch.device("cpu"), "fp32")


def assert_same(found: list[list[Hypothesis]], expected: list[list[Hypothesis]]) -> None:
    """Equal hypotheses with equal scores; others in a place only if they tie."""
    assert len(found) == len(expected)
    for ours, theirs in zip(expected, found, strict=True):
        assert [h.score for h in theirs] == pytest.approx([h.score for h in ours], abs=TIE)
        for one, other in zip(ours, theirs, strict=True):
            if (one.tokens, one.finished) == (other.tokens, other.finished):
                assert other.log_probability == pytest.approx(one.log_probability, abs=TIE)


def share_equal(found: list[list[Hypothesis]], expected: list[list[Hypothesis]]) -> float:
    pairs = [(h.tokens, o.tokens) for a, b in zip(found, expected, strict=True) for h, o in zip(a, b, strict=True)]
    return sum(one == other for one, other in pairs) / len(pairs)


# --- the same numbers -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("norm", "tying", "activation", "positions"), VARIANTS)
@pytest.mark.filterwarnings("ignore:a sentence is longer")
def test_every_variant_gives_the_same_scores_and_translations(norm, tying, activation, positions, tokenizers, tmp_path):
    pair = tokenizers[tying == "three-way"]
    config = replace(
        TRANSFORMER,
        norm=norm,
        tie_embeddings=tying,
        activation=activation,
        positions=positions,
        max_positions=9 if positions == "learned" else None,  # shorter than some sentences
    )
    made = make(config, pair)
    engine = CTranslate2Engine(written(made, tmp_path / "exported"), "cpu", threads=1)
    sources, targets = (sentences(side.vocabulary_size) for side in pair)
    targets[0] = []
    scores = engine._model.score_batch(
        [pair.source.pieces(ids) for ids in sources], [pair.target.pieces(ids) for ids in targets]
    )
    for source, target, score in zip(sources, targets, scores, strict=True):
        assert sum(score.log_probs) == pytest.approx(log_probability(made.model, source, target, True), abs=TIE)
    for beam_size in (1, 5):
        search = options(beam_size=beam_size, max_length_a=1.0, max_length_b=8)
        found, expected = (answers(each, sources, search, beam_size) for each in (engine, here(made)))
        assert_same(found, expected)
        assert share_equal(found, expected) > 0.95


# --- the same search --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def made(tokenizers) -> Checkpoint:
    return make(TRANSFORMER, tokenizers[False])


@pytest.fixture(scope="module")
def engine(made, tmp_path_factory) -> CTranslate2Engine:
    return CTranslate2Engine(written(made, tmp_path_factory.mktemp("exported")), "cpu", threads=1)


@pytest.mark.parametrize("beam_size", [1, 2, 6])
@pytest.mark.parametrize(
    "changes",
    [
        {"length_penalty": "none"},
        {"length_penalty": "gnmt", "alpha": 0.6},
        {"length_penalty": "simple", "alpha": 1.0},
        {"length_penalty": "simple", "alpha": 2.5},
        {"length_penalty": "simple", "alpha": -1.0},
        {"min_length": 4},
        {"min_length": 9, "max_length_a": 0.0},
        {"max_length_a": 0.5, "max_length_b": 0},
        {"max_length_a": 0.0, "max_length_b": 1},
        {"max_length_a": 3.0, "max_length_b": 30},
    ],
    ids=str,
)
def test_every_option_of_the_search_means_the_same(made, engine, changes, beam_size):
    search = options(**{"beam_size": beam_size, "max_length_a": 1.0, "max_length_b": 8, **changes})
    sources = sentences(40, count=30)
    found, expected = (answers(each, sources, search, beam_size) for each in (engine, here(made)))
    assert_same(found, expected)
    assert share_equal(found, expected) > 0.95


def test_these_models_end_at_all_lengths_and_are_cut(made):
    """What the tests of the search need to see: without it they would pass whatever the stopping rule."""
    search = options(beam_size=6, max_length_a=1.0, max_length_b=8)
    ended = {len(best.tokens) for [best] in answers(here(made), sentences(40, count=30), search, 1) if best.finished}
    short = answers(here(made), sentences(40), options(beam_size=2, max_length_b=3), 1)
    assert len(ended) > 5
    assert {best.finished for [best] in short} == {False, True}


@pytest.mark.parametrize("beam_size", [2, 6])
def test_how_far_is_searched_at_first_does_not_show(made, engine, beam_size, monkeypatch):
    search = options(beam_size=beam_size, max_length_a=1.0, max_length_b=8)
    sources = sentences(40)
    expected = answers(engine, sources, search, beam_size)
    for first in (1, 3, 1000):
        monkeypatch.setattr(ctranslate2_engine, "_first_reach", lambda length, first=first: first)
        assert_same(answers(engine, sources, search, beam_size), expected)


@pytest.mark.parametrize("min_length", [0, 3])
def test_greedy_search_never_says_pad_or_bos(tokenizers, tmp_path, min_length):
    """Of a model that would: they stay in the normalisation, as by teacher forcing."""
    made = make(TRANSFORMER, tokenizers[False])
    with torch.no_grad():
        made.model.embeddings.output_table[[PAD, BOS], 0] = 2.0
    engine = CTranslate2Engine(written(made, tmp_path / "exported"), "cpu", threads=1)
    search = options(beam_size=1, max_length_a=1.0, max_length_b=8, min_length=min_length)
    found, expected = (answers(each, sentences(40), search, 1) for each in (engine, here(made)))
    assert_same(found, expected)
    assert found != []
    assert share_equal(found, expected) == 1.0


@pytest.mark.parametrize("patience", [0.3, 1.0, 1.4, 3.0, 50.0])
@pytest.mark.parametrize(
    "changes", [{}, {"min_length": 2}, {"alpha": -1.0}, {"max_length_a": 0.5, "max_length_b": 1}], ids=str
)
def test_patience_runs_out_at_the_same_step(made, engine, patience, changes):
    search = options(
        **{"max_length_a": 1.0, "max_length_b": 8, "length_penalty": "simple", "alpha": 2.0, "beam_size": 3, **changes},
        patience=patience,
    )
    sources = sentences(40, count=40)
    for n_best in (1, 3):
        found, expected = (answers(each, sources, search, n_best) for each in (engine, here(made)))
        assert [len(each) for each in found] == [len(each) for each in expected]
        assert_same(found, expected)
        assert share_equal(found, expected) > 0.95


def test_patience_decides_something_in_these_models(made):
    search = options(max_length_a=1.0, max_length_b=8, length_penalty="simple", alpha=2.0, beam_size=3)
    to_the_end, hasty = (
        answers(here(made), sentences(40, count=40), replace(search, patience=patience), 1) for patience in (None, 1.0)
    )
    assert share_equal(hasty, to_the_end) < 0.8


def test_requests_are_answered_in_order(engine):
    sources = sentences(40)
    one_by_one = list(engine.run(Request([row], options(max_length_b=9), 2) for row in sources))
    assert_same([found for [found] in one_by_one], answers(engine, sources, options(max_length_b=9), 2))
    assert list(engine.run([Request([], options())])) == [[]]


def test_scores_of_subwords(made, engine):
    request = Request(sentences(40), options(beam_size=3, max_length_b=4), 3, with_token_scores=True)
    [found], [expected] = engine.run([request]), here(made).run([request])
    assert_same(found, expected)
    lengths = set()
    for one, other in zip(itertools.chain(*found), itertools.chain(*expected), strict=True):
        if one.tokens == other.tokens:
            lengths.add((len(one.tokens), one.finished))
            assert one.token_log_probabilities == pytest.approx(other.token_log_probabilities, abs=TIE)
    assert len(lengths) > 3
    assert list(engine.run([request._replace(sources=[])])) == [[]]


def test_the_table_of_positions_ends(tokenizers, tmp_path, monkeypatch):
    monkeypatch.setattr(ctranslate2, "POSITIONS", 12)
    made = make(TRANSFORMER, tokenizers[False])
    engine = CTranslate2Engine(written(made, tmp_path / "exported"), "cpu", threads=1)
    fits = [[5] * 11]  # and EOS
    for beam_size in (1, 4):
        search = options(beam_size=beam_size, max_length_b=12)
        assert_same(answers(engine, fits, search, beam_size), answers(here(made), fits, search, beam_size))
        with pytest.raises(ValueError, match=r"a line has 13 subwords .* positions for 12"):
            answers(engine, [[5] * 12], search, 1)
        far = options(beam_size=beam_size, max_length_b=200, min_length=12)
        with pytest.raises(ValueError, match=r"may have 200 subwords.* positions for 12"):
            answers(engine, fits, far, 1)


@pytest.mark.parametrize(
    ("request_", "named"),
    [
        (Request([[5]], options(), with_attention=True), "--align"),
        (Request([[5]], options(), prefixes=[[5]]), "--target-prefix"),
        (Request([[5]], options(), sampling=Sampling(1.0, 0, 1.0, 1), keys=[0]), "--sample"),
        (Request([[5]], options(forbid_unk=True)), "--forbid-unk"),
        (Request([[5]], options(no_repeat_ngram=2)), "--no-repeat-ngram"),
        (Request([[5]], options(beam_size=2), 3), "n-best"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_it_cannot_do_is_refused_by_name(engine, request_, named):
    with pytest.raises(ValueError, match=rf"^{named}.*(checkpoint that it was made from|raise --beam-size)"):
        next(engine.run([request_]))


@pytest.mark.parametrize(("quantization", "smaller", "near"), [("int8", 0.5, 0.6), ("float16", 0.6, 0.03)])
def test_quantization(tokenizers, tmp_path, monkeypatch, quantization, smaller, near):
    """The file shrinks, the numbers stay near, and the scores are those of the quantized model by teacher forcing.

    Near as far as the stored numbers go: how well products of int8 are computed differs between processors.
    """
    monkeypatch.setattr(ctranslate2, "POSITIONS", 32)
    made = make(replace(TRANSFORMER, dim=32, feedforward_dim=64), tokenizers[False])
    full, small = (written(made, tmp_path / str(name), name) for name in (None, quantization))
    sizes = [(folder / "model.bin").stat().st_size for folder in (full, small)]
    assert sizes[1] < smaller * sizes[0]
    sources, targets = (
        [side.pieces(ids) for ids in sentences(side.vocabulary_size)]
        for side in (made.tokenizers.source, made.tokenizers.target)
    )
    exact, near_it = (
        ctranslate2.library().Translator(str(folder), compute_type="float32").score_batch(sources, targets)
        for folder in (full, small)
    )
    errors = [
        abs(x - y)
        for one, two in zip(exact, near_it, strict=True)
        for x, y in zip(one.log_probs, two.log_probs, strict=True)
    ]
    assert 0 < max(errors) < near
    engine = CTranslate2Engine(small, "cpu", threads=1)
    for source, [best] in zip(sources, answers(engine, sentences(40), options(max_length_b=9), 1), strict=True):
        [forced] = engine._model.score_batch([source], [made.tokenizers.target.pieces(best.tokens)])
        expected = sum(forced.log_probs[: len(best.tokens) + best.finished])
        assert best.log_probability == pytest.approx(expected, abs=TIE)
