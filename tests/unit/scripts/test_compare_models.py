"""Budgets of the head-to-head: what they promise is so."""

import pytest

from nmt.composition import composed
from nmt.models import build, parameter_count
from scripts.compare_models import MODELS, SETTINGS, arms


def configurations(data: str, budget: str):  # type: ignore[no-untyped-def]
    return {arm.tag: composed(arm.overrides) for arm in arms(data, budget)}


@pytest.mark.parametrize("data", ["demo", "multi30k"])
def test_models_of_equal_parameters_are(data: str) -> None:
    counts = []
    for config in configurations(data, "parameters").values():
        size = config.data.tokenizer.vocabulary_size
        counts.append(parameter_count(build(config.model, size, size, 1)))
    assert max(counts) - min(counts) < 0.01 * max(counts)


@pytest.mark.parametrize(("data", "budget"), [("demo", "steps"), ("multi30k", "steps"), ("multi30k", "parameters")])
def test_equal_updates_are_of_equal_batches(data: str, budget: str) -> None:
    trainings = [config.training for config in configurations(data, budget).values()]
    assert len({(each.max_steps, each.batch_tokens, each.accumulate, each.max_epochs) for each in trainings}) == 1
    assert trainings[0].max_steps is not None
    assert trainings[0].patience is None


@pytest.mark.parametrize("data", ["demo", "multi30k"])
def test_equal_minutes_end_by_nothing_else(data: str) -> None:
    for config in configurations(data, "time").values():
        training = config.training
        assert training.max_minutes is not None
        assert (training.max_steps, training.max_epochs, training.patience) == (None, None, None)
        assert config.optim.schedule.name == "inverse_sqrt", "a schedule that needs to know no end"


def test_every_model_has_an_arm_of_its_own_and_the_fixed_vector_is_reversed() -> None:
    for data, setting in SETTINGS.items():
        for budget in setting.budgets:
            found = configurations(data, budget)
            assert [config.model.name for config in found.values()] == list(MODELS)
            assert next(iter(found.values())).model.reverse_source
    with pytest.raises(ValueError, match="--budget time: for --data wmt14 there are recipes for tokens"):
        arms("wmt14", "time")
