"""The search over all three architectures: their states and memories survive expansion, reordering and dropping."""

import random
import statistics

import pytest
import torch
import yaml

from nmt.config import CONFIG_DIR, BahdanauConfig, Sampling, Seq2SeqConfig, TransformerConfig, parse
from nmt.data.batch import encode_source
from nmt.engine import Request, TorchEngine
from nmt.models import build
from nmt.models.base import TranslationModel
from nmt.search import Hypothesis, search
from nmt.tokens import BOS, EOS, UNK
from tests.oracles import greedy, log_probability, options, plain_beam_search

VOCABULARY = 23
# Sizes, how far parameters are moved, and how far the logit of EOS is raised. Moved further, a recurrent model turns
# chaotic: it amplifies the rounding of float32 beyond what a test of the search may allow.
MODELS = {
    "seq2seq": (Seq2SeqConfig, {"embedding_dim": 8, "hidden_dim": 16, "layers": 2}, 1.0, 3.0),
    "bahdanau": (BahdanauConfig, {"embedding_dim": 8, "hidden_dim": 12, "attention_dim": 8, "maxout_dim": 8}, 0.7, 1.0),
    "transformer": (TransformerConfig, {"dim": 16, "heads": 2, "encoder_layers": 1, "decoder_layers": 2}, 0.3, 3.0),
}
ATTENDING = ["bahdanau", "transformer"]


def make(name: str, seed: int = 1) -> TranslationModel:
    """An untrained model with opinions: its answers depend on the source and end at all lengths, so that a row in the
    wrong place shows."""
    kind, sizes, spread, end_bias = MODELS[name]
    tree = yaml.safe_load((CONFIG_DIR / "model" / f"{name}.yaml").read_text(encoding="utf-8"))
    config = parse(kind, {**tree, **sizes, "tie_embeddings": "none"})
    model = build(config, VOCABULARY, VOCABULARY, seed)
    generator = torch.Generator().manual_seed(seed)
    for parameter_name, parameter in model.named_parameters():
        noise = torch.randn(parameter.shape, generator=generator)
        parameter.data.add_(noise, alpha=spread * (0.3 if "bias" in parameter_name else 1.0))
    project, toward_the_end = model.project, torch.zeros(VOCABULARY)
    toward_the_end[EOS] = end_bias
    model.project = lambda features: project(features) + toward_the_end
    return model


def sources(count: int) -> list[list[int]]:
    generator = random.Random(count)
    return [generator.choices(range(4, VOCABULARY), k=generator.randint(1, 9)) for _ in range(count)]


def run(model: TranslationModel, rows: list[list[int]], *args, **keywords) -> list[list[Hypothesis]]:
    return search([model], *encode_source(rows), *args, **keywords)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("beam_size", [2, 4])
def test_equals_a_plain_beam_search(name, beam_size):
    model, rows = make(name), sources(5)
    config = options(beam_size=beam_size, max_length_a=0.5, max_length_b=4)
    found = run(model, rows, config, n_best=beam_size)
    model.eval()
    for row, hypotheses in zip(rows, found, strict=True):
        expected = plain_beam_search(model, row, config)[:beam_size]
        assert [(tuple(h.tokens), h.finished) for h in hypotheses] == [(tokens, end) for tokens, _, end in expected]
        assert [h.score for h in hypotheses] == pytest.approx([score for _, score, _ in expected], abs=1e-4)


@pytest.mark.parametrize("name", MODELS)
def test_beam_one_is_greedy(name):
    model, rows = make(name), sources(8)
    found = run(model, rows, options(beam_size=1, max_length_b=15))
    model.eval()
    assert [(h.tokens, h.finished) for [h] in found] == [greedy(model, row, limit=15) for row in rows]


@pytest.mark.parametrize("name", MODELS)
def test_every_score_is_that_of_teacher_forcing(name):
    model, rows = make(name), sources(20)
    found = run(model, rows, options(beam_size=5, max_length_b=12), n_best=5)
    model.eval()
    lengths = set()
    for row, hypotheses in zip(rows, found, strict=True):
        for hypothesis in hypotheses:
            expected = log_probability(model, row, hypothesis.tokens, hypothesis.finished)
            assert hypothesis.log_probability == pytest.approx(expected, abs=1e-4)
            lengths.add(len(hypothesis.tokens))
    assert len(lengths) > 6


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("beam_size", [1, 4])
def test_output_does_not_depend_on_batch_size_or_order(name, beam_size):
    model, rows = make(name), sources(64)
    config = options(beam_size=beam_size, max_length_a=1.0, max_length_b=3)
    alone = [run(model, [row], config)[0][0] for row in rows]
    for size in (2, 7, 64):
        together = [best for start in range(0, 64, size) for [best] in run(model, rows[start : start + size], config)]
        assert [h.tokens for h in together] == [h.tokens for h in alone]
        assert [h.score for h in together] == pytest.approx([h.score for h in alone], abs=1e-4)
    backwards = [best for [best] in run(model, rows[::-1], config)]
    assert [h.tokens for h in backwards] == [h.tokens for h in alone[::-1]]


EVERYTHING = {"min_length": 3, "max_length_b": 7, "no_repeat_ngram": 2, "forbid_unk": True}
PREFIXES = [[4, 5], [], [7, 8, 7, 8, 7, 8], [UNK], [22, 21, 20]]


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("beam_size", [1, 4])
def test_every_option_at_once(name, beam_size):
    model, rows = make(name), sources(5)
    config = options(beam_size=beam_size, **EVERYTHING)
    found = run(model, rows, config, n_best=beam_size, prefixes=PREFIXES)
    model.eval()
    for row, prefix, hypotheses in zip(rows, PREFIXES, found, strict=True):
        expected = plain_beam_search(model, row, config, prefix)[:beam_size]
        assert [(tuple(h.tokens), h.finished) for h in hypotheses] == [(tokens, end) for tokens, _, end in expected]
        for hypothesis in hypotheses:
            forced = log_probability(model, row, hypothesis.tokens, hypothesis.finished)
            assert hypothesis.log_probability == pytest.approx(forced, abs=1e-4)


@pytest.mark.parametrize("beam_size", [1, 4])
@pytest.mark.parametrize("names", [[name] * 2 for name in MODELS] + [list(MODELS)], ids="-".join)
def test_an_ensemble_of_any_architectures(names, beam_size):
    models, rows = [make(name, seed) for seed, name in enumerate(names)], sources(4)
    config = options(beam_size=beam_size, max_length_b=5)
    found = search(models, *encode_source(rows), config, n_best=beam_size)
    for model in models:
        model.eval()
    for row, hypotheses in zip(rows, found, strict=True):
        expected = plain_beam_search(models, row, config)[:beam_size]
        assert [(tuple(h.tokens), h.finished) for h in hypotheses] == [(tokens, end) for tokens, _, end in expected]
        for hypothesis in hypotheses:
            forced = log_probability(models, row, hypothesis.tokens, hypothesis.finished)
            assert hypothesis.log_probability == pytest.approx(forced, abs=1e-4)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("beam_size", [1, 4])
def test_an_ensemble_of_a_model_with_itself_is_the_model_to_the_last_bit(name, beam_size):
    model, rows = make(name), sources(9)
    config = options(beam_size=beam_size, max_length_b=9)
    alone = run(model, rows, config, n_best=beam_size)
    assert search([model, model], *encode_source(rows), config, n_best=beam_size) == alone


@pytest.mark.parametrize("name", MODELS)
def test_samples_are_the_same_in_any_batch_and_score_as_they_are(name):
    model, rows = make(name), sources(30)
    config, sampling = options(max_length_b=10), Sampling(temperature=1.2, top_k=12, top_p=0.95, seed=3)
    alone = [run(model, [row], config, 3, sampling=sampling, keys=[key])[0] for key, row in enumerate(rows)]
    for size in (7, 30):
        places = [range(start, min(start + size, 30)) for start in range(0, 30, size)]
        batches = [run(model, [rows[p] for p in batch], config, 3, sampling=sampling, keys=batch) for batch in places]
        together = [samples for batch in batches for samples in batch]
        assert [[s.tokens for s in samples] for samples in together] == [[s.tokens for s in found] for found in alone]
    model.eval()
    for row, samples in zip(rows, alone, strict=True):
        for sample in samples:
            forced = log_probability(model, row, sample.tokens, sample.finished)
            assert sample.log_probability == pytest.approx(forced, abs=1e-4)
    assert len({tuple(sample.tokens) for samples in alone for sample in samples}) > 40


@pytest.mark.parametrize("name", MODELS)
def test_token_scores_and_attention_are_those_of_the_steps(name):
    model, rows = make(name), sources(9)
    attends = name != "seq2seq"
    config = options(beam_size=3, max_length_b=8)
    engine = TorchEngine([model], torch.device("cpu"), "fp32")
    [found] = engine.run([Request(rows, config, n_best=3, with_token_scores=True, with_attention=attends)])
    model.eval()
    for row, hypotheses in zip(rows, found, strict=True):
        memory = model.encode(*encode_source([row]))
        for hypothesis in hypotheses:
            target = [*hypothesis.tokens, *([EOS] if hypothesis.finished else [])]
            state, scores, weights = model.init_state(memory), [], []
            for previous, token in zip([BOS, *target], target, strict=False):
                step = model.step(torch.tensor([previous]), state, memory, with_attention=attends)
                state, weights = step.state, [*weights, step.attention[0]] if attends else None
                scores.append(model.project(step.features)[0].double().log_softmax(dim=-1)[token].item())
            assert hypothesis.token_log_probabilities == pytest.approx(scores, abs=1e-4)
            assert sum(hypothesis.token_log_probabilities) == pytest.approx(hypothesis.log_probability, abs=1e-4)
            if attends:
                torch.testing.assert_close(hypothesis.attention, torch.stack(weights), atol=1e-5, rtol=1e-4)
            else:
                assert hypothesis.attention is None


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("beam_size", [1, 4])
def test_a_source_is_encoded_once_however_long_the_search(name, beam_size):
    model, rows = make(name), sources(6)
    calls, encode = [], model.encode

    def counted(*arguments):
        calls.append(arguments)
        return encode(*arguments)

    model.encode = counted
    found = run(model, rows, options(beam_size=beam_size, max_length_b=8))
    assert max(len(best.tokens) for [best] in found) > 2
    assert len(calls) == 1


@pytest.mark.parametrize("name", MODELS)
def test_bfloat16_scores_are_near(name):
    model, rows = make(name), sources(20)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = run(model, rows, options(beam_size=3, max_length_b=6))
    model.eval()
    errors = [
        abs(hypothesis.log_probability - log_probability(model, row, hypothesis.tokens, hypothesis.finished))
        for row, [hypothesis] in zip(rows, found, strict=True)
    ]
    assert 0 < statistics.median(errors) < 0.3


@pytest.mark.parametrize("name", ATTENDING)
@pytest.mark.parametrize("copies", [1, 2])
def test_scores_are_summed_in_float32_whatever_the_model_multiplies_in(name, copies):
    """The logits are rounded to bfloat16; what is made of them is not: seen on those that the model really gave."""
    model, [row] = make(name), sources(1)
    logits, project = [], model.project

    def recorded(features):
        logits.append(project(features).bfloat16())
        return logits[-1]

    model.project = recorded
    config = options(beam_size=1, min_length=8, max_length_b=9)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        [[found]] = search([model] * copies, *encode_source([row]), config)
    target = [*found.tokens, *([EOS] if found.finished else [])]
    assert len(target) == 9
    values = [
        step[0].double().log_softmax(dim=-1)[token].item() for step, token in zip(logits[::copies], target, strict=True)
    ]
    assert found.log_probability == pytest.approx(sum(values), abs=1e-5)


@pytest.mark.parametrize("name", MODELS)
def test_training_goes_on_after_a_search(name):
    """What a search leaves behind must not be in the way of gradients."""
    model = make(name).train()
    run(model, sources(4), options(max_length_b=40))
    source, lengths = encode_source(sources(4))
    model.project(model(source, lengths, torch.full((4, 30), 5))).sum().backward()
    assert all(parameter.grad is not None for parameter in model.parameters())
