"""What a translation must begin with and may not contain, by the obvious means, and where constraints meet."""

import dataclasses
import itertools

import pytest
import torch

from nmt.constraints import Constraints
from nmt.data.batch import encode_source
from nmt.search import Hypothesis, search
from nmt.tokens import BOS, EOS, PAD, UNK
from tests.fakes import AutomatonModel, CopyModel, ScriptedModel
from tests.oracles import log_probability, may_follow, options, plain_beam_search

SOURCES = [[4, 5, 6], [7], [4, 4, 8, 9, 5, 6, 7, 11], [5, 9], [6, 6, 6, 6]]


def run(model, sources, *args, **keywords) -> list[list[Hypothesis]]:
    return search([model], *encode_source(sources), *args, **keywords)


def repeats(tokens: list[int], n: int) -> bool:
    grams = [tuple(tokens[start : start + n]) for start in range(len(tokens) - n + 1)]
    return len(set(grams)) < len(grams)


# --- n-grams ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_exactly_the_repeats_are_barred(n):
    """Every sequence of three tokens up to length 6, all in one batch: the mask against the definition."""
    config = options(no_repeat_ngram=n)
    for length in range(7):
        rows = list(itertools.product((UNK, 4, 5), repeat=length))
        log_probs = torch.zeros(len(rows), 6)
        tokens = torch.tensor(rows, dtype=torch.int64).view(len(rows), 1, length)
        Constraints(config, None, torch.device("cpu")).apply(log_probs, tokens, torch.arange(len(rows)))
        allowed = (log_probs == 0).tolist()
        assert allowed == [[may_follow(token, row, config, ()) for token in range(6)] for row in rows]


@pytest.mark.parametrize("beam_size", [1, 4])
@pytest.mark.parametrize("n", [1, 2, 3])
def test_no_n_gram_comes_twice(beam_size, n):
    sources = [[4, 5], [4, 4, 5], [6]]
    model, config = CopyModel(12, never_ends=True), options(beam_size=beam_size, min_length=8, max_length_b=20)
    assert all(repeats(found.tokens, n) for [found] in run(model, sources, config))
    for found in run(model, sources, dataclasses.replace(config, no_repeat_ngram=n), beam_size):
        assert not any(repeats(hypothesis.tokens, n) for hypothesis in found)


def test_the_end_is_no_repetition():
    [[found]] = run(CopyModel(12), [[4, 5, 6]], options(no_repeat_ngram=1))
    assert (found.tokens, found.finished) == ([4, 5, 6], True)


# --- the unknown subword ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("beam_size", [1, 4])
def test_unk_is_produced_only_where_it_may_be(beam_size):
    fond = AutomatonModel(seed=1, vocabulary=8)
    fond.table[:, UNK] += 4
    config = options(beam_size=beam_size)
    assert any(UNK in found.tokens for [found] in run(fond, SOURCES, config))
    for found in run(fond, SOURCES, options(beam_size=beam_size, forbid_unk=True), n_best=beam_size):
        assert not any(UNK in hypothesis.tokens for hypothesis in found)


# --- prefixes ---------------------------------------------------------------------------------------------------------

PREFIXES = [[9, 8, 7], [], [4], [UNK, 4, 4, 4, 10], [11, 11]]


@pytest.mark.parametrize("beam_size", [1, 2, 5])
def test_translations_begin_with_their_prefix_and_score_as_a_whole(beam_size):
    model = AutomatonModel(seed=4, vocabulary=12)
    config = options(beam_size=beam_size, max_length_b=9)
    found = run(model, SOURCES, config, n_best=beam_size, prefixes=PREFIXES)
    for source, prefix, hypotheses in zip(SOURCES, PREFIXES, found, strict=True):
        expected = plain_beam_search(model, source, config, prefix)[:beam_size]
        assert [(tuple(h.tokens), h.finished) for h in hypotheses] == [(tokens, ended) for tokens, _, ended in expected]
        for hypothesis in hypotheses:
            assert hypothesis.tokens[: len(prefix)] == prefix
            forced = log_probability(model, source, hypothesis.tokens, hypothesis.finished)
            assert hypothesis.log_probability == pytest.approx(forced, abs=1e-4)


@pytest.mark.parametrize("beam_size", [1, 4])
def test_the_translation_itself_as_prefix_gives_the_translation(beam_size):
    model, config = AutomatonModel(seed=4, vocabulary=12), options(beam_size=beam_size, max_length_b=9)
    free = [found for [found] in run(model, SOURCES, config)]
    for cut in (0, 1, 3):
        forced = run(model, SOURCES, config, prefixes=[found.tokens[:cut] for found in free])
        assert [found.tokens for [found] in forced] == [found.tokens for found in free]
    assert run(model, SOURCES, config, prefixes=[[] for _ in SOURCES]) == run(model, SOURCES, config)


@pytest.mark.parametrize("beam_size", [1, 4])
def test_a_row_with_a_prefix_leaves_its_neighbours_alone(beam_size):
    model, config = AutomatonModel(seed=4, vocabulary=12), options(beam_size=beam_size)
    together = run(model, SOURCES, config, n_best=beam_size, prefixes=PREFIXES)
    alone = [run(model, [s], config, beam_size, prefixes=[p])[0] for s, p in zip(SOURCES, PREFIXES, strict=True)]
    assert [[h.tokens for h in found] for found in together] == [[h.tokens for h in found] for found in alone]


def test_a_prefix_goes_before_the_other_constraints_but_counts_for_what_follows():
    model = CopyModel(12, never_ends=True)  # 4 5 4 5 4 5 ... whatever came before
    config = options(beam_size=1, max_length_b=7, no_repeat_ngram=2, forbid_unk=True)
    [[found]] = run(model, [[4, 5]], config, prefixes=[[UNK, 4, 5, 4, 5]])
    assert found.tokens[:5] == [UNK, 4, 5, 4, 5]
    assert found.tokens[5] != 4  # would be the second 5 4
    assert UNK not in found.tokens[5:]


@pytest.mark.parametrize("beam_size", [1, 4])
def test_a_prefix_beyond_the_limit_leaves_room_for_the_end(beam_size):
    prefix = [4, 5, 6, 7, 4, 5, 6, 7]
    keen, endless = (AutomatonModel(seed=2, vocabulary=9, end_bias=bias) for bias in (20.0, -20.0))
    config = options(beam_size=beam_size, max_length_b=3)
    [[found], [short]] = run(keen, [[4], [5]], config, prefixes=[prefix, []])
    assert (found.tokens, found.finished) == (prefix, True)
    assert len(short.tokens) <= 3  # the other sentence has the limit that it had
    [[found], [short]] = run(endless, [[4], [5]], config, prefixes=[prefix, []])
    assert (found.tokens[:-1], found.finished) == (prefix, False)
    assert (len(found.tokens), len(short.tokens)) == (len(prefix) + 1, 3)


def test_the_minimum_counts_the_prefix():
    keen = AutomatonModel(seed=2, vocabulary=9, end_bias=20.0)
    for minimum, length in ((0, 2), (2, 2), (4, 4)):
        [[found]] = run(keen, [[4]], options(min_length=minimum), prefixes=[[4, 5]])
        assert len(found.tokens) == length


@pytest.mark.parametrize("token", [PAD, BOS, EOS, -1])
def test_a_prefix_that_no_translation_can_have_is_refused(token):
    with pytest.raises(ValueError, match=f"sentence 1: .* found {token}"):
        run(AutomatonModel(0), [[4], [5]], options(), prefixes=[[4], [5, token]])


def test_prefixes_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="one for each of 2 sentences"):
        run(AutomatonModel(0), [[4], [5]], options(), prefixes=[[4]])
    with pytest.raises(ValueError, match="found id 6, expected ids below 6"):
        run(AutomatonModel(0, vocabulary=6), [[4], [5]], options(), prefixes=[[], [6]])


@pytest.mark.parametrize("beam_size", [1, 3])
def test_constraints_that_leave_nothing_are_an_error(beam_size):
    config = options(beam_size=beam_size, min_length=5, no_repeat_ngram=1, forbid_unk=True)
    with pytest.raises(ValueError, match="no_repeat_ngram"):
        run(AutomatonModel(0, vocabulary=6), [[4]], config)
    with pytest.raises(ValueError, match="prefix"):
        run(ScriptedModel({(): {4: 1.0}}), [[4]], options(beam_size=beam_size), prefixes=[[5]])
