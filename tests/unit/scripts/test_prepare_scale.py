"""The corpora that growth is measured on, and the line through the figures."""

from itertools import islice

import pytest

from scripts.prepare_scale import Pair, disk_usage, distinct, fit, growth, repeated, report, spelled

PAIRS = [Pair("a dog runs .", "ein Hund läuft ."), Pair("a cat .", "eine Katze ."), Pair("yes", "ja")]


def test_repeated_pairs_are_distinct_and_as_long() -> None:
    made = list(islice(repeated(PAIRS), 500))
    assert made[:3] == PAIRS
    assert len(set(made)) == 500
    for pair, original in zip(made, PAIRS * 200, strict=False):
        for text, before in zip(pair, original, strict=True):
            assert len(text.split()) == len(before.split())


def test_pairs_that_differ_in_the_replaced_words_only_are_one() -> None:
    pairs = [Pair("a dog", "ein Hund"), Pair("a cat", "ein Tier"), Pair("a cat", "eine Katze")]
    left = list(distinct(iter(pairs)))
    assert left == [pairs[0]] or left == [pairs[0], pairs[2]]
    assert len(set(islice(repeated(left), 100))) == 100


def test_a_word_a_number() -> None:
    assert len({spelled(number) for number in range(5000)}) == 5000
    assert all(spelled(number).isalpha() for number in range(100))


def test_a_line_through_points_on_it() -> None:
    line = fit([1000, 2000, 5000], [30.0, 50.0, 110.0])
    assert line.at(100) == pytest.approx(12.0)
    assert line.off == pytest.approx(0.0, abs=1e-9)
    assert fit([1000, 2000, 3000], [10.0, 20.0, 60.0]).off > 0.1


def figures(pairs: int) -> dict[str, object]:
    loader = {"tokens_per_second": 1e6, "seconds_to_first": 0.5, "peak_bytes": 3e8 + pairs}
    return {
        "pairs": pairs,
        "kept": pairs - 1,
        "words": 25.0,
        "seconds": 10 + pairs / 1000,
        "cpu_seconds": 20 + pairs / 500,
        "peak_bytes": 5e8,
        "processes": 3,
        "process_peak_bytes": [4e8, 6e7, 5e7],
        "second_start_seconds": 1.5,
        "disk_bytes": 100 * pairs,
        "disk_peak_bytes": 300 * pairs,
        "loader": loader,
    }


def test_the_report_reads_growth_off_the_corpora_beyond_the_sample() -> None:
    text = report([figures(200_000), figures(500_000), figures(1_000_000)])  # type: ignore[list-item]
    assert "| 1,000,000 | 999,999 |" in text
    assert growth([figures(500_000), figures(1_000_000)]) in text  # type: ignore[list-item]
    assert "40,010 s" in text
    (memory,) = (line for line in text.split("\n") if line.startswith("| peak memory"))
    assert memory.endswith("no growth: 500 MB |")
    assert "at 40,000,000 pairs" not in report([figures(500_000)])  # type: ignore[list-item]


def test_disk_usage_counts_files_below(tmp_path) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b").write_bytes(bytes(10))
    (tmp_path / "c").write_bytes(bytes(5))
    assert disk_usage(tmp_path) == 15
