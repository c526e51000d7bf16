"""A reversal report: whole, in order, and without what it does not have."""

import json
from pathlib import Path

from nmt.analysis import document
from nmt.analysis.comparison.sections import plain
from nmt.analysis.document import Table
from nmt.analysis.reversal.sections import BRIEF, sections
from nmt.analysis.reversal.tree import ARMS, PairResults
from tests.pages import Page
from tests.reversals import pair, reversal

CONTROLS = (
    pair("seq2seq, reversed", -5.0, fall=-4.0, contrast=(-8.0, 0.004)),
    pair("bahdanau", 0.1, 0.6, contrast=(-2.9, 0.01)),
)


def headings(*pairs: PairResults) -> list[str]:
    return [section.heading for section in sections(reversal(*pairs))]


def tables(heading: str, *pairs: PairResults) -> list[Table]:
    (section,) = [section for section in sections(reversal(*pairs)) if section.heading == heading]
    return [block for block in section.blocks if isinstance(block, Table)]


def test_parts_are_there_where_they_can_be(tmp_path: Path) -> None:
    whole = reversal(pair(), *CONTROLS)
    page = Page(document.write("Title", sections(whole), tmp_path)[0].read_text(encoding="utf-8"))
    assert page.texts["h2"] == [
        "In short",
        "The effect",
        "Control: seq2seq, reversed",
        "Control: bahdanau",
        "All side by side",
        "By source length",
        "Time lags",
        "While training",
        "How to do it again",
    ]
    assert len(page.all("svg")) == len(list(tmp_path.glob("*.png"))) == 5
    assert page.texts["th"].count("Sutskever et al.") == 1, "the paper has no such controls"
    assert headings(pair(fall=None)) == [
        *("In short", "The effect", "By source length", "While training", "How to do it again")
    ]
    assert {heading.partition(":")[0] for heading in headings(pair(), *CONTROLS)} >= set(BRIEF)
    json.dumps(plain(whole), allow_nan=False)


def test_controls_stand_beside_the_main_effect() -> None:
    (table,) = tables("All side by side", pair(), *CONTROLS)
    assert table.rows == [
        ["seq2seq, reversed", "logarithm of test perplexity", "+0.800", "-0.200 to +1.800", "0.004"],
        ["seq2seq, reversed", "BLEU 13a, beam 12", "-8.000", "-9.000 to -7.000", "0.004"],
        ["bahdanau", "logarithm of test perplexity", "+0.290", "-0.710 to +1.290", "0.010"],
        ["bahdanau", "BLEU 13a, beam 12", "-2.900", "-3.900 to -1.900", "0.010"],
    ]
    assert tables("All side by side", pair(), pair("bahdanau")) == [], "of other sentences or seeds"


def test_lags_before_and_after() -> None:
    (table,) = tables("Time lags", pair(), *CONTROLS)
    assert table.rows == [
        ["seq2seq", ARMS[0], "10.00", "10.00", "9.00", "11.00", ""],
        ["seq2seq", ARMS[1], "10.00", "6.00", "9.00", "7.00", "+3.00"],
        ["seq2seq, reversed", ARMS[0], "10.00", "2.00", "9.00", "3.00", ""],
        ["seq2seq, reversed", ARMS[1], "10.00", "6.00", "9.00", "7.00", "-5.00"],
    ]


def test_while_training() -> None:
    (table,) = tables("While training", pair())
    assert table.rows == [
        ["seq2seq", ARMS[0], "16.00", "30", "1.667", "1.5"],
        ["seq2seq", ARMS[1], "13.00", "30", "1.667", "1.5"],
    ]


def test_one_seed_has_another_test_and_no_spread() -> None:
    several, one = (document.markdown("Title", sections(reversal(pair(seeds=seeds)))) for seeds in ((1, 2, 3), (1,)))
    assert "Student's t over the seeds" in several
    assert "Student's t" not in one
    assert "one seed, so nothing of what another seed would change is in it" in one
