"""Repetition: n-grams that their own line has had before."""

import pytest

from nmt.evaluation.repetition import repeated_share


@pytest.mark.parametrize(
    ("lines", "share"),
    [
        (["a b c d e f"], 0.0),
        (["a a a a a a"], 2 / 3),  # three 4-grams, all the same
        (["a b a b a b a"], 2 / 4),  # abab, baba, abab, baba
        (["a b c d", "a b c d"], 0.0),  # another line's
        (["A b c d a B c d"], 1 / 5),
        (["a b c"], 0.0),
        ([], 0.0),
        (["a a a a a a", "a b c d e f g"], 2 / 7),  # over all lines together
    ],
)
def test_share_of_n_grams_that_come_again(lines: list[str], share: float) -> None:
    assert repeated_share(lines) == pytest.approx(share)


def test_the_order_of_the_n_grams_can_be_chosen() -> None:
    assert repeated_share(["a b a c a"], order=1) == pytest.approx(2 / 5)
