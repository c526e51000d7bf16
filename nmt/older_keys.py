"""Configurations that were stored before a key was there: what they meant."""

from collections.abc import Mapping
from typing import Any

NO_FILTERS = {
    "max_words": None,
    "max_ratio": None,
    "max_word_length": None,
    "identical": False,
    "duplicates": "keep",
    "held_out": "keep",
    "foreign_letters": None,
    "numbers": False,
    "language": False,
    "quarantine": False,
}

ADDED: dict[str, Any] = {
    "init_from": None,
    "data": {"tokenizer": {"subword_regularization": None}},
    "search": {
        "patience": None,
        "no_repeat_ngram": 0,
        "forbid_unk": False,
    },
    "training": {
        "reset_optimizer": False,
        "reset_schedule": False,
        "timeout": 600.0,
        "tf32": False,
        "compile": False,
    },
}
"""Keys that came after the first checkpoints were written, with the values that say what was done without them."""

ADDED_TO_MODEL: dict[str, dict[str, Any]] = {"bahdanau": {"reverse_source": False}}
"""The same for the keys of ``model``, by its name."""

ADDED_TO_TEXT: dict[str, dict[str, Any]] = {
    "demo": {},
    "files": {"corpora": None, "sample_seed": None, "filters": NO_FILTERS},
    "hub": {"sample_seed": None, "held_out_pairs": None, "filters": NO_FILTERS},
}
"""The same for the keys of ``data``, by its kind."""


def fill_in(tree: dict[str, Any]) -> None:
    """Give a stored configuration the keys that it lacks, level by level."""
    _add(tree, ADDED)
    model = tree.get("model", {})  # a missing one is reported by who parses the tree
    _add(model, ADDED_TO_MODEL.get(model.get("name"), {}))
    _add(tree["data"], ADDED_TO_TEXT.get(tree["data"].get("kind"), {}))


def _add(tree: dict[str, Any], added: Mapping[str, Any]) -> None:
    for key, value in added.items():
        if isinstance(value, Mapping):
            _add(tree.setdefault(key, {}), value)
        else:
            tree.setdefault(key, value)
