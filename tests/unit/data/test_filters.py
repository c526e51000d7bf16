"""Which pairs the filters drop and why, each at its boundary and switched off."""

import pickle
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.config import CONFIG_DIR, ConfigError, FilterConfig, parse
from nmt.data.filters import Filters, check_filters, describe

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n"), max_size=40)
WORDS = st.lists(st.sampled_from(["a", "ß", "SS", "Straße", "12", "один", "x" * 9, "\u3000", "."]), max_size=8)


def shipped(name: str) -> dict[str, Any]:
    tree = yaml.safe_load((CONFIG_DIR / "data" / "filters" / f"{name}.yaml").read_text(encoding="utf-8"))
    return dict(tree)


def config(base: str = "none", **changes: Any) -> FilterConfig:
    return parse(FilterConfig, shipped(base) | changes, "data.filters")


def reason(source: str, target: str, languages: tuple[str, str] = ("en", "de"), **changes: Any) -> str | None:
    (found,) = Filters(config(**changes), *languages).reasons([(source, target)])
    return found


# --- each filter ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("source", "target"), [("", "b"), ("a", ""), (" \t\u00a0", "b"), ("a", "\u3000"), ("", "")])
def test_an_empty_side_is_dropped_whatever_is_switched_on(source: str, target: str) -> None:
    assert reason(source, target) == "empty"
    assert reason(source, target, base="clean") == "empty"


@pytest.mark.parametrize("swap", [False, True])
@pytest.mark.parametrize(
    ("changes", "kept", "dropped", "why"),
    [
        ({"max_words": 3}, ("a b c", "d e f"), ("a b  c\u00a0d", "d e f"), "too_many_words"),
        ({"max_ratio": 2.0}, ("a b", "c d e f"), ("a b", "c d e f g"), "ratio"),
        ({"max_ratio": 1.5}, ("a b", "c d e"), ("a b", "c d e f"), "ratio"),
        ({"max_word_length": 5}, ("aaaaa bbbbb", "c"), ("a bbbbbb", "c"), "long_word"),
        ({"identical": True}, ("The  end.", "The End"), ("The  End. ", " the end."), "identical"),
        ({"identical": True}, ("Straße a", "STRASSE"), ("Straße", "STRASSE"), "identical"),
        ({"identical": True}, ("ßa", "sb"), ("ß", "SS"), "identical"),
        ({"foreign_letters": 0.5}, ("abcжжж", "x"), ("abжжж", "x"), "foreign_letters"),
        ({"foreign_letters": 0.0}, ("a 12 !", "x"), ("a世", "x"), "foreign_letters"),
        ({"numbers": True}, ("Article 37", "Artikel 37"), ("Article 37", "Artikel 97"), "numbers"),
    ],
)
def test_a_limit_keeps_what_reaches_it_and_drops_what_passes_it(
    changes: dict[str, Any], kept: tuple[str, str], dropped: tuple[str, str], why: str, swap: bool
) -> None:
    step = -1 if swap else 1
    languages = ("en", "de")[::step]
    assert reason(*kept[::step], languages, **changes) is None  # type: ignore[arg-type]
    assert reason(*dropped[::step], languages, **changes) == why  # type: ignore[arg-type]
    assert reason(*dropped[::step], languages) is None  # type: ignore[arg-type]
    assert list(describe(config(**changes))) == ["empty", why]


def test_the_shipped_filters_keep_ordinary_pairs() -> None:
    pairs = [
        ("The sitting was closed at 8.25 p.m.", "Die Sitzung wird um 20.25 Uhr geschlossen."),
        ("Of course!", "Natürlich!"),
        ("Three people ride 2 bicycles through the city.", "Drei Personen fahren auf zwei Rädern durch die Stadt."),
        ("It cost 1,234.50 euros in 1998.", "Es kostete 1998 1.234,50 Euro."),
    ]
    assert Filters(config("clean"), "en", "de").reasons(pairs) == [None] * len(pairs)


def test_the_first_filter_that_objects_gives_the_reason() -> None:
    """One pair that all object to, and the filters switched off from the front."""
    languages = ("en", "ru")
    pair = (" ".join(["x" * 9] * 5), "Abc")
    everything = {"max_words": 4, "max_ratio": 2.0, "max_word_length": 8, "foreign_letters": 0.1, "numbers": True}
    expected = ["too_many_words", "ratio", "long_word", "foreign_letters"]
    for why, key in zip(expected, list(everything), strict=False):
        assert reason(*pair, languages, **everything) == why
        everything[key] = None
    assert reason(*pair, languages, **everything) is None
    copy = ("Article 37", "ARTICLE 37")
    assert reason(*copy, languages, identical=True, foreign_letters=0.1) == "identical"
    assert reason("Article 37", "Art 97", languages, foreign_letters=0.1, numbers=True) == "foreign_letters"


def test_reasons_come_in_the_order_in_which_they_are_described() -> None:
    order = ["empty", "too_many_words", "ratio", "long_word", "identical", "foreign_letters", "numbers", "language"]
    assert list(describe(config("clean", language=True))) == order
    assert list(describe(config())) == ["empty"]
    assert "over 7 words" in describe(config(max_words=7))["too_many_words"]


# --- against the obvious --------------------------------------------------------------------------------------------


def obvious(settings: FilterConfig, source: str, target: str) -> str | None:
    """Moses' rules and the comparison of sides, for languages with spaces."""
    left, right = source.split(), target.split()
    if not left or not right:
        return "empty"
    if len(left) > settings.max_words or len(right) > settings.max_words:  # type: ignore[operator]
        return "too_many_words"
    if len(left) / len(right) > settings.max_ratio or len(right) / len(left) > settings.max_ratio:  # type: ignore[operator]
        return "ratio"
    if [word for word in left + right if len(word) > settings.max_word_length]:  # type: ignore[operator]
        return "long_word"
    same = [word.casefold() for word in left] == [word.casefold() for word in right]
    return "identical" if same else None


@settings(deadline=None, max_examples=300)
@given(WORDS, WORDS, st.sampled_from([" ", "  ", "\t"]), st.booleans())
def test_words_and_copies_as_the_obvious_rules_have_them(
    left: list[str], right: list[str], space: str, copy: bool
) -> None:
    rules = config(max_words=6, max_ratio=2.0, max_word_length=8, identical=True)
    source = space.join(left)
    target = source.swapcase() if copy else " ".join(right)
    assert Filters(rules, "en", "de").reasons([(source, target)]) == [obvious(rules, source, target)]


@settings(deadline=None)
@given(st.lists(st.tuples(TEXT, TEXT), max_size=6), st.sampled_from([("en", "de"), ("ja", "ru"), ("th", "sr")]))
def test_any_text_gets_a_described_reason_or_none_and_a_pair_at_a_time_the_same(
    pairs: list[tuple[str, str]], languages: tuple[str, str]
) -> None:
    rules = config("clean")
    filters = Filters(rules, *languages)
    found = filters.reasons(pairs)
    assert found == [filters.reasons([pair])[0] for pair in pairs]
    assert set(found) <= {None, *describe(rules)}
    again = pickle.loads(pickle.dumps(filters))
    assert again.reasons(pairs) == found


# --- configuration ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "bad", "good"),
    [
        ("max_words", [0, -3], [1]),
        ("max_ratio", [0.99, -1.0, float("nan")], [1.0]),
        ("max_word_length", [0], [1]),
        ("foreign_letters", [-0.1, 1.0, float("nan")], [0.0, 0.99]),
    ],
)
def test_a_limit_that_makes_no_sense_is_refused_by_name(key: str, bad: list[Any], good: list[Any]) -> None:
    for value in bad:
        with pytest.raises(ConfigError, match=rf"^data\.filters\.{key}: .*found {value}"):
            Filters(config(**{key: value}), "en", "de")
    for value in [*good, None]:
        check_filters(config(**{key: value}), "en", "de")


@pytest.mark.parametrize(("source", "target", "side"), [("tlh", "de", "source"), ("en", "en-Klng", "target")])
def test_a_language_of_unknown_script_is_refused_only_where_scripts_matter(source: str, target: str, side: str) -> None:
    with pytest.raises(ConfigError, match=rf"^data\.filters\.foreign_letters: .*data\.{side}=.*-Latn.*null$"):
        check_filters(config("clean"), source, target)
    check_filters(config("clean", foreign_letters=None), source, target)


def test_a_script_behind_an_unknown_code_is_a_way_out() -> None:
    filters = Filters(config("clean"), "tlh-Latn", "de")
    assert filters.reasons([("nuqneH qaH", "Guten Tag"), ("нукнех ках", "Guten Tag")]) == [None, "foreign_letters"]
