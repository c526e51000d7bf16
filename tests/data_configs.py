"""Data configurations for tests: the shipped YAML files with a few keys changed, and files to point them at."""

from functools import cache
from pathlib import Path
from typing import Any

from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from nmt.composition import register_resolvers
from nmt.config import CONFIG_DIR, DataConfig, DemoData, FilesData, HubData, parse

KINDS: dict[str, type[Any]] = {"demo": DemoData, "files": FilesData}

ENGLISH = ["a dog runs .", "the red house is old .", "two men read a book .", "she sings .", "a cat sleeps here ."] * 4
GERMAN = [
    "ein Hund läuft .",
    "das rote Haus ist alt .",
    "zwei Männer lesen ein Buch .",
    "sie singt .",
    "eine Katze .",
] * 4


def data_config(
    group: str,
    cache_folder: Path,
    tokenizer: dict[str, Any] | None = None,
    filters: dict[str, Any] | None = None,
    **changes: Any,
) -> DataConfig:
    """``configs/data/<group>.yaml`` with keys changed, a vocabulary for a few sentences."""
    tree = _shipped(group)
    small = {"vocabulary_size": 60, "num_threads": 1}
    groups = {"tokenizer": tree["tokenizer"] | small | (tokenizer or {})}
    if "filters" in tree:  # the demo has none
        groups["filters"] = tree["filters"] | (filters or {})
    changed = tree | groups | {"cache": str(cache_folder), "name": group} | changes
    config: DataConfig = parse(KINDS.get(group, HubData), changed, "data")
    return config


@cache
def _shipped(group: str) -> dict[str, Any]:
    register_resolvers()
    with initialize_config_dir(str(CONFIG_DIR), version_base="1.3"):
        made: Any = OmegaConf.to_container(compose("train", overrides=[f"data={group}"]).data, resolve=True)
    return dict(made)


def write_corpus(folder: Path, **splits: tuple[list[str], list[str]]) -> dict[str, str]:
    """Write ``<split>.en`` and ``<split>.de``; returns the prefixes as ``data=files`` takes them."""
    folder.mkdir(exist_ok=True)
    for name, (sources, targets) in splits.items():
        for language, lines in (("en", sources), ("de", targets)):
            (folder / f"{name}.{language}").write_bytes("".join(f"{line}\n" for line in lines).encode("utf-8"))
    return {name: str(folder / name) for name in splits}


def files_config(folder: Path, cache: Path, **changes: Any) -> DataConfig:
    """English to German from ``folder``: train and validation as :func:`write_corpus` makes them."""
    ends = {"train": str(folder / "train"), "validation": str(folder / "validation")}
    return data_config("files", cache, **({"source": "en", "target": "de"} | ends | changes))


def small_corpus(folder: Path) -> None:
    """Twenty training pairs and three validation pairs."""
    write_corpus(
        folder, train=(ENGLISH, GERMAN), validation=(["a dog .", "a cat .", "sing ."], ["Hund .", "Katze .", "."])
    )
