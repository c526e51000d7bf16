"""Checkpoints: whole or not at all, self-contained, ties and all."""

import errno
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
import yaml

from nmt import checkpoint, older_keys
from nmt.averaging import average
from nmt.checkpoint import CheckpointError, NewerFormatError
from nmt.config import TrainConfig, to_tree
from nmt.data.dataset import prepare
from nmt.data.preparation import NO_FILTERS
from nmt.data.tokenizer import TokenizerPair
from nmt.models import build
from tests.tiny_run import MODELS, tiny_config


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("corpus")


@pytest.fixture(scope="module")
def tokenizers(corpus: Path) -> TokenizerPair:
    return prepare(tiny_config(corpus).data, lambda message: None).tokenizers


@pytest.fixture
def config(corpus: Path) -> TrainConfig:
    return tiny_config(corpus)


def model_of(config: TrainConfig, tokenizers: TokenizerPair, seed: int = 1) -> torch.nn.Module:
    return build(config.model, tokenizers.source.vocabulary_size, tokenizers.target.vocabulary_size, seed)


@pytest.mark.parametrize("model_name", list(MODELS))
def test_load_gives_back_what_was_saved(
    corpus: Path, tokenizers: TokenizerPair, tmp_path: Path, model_name: str
) -> None:
    config = tiny_config(corpus, model_name)
    model = model_of(config, tokenizers, seed=5)
    checkpoint.save(tmp_path / "step_000007", model.state_dict(), tokenizers, config, 7)
    loaded = checkpoint.load(tmp_path / "step_000007")
    assert (loaded.step, loaded.config, loaded.path) == (7, config, tmp_path / "step_000007")
    assert loaded.tokenizers.digest == tokenizers.digest
    assert not loaded.model.training
    state = loaded.model.state_dict()
    assert state.keys() == model.state_dict().keys()
    for name, tensor in model.state_dict().items():
        assert torch.equal(state[name], tensor), name


def test_a_checkpoint_from_before_a_key_was_there_has_what_was_done_then(config: TrainConfig, tmp_path: Path) -> None:
    tree = to_tree(config)

    def take(tree: dict[str, Any], added: Mapping[str, Any]) -> None:
        for key, value in added.items():
            if isinstance(value, Mapping) and set(tree[key]) - set(value):
                take(tree[key], value)
            else:
                del tree[key]

    take(tree, older_keys.ADDED)
    take(tree["data"], older_keys.ADDED_TO_TEXT[config.data.kind])
    assert "filters" not in tree["data"]
    assert to_tree(NO_FILTERS) == older_keys.NO_FILTERS
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(tree), encoding="utf-8")
    loaded = checkpoint.load_config(tmp_path)
    assert loaded == config
    assert (loaded.search.no_repeat_ngram, loaded.search.forbid_unk, loaded.init_from) == (0, False, None)


@pytest.mark.parametrize("model_name", list(MODELS))
def test_a_model_from_before_a_key_was_there_is_the_same_model(
    corpus: Path, tokenizers: TokenizerPair, tmp_path: Path, model_name: str
) -> None:
    config = tiny_config(corpus, model_name)
    checkpoint.save(tmp_path / "c", model_of(config, tokenizers).state_dict(), tokenizers, config, 1)
    tree = to_tree(config)
    for key, before in older_keys.ADDED_TO_MODEL.get(model_name, {}).items():
        assert tree["model"].pop(key) == before
    (tmp_path / "c" / "config.yaml").write_text(yaml.safe_dump(tree), encoding="utf-8")
    assert checkpoint.load(tmp_path / "c").config == config
    if model_name == "bahdanau":
        assert checkpoint.load(tmp_path / "c").model.reverse_source is False


def test_a_configuration_without_a_model_is_said_to_lack_one(config: TrainConfig, tmp_path: Path) -> None:
    tree = to_tree(config)
    del tree["model"]
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(tree), encoding="utf-8")
    with pytest.raises(CheckpointError, match=r"config\.yaml: model: missing"):
        checkpoint.load_config(tmp_path)


def test_tied_tensors_are_stored_once_and_come_back_under_every_name(
    config: TrainConfig, tokenizers: TokenizerPair, tmp_path: Path
) -> None:
    shared, other = torch.randn(100, 100), torch.randn(100, 100)
    weights = {"output": shared, "alone": other, "source": shared, "view": other[:50], "target": shared}
    checkpoint.save(tmp_path / "c", weights, tokenizers, config, 1)
    assert (tmp_path / "c" / "model.safetensors").stat().st_size < 4 * 25_000 + 2_000
    loaded, _ = checkpoint.load_weights(tmp_path / "c")
    assert loaded.keys() == weights.keys()
    for name, tensor in weights.items():
        assert torch.equal(loaded[name], tensor)


def test_run_folder_means_best_else_last(config: TrainConfig, tokenizers: TokenizerPair, tmp_path: Path) -> None:
    folder = tmp_path / "checkpoints"
    for step in (1, 2):
        checkpoint.save(
            checkpoint.step_folder(folder, step),
            model_of(config, tokenizers, step).state_dict(),
            tokenizers,
            config,
            step,
        )
    checkpoint.link(folder, "last", checkpoint.step_folder(folder, 2))
    assert checkpoint.load(tmp_path).step == 2
    checkpoint.link(folder, "best", checkpoint.step_folder(folder, 1))
    assert checkpoint.load(tmp_path).step == 1
    assert checkpoint.load(folder / "last").step == 2
    checkpoint.link(folder, "best", checkpoint.step_folder(folder, 2))
    assert checkpoint.load(str(tmp_path)).step == 2


def test_links_work_on_a_file_system_without_links(
    config: TrainConfig, tokenizers: TokenizerPair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: Path, target: str) -> None:
        raise OSError(errno.EPERM, "not permitted")

    monkeypatch.setattr(Path, "symlink_to", refuse)
    folder = tmp_path / "checkpoints"
    checkpoint.save(folder / "step_000001", model_of(config, tokenizers).state_dict(), tokenizers, config, 1)
    checkpoint.link(folder, "last", folder / "step_000001")
    assert not (folder / "last").is_symlink()
    assert checkpoint.load(tmp_path).step == 1
    assert checkpoint.load(folder / "last").step == 1


def test_average_is_the_mean(config: TrainConfig, tokenizers: TokenizerPair, tmp_path: Path) -> None:
    models = [model_of(config, tokenizers, seed) for seed in (1, 2, 3)]
    for number, model in enumerate(models):
        checkpoint.save(tmp_path / str(number), model.state_dict(), tokenizers, config, number)
    mean = average([tmp_path / str(number) for number in range(3)])
    for name, tensor in mean.items():
        torch.testing.assert_close(
            tensor.float(), torch.stack([model.state_dict()[name] for model in models]).double().mean(0).float()
        )


@pytest.mark.parametrize("name", ["model.safetensors", "training.pt", "config.yaml", "tokenizer.model"])
@pytest.mark.parametrize("damage", [lambda data: b"", lambda data: data[: len(data) // 2], None])
def test_damaged_file_is_named(
    config: TrainConfig,
    tokenizers: TokenizerPair,
    tmp_path: Path,
    name: str,
    damage: Callable[[bytes], bytes] | None,
) -> None:
    folder = tmp_path / "step_000001"
    checkpoint.save(folder, model_of(config, tokenizers).state_dict(), tokenizers, config, 1, training={"a": 1})
    assert checkpoint.load_training(folder) == {"a": 1}
    if damage is None:
        (folder / name).unlink()
    else:
        (folder / name).write_bytes(damage((folder / name).read_bytes()))
    read = checkpoint.load_training if name == "training.pt" else checkpoint.load
    with pytest.raises(CheckpointError, match=str(folder)):
        read(folder)


def test_exchanged_tokenizer_is_refused(
    config: TrainConfig, tokenizers: TokenizerPair, tmp_path: Path, corpus: Path
) -> None:
    other = prepare(
        tiny_config(corpus, "transformer", "data.tokenizer.kind=unigram", "data.tokenizer.vocabulary_size=36").data,
        lambda message: None,
    )
    assert other.tokenizers.digest != tokenizers.digest
    checkpoint.save(tmp_path / "c", model_of(config, tokenizers).state_dict(), tokenizers, config, 1)
    other.tokenizers.save(tmp_path / "c")
    with pytest.raises(CheckpointError, match="tokenizer is not the one"):
        checkpoint.load(tmp_path / "c")


def test_training_state_is_data_never_code(tmp_path: Path) -> None:
    class Harmful:
        def __reduce__(self) -> tuple[Callable[[str], int], tuple[str]]:
            return os.system, (f"touch {tmp_path}/harm",)

    torch.save({"state": Harmful()}, tmp_path / "training.pt")
    with pytest.raises(CheckpointError):
        checkpoint.load_training(tmp_path)
    assert not (tmp_path / "harm").exists()


def test_full_disk_leaves_older_checkpoints_and_no_rubbish(
    config: TrainConfig, tokenizers: TokenizerPair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    weights = model_of(config, tokenizers).state_dict()
    checkpoint.save(tmp_path / "step_000001", weights, tokenizers, config, 1)
    write = Path.write_bytes

    def full(self: Path, data: bytes) -> int:
        if self.name == "model.safetensors":
            write(self, data[:100])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self))
        return write(self, data)

    monkeypatch.setattr(Path, "write_bytes", full)
    for step in (1, 2):  # also over the name of the one that is there
        with pytest.raises(OSError, match="No space left on device") as caught:
            checkpoint.save(tmp_path / f"step_{step:06d}", weights, tokenizers, config, step)
        assert caught.value.errno == errno.ENOSPC
    assert [path.name for path in tmp_path.iterdir()] == ["step_000001"]
    assert checkpoint.load(tmp_path / "step_000001").step == 1


@pytest.mark.parametrize("killed_before", ["first rename", "second rename", "removal of the old one"])
def test_kill_while_replacing_leaves_one_whole_checkpoint(
    config: TrainConfig, tokenizers: TokenizerPair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, killed_before: str
) -> None:
    class Killed(BaseException):
        pass

    calls = {"rename": 0, "rmtree": 0}
    rename, rmtree = os.rename, checkpoint.shutil.rmtree

    def dying_rename(source: str, target: str) -> None:
        calls["rename"] += 1
        if calls["rename"] == {"first rename": 1, "second rename": 2}.get(killed_before):
            raise Killed
        rename(source, target)

    def dying_rmtree(path: Path, ignore_errors: bool = False) -> None:
        calls["rmtree"] += 1
        if killed_before.startswith("removal") and calls["rename"] == 2:
            raise Killed
        rmtree(path, ignore_errors=ignore_errors)

    weights = model_of(config, tokenizers).state_dict()
    checkpoint.save(tmp_path / "step_000001", weights, tokenizers, config, 1)
    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", dying_rename)
        patch.setattr(checkpoint.shutil, "rmtree", dying_rmtree)
        with pytest.raises(Killed):
            checkpoint.save(tmp_path / "step_000001", weights, tokenizers, config, 1)
    checkpoint.clean_up(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["step_000001"]
    assert checkpoint.load(tmp_path / "step_000001").step == 1


@pytest.mark.parametrize("path", ["nowhere", "."])
def test_no_checkpoint_is_said_so(tmp_path: Path, path: str) -> None:
    with pytest.raises(CheckpointError, match=r"no such|no checkpoint here"):
        checkpoint.load(tmp_path / path)


def rewritten(folder: Path, change: Callable[[dict[str, str]], dict[str, str]]) -> None:
    """Change the facts in a model file."""
    with safetensors.safe_open(folder / "model.safetensors", framework="pt") as file:
        facts, weights = file.metadata(), {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    safetensors.torch.save_file(weights, folder / "model.safetensors", change(facts))


def test_a_newer_format_is_refused_and_one_from_before_formats_is_read(
    config: TrainConfig, tokenizers: TokenizerPair, tmp_path: Path
) -> None:
    checkpoint.save(tmp_path / "c", model_of(config, tokenizers).state_dict(), tokenizers, config, 1)
    rewritten(tmp_path / "c", lambda facts: {k: v for k, v in facts.items() if k != "checkpoint_format"})
    assert checkpoint.load(tmp_path / "c").step == 1
    rewritten(tmp_path / "c", lambda facts: {**facts, "checkpoint_format": "2"})
    (tmp_path / "c" / "config.yaml").write_text("of: another kind\n")
    message = r"c: written by a newer version of nmt \(format 2, this one reads 1\): update nmt$"
    for read in (checkpoint.load, checkpoint.load_config, checkpoint.load_weights):
        with pytest.raises(NewerFormatError, match=message):
            read(tmp_path / "c")


def test_a_key_that_this_version_does_not_know(config: TrainConfig, tokenizers: TokenizerPair, tmp_path: Path) -> None:
    checkpoint.save(tmp_path / "c", model_of(config, tokenizers).state_dict(), tokenizers, config, 1)
    tree = to_tree(config)
    tree["search"]["lookahead"] = 3
    (tmp_path / "c" / "config.yaml").write_text(yaml.safe_dump(tree), encoding="utf-8")
    with pytest.raises(CheckpointError, match=r"c/config.yaml: search.lookahead: unknown key.*update nmt"):
        checkpoint.load(tmp_path / "c")
