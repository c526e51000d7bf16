"""Language identification: what it drops, what it leaves alone, and how it is asked for."""

import subprocess
import sys

import pytest

from nmt.config import ConfigError
from nmt.data import language
from nmt.data.filters import Filters, check_filters
from nmt.data.language import LanguageError, accepted, is_another
from tests.unit.data.test_filters import config

ENGLISH = "The committee has not yet been able to agree on the wording of the second paragraph."
GERMAN = "Der Ausschuss konnte sich noch nicht auf den Wortlaut des zweiten Absatzes einigen."
FRENCH = "La commission n'est pas encore parvenue à se mettre d'accord sur le texte du paragraphe."


def test_a_side_in_another_language_is_dropped_and_only_when_asked() -> None:
    pairs = [(ENGLISH, GERMAN), (GERMAN, ENGLISH), (ENGLISH, FRENCH), (FRENCH, GERMAN), (ENGLISH.upper(), GERMAN)]
    assert Filters(config(language=True), "en", "de").reasons(pairs) == [None, "language", "language", "language", None]
    assert Filters(config(), "en", "de").reasons(pairs) == [None] * len(pairs)


def test_short_text_is_not_judged() -> None:
    own = accepted("en")
    letters = "Das ist nicht wahr Leute"  # 20 letters
    assert sum(map(str.isalpha, letters)) == language.MIN_LETTERS
    assert is_another(letters, own)
    assert not is_another(letters.removesuffix("e"), own)
    assert not is_another(letters.removesuffix("e") + " 1234567890 !!!", own)


class Identifier:
    """Says what it is told; every language it did not name shares nothing."""

    def __init__(self, **shares: float) -> None:
        self.shares = sorted(shares.items(), key=lambda item: -item[1])

    def classify(self, text: str) -> tuple[str, float]:
        return self.shares[0]

    def rank(self, text: str) -> list[tuple[str, float]]:
        return self.shares


@pytest.mark.parametrize(
    ("shares", "another"),
    [
        ({"de": 0.5, "en": 0.1}, True),
        ({"de": 0.49, "en": 0.1}, False),
        ({"de": 0.5, "en": 0.11}, False),
        ({"de": 0.8, "en": 0.06, "pcm": 0.06}, False),  # what counts as English is added up
        ({"en": 0.9, "de": 0.05}, False),
        ({"pcm": 0.9, "en": 0.05}, False),
        ({"zxx": 0.9, "en": 0.05}, False),
    ],
)
def test_only_a_clear_margin_counts(monkeypatch: pytest.MonkeyPatch, shares: dict[str, float], another: bool) -> None:
    monkeypatch.setattr(language, "_identifier", lambda: Identifier(**shares))
    assert is_another(ENGLISH, frozenset({"en", "pcm"})) == another


def test_languages_that_nobody_tells_apart_count_as_one() -> None:
    assert {"hr", "sr", "bs"} <= accepted("hr") == accepted("sh")
    assert accepted("nb") == accepted("no")
    assert {"zh", "yue"} <= accepted("zh-TW")
    assert accepted("de") == {"de"}


def test_an_unknown_language_is_refused_by_name() -> None:
    with pytest.raises(ConfigError, match=r"^data\.filters\.language: data\.target='tlh': .*language=false$"):
        check_filters(config(language=True), "en", "tlh")
    check_filters(config(), "en", "tlh")


def test_a_missing_package_is_one_error_with_the_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "py3langid.langid", None)  # as if it were not installed
    language._identifier.cache_clear()
    with pytest.raises(LanguageError, match="py3langid"):
        accepted("en")
    with pytest.raises(ConfigError) as caught:
        check_filters(config(language=True), "en", "de")
    assert str(caught.value).startswith("data.filters.language: ")
    assert "pip install '.[language]'" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_package_is_loaded_only_when_language_is_asked_for() -> None:
    code = (
        "import sys; from tests.unit.data.test_filters import config; from nmt.data.filters import Filters; "
        "f = Filters(config('clean'), 'en', 'de'); f.reasons([('a dog', 'ein Hund')]); "
        "assert not [name for name in sys.modules if 'langid' in name]"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
