"""Numbers in digits that contradict each other, and what explains a difference."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.data.numerals import contradict

AGREE = [
    ("no number", "keine Zahl"),
    ("a 15 b", "a quinze b"),  # written out
    ("three people", "3 Personen"),
    ("on 1 January 1998", "le 1er janvier de cette année"),  # left out
    ("1,000 euros", "1.000 Euro"),
    ("1,000 euros", "1 000 euros"),
    ("1,000 euros", "1\u00a0000 euros"),
    ("1,000,000 euros", "1\u202f000\u202f000 euros"),
    ("1,000 francs", "1'000 Franken"),
    ("1,000 francs", "1’000 Franken"),
    ("1000 francs", "1 000 Franken"),
    ("12,34,567 rupees", "1,234,567 Rupien"),
    ("1.5 per cent", "1,5 %"),
    ("1.5 million", "1, 5 million"),
    ("1.5 million", "1 500 000"),
    ("2 billion", "2.000 Millionen"),
    ("0.7 litres", "0,70 Liter"),
    ("page 007", "Seite 7"),
    ("12 and 34", "１２ und ３４"),
    ("12 and 34", "١٢ و ٣٤"),
    ("1,234.5", "١٬٢٣٤٫٥"),
    ("56 rooms", "५६ कमरे"),
    ("at 3 p.m.", "um 15 Uhr"),
    ("at 12.20 a.m.", "um 0.20 Uhr"),
    ("at 2.30 p.m.", "à 14 h 30"),
    ("in the 90s", "in den 1990ern"),
    ("the 1998-9 season", "die Saison 1998-1999"),
    ("the 19th century", "1800-talet"),
    ("in 2018", "ในปี 2561"),
    ("in 2018", "در سال 1397"),
    ("4 February 1999", "4.2.1999"),
    ("4, 5 and 6 of 7", "4,5 und 6 von 7"),
    ("100 200 300", "100, 200 und 300"),
    ("the period 1997-2000", "die Zeit 19972000"),
    ("CO2 falls by 6 per cent", "Kohlendioxid fällt um sechs Prozent"),
    ("CO2 falls by six per cent", "Kohlendioxid fällt um 6 Prozent"),
    ("20 miles", "32 Kilometer"),
    ("it was 80 °F", "es waren 27 °C"),
    ("over 30, 40, 50 or 60 years", "plus de trente, quarante ans"),
    ("in 1998 and 1999", "damals"),
    ("1,000 times", "tausendmal"),
    ("5 people came here yesterday to see the house", "um das Haus zu sehen, kamen gestern fünf von vielleicht 40"),
]

CONTRADICT = [
    ("Article 37", "Artikel 97"),
    ("in 1998", "en 1988"),
    ("Rule 19(1)", "Regel 19(2)"),
    ("the resolution 1284", "die Resolution 1248"),
    ("9 June", "29. Juni"),
    ("5.35 %", "5,3 %"),
    ("5.35 %", "5,36 %"),
    ("1,000 euros", "2.000 Euro"),
    ("٣٤ غرفة", "35 Zimmer"),
    ("he got 3,182 signatures", "er bekam die Unterschriften"),
    ("er bekam die Unterschriften", "he got 3182 signatures"),
    ("budget 2011: 47608950", "das Budget"),
    ("240 million stood at the beginning of the sentence here", "am Ende des Satzes, der hier endet, stehen 420"),
    ("2, 3 and 4", "2, 3 und 5"),
]


@pytest.mark.parametrize(("source", "target"), AGREE)
def test_what_explains_a_difference(source: str, target: str) -> None:
    assert not contradict(source, target)
    assert not contradict(target, source)


@pytest.mark.parametrize(("source", "target"), CONTRADICT)
def test_what_nothing_explains(source: str, target: str) -> None:
    assert contradict(source, target)
    assert contradict(target, source)


NUMBER = st.integers(0, 10**9)


@given(st.lists(NUMBER, max_size=5), st.data())
def test_the_same_numbers_agree_in_any_order_and_grouping(numbers: list[int], data: st.DataObject) -> None:
    """Each written apart from the next, grouped as another language groups."""
    shuffled = data.draw(st.permutations(numbers))
    mark = data.draw(st.sampled_from([",", ".", "'", "’", " ", "\u00a0", "\u202f"]))
    english = "; ".join(f"{number:,}" for number in numbers)
    other = "; ".join(f"{number:,}".replace(",", mark) for number in shuffled)
    plain = " | ".join(map(str, shuffled))
    assert not contradict(english, other)
    assert not contradict(english, plain)
    assert not contradict(other, plain)


@given(st.integers(101, 10**6), st.integers(101, 10**6))
def test_two_large_numbers_agree_only_where_a_rule_says_so(one: int, other: int) -> None:
    small, large = sorted((one, other))
    same = str(one).rstrip("0") == str(other).rstrip("0")
    calendar = small >= 1000 and large - small in (543, 621, 622)
    assert contradict(f"It is {one}.", f"Es ist {other}.") == (not same and not calendar)


@given(st.text(max_size=40), st.text(max_size=40))
def test_any_text_is_judged(source: str, target: str) -> None:
    assert not contradict(source, source)
    if not any(map(str.isdecimal, source + target)):
        assert not contradict(source, target)
    contradict(source, target)


@pytest.mark.parametrize("length", [17, 18, 19, 5000, 100_000])
def test_a_number_may_be_as_long_as_it_likes(length: int) -> None:
    long, other = "12345678" * length, "9" * length
    assert not contradict(f"pi {long[:length]}", f"Pi {long[:length]}")
    assert contradict(f"pi {long[:length]}", f"Pi {other}")
    assert contradict(f"pi {other}", "Pi")


def test_a_table_is_not_judged_however_long_it_is() -> None:
    numbers = [1000 + 7 * i for i in range(20_000)]
    table, another = (" x ".join(str(number + more) for number in numbers) for more in (0, 3))
    assert not contradict(table, another)
    assert not contradict(table, "a table")
    assert contradict("1003 x", "7001 x")
