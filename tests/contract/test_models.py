"""What all three architectures promise: the contract of ``nmt/models/base.py``, for every model and its variants."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from nmt.device import has_bf16
from nmt.models import build, parameter_count
from nmt.models.base import Step, TranslationModel
from nmt.models.memory import FixedVector, MemoryTable, select_rows
from nmt.tokens import EOS, PAD
from tests.model_configs import ATTENDING, CONFIGS, VOCABULARY, lively, random_rows, shift_right

CLOSE = {"rtol": 1e-5, "atol": 1e-5}
SOURCE, SOURCE_LENGTHS = random_rows([7, 3, 5], seed=1)
TARGET_OUT, TARGET_LENGTHS = random_rows([4, 6, 2], seed=2)
TARGET_IN = shift_right(TARGET_OUT)
every_model = pytest.mark.parametrize("name", CONFIGS)
attending_models = pytest.mark.parametrize("name", ATTENDING)


def leaves(tree: Any) -> Iterator[Tensor]:
    """All tensors of a tree of tuples."""
    if isinstance(tree, Tensor):
        yield tree
    elif isinstance(tree, tuple):
        for part in tree:
            yield from leaves(part)


def run_steps(model: TranslationModel, memory: Any, tokens: Tensor, with_attention: bool = False) -> list[Step]:
    """One step per column of tokens [rows, length]; rows beyond the sentences of the memory are further hypotheses."""
    state = model.init_state(memory)
    sentences = next(leaves(state)).size(0)
    state = select_rows(state, torch.arange(sentences).repeat_interleave(tokens.size(0) // sentences))
    steps = []
    for column in tokens.unbind(dim=1):
        steps.append(model.step(column, state, memory, with_attention))
        state = steps[-1].state
    return steps


def features_of(steps: list[Step]) -> Tensor:
    return torch.stack([step.features for step in steps], dim=1)


# --- decoding in parallel and step by step ----------------------------------------------------------------------------


@every_model
def test_decode_equals_stacked_steps(name: str) -> None:
    model = lively(CONFIGS[name])
    memory = model.encode(SOURCE, SOURCE_LENGTHS)
    torch.testing.assert_close(
        model.decode(TARGET_IN, memory), features_of(run_steps(model, memory, TARGET_IN)), **CLOSE
    )


@every_model
def test_forward_is_decode_of_encode(name: str) -> None:
    model = lively(CONFIGS[name])
    features = model(SOURCE, SOURCE_LENGTHS, TARGET_IN)
    assert torch.equal(features, model.decode(TARGET_IN, model.encode(SOURCE, SOURCE_LENGTHS)))
    assert model.project(features).shape == (*TARGET_IN.shape, VOCABULARY)


@every_model
@pytest.mark.parametrize("bf16", [False, True])
def test_a_target_token_changes_nothing_before_it(name: str, bf16: bool) -> None:
    model = lively(CONFIGS[name])
    with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
        before = model(SOURCE, SOURCE_LENGTHS, TARGET_IN)
        for position in range(1, TARGET_IN.size(1)):
            changed = TARGET_IN.clone()
            changed[:, position] = (changed[:, position] + 1) % VOCABULARY
            after = model(SOURCE, SOURCE_LENGTHS, changed)
            assert torch.equal(before[:, :position], after[:, :position])  # bit for bit
            assert not torch.equal(before[:, position:], after[:, position:])


@every_model
def test_every_source_token_matters(name: str) -> None:
    model = lively(CONFIGS[name])
    before = model(SOURCE, SOURCE_LENGTHS, TARGET_IN)
    for position in range(SOURCE.size(1)):
        changed = SOURCE.clone()
        changed[0, position] = 4 if changed[0, position] != 4 else 5
        after = model(changed, SOURCE_LENGTHS, TARGET_IN)
        assert (before[0] - after[0]).abs().max() > 1e-5
        assert torch.equal(before[1:], after[1:])


# --- rows do not see each other or their padding ----------------------------------------------------------------------


@every_model
def test_padding_and_batch_mates_change_nothing(name: str) -> None:
    model = lively(CONFIGS[name])
    together = model(SOURCE, SOURCE_LENGTHS, TARGET_IN)
    wider_source = torch.nn.functional.pad(SOURCE, (0, 9), value=PAD)
    wider_target = torch.nn.functional.pad(TARGET_IN, (0, 5), value=PAD)
    padded = model(wider_source, SOURCE_LENGTHS, wider_target)
    for row, (src_len, tgt_len) in enumerate(zip(SOURCE_LENGTHS.tolist(), TARGET_LENGTHS.tolist(), strict=True)):
        alone = model(
            SOURCE[row : row + 1, :src_len], SOURCE_LENGTHS[row : row + 1], TARGET_IN[row : row + 1, :tgt_len]
        )
        torch.testing.assert_close(together[row, :tgt_len], alone[0], **CLOSE)
        torch.testing.assert_close(padded[row, :tgt_len], alone[0], **CLOSE)


@every_model
def test_what_stands_in_the_padding_does_not_matter(name: str) -> None:
    model = lively(CONFIGS[name])
    garbage = torch.where(SOURCE == PAD, 9, SOURCE)
    assert torch.equal(model(garbage, SOURCE_LENGTHS, TARGET_IN), model(SOURCE, SOURCE_LENGTHS, TARGET_IN))


@every_model
@pytest.mark.parametrize("bf16", [False, True])
@pytest.mark.parametrize("lengths", [[7, 3, 5], [7, 0, 5]])
def test_no_gradient_through_padding(name: str, bf16: bool, lengths: list[int]) -> None:
    model = lively(CONFIGS[name])
    source, source_lengths = random_rows(lengths, seed=3)
    with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
        features = model(source, source_lengths, TARGET_IN)
    real = torch.arange(TARGET_IN.size(1)) < TARGET_LENGTHS[:, None]
    (features[real].float() * torch.randn(features.size(-1))).sum().backward()
    tables = [model.embeddings.source_table, model.embeddings.target_table]
    for table in tables:
        if table is not None:
            assert table.grad is not None
            assert torch.count_nonzero(table.grad[PAD]) == 0  # PAD is read at padded positions only
            assert torch.count_nonzero(table.grad[EOS] if table is tables[0] else table.grad[4:]) > 0
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters() if parameter.grad is not None)


# --- encode once, step purely -----------------------------------------------------------------------------------------


def everything_on(model: TranslationModel) -> dict[str, Any]:
    """All attributes of all modules, with copies of the tensors."""
    attributes: dict[str, Any] = {}
    for path, module in model.named_modules():
        for key, value in vars(module).items():
            if isinstance(value, dict):  # parameters, buffers and modules
                attributes.update({f"{path}.{key}.{inner}": thing for inner, thing in value.items()})
            else:
                attributes[f"{path}.{key}"] = value
    return {key: value.clone() if isinstance(value, Tensor) else value for key, value in attributes.items()}


@every_model
def test_nothing_is_kept_on_the_module(name: str) -> None:
    model = lively(CONFIGS[name])
    before = everything_on(model)
    memory = model.encode(SOURCE, SOURCE_LENGTHS)
    run_steps(model, memory, TARGET_IN, with_attention=True)
    model.decode(TARGET_IN, memory)
    after = everything_on(model)
    assert before.keys() == after.keys()
    for key, value in before.items():
        assert torch.equal(value, after[key]) if isinstance(value, Tensor) else value == after[key], key
    assert not list(model.buffers())


@every_model
def test_step_changes_none_of_its_arguments(name: str) -> None:
    model = lively(CONFIGS[name])
    memory = model.encode(SOURCE, SOURCE_LENGTHS)
    state = model.step(TARGET_IN[:, 0], model.init_state(memory), memory).state
    arguments = (TARGET_IN[:, 1], state, memory)
    copies = [leaf.clone() for leaf in leaves(arguments)]
    first = model.step(*arguments)
    assert all(torch.equal(copy, leaf) for copy, leaf in zip(copies, leaves(arguments), strict=True))
    assert torch.equal(first.features, model.step(*arguments).features)


@every_model
@pytest.mark.parametrize("before", [1, 2, 20])
def test_two_continuations_of_one_state_do_not_meet(name: str, before: int) -> None:
    """A beam's hypotheses may share memory until they part."""
    model = lively(CONFIGS[name])
    with torch.inference_mode():
        memory = model.encode(SOURCE, SOURCE_LENGTHS)
        tokens = torch.randint(4, VOCABULARY, (3, before + 4), generator=torch.Generator().manual_seed(1))
        state = run_steps(model, memory, tokens[:, :before])[-1].state
        branches = [tokens[:, before:], tokens[:, before:].flip(1), tokens[:, before:].roll(1, dims=1)]
        states = [state, state, select_rows(state, torch.tensor([0, 1, 2]))]
        features: list[list[Tensor]] = [[], [], []]
        for column in range(4):  # in turns
            for branch in range(3):
                step = model.step(branches[branch][:, column], states[branch], memory)
                states[branch] = step.state
                features[branch].append(step.features)
        for branch in range(3):
            alone = run_steps(model, memory, torch.cat([tokens[:, :before], branches[branch]], dim=1))[before:]
            torch.testing.assert_close(torch.stack(features[branch], dim=1), features_of(alone), **CLOSE)


@every_model
def test_encode_is_the_same_twice(name: str) -> None:
    model = lively(CONFIGS[name])
    first, second = (list(leaves(model.encode(SOURCE, SOURCE_LENGTHS))) for _ in range(2))
    assert all(torch.equal(one, other) for one, other in zip(first, second, strict=True))


def test_the_memory_tells_the_story() -> None:
    kinds = {name: lively(CONFIGS[name]).encode(SOURCE, SOURCE_LENGTHS) for name in CONFIGS}
    for name, memory in kinds.items():
        if name.startswith("seq2seq"):
            assert isinstance(memory, FixedVector)
        elif name.startswith("bahdanau"):
            assert isinstance(memory, MemoryTable)
        else:
            assert len(memory) == CONFIGS[name].decoder_layers
            assert all(isinstance(table, MemoryTable) for table in memory)


# --- hypotheses -------------------------------------------------------------------------------------------------------


@every_model
def test_hypotheses_share_the_memory_of_their_sentence(name: str) -> None:
    model = lively(CONFIGS[name])
    memory = model.encode(SOURCE, SOURCE_LENGTHS)
    hypotheses, _ = random_rows([5] * 6, seed=4)  # two of each of three sentences
    owner = torch.arange(3).repeat_interleave(2)
    shared = run_steps(model, memory, hypotheses, with_attention=True)
    repeated = run_steps(model, select_rows(memory, owner), hypotheses, with_attention=True)
    torch.testing.assert_close(features_of(shared), features_of(repeated), **CLOSE)
    if model.attends:
        for one, other in zip(shared, repeated, strict=True):
            torch.testing.assert_close(one.attention, other.attention, **CLOSE)


@every_model
def test_reordered_state_equals_reordered_prefixes(name: str) -> None:
    model = lively(CONFIGS[name])
    memory = model.encode(SOURCE[:2], SOURCE_LENGTHS[:2])
    hypotheses, _ = random_rows([5] * 6, seed=5)
    order = torch.tensor([2, 0, 0, 4, 5, 3])  # within each sentence's three
    state = select_rows(run_steps(model, memory, hypotheses[:, :4])[-1].state, order)
    reordered = model.step(hypotheses[:, 4], state, memory).features
    prefixes = torch.cat([hypotheses[order, :4], hypotheses[:, 4:]], dim=1)
    torch.testing.assert_close(reordered, run_steps(model, memory, prefixes)[-1].features, **CLOSE)


@every_model
def test_finished_sentences_can_be_dropped(name: str) -> None:
    model = lively(CONFIGS[name])
    memory = model.encode(SOURCE, SOURCE_LENGTHS)
    kept = torch.tensor([2, 0])
    state = run_steps(model, memory, TARGET_IN[:, :3])[-1].state
    fewer = model.step(TARGET_IN[kept, 3], select_rows(state, kept), select_rows(memory, kept)).features
    torch.testing.assert_close(fewer, model.step(TARGET_IN[:, 3], state, memory).features[kept], **CLOSE)


# --- attention --------------------------------------------------------------------------------------------------------


@attending_models
@pytest.mark.parametrize("bf16", [False, True])
def test_attention_is_a_distribution_over_real_positions(name: str, bf16: bool) -> None:
    model = lively(CONFIGS[name])
    mask = torch.arange(SOURCE.size(1)) < SOURCE_LENGTHS[:, None]
    with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
        memory = model.encode(SOURCE, SOURCE_LENGTHS)
        weights = model.attention(TARGET_IN, memory)  # [batch, layers, heads, tgt_len, src_len]
    assert weights.dtype == torch.float32
    assert weights.shape[0] == 3
    assert weights.shape[3:] == (TARGET_IN.size(1), SOURCE.size(1))
    assert (weights[~mask[:, None, None, None].expand_as(weights)] == 0).all()  # exactly
    torch.testing.assert_close(weights.sum(dim=-1), torch.ones(weights.shape[:-1]), **CLOSE)
    assert weights.std() > 1e-3  # not simply uniform


@attending_models
def test_attention_equals_the_steps(name: str) -> None:
    model = lively(CONFIGS[name])
    memory = model.encode(SOURCE, SOURCE_LENGTHS)
    by_step = [step.attention for step in run_steps(model, memory, TARGET_IN, with_attention=True)]
    torch.testing.assert_close(model.attention(TARGET_IN, memory), torch.stack(by_step, dim=3), **CLOSE)


@every_model
def test_asking_for_attention_does_not_change_the_features(name: str) -> None:
    model = lively(CONFIGS[name])
    memory = model.encode(SOURCE, SOURCE_LENGTHS)
    plain = run_steps(model, memory, TARGET_IN)
    torch.testing.assert_close(
        features_of(run_steps(model, memory, TARGET_IN, with_attention=True)), features_of(plain), **CLOSE
    )
    assert all(step.attention is None for step in plain)


def test_a_fixed_vector_has_no_attention() -> None:
    model = lively(CONFIGS["seq2seq"])
    memory = model.encode(SOURCE, SOURCE_LENGTHS)
    assert run_steps(model, memory, TARGET_IN[:, :1], with_attention=True)[0].attention is None
    with pytest.raises(ValueError, match="fixed vector"):
        model.attention(TARGET_IN, memory)


@attending_models
@pytest.mark.parametrize("bf16", [False, True])
def test_a_row_of_padding_reads_nothing(name: str, bf16: bool) -> None:
    model = lively(CONFIGS[name])
    source, lengths = random_rows([7, 0, 5], seed=6)
    with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
        memory = model.encode(source, lengths)
        features = model.decode(TARGET_IN, memory)
        weights = model.attention(TARGET_IN, memory)
        other = source.clone()
        other[1] = torch.arange(4, 11)
        # Nothing of the source reaches the row: with any other tokens there, of length 0, it says the same.
        assert torch.equal(model(other, lengths, TARGET_IN)[1], features[1])
    tables = [memory] if isinstance(memory, MemoryTable) else list(memory)
    assert all(table.empty.tolist() == [False, True, False] for table in tables)
    assert features.isfinite().all()
    assert torch.count_nonzero(weights[1]) == 0
    assert (weights[0].sum(-1) > 0.9).all()


# --- making them ------------------------------------------------------------------------------------------------------


@every_model
def test_parameters_follow_from_the_seed_alone(name: str) -> None:
    torch.manual_seed(7)
    first = build(CONFIGS[name], VOCABULARY, VOCABULARY, seed=3)
    torch.rand(5)
    torch.manual_seed(8)
    rng = torch.get_rng_state()
    second = build(CONFIGS[name], VOCABULARY, VOCABULARY, seed=3)
    other = build(CONFIGS[name], VOCABULARY, VOCABULARY, seed=4)
    assert torch.equal(rng, torch.get_rng_state())  # and nobody else's random numbers change
    for (key, one), two in zip(first.state_dict().items(), second.state_dict().values(), strict=True):
        assert one.isfinite().all(), key  # nothing is left uninitialised
        assert torch.equal(one, two), key
    assert any(not torch.equal(one, two) for one, two in zip(first.parameters(), other.parameters(), strict=True))


@every_model
def test_builds_on_the_meta_device(name: str) -> None:
    with torch.device("meta"):
        model = build(CONFIGS[name], VOCABULARY, VOCABULARY, seed=3)
    assert all(parameter.is_meta for parameter in model.parameters())
    assert parameter_count(model) == parameter_count(build(CONFIGS[name], VOCABULARY, VOCABULARY, seed=3))


@every_model
def test_state_dict_names_every_number_once_and_loads(name: str) -> None:
    model = lively(CONFIGS[name])
    state = model.state_dict()
    assert len({tensor.data_ptr() for tensor in state.values()}) == len(state)
    assert sum(tensor.numel() for tensor in state.values()) == parameter_count(model)
    fresh = build(CONFIGS[name], VOCABULARY, VOCABULARY, seed=99).eval()
    fresh.load_state_dict(state)
    assert torch.equal(fresh(SOURCE, SOURCE_LENGTHS, TARGET_IN), model(SOURCE, SOURCE_LENGTHS, TARGET_IN))


@every_model
def test_every_parameter_is_trained(name: str) -> None:
    model = lively(CONFIGS[name])
    logits = model.project(model(SOURCE, SOURCE_LENGTHS, TARGET_IN))
    (logits * torch.randn(logits.shape)).sum().backward()
    assert [key for key, parameter in model.named_parameters() if parameter.grad is None] == []


# --- random numbers and number formats --------------------------------------------------------------------------------


@every_model
def test_dropout_draws_from_the_default_generator_only(name: str) -> None:
    model = lively(CONFIGS[name]).train()
    results = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        results.append(model(SOURCE, SOURCE_LENGTHS, TARGET_IN))
    assert torch.equal(results[0], results[1])
    assert not torch.equal(results[0], results[2])
    state = torch.get_rng_state()
    after = model(SOURCE, SOURCE_LENGTHS, TARGET_IN)
    torch.set_rng_state(state)  # what a resumed run does
    assert torch.equal(after, model(SOURCE, SOURCE_LENGTHS, TARGET_IN))


@every_model
def test_without_dropout_training_and_eval_agree(name: str) -> None:
    config = replace(CONFIGS[name], dropout=0.0)
    if hasattr(config, "attention_dropout"):
        config = replace(config, attention_dropout=0.0)
    model = lively(config)
    state = torch.get_rng_state()
    evaluated = model(SOURCE, SOURCE_LENGTHS, TARGET_IN)
    torch.testing.assert_close(model.train()(SOURCE, SOURCE_LENGTHS, TARGET_IN), evaluated, **CLOSE)
    assert torch.equal(state, torch.get_rng_state())


@every_model
@pytest.mark.parametrize("grad", [False, True])
def test_bf16_is_close_to_fp32(name: str, grad: bool) -> None:
    model = lively(CONFIGS[name])
    with torch.set_grad_enabled(grad):
        exact = model(SOURCE, SOURCE_LENGTHS, TARGET_IN)
        with torch.autocast("cpu", torch.bfloat16):
            memory = model.encode(SOURCE, SOURCE_LENGTHS)
            parallel = model.decode(TARGET_IN, memory)
            stepwise = features_of(run_steps(model, memory, TARGET_IN))
            assert model.project(parallel).dtype == torch.bfloat16  # the products really ran in it
    error = exact.square().mean().sqrt() * 0.1
    assert (parallel.float() - exact).abs().mean() < error
    assert (stepwise.float() - exact).abs().mean() < error
    # A CPU without the arithmetic has no LSTM in bfloat16: that model then rounds in its output layer alone.
    assert torch.equal(parallel.float(), exact) == (name.startswith("seq2seq") and not has_bf16(torch.device("cpu")))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@every_model
def test_on_a_gpu_it_says_the_same(name: str) -> None:
    model = lively(CONFIGS[name])
    expected = model(SOURCE, SOURCE_LENGTHS, TARGET_IN)
    model.cuda()
    memory = model.encode(SOURCE.cuda(), SOURCE_LENGTHS.cuda())
    torch.testing.assert_close(model.decode(TARGET_IN.cuda(), memory).cpu(), expected, rtol=1e-3, atol=1e-3)
