"""What is asked for again, how often and after how long; requests against a server come in tests/faults."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from types import SimpleNamespace
from typing import Any

import pytest

from nmt.data import hub_http
from nmt.data.corpus import DataError
from nmt.data.hub_http import ATTEMPTS, GaveUpError, ShortAnswerError, patiently


class AnswerError(Exception):
    """Like the libraries' own: with a response."""

    def __init__(self, status: int, **headers: str) -> None:
        super().__init__(f"status {status}")
        self.response = SimpleNamespace(
            status_code=status, headers={name.replace("_", "-"): value for name, value in headers.items()}
        )


class TransportError(Exception):
    """Named as httpx names what fails below HTTP."""


class Waits:
    """Collects log lines and pauses instead of sleeping."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.announced: list[float] = []
        self.slept: list[float] = []

    def tell(self, line: str, seconds: float) -> None:
        self.lines.append(line)
        self.announced.append(seconds)


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> Waits:
    made = Waits()
    monkeypatch.setattr(hub_http.time, "sleep", made.slept.append)
    return made


def failing(*errors: Exception | None) -> Any:
    """Raises these one call after the other; None: an answer."""
    left: Iterator[Exception | None] = iter(errors)

    def attempt() -> str:
        error = next(left)
        if error is not None:
            raise error
        return "answer"

    return attempt


PASSING: list[Exception] = [
    *(AnswerError(status) for status in (408, 425, 429, 500, 502, 503, 504)),
    ShortAnswerError("3 of 5"),
    ConnectionResetError("reset"),
    TimeoutError("timed out"),
    TransportError("peer closed"),
]


@pytest.mark.parametrize("error", PASSING, ids=str)
def test_what_fails_in_passing_is_asked_for_again_with_growing_pauses(waits: Waits, error: Exception) -> None:
    assert patiently("file", failing(error, error, error, None), waits.tell) == "answer"
    assert waits.slept == waits.announced == [1.0, 2.0, 4.0]
    assert [line.split(":")[0] for line in waits.lines] == ["file"] * 3
    assert "attempt 2 of 6, the next in 2 s" in waits.lines[1]


@pytest.mark.parametrize("error", PASSING, ids=str)
def test_it_is_given_up_after_a_bounded_number_of_attempts(waits: Waits, error: Exception) -> None:
    with pytest.raises(GaveUpError, match=rf"file: .*{ATTEMPTS} attempts"):
        patiently("file", failing(*[error] * ATTEMPTS), waits.tell)  # one more would be StopIteration
    assert len(waits.slept) == ATTEMPTS - 1


@pytest.mark.parametrize(
    "error", [AnswerError(404), AnswerError(401), DataError("no"), ValueError("x"), FileNotFoundError("x")], ids=str
)
def test_what_does_not_pass_is_raised_at_once(waits: Waits, error: Exception) -> None:
    with pytest.raises(type(error)) as caught:
        patiently("file", failing(error), waits.tell)
    assert caught.value is error
    assert waits.slept == []


def test_the_server_says_how_long_to_stay_away(waits: Waits) -> None:
    then = format_datetime(datetime.now(UTC) + timedelta(seconds=100), usegmt=True)
    answers = [AnswerError(429, Retry_After=value) for value in ("7", then, "0", "nonsense")]
    assert patiently("file", failing(*answers, None), waits.tell) == "answer"
    assert waits.slept[0] == 7
    assert 90 < waits.slept[1] < 101
    assert waits.slept[2:] == [4.0, 8.0]  # our own pause is the least


def test_too_long_is_given_up_at_once(waits: Waits) -> None:
    with pytest.raises(GaveUpError, match="HTTP 429, to be tried again in 3600 s"):
        patiently("file", failing(AnswerError(429, Retry_After="3600")), waits.tell)
    assert waits.slept == []


def test_pauses_are_real(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub_http, "FIRST_PAUSE", 0.05)
    begin = time.monotonic()
    patiently("file", failing(TimeoutError("x"), TimeoutError("x"), None), lambda line, seconds: None)
    assert time.monotonic() - begin > 0.14
