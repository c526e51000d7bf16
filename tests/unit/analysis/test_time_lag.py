"""Time lags: by hand, in the gradients of the model, and what reversal does to them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.analysis.paths import trace_paths
from nmt.analysis.time_lag import Lags, time_lag, time_lags
from nmt.config import Seq2SeqConfig


@pytest.mark.parametrize("reversed_source", [False, True])
def test_the_lag_is_the_path_in_the_model(reversed_source: bool) -> None:
    config = Seq2SeqConfig("seq2seq", 6, 6, 1, 0.0, reversed_source, "none", 0.5)
    paths = trace_paths(config, source_words=4, target_words=3)
    assert paths.from_source == [[time_lag(j, i, 4, reversed_source) for j in range(4)] for i in range(3)]


def test_by_hand() -> None:
    """``a b c EOS | BOS x y``: a is read at step 0, x is chosen at step 4, y at step 5."""
    alignments, lengths = [[(0, 0), (2, 1)], [], [(0, 6), (1, 0)]], [3, 2, 2]
    assert time_lags(alignments, lengths, reversed_source=False) == Lags(
        mean=(3.5 + 5.5) / 2, smallest=(3 + 2) / 2, first_words=(3.5 + 2) / 2, counts={2: 1, 3: 1, 4: 1, 9: 1}
    )
    # ``c b a EOS | BOS x y``: a is read at step 2, one step before EOS.
    assert time_lags(alignments[:1], lengths[:1], reversed_source=True) == Lags(3.5, 2, 3.5, {2: 1, 5: 1})


@given(st.integers(2, 30))
def test_in_a_monotone_alignment_reversal_shortens_the_smallest_lag_and_not_the_mean(words: int) -> None:
    monotone = [[(place, place) for place in range(words)]]
    before, after = (time_lags(monotone, [words], reversed_source) for reversed_source in (False, True))
    assert before.mean == pytest.approx(after.mean)
    assert before.smallest == words + 1
    assert after.smallest == 2
    crossed = [[(words - 1 - place, place) for place in range(words)]]
    assert time_lags(crossed, [words], reversed_source=False).counts == after.counts
    assert time_lags(crossed, [words], reversed_source=True).counts == before.counts


def test_what_cannot_be_measured_is_refused() -> None:
    with pytest.raises(ValueError, match="sentence 2: a link to a word beyond the 2 of its source"):
        time_lags([[(0, 0)], [(2, 0)]], [2, 2], reversed_source=False)
    with pytest.raises(ValueError, match="no sentence has an alignment link"):
        time_lags([[]], [2], reversed_source=False)
