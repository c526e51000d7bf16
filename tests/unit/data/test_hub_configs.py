"""Every configuration of a public data set, composed as a user would and read from a Hub with its columns."""

from collections import Counter
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from nmt.composition import register_resolvers
from nmt.config import CONFIG_DIR, ConfigError, HubData, parse
from nmt.data import hub_tables
from nmt.data.corpus import DataError
from nmt.data.hub import open_hub
from nmt.data.hub_worker import Source
from tests.hub_server import HubServer, hub_server, in_this_process, numbered, write_parquet

WMT = ["wmt14", "wmt16", "wmt19"]
HELD_OUT_CUT = ["europarl", "news_commentary"]
GROUPS = [*WMT, *HELD_OUT_CUT, "opus100", "multi30k"]


def composed(*overrides: str) -> HubData:
    register_resolvers()
    with initialize_config_dir(str(CONFIG_DIR), version_base="1.3"):
        tree = OmegaConf.to_container(compose("train", overrides=list(overrides)).data, resolve=True)
    return parse(HubData, tree, "data")


def read(config: HubData, role: str = "train", count: int | None = None) -> list[tuple[str, str, str]]:
    """Source, target and file of the pairs of a split, or of the first so many."""
    source = Source(config, lambda message: None)
    return [(left, right, source.files[file]) for left, right, file in islice(source.pairs(role), count)]


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Starts a Hub of one data set whose files are in ``tmp_path / "hub"``."""
    running = []

    def start(name: str) -> HubServer:
        context = hub_server(tmp_path / "hub", name)
        running.append(context)
        server = context.__enter__()
        in_this_process(monkeypatch, server)
        return server

    yield start
    for context in running:
        context.__exit__(None, None, None)


# --- what composes ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("group", GROUPS)
def test_every_configuration_composes_and_says_what_it_is(group: str) -> None:
    config = composed(f"data={group}")
    assert config.name == f"{group}_{config.source}-{config.target}"
    assert (config.column is None) == (group == "multi30k")
    assert (config.held_out_pairs is not None) == (group in HELD_OUT_CUT)
    assert (config.filters.duplicates == "keep") == (group == "multi30k")
    heading = (CONFIG_DIR / "data" / f"{group}.yaml").read_text().split("defaults:")[0]
    assert all(line.startswith("# ") for line in heading.splitlines())
    assert any(word in heading for word in ("licence", "Research use", "research"))
    assert "MB" in heading
    try:
        corpus = open_hub(config, print)
        assert corpus.splits["train"][0].shuffled == (config.max_pairs is not None and config.sample_seed is not None)
        assert ("test" in corpus.splits) == (group != "wmt19")
    finally:
        corpus.close()


@pytest.mark.parametrize(
    ("overrides", "direction"),
    [
        (["data=wmt14"], ("en", "fr")),
        (["data=wmt14", "data.pair=fr-en"], ("en", "fr")),
        (["data=wmt14", "data.pair=null"], ("en", "fr")),
        (["data=wmt14", "data.pair=en-fr"], ("en", "fr")),
        (["data=wmt14", "data.pair=fr-en", "data.source=fr", "data.target=en"], ("fr", "en")),
        (["data=wmt14", "data.pair=de-en"], ("en", "de")),
        (["data=wmt14", "data.target=de"], ("en", "de")),
        (["data=wmt14", "data.source=de", "data.target=en"], ("de", "en")),
        (["data=wmt16", "data.pair=ro-en"], ("en", "ro")),
        (["data=wmt19", "data.pair=fr-de"], ("fr", "de")),
        (["data=wmt19"], ("en", "de")),
        (["data=opus100", "data.pair=en-zh"], ("en", "zh")),
        (["data=opus100", "data.pair=en-no"], ("en", "no")),
        (["data=europarl", "data.pair=bg-cs"], ("bg", "cs")),
    ],
    ids=str,
)
def test_the_direction_follows_from_what_is_given(overrides: list[str], direction: tuple[str, str]) -> None:
    config = composed(*overrides)
    assert (config.source, config.target) == direction
    assert config.name.endswith(f"_{direction[0]}-{direction[1]}")


@pytest.mark.parametrize("model", ["transformer", "bahdanau", "seq2seq"])
def test_recipes_tuned_on_unfiltered_text_keep_all_of_it(model: str) -> None:
    config = composed(f"experiment=wmt14_en-fr_{model}")
    assert config.filters == composed("data=multi30k").filters
    assert (config.max_pairs, config.tokenizer.vocabulary_size) == (300_000, 8000)


@pytest.mark.parametrize(
    ("overrides", "found"),
    [
        (["data=wmt14", "data.splits.validation=null"], r"data\.splits\.validation: null; .*data\.held_out_pairs"),
        (["data=wmt14", "data.held_out_pairs=100"], r"data\.held_out_pairs: nothing to cut"),
        (["data=europarl", "data.held_out_pairs=0"], r"data\.held_out_pairs: expected 1 or more, or null, found 0"),
    ],
    ids=str,
)
def test_keys_that_contradict_each_other(overrides: list[str], found: str) -> None:
    with pytest.raises(ConfigError, match=found):
        open_hub(composed(*overrides), print)


# --- what is read -----------------------------------------------------------------------------------------------------

DATA_SETS = [
    ("wmt/wmt14", "fr-en", ["data=wmt14"]),
    ("wmt/wmt14", "de-en", ["data=wmt14", "data.pair=en-de", "data.source=de", "data.target=en"]),
    ("wmt/wmt14", "cs-en", ["data=wmt14", "data.target=cs"]),
    ("wmt/wmt16", "ro-en", ["data=wmt16", "data.pair=ro-en"]),
    ("wmt/wmt19", "de-en", ["data=wmt19"]),
    ("wmt/wmt19", "fr-de", ["data=wmt19", "data.source=de", "data.target=fr"]),
    ("Helsinki-NLP/opus-100", "en-fr", ["data=opus100", "data.pair=fr-en", "data.source=fr", "data.target=en"]),
    ("Helsinki-NLP/europarl", "de-en", ["data=europarl", "data.target=de"]),
    ("Helsinki-NLP/news_commentary", "en-fr", ["data=news_commentary"]),
]


@pytest.mark.parametrize(("dataset", "configuration", "overrides"), DATA_SETS, ids=str)
def test_every_split_of_every_data_set(
    tmp_path: Path, hub: Any, dataset: str, configuration: str, overrides: list[str]
) -> None:
    cut = ["data.held_out_pairs=100"] if composed(*overrides).held_out_pairs else []
    config = composed(*overrides, *cut, "data.max_pairs=50")
    first, second = configuration.split("-")
    shards = {"train": [numbered("train", shard, 400, (first, second)) for shard in range(2)]}
    for split in ("validation", "test"):
        if getattr(config.splits, split) is not None:
            shards[split] = [numbered(split, 0, 30, (first, second))]
    counts = {split: sum(map(len, parts)) for split, parts in shards.items()}
    write_parquet(tmp_path / "hub", configuration, shards, row_group_size=100, counts=counts)
    write_parquet(tmp_path / "hub", "xx-yy", {"train": [numbered("train", 0, 3, ("xx", "yy"))]})
    hub(dataset)
    pairs = {role: read(config, role) for role in ("train", "validation", "test") if role in shards}
    for role, found in pairs.items():
        assert all(left.split()[0] == config.source and right.split()[0] == config.target for left, right, _ in found)
        assert all(left.split()[1:] == right.split()[1:] for left, right, _ in found)
        assert len({left for left, _, _ in found}) == counts[role] - 2 * (config.held_out_pairs or 0)
        assert all(name.startswith(f"{configuration}/{role}-0000") for _, _, name in found)
    assert sorted(pairs["train"]) != pairs["train"]


@pytest.mark.parametrize("group", HELD_OUT_CUT)
def test_sets_are_cut_from_training_where_there_are_none(tmp_path: Path, hub: Any, group: str) -> None:
    shards = [numbered("train", shard, count) for shard, count in ((0, 2500), (1, 3300))]
    write_parquet(tmp_path / "hub", "en-fr", {"train": shards})
    overrides = [f"data={group}", "data.held_out_pairs=250"]
    hub(composed(*overrides).dataset)
    cut = {role: read(composed(*overrides), role) for role in ("train", "validation", "test")}
    assert [len(cut[role]) for role in ("validation", "test")] == [250, 250]
    everything = sorted(pair for pairs in cut.values() for pair in pairs)
    assert len(set(everything)) == 5800  # disjoint, complete
    other_sample = composed(*overrides, "data.max_pairs=10", "data.sample_seed=7")
    assert read(other_sample, "validation") == cut["validation"]
    assert sorted(read(other_sample)) == sorted(cut["train"])
    backwards = composed(*overrides, "data.source=fr", "data.target=en")
    assert [(right, left) for left, right, _ in read(backwards, "test")] == [pair[:2] for pair in cut["test"]]


@pytest.mark.parametrize("limit", ["data.max_pairs=null", "data.max_pairs=5000"])
def test_a_set_may_be_cut_beside_an_official_one_that_is_smaller(tmp_path: Path, hub: Any, limit: str) -> None:
    shards = {"train": [numbered("train", 0, 1000)], "validation": [numbered("validation", 0, 40)]}
    write_parquet(tmp_path / "hub", "fr-en", shards, counts={"train": 1000, "validation": 40})
    hub("wmt/wmt19")
    overrides = ["data=wmt19", "data.target=fr", "data.splits.test=null", "data.held_out_pairs=150", limit]
    found = {role: read(composed(*overrides), role) for role in ("train", "validation", "test")}
    assert [len(pairs) for pairs in found.values()] == [850, 40, 150]
    assert [left for left, _, _ in found["validation"]] == [record["en"] for record in shards["validation"][0]]
    assert len({left for left, _, _ in found["train"] + found["test"]}) == 1000


def test_an_official_set_that_ends_early_is_an_error_beside_a_cut(tmp_path: Path, hub: Any) -> None:
    shards = {"train": [numbered("train", 0, 1000)], "validation": [numbered("validation", 0, 39)]}
    write_parquet(tmp_path / "hub", "fr-en", shards, counts={"train": 1000, "validation": 40})
    hub("wmt/wmt19")
    overrides = ["data=wmt19", "data.target=fr", "data.splits.test=null", "data.held_out_pairs=150"]
    with pytest.raises(DataError, match="39 of 40 pairs"):
        read(composed(*overrides), "validation")


def test_a_language_that_is_elsewhere(tmp_path: Path, hub: Any) -> None:
    shards = {"train": [numbered("train", 0, 3, ("en", "de"))], "validation": [numbered("v", 0, 3, ("en", "de"))]}
    write_parquet(tmp_path / "hub", "data", shards, column=None)
    hub("bentrevett/multi30k")
    with pytest.raises(DataError, match=r"data\.target: no 'fr' here \(data\.dataset=romrawinjp/multi30k has .*fr"):
        read(composed("data=multi30k", "data.source=en", "data.target=fr"))


def test_a_multi30k_of_four_languages_and_images(tmp_path: Path, hub: Any) -> None:
    records = [{language: f"{language} {row}" for language in ("en", "cs", "de", "fr")} for row in range(50)]
    with_images = [record | {"image": "x" * 100_000} for record in records]
    write_parquet(tmp_path / "hub", "data", {"train": [with_images], "test": [records]}, row_group_size=10, column=None)
    server = hub("romrawinjp/multi30k")
    config = composed("data=multi30k", "data.dataset=romrawinjp/multi30k", "data.source=cs", "data.target=fr")
    assert [pair[:2] for pair in read(config)] == [(f"cs {row}", f"fr {row}") for row in range(50)]
    assert server.sent < 400_000


# --- samples ----------------------------------------------------------------------------------------------------------


def test_a_sample_is_from_all_shards_and_the_first_pairs_are_not(
    tmp_path: Path, hub: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub_tables, "_MIX_GROUPS", 4)
    sizes = (4000, 2000, 6000)
    shards = [numbered("train", shard, count) for shard, count in enumerate(sizes)]
    write_parquet(tmp_path / "hub", "fr-en", {"train": shards}, row_group_size=50)
    server = hub("wmt/wmt14")
    names = [f"fr-en/train-{shard:05}-of-00003.parquet" for shard in range(3)]

    sample = read(composed("data=wmt14", "data.max_pairs=1200"), count=1200)
    taken = Counter(name for _, _, name in sample)
    for name, size in zip(names, sizes, strict=True):
        assert abs(taken[name] - 1200 * size / sum(sizes)) <= 150  # three row groups
    rows = {int(left.split()[-1]) for left, _, name in sample if name == names[2]}
    assert min(rows) < 1000
    assert max(rows) > 5000
    assert len(server.asked) < 3 * 3 + 1200 / 50 + 8
    assert read(composed("data=wmt14", "data.max_pairs=700"), count=700) == sample[:700]
    assert read(composed("data=wmt14", "data.max_pairs=1200", "data.sample_seed=2"), count=1200) != sample

    first = read(composed("data=wmt14", "data.max_pairs=1200", "data.sample_seed=null"), count=1200)
    assert [left for left, _, _ in first] == [f"en train 0 {row}" for row in range(1200)]
    whole = read(composed("data=wmt14", "data.max_pairs=null"))
    assert Counter(name for _, _, name in whole) == dict(zip(names, sizes, strict=True))
    assert [left for left, _, _ in whole] == [record["en"] for shard in shards for record in shard]
