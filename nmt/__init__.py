"""Neural machine translation, three architectures head to head.

``seq2seq`` (one fixed vector), ``bahdanau`` (a table read by content) and ``transformer`` (a read in every layer)
share one data pipeline, one training loop, one beam search and one score. Start reading at ``nmt/models/base.py``.

    from nmt import Translator

    for translation in Translator.load("runs/X").translate(["A man is sleeping."], beam_size=5):
        print(translation.text)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_PUBLIC = {
    "Translator": "nmt.translator",
    "Translation": "nmt.translation",
    "Scorer": "nmt.scorer",
    "Alignment": "nmt.alignment",
    "AttentionChoice": "nmt.alignment",
    "SearchConfig": "nmt.config",
    "Sampling": "nmt.config",
}
"""Where each public name lives. It is imported when it is first asked for (PEP 562): torch takes seconds."""

__all__ = ["__version__", *_PUBLIC]

if TYPE_CHECKING:
    from nmt.alignment import Alignment as Alignment
    from nmt.alignment import AttentionChoice as AttentionChoice
    from nmt.config import Sampling as Sampling
    from nmt.config import SearchConfig as SearchConfig
    from nmt.scorer import Scorer as Scorer
    from nmt.translation import Translation as Translation
    from nmt.translator import Translator as Translator


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_PUBLIC[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_PUBLIC})
