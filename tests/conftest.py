"""What tests of several folders ask for by name."""

import pytest
from matplotlib.figure import Figure

from nmt.training import trainer


@pytest.fixture
def quick_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawing takes longer than training a tiny model does, and is no part of what is tested."""
    monkeypatch.setattr(trainer, "attention_figure", lambda *arguments: Figure(figsize=(1, 1)))
