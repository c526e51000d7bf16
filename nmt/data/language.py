"""Is a sentence in the language it should be in? Identification by ``py3langid``, which only this filter needs.

py3langid (the extra ``language``) is langid.py (Lui and Baldwin 2012: naive Bayes over byte n-grams) with a model of
140 languages inside the package: no download, no torch, the same answer every time.

Identification is unsure of short and mixed text, so a sentence is judged only where it has :data:`MIN_LETTERS` letters,
and is of another language only where one gets a probability of :data:`MIN_PROBABILITY` while its own gets
:data:`MAX_OWN` at most. Languages that short text does not tell apart count as one (Croatian, Bosnian, Serbian;
Malay, Indonesian), and so do varieties (Cantonese is Chinese). Text in no language ("zxx") is in no other one.
"""

import importlib
from functools import cache
from typing import Any

from nmt.data.scripts import base

MIN_LETTERS = 20
MIN_PROBABILITY = 0.5
MAX_OWN = 0.1

_ALIKE = [
    set(group.split())
    for group in (
        "ar ary arz",
        "bs hr sr sh me cnr",
        "ckb ku sdh",
        "da no nb nn",
        "el grc",
        "en pcm",
        "es ext",
        "fa prs",
        "fr gcf gcr",
        "he hbo iw",
        "id ms in",
        "it lij vec",
        "lv ltg",
        "ro mo",
        "tl fil",
        "uz uzs",
        "yi ji",
        "zh yue wuu",
    )
]


class LanguageError(ValueError):
    """The language cannot be identified here; the message says why."""


@cache
def _identifier() -> Any:
    """One for each process: the model takes 70 MB."""
    try:
        langid = importlib.import_module("py3langid.langid")
    except ImportError as error:
        raise LanguageError(
            f"needs the package py3langid, which cannot be imported ({error}): pip install '.[language]'"
        ) from error
    return langid.LanguageIdentifier.from_model_file(langid.MODEL_FILE, norm_probs=True)


def accepted(language: str) -> frozenset[str]:
    """What the identifier may call text in a language.

    Raises:
        LanguageError: it does not know the language, or is not installed.
    """
    code = base(language)
    names = set().union({code}, *(group for group in _ALIKE if code in group)) & set(_identifier().labels)
    if not names:
        raise LanguageError("not among the languages that py3langid tells apart: give its ISO 639-1 code")
    return frozenset(names)


def is_another(text: str, own: frozenset[str]) -> bool:
    """Whether the text is clearly in a language that is none of ``own`` (see :func:`accepted`)."""
    if len(text) < MIN_LETTERS or sum(map(str.isalpha, text)) < MIN_LETTERS:
        return False
    best, probability = _identifier().classify(text)
    if best in own or best == "zxx" or probability < MIN_PROBABILITY:
        return False
    share: float = sum(share for name, share in _identifier().rank(text) if name in own)
    return share <= MAX_OWN
