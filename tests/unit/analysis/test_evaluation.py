"""Which sentences are the longest, and tables that line up."""

from nmt.analysis.evaluation import longest_quarter
from nmt.analysis.report import markdown_table


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
