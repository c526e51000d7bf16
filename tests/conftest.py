"""What tests of several folders ask for by name."""

import signal

import pytest
from matplotlib.figure import Figure

from nmt.training import trainer

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell that runs the tests in the background (`make test &`) has Ctrl-C ignored, and every process that a test
    # starts would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def quick_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawing takes longer than training a tiny model does, and is no part of what is tested."""
    monkeypatch.setattr(trainer, "attention_figure", lambda *arguments: Figure(figsize=(1, 1)))
