"""Which sentences are the longest, and tables that line up."""

from pathlib import Path
from typing import Any

import pytest

from nmt.analysis.evaluation import longest_quarter, usable_split
from nmt.analysis.report import markdown_table
from tests.data_configs import data_config


def test_longest_quarter_takes_the_earlier_of_equal_length() -> None:
    words = [3, 5, 5, 1, 5, 9, 2, 5]
    sources = [" ".join(["w"] * count) for count in words]
    assert longest_quarter(sources) == [1, 5]  # 9 words, and the first of those with 5
    assert longest_quarter(sources[:7]) == [1, 5]  # 7 / 4 rounded up
    assert longest_quarter(["one word  two\tthree", "a b"]) == [0]
    assert longest_quarter([""]) == [0]


def test_markdown_columns_line_up() -> None:
    text = markdown_table(["run", "BLEU"], [["a|b", "1.0"], ["中文", "100.0"]], left=(0,))
    assert text.split("\n") == [
        "| run  |  BLEU |",
        "| ---- | ----: |",
        "| a\\|b |   1.0 |",
        "| 中文 | 100.0 |",
    ]


NAMED: dict[str, Any] = {"train": "train", "validation": "dev", "test": "test"}
WITHOUT = NAMED | {"test": None}


@pytest.mark.parametrize(
    ("group", "changes", "used"),
    [
        ("demo", {}, "test"),
        ("wmt14", {}, "test"),
        ("wmt19", {}, "validation"),
        ("wmt19", {"held_out_pairs": 100}, "test"),
        ("wmt19", {"folder": "copy"}, "validation"),
        ("wmt19", {"folder": "copy", "folder_splits": NAMED}, "test"),
        ("wmt14", {"folder": "copy", "folder_splits": WITHOUT, "held_out_pairs": 100}, "validation"),
        ("europarl", {}, "test"),
        ("files", {"source": "en", "target": "de", "train": "a", "validation": "b"}, "validation"),
        ("files", {"source": "en", "target": "de", "train": "a", "validation": "b", "test": "c"}, "test"),
    ],
    ids=str,
)
def test_data_without_a_test_split_is_scored_on_validation(group: str, changes: dict[str, Any], used: str) -> None:
    config = data_config(group, Path("cache"), **changes)
    assert usable_split(config, "test") == used
    assert usable_split(config, "validation") == "validation"
