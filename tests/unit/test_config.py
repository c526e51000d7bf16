"""parse() accepts what the shipped YAML composes to, and refuses the rest by name."""

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml
from hydra import compose, initialize_config_dir
from hypothesis import given, settings
from hypothesis import strategies as st
from omegaconf import OmegaConf

from nmt.composition import register_resolvers
from nmt.config import CONFIG_DIR, ConfigError, FilePair, FilesData, TrainConfig, parse, to_tree

EXPERIMENTS = sorted(path.stem for path in (CONFIG_DIR / "experiment").glob("*.yaml"))


def composed(*overrides: str) -> Any:
    register_resolvers()
    with initialize_config_dir(str(CONFIG_DIR), version_base="1.3"):
        return OmegaConf.to_container(compose("train", overrides=list(overrides)), resolve=True)


@pytest.fixture(scope="module")
def default() -> Any:
    return composed()


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_every_experiment_parses(experiment: str) -> None:
    config = parse(TrainConfig, composed(f"experiment={experiment}"))
    assert parse(TrainConfig, to_tree(config)) == config


@pytest.mark.parametrize("model", ["seq2seq", "bahdanau", "transformer"])
def test_the_recipe_follows_the_model(model: str) -> None:
    tree = composed(f"model={model}")
    recipe = yaml.safe_load((CONFIG_DIR / "optim" / f"{model}.yaml").read_text())
    assert tree["model"]["name"] == model
    assert tree["optim"]["clip_norm"] == recipe["clip_norm"]


def test_schedule_and_optimizer_swap_alone() -> None:
    config = parse(TrainConfig, composed("model=seq2seq", "optim/schedule=halving", "optim/optimizer=sgd"))
    assert config.optim.schedule.name == "halving"
    assert config.optim.optimizer.name == "sgd"


def test_papers_recipes() -> None:
    """The figures of the papers' own text (Sutskever 2014 section 3.4, Bahdanau 2014 A.2, Vaswani 2017 section 5)."""
    sutskever = parse(TrainConfig, composed("experiment=sutskever2014"))
    assert sutskever.optim.optimizer.learning_rate == 0.7
    assert sutskever.optim.clip_norm == 5.0
    assert sutskever.training.batch_sentences == 128
    assert sutskever.training.max_epochs == 7.5
    bahdanau = parse(TrainConfig, composed("experiment=bahdanau2014_rnnsearch50"))
    assert bahdanau.optim.optimizer.name == "adadelta"
    assert bahdanau.optim.clip_norm == 1.0
    assert bahdanau.training.batch_sentences == 80
    for size, dim in (("base", 512), ("big", 1024)):
        vaswani = parse(TrainConfig, composed(f"experiment=vaswani2017_{size}"))
        peak = dim**-0.5 * 4000**-0.5
        assert vaswani.optim.optimizer.learning_rate == pytest.approx(peak, rel=1e-4)
        assert vaswani.model.name == "transformer"
        assert vaswani.model.dim == dim


@pytest.mark.parametrize("path", sorted(CONFIG_DIR.rglob("*.yaml")), ids=lambda path: str(path.relative_to(CONFIG_DIR)))
def test_every_key_has_a_comment(path: Path) -> None:
    """A heading says what the file is; outside experiments, which are deltas, every key says what it means."""
    text = path.read_text(encoding="utf-8").split("\nhydra:")[0]
    assert text.startswith("#"), f"{path}: no heading"
    if path.parent.name == "experiment":
        return
    block = ""
    for line in text.splitlines():
        key, _, rest = line.partition(":")
        if not rest.strip() or rest.lstrip().startswith("#"):
            block = key.strip() if line and not line.startswith((" ", "#")) else block
            continue
        if line.lstrip().startswith(("#", "-")) or (line.startswith("  ") and block in ("splits", "folder_splits")):
            continue
        assert "#" in rest, f"{path}: {key.strip()} has no comment"


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("seed", "1", "seed: expected int"),
        ("seed", True, "seed: expected int"),
        ("model.dropout", "high", "model.dropout: expected float"),
        ("model.norm", "both", "model.norm: expected one of pre, post"),
        ("model.name", "gru", "model.name: expected one of seq2seq, bahdanau, transformer"),
        ("optim.schedule.name", "halving", "optim.schedule.warmup_steps: unknown key"),
        ("data.source", False, "write it in quotes"),
        ("data.kind", None, "data.kind: expected one of demo, files, hub"),
        ("training.device", 0, "training.device: expected str"),
    ],
)
def test_wrong_values_are_refused_by_name(default: Any, key: str, value: Any, message: str) -> None:
    tree = copy.deepcopy(default)
    *path, last = key.split(".")
    node = tree
    for part in path:
        node = node[part]
    node[last] = value
    with pytest.raises(ConfigError, match=message.replace(".", r"\.")):
        parse(TrainConfig, tree)


def leaves(tree: Any, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    if not isinstance(tree, dict):
        return [path]
    return [leaf for key, value in tree.items() for leaf in leaves(value, (*path, key))]


@settings(deadline=None)
@given(st.data())
def test_any_missing_or_misspelt_key_is_named(data: st.DataObject) -> None:
    tree = to_tree(parse(TrainConfig, TREE))
    path = data.draw(st.sampled_from(leaves(tree)))
    node = tree
    for part in path[:-1]:
        node = node[part]
    value = node.pop(path[-1])
    if path[-1] not in ("name", "kind"):  # those two choose the group and have a message of their own
        with pytest.raises(ConfigError, match="missing"):
            parse(TrainConfig, tree)
    node[path[-1]] = value
    node[path[-1] + "x"] = value
    with pytest.raises(ConfigError, match=path[-1] + "x: unknown key"):
        parse(TrainConfig, tree)


TREE = composed()


def test_a_group_that_is_named_like_a_value_says_how_groups_are_chosen() -> None:
    tree = composed("data=files", "data.source=a", "data.target=b", "data.validation=c", "data.filters=clean")
    with pytest.raises(ConfigError, match=r"data\.filters: expected a group .*slashes: data/filters=clean\)"):
        parse(TrainConfig, tree)


def test_files_take_a_prefix_a_list_or_pairs() -> None:
    tree = composed("data=files", "data.source=de", "data.target=en", "data.train=a", "data.validation=[b,c]")
    tree["data"]["test"] = [{"source": "x", "target": "y"}]
    data = parse(TrainConfig, tree).data
    assert isinstance(data, FilesData)
    assert data.train == ("a",)
    assert data.validation == ("b", "c")
    assert data.test == (FilePair("x", "y"),)


def test_the_run_folder_names_tag_and_seed() -> None:
    config = parse(TrainConfig, composed("seed=7", "tag=mine", "runs=elsewhere"))
    assert config.run_dir == Path("elsewhere/mine_s7")
    config = parse(TrainConfig, composed("seed=7", "tag=mine", "runs='~/elsewhere'"))
    assert config.run_dir == Path.home() / "elsewhere" / "mine_s7"
