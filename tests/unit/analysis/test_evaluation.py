"""Which sentences are the longest, and tables that line up."""

from nmt.analysis.evaluation import ParallelText, TextBatches, longest_quarter
from nmt.analysis.report import markdown_table
from nmt.data.tokenizer import TokenizerPair
from nmt.tokens import EOS
from tests.fakes import WordTokenizer


def test_longest_quarter_takes_the_earlier_of_equal_length() -> None:
    words = [3, 5, 5, 1, 5, 9, 2, 5]
    sources = [" ".join(["w"] * count) for count in words]
    assert longest_quarter(sources) == [1, 5]  # 9 words, and the first of those with 5
    assert longest_quarter(sources[:7]) == [1, 5]  # 7 / 4 rounded up
    assert longest_quarter(["one word  two\tthree", "a b"]) == [0]
    assert longest_quarter([""]) == [0]


def test_text_batches_hold_every_pair_once_within_the_budget() -> None:
    words = [f"w{i}" for i in range(9)]
    tokenizer = WordTokenizer(words)
    counts = [(1, 5), (4000, 2), (0, 0), (3, 3), (9000, 1), (2, 1500), (7, 7)]
    text = ParallelText("x", [" ".join(["w1"] * s) for s, _ in counts], [" ".join(["w2"] * t) for _, t in counts], {})
    batches = list(TextBatches(TokenizerPair(tokenizer, tokenizer), text).batches(0))  # type: ignore[arg-type]
    seen = [int(i) for batch in batches for i in batch.indices]
    assert sorted(seen) == list(range(len(counts)))
    for batch in batches:
        assert len(batch.indices) == 1 or max(batch.source.numel(), batch.target_out.numel()) <= 4096
        for row, place in enumerate(batch.indices.tolist()):
            assert batch.source_lengths[row] == counts[place][0] + 1
            assert batch.target_lengths[row] == counts[place][1] + 1
            assert batch.target_out[row, counts[place][1]] == EOS


def test_markdown_columns_line_up() -> None:
    text = markdown_table(["run", "BLEU"], [["a|b", "1.0"], ["中文", "100.0"]], left=(0,))
    assert text.split("\n") == [
        "| run  |  BLEU |",
        "| ---- | ----: |",
        "| a\\|b |   1.0 |",
        "| 中文 | 100.0 |",
    ]
