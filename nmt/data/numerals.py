"""Do the numbers in digits of a sentence and of its translation contradict each other?

A translator may write a number out ("15" / "quinze"), add or leave out a year, change the clock or the unit: comparing
digit strings alone would call many good pairs bad. Here a pair contradicts itself only where

- each side has a number that nothing on the other explains, and the two stand at about the same place (a fifth of the
  sentence apart at most: "Article 37" / "article 97") or both are over 100: another small number may be written out; or
- one side has a number that nobody writes out: four or more digits without the zeros at its end, and no year
  ("3,182" / nothing).

What explains a number, tried in this order:

1. The same digits. Separators do not count, so that 1,000, 1.000, 1 000, 1'000 and 1000 are one number, and 1.5 and 1,5
   (and 15: the point is not read). Leading zeros do not count; digits of every script do (１, ١, १: Unicode class Nd).
2. The same digits but for zeros at the end: 1.5 million / 1 500 000, 0.7 / 0.70.
3. The clock, 3 p.m. / 15 h; a year's end, the 90s / 1990, 1998-9 / 1998-1999; a century, the 19th / 1800-talet; a year
   of the Thai (543 more) or the Persian calendar (621 or 622 less).
4. A part of a number that the other side writes apart: 4.2.1999 / 4 February 1999.

Zeros alone explain nothing and need no explanation, nor do digits behind a letter (CO2). Where a side names an imperial
unit (20 miles / 32 km, 80 °F), numbers that differ contradict nothing, nor where a side is a table of over 200 numbers.

OpusFilter's NonZeroNumeralsFilter compares the digits without zeros by their similarity; here a pair agrees or not.
"""

import re
import unicodedata
from collections import Counter

_DIGIT = re.compile(r"\d")
_OTHER_DIGIT = re.compile(r"(?![0-9])\d")
_RUN = re.compile(r"[0-9]+")
# A separator stands between digits; a comma may have a space behind it ("1, 5 million"); a space of any kind groups
# three. What is joined wrongly ("4, 5 and 6") comes apart again in step 4.
_NUMBER = re.compile(r"(?<![^\W_])[0-9]+(?:[.'’·٫٬．，][0-9]+|, ?[0-9]+|[\u0020\u00a0\u2009\u202f][0-9]{3}(?![0-9]))*")
_GROUPED = re.compile(r"[0-9]{1,3}(?:[^0-9][0-9]{3})+")
_IMPERIAL = re.compile(
    r"\b(?:miles?|mph|gallons?|acres?|feet|foot|ft|inch(?:es)?|yards?|pounds?|lbs?|ounces?|oz|stone|fahrenheit)\b"
    r"|° ?F\b",
    re.IGNORECASE,
)
_CALENDARS = (543, 621, 622)  # years apart
_NEAR = 0.2  # of the sentence
_TABLE = 200  # numbers: more are not compared with each other, which takes the square of their number
_LONG = 18  # digits: longer numbers are larger than all that rules ask for, and may be too long for an int


def contradict(source: str, target: str) -> bool:
    """Whether the numbers of a pair contradict each other, as the module says."""
    if not (_DIGIT.search(source) or _DIGIT.search(target)):
        return False
    source, target = _ascii_digits(source), _ascii_digits(target)
    if "".join(_RUN.findall(source)) == "".join(_RUN.findall(target)):
        return False
    left, right = _NUMBER.findall(source), _NUMBER.findall(target)
    if max(len(_runs(left)), len(_runs(right))) > _TABLE:
        return False
    left, right = _unexplained(left, right)
    if left and right:  # numbers that were joined on one side only: look at their parts
        left, right = _unexplained(_runs(left), _runs(right))
    if not (left and right):
        return any(_never_written_out(number) for number in left or right)
    if _significant("".join(_digits(left))) == _significant("".join(_digits(right))):
        return False
    if _IMPERIAL.search(source) or _IMPERIAL.search(target):
        return False
    if all(any(_value(number) > 100 for number in _digits(side)) for side in (left, right)):
        return True
    return any(abs(one - other) <= _NEAR for one in _positions(source, left) for other in _positions(target, right))


def _never_written_out(number: str) -> bool:
    parts = [number] if _GROUPED.fullmatch(number) else _RUN.findall(number)
    return any(len(_significant(part)) > 3 and not _like_a_year(_value(part)) for part in _digits(parts))


def _positions(text: str, numbers: list[str]) -> list[float]:
    """Where the numbers stand in the text, from 0 to 1."""
    return [match.start() / len(text) for match in _NUMBER.finditer(text) for n in numbers if n in match[0]]


def _ascii_digits(text: str) -> str:
    if text.isascii():
        return text
    return _OTHER_DIGIT.sub(lambda match: str(unicodedata.decimal(match[0])), text)


def _runs(numbers: list[str]) -> list[str]:
    return [run for number in numbers for run in _RUN.findall(number)]


def _digits(numbers: list[str]) -> list[str]:
    """Only the digits, without leading zeros; numbers of zeros alone go."""
    bare = ("".join(_RUN.findall(number)).lstrip("0") for number in numbers)
    return [number for number in bare if number]


def _unexplained(left: list[str], right: list[str]) -> tuple[list[str], list[str]]:
    """What of each side no number of the other explains, in order and as written; a number explains one at most."""
    left, right = _unmatched(left, right)
    for one in list(left):
        for other in right:
            if _alike(*_digits([one]), *_digits([other])):
                left.remove(one)
                right.remove(other)
                break
    return left, right


def _unmatched(left: list[str], right: list[str]) -> tuple[list[str], list[str]]:
    """Without the numbers that both sides hold, and without zeros."""
    left, right = [n for n in left if _digits([n])], [n for n in right if _digits([n])]
    keys = [[_digits([number])[0] for number in side] for side in (left, right)]
    both = Counter(keys[0]) & Counter(keys[1])
    rest: list[list[str]] = []
    for side, side_keys in zip((left, right), keys, strict=True):
        shared, kept = Counter(both), []
        for number, key in zip(side, side_keys, strict=True):
            if shared[key]:
                shared[key] -= 1
            else:
                kept.append(number)
        rest.append(kept)
    return rest[0], rest[1]


def _significant(number: str) -> str:
    return number.rstrip("0")


def _value(number: str) -> int:
    """Of bare digits; of long ones a number as large."""
    return int(number) if len(number) <= _LONG else 10**_LONG


def _like_a_year(number: int) -> bool:
    return 1000 <= number <= 2100


def _alike(one: str, other: str) -> bool:
    """Steps 2 and 3 for two numbers in bare digits."""
    if _significant(one) == _significant(other):
        return True
    small, large = sorted((_value(one), _value(other)))
    if small <= 12 and large == small + 12:
        return True
    if small >= 1000 and large - small in _CALENDARS:
        return True
    end = large % 10 == small or large % 100 == small
    century = large % 100 == 0 and small == large // 100 + 1
    return _like_a_year(large) and (end or century)
