"""Forced decoding against stepping along the target by hand, with models whose every answer depends on the prefix."""

import pytest
import torch

from nmt import forced
from nmt.config import SearchConfig
from nmt.data.batch import collate
from nmt.engine import Request, TorchEngine
from nmt.forced import force
from nmt.models.base import TranslationModel
from nmt.tokens import BOS, EOS
from tests.fakes import AutomatonModel, CopyModel, ScriptedModel
from tests.oracles import next_log_probabilities, options

VOCABULARY = 12
PAIRS = [([4, 5, 6], [7, 8]), ([7], []), ([4, 4, 8, 9, 5], [5, 5, 5, 11, 10, 9, 4]), ([], [6, 4])]
CPU = torch.device("cpu")


def batch_of(pairs, ended: bool = True):
    targets = [[*target, EOS] if ended else target for _, target in pairs]
    return collate([[*source, EOS] for source, _ in pairs], targets, range(len(pairs)))


def by_hand(models: list[TranslationModel], source: list[int], target: list[int]) -> list[float]:
    """The mean log probability of each token, one step and one model at a time."""
    return [next_log_probabilities(models, [*source, EOS], target[:place])[token] for place, token in enumerate(target)]


@pytest.mark.parametrize("projected_rows", [1, 3, 2048])
@pytest.mark.parametrize("ended", [True, False])
@pytest.mark.parametrize("seeds", [(3,), (3, 4, 5)])
def test_log_probabilities_are_those_of_the_steps(monkeypatch, projected_rows, ended, seeds):
    monkeypatch.setattr(forced, "PROJECTED_ROWS", projected_rows)
    models = [AutomatonModel(seed, VOCABULARY) for seed in seeds]
    values, attention = force(models, batch_of(PAIRS, ended))
    assert attention is None
    for row, (source, target) in zip(values, PAIRS, strict=True):
        target = [*target, EOS] if ended else target
        assert row[: len(target)].tolist() == pytest.approx(by_hand(models, source, target), abs=1e-5)
        assert not row[len(target) :].any()


def test_attention_is_that_of_the_steps():
    model = AutomatonModel(seed=4, vocabulary=VOCABULARY)
    values, attention = force([model], batch_of(PAIRS), with_log_probabilities=False, with_attention=True)
    assert values is None
    for row, (source, target) in zip(attention, PAIRS, strict=True):
        memory = model.encode(torch.tensor([[*source, EOS]]), torch.tensor([len(source) + 1]))
        state = model.init_state(memory)
        for place, token in enumerate([BOS, *target]):
            step = model.step(torch.tensor([token]), state, memory, with_attention=True)
            state = step.state
            torch.testing.assert_close(row[place, ..., : len(source) + 1], step.attention[0])
        assert not row[..., len(source) + 1 :].any()


def test_never_more_rows_are_projected_than_may_be_and_only_real_ones(monkeypatch):
    model, seen = AutomatonModel(seed=4, vocabulary=VOCABULARY), []
    monkeypatch.setattr(forced, "PROJECTED_ROWS", 5)
    monkeypatch.setattr(model, "project", lambda features: seen.append(len(features)) or features)
    force([model], batch_of(PAIRS))
    assert max(seen) <= 5
    assert sum(seen) == sum(len(target) + 1 for _, target in PAIRS)


def test_every_module_is_back_in_its_own_mode():
    model = AutomatonModel(seed=1)
    model.inner = torch.nn.Dropout()
    model.train()
    model.inner.eval()
    force([model], batch_of([([4], [5])]))
    assert (model.training, model.inner.training) == (True, False)


# --- what the engine adds to hypotheses -------------------------------------------------------------------------------


def ask(models: list[TranslationModel], config: SearchConfig, **wishes: object):
    engine = TorchEngine(models, CPU, "fp32")
    [found] = engine.run([Request([source for source, _ in PAIRS], config, **wishes)])
    return found


@pytest.mark.parametrize("beam_size", [1, 5])
@pytest.mark.parametrize("seeds", [(4,), (4, 5)])
@pytest.mark.parametrize(("end_bias", "finished"), [(3.0, True), (-9.0, False)])
def test_token_scores_of_what_was_found(beam_size, seeds, end_bias, finished):
    models = [AutomatonModel(seed, VOCABULARY, end_bias=end_bias) for seed in seeds]
    config = options(beam_size=beam_size, max_length_b=5)
    plain = ask(models, config, n_best=beam_size)
    found = ask(models, config, n_best=beam_size, with_token_scores=True)
    assert finished in {h.finished for hypotheses in found for h in hypotheses}
    for (source, _), hypotheses, without in zip(PAIRS, found, plain, strict=True):
        assert [h._replace(token_log_probabilities=None) for h in hypotheses] == without
        for hypothesis in hypotheses:
            target = [*hypothesis.tokens, *([EOS] if hypothesis.finished else [])]
            assert hypothesis.token_log_probabilities == pytest.approx(by_hand(models, source, target), abs=1e-5)
            assert sum(hypothesis.token_log_probabilities) == pytest.approx(hypothesis.log_probability, abs=1e-4)


def test_attention_of_what_was_found_does_not_depend_on_what_is_beside_it():
    model, config = AutomatonModel(seed=4, vocabulary=VOCABULARY), options(beam_size=3)
    together = ask([model], config, n_best=3, with_attention=True)
    engine = TorchEngine([model], CPU, "fp32")
    for (source, _), hypotheses in zip(PAIRS, together, strict=True):
        [[alone]] = engine.run([Request([source], config, n_best=3, with_attention=True)])
        for one, other in zip(hypotheses, alone, strict=True):
            length = len(one.tokens) + int(one.finished)
            assert one.attention.shape == (length, model.LAYERS, model.HEADS, len(source) + 1)
            torch.testing.assert_close(one.attention, other.attention)
            torch.testing.assert_close(one.attention.sum(dim=-1), torch.ones(one.attention.shape[:-1]))


def test_attention_of_a_copy_is_where_it_copies_from():
    [[[found]]] = TorchEngine([CopyModel(vocabulary=12)], CPU, "fp32").run(
        [Request([[7, 5, 9]], options(), with_attention=True)]
    )
    assert torch.equal(found.attention[:, 0, 0], torch.eye(4))


@pytest.mark.parametrize("sources", [[[4]], []])
def test_attention_of_what_has_none_is_refused_before_any_sentence(sources):
    for models, reason in (([ScriptedModel({})], "fixed vector"), ([AutomatonModel(0), AutomatonModel(1)], "ensemble")):
        with pytest.raises(ValueError, match=reason):
            list(TorchEngine(models, CPU, "fp32").run([Request(sources, options(), with_attention=True)]))
