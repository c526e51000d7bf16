"""Drawing translations: from the right distribution, the same ones in whatever company, scored as they are."""

import dataclasses
import math
from collections import Counter

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.config import Sampling
from nmt.data.batch import encode_source
from nmt.lengths import length_penalty
from nmt.sampling import Sampler, filtered
from nmt.search import Hypothesis, search
from nmt.tokens import BOS, EOS, PAD, UNK
from tests.fakes import AutomatonModel
from tests.oracles import drawn_from, greedy, log_probability, may_follow, next_log_probabilities, options

PLAIN = Sampling(temperature=1.0, top_k=0, top_p=1.0, seed=1)
SOURCES = [[4, 5, 6], [7], [4, 4, 8, 9, 5, 6, 7, 11], [5, 9], [6, 6, 6, 6]]


def run(models, sources, config, samples=1, sampling=PLAIN, keys=None, **keywords) -> list[list[Hypothesis]]:
    models = [models] if isinstance(models, AutomatonModel) else models
    keys = range(len(sources)) if keys is None else keys
    return search(models, *encode_source(sources), config, samples, sampling=sampling, keys=keys, **keywords)


# --- the distribution -------------------------------------------------------------------------------------------------


@settings(max_examples=100, deadline=None)
@given(
    logits=st.lists(st.floats(-8, 8, width=32), min_size=1, max_size=12, unique=True),
    barred=st.sets(st.integers(1, 11)),
    temperature=st.floats(0.05, 5.0),
    top_k=st.integers(0, 13),
    top_p=st.floats(0.01, 1.0),
)
def test_what_is_drawn_from(logits, barred, temperature, top_k, top_p):
    sampling = Sampling(temperature, top_k, top_p, seed=1)
    log_probs = torch.tensor([logits]).log_softmax(dim=1)
    log_probs[:, [token for token in barred if token < len(logits)]] = -torch.inf
    expected = drawn_from(log_probs[0].double().tolist(), sampling)
    found = filtered(log_probs, sampling).softmax(dim=1)[0].tolist()
    assert found == pytest.approx(expected, abs=1e-5)
    assert [value > 0 for value in found] == [value > 0 for value in expected]


def test_top_p_includes_the_token_that_crosses_it():
    log_probs = torch.tensor([[0.2, 0.5, 0.25, 0.05]], dtype=torch.float64).log()
    for top_p, kept in (
        (0.1, [1]),
        (0.49, [1]),
        (0.51, [1, 2]),
        (0.74, [1, 2]),
        (0.76, [0, 1, 2]),
        (0.96, [0, 1, 2, 3]),
    ):
        found = filtered(log_probs, dataclasses.replace(PLAIN, top_p=top_p))[0]
        assert found.isfinite().nonzero()[:, 0].tolist() == kept


def test_top_k_keeps_k_among_equals():
    found = filtered(torch.zeros(2, 7), dataclasses.replace(PLAIN, top_k=3))
    assert found.isfinite().sum(dim=1).tolist() == [3, 3]


@pytest.mark.parametrize("temperature", [1e-300, 1e-30, 1e30])
def test_extreme_temperatures_stay_numbers(temperature):
    log_probs = torch.tensor([[-torch.inf, -3.0, -0.5, -80.0]])
    found = filtered(log_probs, dataclasses.replace(PLAIN, temperature=temperature)).softmax(dim=1)[0].tolist()
    assert found == pytest.approx([0, 0, 1, 0] if temperature < 1 else [0, 1 / 3, 1 / 3, 1 / 3])


@pytest.mark.parametrize(
    "sampling",
    [PLAIN, Sampling(0.5, 0, 1.0, 7), Sampling(2.0, 0, 1.0, 1), Sampling(1.0, 3, 1.0, 1), Sampling(1.3, 4, 0.8, 1)],
)
def test_translations_are_drawn_as_often_as_they_are_probable(sampling):
    """Whole translations, their probabilities multiplied out along the tree; counts within five standard deviations."""
    model, count = AutomatonModel(seed=3, vocabulary=6), 3000
    config = options(max_length_b=3)
    exact: dict[tuple[int, ...], float] = {}

    def walk(tokens: tuple[int, ...], probability: float) -> None:
        if len(tokens) == 3 or EOS in tokens:
            exact[tokens] = probability
            return
        values = next_log_probabilities(model, [4, 5, EOS], tokens)
        values = [v if may_follow(t, tokens, config, ()) else -math.inf for t, v in enumerate(values)]
        for token, share in enumerate(drawn_from(values, sampling)):
            if share > 0:
                walk((*tokens, token), probability * share)

    walk((), 1.0)
    [samples] = run(model, [[4, 5]], config, count, sampling)
    counts = Counter((*sample.tokens, EOS) if sample.finished else tuple(sample.tokens) for sample in samples)
    assert counts.keys() <= exact.keys()
    for tokens, probability in exact.items():
        deviation = math.sqrt(count * probability * (1 - probability))
        assert abs(counts[tokens] - count * probability) <= 5 * deviation + 1


def test_what_is_next_to_impossible_is_not_drawn():
    """Coarse random numbers would draw one of many improbable tokens far too often."""
    vocabulary, rows = 20_000, 50
    log_probs = torch.full((rows, vocabulary), -40.0)
    log_probs[:, 11] = 0.0
    sampler = Sampler(PLAIN, keys=range(rows), samples=1)
    for _ in range(40):
        assert sampler.pick(log_probs, torch.arange(rows)).tolist() == [11] * rows


@pytest.mark.parametrize(
    "sampling", [dataclasses.replace(PLAIN, top_k=1), dataclasses.replace(PLAIN, temperature=1e-9)]
)
def test_without_choice_it_is_greedy(sampling):
    model = AutomatonModel(seed=2, vocabulary=12)
    found = run(model, SOURCES, options(max_length_b=8), 3, sampling)
    for source, samples in zip(SOURCES, found, strict=True):
        assert [(sample.tokens, sample.finished) for sample in samples] == [greedy(model, source, limit=8)] * 3


# --- which samples ----------------------------------------------------------------------------------------------------


def test_samples_go_with_the_key_whatever_the_batch():
    model = AutomatonModel(seed=3, vocabulary=15)
    generator = torch.Generator().manual_seed(0)
    sources = [torch.randint(4, 50, (1 + number % 8,), generator=generator).tolist() for number in range(64)]
    config = options(max_length_a=1.0, max_length_b=3)

    def by(size, order):
        results = {}
        for start in range(0, 64, size):
            chosen = order[start : start + size]
            found = run(model, [sources[place] for place in chosen], config, 2, keys=[1000 + place for place in chosen])
            results.update(zip(chosen, found, strict=True))
        return [[sample.tokens for sample in results[place]] for place in range(64)]

    alone = by(1, range(64))
    shuffled = torch.randperm(64, generator=generator).tolist()
    for size, order in ((2, range(64)), (7, range(64)), (64, range(64)), (64, shuffled), (7, shuffled)):
        assert by(size, order) == alone


def test_key_seed_and_number_each_give_other_samples():
    model, config = AutomatonModel(seed=3, vocabulary=15, spread=0.5, end_bias=-9.0), options(max_length_b=12)
    samples = [
        tuple(sample.tokens)
        for seed in (1, 2)
        for key in (0, 1, 2**40)
        for sample in run(model, [[4, 5, 6]], config, 3, dataclasses.replace(PLAIN, seed=seed), keys=[key])[0]
    ]
    assert len(samples) == 18
    assert len(set(samples)) == 18


def test_the_first_samples_do_not_depend_on_their_number():
    model, config = AutomatonModel(seed=3, vocabulary=15), options(max_length_b=12)
    many = run(model, SOURCES, config, 6)
    assert run(model, SOURCES, config, 2) == [samples[:2] for samples in many]
    assert all(len(samples) == 6 for samples in many)


def test_the_beam_has_no_part_in_it():
    model = AutomatonModel(seed=3, vocabulary=15)
    assert run(model, SOURCES, options(beam_size=1), 4) == run(model, SOURCES, options(beam_size=9), 4)


# --- scores and constraints -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sampling", [PLAIN, Sampling(temperature=3.0, top_k=5, top_p=0.9, seed=4)])
@pytest.mark.parametrize("count", [1, 2])
def test_scores_are_those_of_the_untempered_model(sampling, count):
    models = [AutomatonModel(seed=5 + number, vocabulary=12) for number in range(count)]
    config = options(max_length_b=9, length_penalty="simple", alpha=0.7)
    kinds = set()
    for source, samples in zip(SOURCES, run(models, SOURCES, config, 5, sampling), strict=True):
        for sample in samples:
            forced = log_probability(models, source, sample.tokens, sample.finished)
            length = len(sample.tokens) + int(sample.finished)
            assert sample.log_probability == pytest.approx(forced, abs=1e-4)
            assert sample.score == pytest.approx(forced / length_penalty(float(length), config), abs=1e-4)
            kinds.add(sample.finished)
    assert kinds == {True, False}


@pytest.mark.parametrize("top_k", [0, 3])
def test_samples_keep_every_constraint(top_k):
    model = AutomatonModel(seed=5, vocabulary=9, end_bias=1.0)
    model.table[:, UNK] += 2
    config = options(min_length=3, max_length_b=6, no_repeat_ngram=2, forbid_unk=True)
    prefixes = [[UNK, 4, 4, 4], [], [5], [6, 7, 6, 7, 6, 7, 6, 7], [8, 8]]
    found = run(model, SOURCES, config, 8, dataclasses.replace(PLAIN, top_k=top_k), prefixes=prefixes)
    assert len({tuple(sample.tokens) for samples in found for sample in samples}) > 15
    for source, prefix, samples in zip(SOURCES, prefixes, found, strict=True):
        for sample in samples:
            target = (*sample.tokens, EOS) if sample.finished else tuple(sample.tokens)
            assert all(may_follow(token, target[:place], config, prefix) for place, token in enumerate(target))
            assert len(target) <= max(6, len(prefix) + 1)
            assert not {PAD, BOS, EOS} & set(sample.tokens)
            forced = log_probability(model, source, sample.tokens, sample.finished)
            assert sample.log_probability == pytest.approx(forced, abs=1e-4)


# --- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"temperature": 0.0}, "--temperature"),
        ({"temperature": -1.0}, "--temperature"),
        ({"temperature": math.inf}, "--temperature"),
        ({"temperature": math.nan}, "--temperature"),
        ({"top_k": -1}, "--top-k"),
        ({"top_p": 0.0}, "--top-p"),
        ({"top_p": 1.1}, "--top-p"),
        ({"top_p": math.nan}, "--top-p"),
        ({"seed": -1}, "--seed"),
    ],
)
def test_options_out_of_range_are_refused_by_name(changes, named):
    with pytest.raises(ValueError, match=named):
        run(AutomatonModel(0), [[4]], options(), 1, dataclasses.replace(PLAIN, **changes))


@pytest.mark.parametrize("keys", [None, [1], [1, -1], [1, 2, 3]])
def test_sampling_needs_a_key_for_every_sentence(keys):
    with pytest.raises(ValueError, match="keys"):
        search([AutomatonModel(0)], *encode_source([[4], [5]]), options(), sampling=PLAIN, keys=keys)


def test_a_model_that_gives_no_numbers_is_an_error():
    model = AutomatonModel(0)
    model.table.fill_(math.nan)
    with pytest.raises(ValueError, match="finite"):
        run(model, SOURCES, options(), 2)
