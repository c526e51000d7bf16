"""The search against truths that are slow and obvious: every sequence, a plain beam search, teacher forcing."""

import dataclasses
import math
from collections.abc import Sequence

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.data.batch import encode_source
from nmt.lengths import length_limit, length_penalty
from nmt.models.base import TranslationModel
from nmt.models.memory import select_rows
from nmt.search import Hypothesis, search
from nmt.tokens import BOS, EOS, PAD
from tests.fakes import AutomatonModel, CopyModel, ScriptedModel
from tests.oracles import every_sequence, greedy, log_probability, options, penalty, plain_beam_search

PENALTIES = [("gnmt", 1.0), ("gnmt", 0.6), ("simple", 1.0), ("simple", -0.5), ("simple", 2.0), ("none", 1.0)]
SOURCES = [[4, 5, 6], [7], [4, 4, 8, 9, 5, 6, 7, 11], [5, 9], [6, 6, 6, 6]]


def run(models: TranslationModel | list[TranslationModel], sources: Sequence[Sequence[int]], *args, **keywords):
    models = [models] if isinstance(models, TranslationModel) else models
    return search(models, *encode_source(sources), *args, **keywords)


def same(found: list[Hypothesis], expected: list[tuple[tuple[int, ...], float, bool]], n: int) -> None:
    assert [(tuple(h.tokens), h.finished) for h in found] == [(tokens, ended) for tokens, _, ended in expected[:n]]
    assert [h.score for h in found] == pytest.approx([score for _, score, _ in expected[:n]], abs=1e-4)


# --- against every sequence there is ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "alpha"), PENALTIES)
@pytest.mark.parametrize("seed", range(3))
def test_a_wide_beam_finds_the_best_of_all_sequences(kind, alpha, seed):
    model = AutomatonModel(seed, vocabulary=6)
    config = options(beam_size=81, length_penalty=kind, alpha=alpha, max_length_b=5)
    for source, found in zip(SOURCES[:3], run(model, SOURCES[:3], config, n_best=20), strict=True):
        scored = []
        for tokens in every_sequence(6, longest=4):
            total = log_probability(model, source, tokens, finished=True)
            scored.append((total / penalty(len(tokens) + 1, config), tokens))
        scored.sort(reverse=True)
        assert [tuple(h.tokens) for h in found] == [tokens for _, tokens in scored[:20]]
        assert [h.score for h in found] == pytest.approx([score for score, _ in scored[:20]], abs=1e-4)


def test_the_oracle_prefers_longer_sequences_when_alpha_is_one():
    """Otherwise the test above would not show that the search goes on after its first finished hypothesis."""
    longest = {}
    for kind, alpha in (("simple", 1.0), ("none", 1.0), ("simple", -0.5)):
        config = options(beam_size=81, length_penalty=kind, alpha=alpha, max_length_b=5)
        found = [run(AutomatonModel(seed), SOURCES, config) for seed in range(3)]
        longest[kind, alpha] = sum(len(h.tokens) for results in found for [h] in results)
    assert longest["simple", 1.0] > longest["none", 1.0] >= longest["simple", -0.5]


# --- against a plain beam search that runs to the limit ---------------------------------------------------------------


@pytest.mark.parametrize(("kind", "alpha"), PENALTIES)
@pytest.mark.parametrize("beam_size", [1, 2, 3, 5])
def test_equals_a_plain_beam_search_that_never_stops_early(kind, alpha, beam_size):
    model = AutomatonModel(seed=beam_size, vocabulary=9, end_bias=1.0)
    config = options(
        beam_size=beam_size, length_penalty=kind, alpha=alpha, min_length=1, max_length_a=0.8, max_length_b=3
    )
    for source, found in zip(SOURCES, run(model, SOURCES, config, n_best=beam_size), strict=True):
        same(found, plain_beam_search(model, source, config), beam_size)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    beam_size=st.integers(1, 6),
    penalty_kind=st.sampled_from(PENALTIES),
    min_length=st.integers(0, 3),
    a=st.sampled_from([0.0, 0.5, 1.0]),
    b=st.integers(0, 5),
    vocabulary=st.integers(4, 12),
    spread=st.floats(0.5, 4.0),
    end_bias=st.floats(-3.0, 3.0),
    no_repeat_ngram=st.integers(0, 3),
    forbid_unk=st.booleans(),
    data=st.data(),
)
def test_random_models_and_options(
    seed, beam_size, penalty_kind, min_length, a, b, vocabulary, spread, end_bias, no_repeat_ngram, forbid_unk, data
):
    """All options at once, of one model or an ensemble of up to three."""
    models = [
        AutomatonModel(seed + number, vocabulary, nodes=53, spread=spread, end_bias=end_bias)
        for number in range(data.draw(st.integers(1, 3)))
    ]
    sources = data.draw(st.lists(st.lists(st.integers(4, 20), min_size=0, max_size=5), min_size=1, max_size=4))
    subwords = [token for token in range(vocabulary) if token not in (PAD, BOS, EOS)]
    begin = st.lists(st.sampled_from(subwords), max_size=6)
    prefixes = data.draw(st.none() | st.lists(begin, min_size=len(sources), max_size=len(sources)))
    n_best = data.draw(st.integers(1, beam_size))
    config = options(
        beam_size=beam_size,
        length_penalty=penalty_kind[0],
        alpha=penalty_kind[1],
        min_length=min_length,
        max_length_a=a,
        max_length_b=b,
        no_repeat_ngram=no_repeat_ngram,
        forbid_unk=forbid_unk,
    )
    expected = [
        plain_beam_search(models, source, config, begin)
        for source, begin in zip(sources, prefixes or [[]] * len(sources), strict=True)
    ]
    if not all(expected):  # a tiny vocabulary of which nothing is left
        with pytest.raises(ValueError, match="no translation"):
            run(models, sources, config, n_best, prefixes=prefixes)
        return
    for source, found, wanted in zip(
        sources, run(models, sources, config, n_best, prefixes=prefixes), expected, strict=True
    ):
        same(found, wanted, n_best)
        for hypothesis in found:
            forced = log_probability(models, source, hypothesis.tokens, hypothesis.finished)
            assert hypothesis.log_probability == pytest.approx(forced, abs=1e-4)


def test_does_not_stop_when_the_first_hypothesis_ends():
    """``a EOS`` has probability 0.48 and ends first. ``b c c c c c c c c EOS`` has 0.17, which is more per subword, but
    not yet when ``a`` ends, nor at the length after: only a bound at the longest reachable length goes on to see it."""
    a, b, c = 4, 5, 6
    script = {(): {a: 0.6, b: 0.2, EOS: 0.2}, (a,): {EOS: 0.8, a: 0.2}}
    script |= {(b, *[c] * count): {c: 0.98, EOS: 0.02} for count in range(8)}
    config = options(beam_size=2, length_penalty="simple", alpha=1.0, max_length_b=12)
    [found] = run(ScriptedModel(script), [[4]], config)
    assert [h.tokens for h in found] == [[b, *[c] * 8]]
    [found] = run(ScriptedModel(script), [[4]], dataclasses.replace(config, length_penalty="none"))
    assert [h.tokens for h in found] == [[a]]


def test_does_not_stop_early_where_short_hypotheses_are_favoured():
    """With a negative alpha the most favourable length is the next one, not the longest."""
    a, b, c = 4, 5, 6
    script = {(): {a: 0.35, b: 0.65}, (a,): {EOS: 1.0}, (b,): {c: 1.0}}
    config = options(beam_size=2, length_penalty="simple", alpha=-1.0, max_length_b=12)
    [[found]] = run(ScriptedModel(script), [[4]], config)
    assert (found.tokens, found.score) == ([b, c], pytest.approx(3 * math.log(0.65)))


def test_stops_as_soon_as_nothing_can_win():
    """Once the certain copy has ended, no other hypothesis comes near: 20 more steps would be waste."""
    for beam_size in (1, 2, 5):
        model = CopyModel(vocabulary=12)
        run(model, [[4, 5, 6]], options(beam_size=beam_size, length_penalty="none", max_length_b=50))
        assert len(model.rows_per_step) == 4


def test_finished_sentences_leave_the_batch():
    model = CopyModel(vocabulary=12)
    run(model, [[4], [4, 5, 6, 7, 8], [5]], options(beam_size=3, length_penalty="none", max_length_b=50))
    assert model.rows_per_step == [3, 9, 3, 3, 3, 3]


# --- greedy -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(10))
def test_beam_one_is_greedy_token_for_token(seed):
    model = AutomatonModel(seed, vocabulary=20)
    config = options(beam_size=1, max_length_b=12, alpha=2.0)
    for source, [found] in zip(SOURCES, run(model, SOURCES, config), strict=True):
        assert (found.tokens, found.finished) == greedy(model, source, limit=12)


# --- scores -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "alpha"), PENALTIES)
def test_every_score_is_that_of_teacher_forcing(kind, alpha):
    model = AutomatonModel(seed=5, vocabulary=30)
    config = options(beam_size=6, length_penalty=kind, alpha=alpha, max_length_b=9)
    for source, found in zip(SOURCES, run(model, SOURCES, config, n_best=6), strict=True):
        for hypothesis in found:
            expected = log_probability(model, source, hypothesis.tokens, hypothesis.finished)
            length = len(hypothesis.tokens) + int(hypothesis.finished)
            assert hypothesis.log_probability == pytest.approx(expected, abs=1e-4)
            assert hypothesis.score == pytest.approx(expected / penalty(length, config), abs=1e-4)


def test_length_penalty_takes_numbers_and_tensors():
    config = options(length_penalty="gnmt", alpha=0.7)
    assert length_penalty(1.0, config) == 1.0
    assert length_penalty(7.0, config) == pytest.approx(2**0.7)
    assert length_penalty(torch.tensor([1.0, 7.0]), config).tolist() == pytest.approx([1, 2**0.7])
    assert length_penalty(9.0, options(length_penalty="simple", alpha=0.5)) == 3.0
    assert length_penalty(9.0, options(length_penalty="none", alpha=0.5)) == 1.0


# --- batches ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("beam_size", [1, 4])
def test_output_does_not_depend_on_batch_size_or_order(beam_size):
    model = AutomatonModel(seed=3, vocabulary=15)
    generator = torch.Generator().manual_seed(0)
    sources = [
        torch.randint(4, 50, (int(torch.randint(1, 9, (1,), generator=generator)),), generator=generator).tolist()
        for _ in range(64)
    ]
    config = options(beam_size=beam_size, max_length_a=1.0, max_length_b=3)

    def by(size: int, order: Sequence[int]) -> list[list[Hypothesis]]:
        results: dict[int, list[Hypothesis]] = {}
        for start in range(0, len(order), size):
            chosen = order[start : start + size]
            found = run(model, [sources[place] for place in chosen], config, n_best=min(beam_size, 3))
            results.update(zip(chosen, found, strict=True))
        return [results[place] for place in range(len(sources))]

    alone = by(1, range(64))
    shuffled = torch.randperm(64, generator=generator).tolist()
    for size, order in ((2, range(64)), (7, range(64)), (64, range(64)), (64, shuffled), (7, shuffled)):
        together = by(size, order)
        assert [[h.tokens for h in hypotheses] for hypotheses in together] == [[h.tokens for h in r] for r in alone]
        scores = [h.score for hypotheses in together for h in hypotheses]
        assert scores == pytest.approx([h.score for hypotheses in alone for h in hypotheses], abs=1e-5)


def test_an_empty_batch_and_a_row_without_any_token():
    model = AutomatonModel(seed=1)
    assert search([model], torch.zeros(0, 0, dtype=torch.int64), torch.zeros(0, dtype=torch.int64), options()) == []
    source, lengths = torch.tensor([[4, EOS], [PAD, PAD]]), torch.tensor([2, 0])
    found = search([model], source, lengths, options(max_length_b=5))
    assert found[0] == run(model, [[4]], options(max_length_b=5))[0]
    assert len(found[1]) == 1


# --- ensembles --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("beam_size", [1, 4])
def test_two_equal_models_are_the_model_to_the_last_bit(beam_size):
    model, twin = AutomatonModel(seed=8, vocabulary=12), AutomatonModel(seed=8, vocabulary=12)
    config = options(beam_size=beam_size)
    assert run([model, twin], SOURCES, config, beam_size) == run(model, SOURCES, config, beam_size)


@pytest.mark.parametrize("beam_size", [1, 4])
@pytest.mark.parametrize("count", [2, 3])
def test_an_ensemble_averages_log_probabilities(beam_size, count):
    models = [AutomatonModel(seed=8 + number, vocabulary=12) for number in range(count)]
    config = options(beam_size=beam_size)
    found = run(models, SOURCES, config, n_best=beam_size)
    for source, hypotheses in zip(SOURCES, found, strict=True):
        same(hypotheses, plain_beam_search(models, source, config), beam_size)
    assert [[h.tokens for h in row] for row in found] != [
        [h.tokens for h in row] for row in run(models[:1], SOURCES, config, n_best=beam_size)
    ]


def test_what_one_model_of_an_ensemble_rules_out_is_out():
    a, b = 4, 5
    confident = ScriptedModel({(): {a: 0.9, b: 0.1}})
    opposed = ScriptedModel({(): {b: 0.2, EOS: 0.8}})
    [[found]] = run([confident, opposed], [[4]], options(beam_size=1))
    assert (found.tokens, found.log_probability) == ([b], pytest.approx((math.log(0.1) + math.log(0.2)) / 2))


def test_an_ensemble_over_two_vocabularies_is_refused():
    with pytest.raises(ValueError, match=r"vocabular.*\[6, 7\]"):
        run([AutomatonModel(0, vocabulary=6), AutomatonModel(0, vocabulary=7)], SOURCES, options())


# --- n-best -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_n_best_lists_are_sorted_distinct_and_nested(seed):
    model = AutomatonModel(seed, vocabulary=10, end_bias=1.0)
    longest = run(model, SOURCES, options(beam_size=6), n_best=6)
    for found in longest:
        assert 1 <= len(found) <= 6
        assert len({tuple(h.tokens) for h in found}) == len(found)
        assert [h.score for h in found] == sorted((h.score for h in found), reverse=True)
    for n_best in range(1, 6):
        shorter = run(model, SOURCES, options(beam_size=6), n_best=n_best)
        assert shorter == [found[:n_best] for found in longest]


# --- lengths ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("beam_size", [1, 4])
def test_lengths_stay_between_the_limits(beam_size):
    for end_bias in (-20.0, 20.0):
        model = AutomatonModel(seed=2, vocabulary=10, end_bias=end_bias)
        config = options(beam_size=beam_size, min_length=3, max_length_a=1.5, max_length_b=2)
        limits = length_limit(encode_source(SOURCES)[1], config).tolist()
        assert limits == [max(int(1.5 * (len(source) + 1) + 2), 4) for source in SOURCES]
        for limit, [found] in zip(limits, run(model, SOURCES, config), strict=True):
            assert found.finished == (end_bias > 0)
            assert len(found.tokens) == (3 if end_bias > 0 else limit)
            assert not {PAD, BOS, EOS} & set(found.tokens)


def test_a_minimum_beyond_the_limit_leaves_room_for_the_end():
    [[found]] = run(AutomatonModel(seed=2, end_bias=20.0), [[4]], options(min_length=9, max_length_b=3))
    assert (len(found.tokens), found.finished) == (9, True)


def test_cut_hypotheses_come_only_where_none_ended():
    endless, mixed = CopyModel(12, never_ends=True), AutomatonModel(seed=11, vocabulary=10, end_bias=-2.0)
    [found] = run(endless, [[4, 5]], options(beam_size=3, max_length_b=6), n_best=3)
    assert found[0].tokens == [4, 5, 4, 5, 4, 5]
    assert len(found) == 3
    assert not any(h.finished for h in found)
    kinds = {tuple({h.finished for h in found}) for found in run(mixed, SOURCES, options(beam_size=5), n_best=5)}
    assert kinds <= {(True,), (False,)}


# --- the rest of the contract -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "n_best", "named"),
    [
        ({"beam_size": 0}, 1, "--beam-size"),
        ({"beam_size": 4}, 5, "--beam-size"),
        ({}, 0, "--n-best"),
        ({"min_length": -1}, 1, "--min-length"),
        ({"max_length_a": -0.5}, 1, "--max-length-a"),
        ({"max_length_b": -1}, 1, "--max-length-b"),
        ({"alpha": math.nan}, 1, "--alpha"),
        ({"batch_tokens": 0}, 1, "--batch-tokens"),
        ({"no_repeat_ngram": -1}, 1, "--no-repeat-ngram"),
    ],
)
def test_options_out_of_range_are_refused_by_name(changes, n_best, named):
    with pytest.raises(ValueError, match=named):
        run(AutomatonModel(0), [[4]], options(**changes), n_best)


def test_a_model_that_gives_no_numbers_is_an_error():
    model = AutomatonModel(0)
    model.table.fill_(math.nan)
    for beam_size in (1, 3):
        with pytest.raises(ValueError, match="finite"):
            run(model, SOURCES, options(beam_size=beam_size))


def test_modes_come_back_and_tables_stay_as_they_were():
    model = AutomatonModel(seed=1)
    model.inner = torch.nn.Dropout()
    model.train()
    model.inner.eval()
    before = select_rows((model.table, model.transitions), torch.arange(model.table.size(0)))
    first = run(model, SOURCES, options(), n_best=2)
    assert (model.training, model.inner.training) == (True, False)
    assert torch.equal(model.table, before[0])
    assert torch.equal(model.transitions, before[1])
    assert run(model, SOURCES, options(), n_best=2) == first


# --- a large vocabulary -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("beam_size", [1, 3])
def test_a_large_vocabulary(beam_size):
    model, config = AutomatonModel(seed=4, vocabulary=4007, nodes=31), options(beam_size=beam_size, max_length_b=4)
    for source, found in zip(SOURCES[:2], run(model, SOURCES[:2], config, n_best=beam_size), strict=True):
        same(found, plain_beam_search(model, source, config), beam_size)
