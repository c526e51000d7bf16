"""Pictures: no group that says nothing, no empty panel."""

from nmt.analysis.comparison.pictures import cost_picture, groups_picture, with_enough
from tests.comparisons import comparison, groups, text


def test_groups_without_enough_sentences_are_not_drawn() -> None:
    made = groups("words", ("1-10", "11-20", "21-30"), (300, 9, 10), -4.0, 1)
    shown = with_enough(made)
    assert shown.names == ("1-10", "21-30")
    assert shown.sentences == (300, 10)
    for name, scores in shown.scores.items():
        assert scores == (made.scores[name][0], made.scores[name][2])
    few = groups("words", ("1-10", "11-20"), (3, 2), -4.0, 1)
    assert with_enough(few) == few, "rather than nothing at all"
    labels = groups_picture(comparison(), text(), made, "x").figure.axes[0].get_xticklabels()
    assert [label.get_text().split("\n")[0] for label in labels] == ["1-10", "21-30"]


def test_what_is_not_known_of_any_system_has_no_panel() -> None:
    whole = comparison()
    assert len(cost_picture(whole).figure.axes) == 6
    without = {name: cost._replace(peak_memory_mb=None) for name, cost in whole.cost.items()}
    assert len(cost_picture(whole._replace(cost=without)).figure.axes) == 5
