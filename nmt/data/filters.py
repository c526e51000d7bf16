"""Which training pairs are bad enough to leave out: rules that look at one pair at a time.

Each has its key in ``configs/data/filters/*.yaml``; null or false switches it off. They are asked in this order, and
the first that objects gives the reason:

==================  ======================  ============================================================================
reason              key                     objects to
==================  ======================  ============================================================================
``empty``           none: always on         a side of nothing but white space
``too_many_words``  ``max_words``           a side of more words
``ratio``           ``max_ratio``           a side of more than so many times the words of the other
``long_word``       ``max_word_length``     a word of more characters, on either side
``identical``       ``identical``           the same text on both sides, but for case and the amount of white space
``foreign_letters`` ``foreign_letters``     a side of which a larger share of the letters is of a script that its
                                            language is not written in
``numbers``         ``numbers``             numbers in digits that contradict each other
``language``        ``language``            a side that is clearly in another language
==================  ======================  ============================================================================

A word is what stands between white space; languages that write none between words (Chinese, Japanese, Thai, ...) have
their characters counted instead (:class:`nmt.data.scripts.Words`). What contradicts stands in :mod:`nmt.data.numerals`,
what is clear in :mod:`nmt.data.language`, the scripts in :mod:`nmt.data.scripts`.

Where they come from: limits on words, on their ratio and on a word's characters are those of Moses'
``clean-corpus-n.perl`` (Koehn et al. 2007), which counts alike (unless told a ratio of 9 and 1000 characters); the share
of a script and the numbers have their like in OpusFilter (Aulamo et al. 2020: CharacterScoreFilter,
NonZeroNumeralsFilter); rules like these, identical sides and language identification among them, are the hard rules of
Bicleaner (Sánchez-Cartagena et al. 2018) and the first step of many systems of the WMT corpus filtering tasks (Koehn et
al. 2018, 2020). Copied sides hurt a model most of all the noise that Khayrallah and Koehn (2018) tried.
"""

from collections.abc import Sequence

from nmt.config import ConfigError, FilterConfig
from nmt.data.corpus import is_blank
from nmt.data.language import LanguageError, accepted, is_another
from nmt.data.numerals import contradict
from nmt.data.scripts import ForeignLetters, Words, base, scripts_of


def check_filters(config: FilterConfig, source: str, target: str) -> None:
    """Refuse, before any text is read, what cannot work.

    Raises:
        ConfigError: a limit that no pair passes, a language whose script or identity nothing here knows, a missing
            package; names the key.
    """
    for key, value in (("max_words", config.max_words), ("max_word_length", config.max_word_length)):
        if value is not None and value < 1:
            raise ConfigError(f"data.filters.{key}: expected at least 1 or null, found {value}")
    if config.max_ratio is not None and not config.max_ratio >= 1:
        raise ConfigError(f"data.filters.max_ratio: expected at least 1 or null, found {config.max_ratio}")
    share = config.foreign_letters
    if share is not None and not 0 <= share < 1:
        raise ConfigError(f"data.filters.foreign_letters: expected at least 0 and below 1, or null, found {share}")
    for side, language in (("source", source), ("target", target)):
        if share is not None and scripts_of(language) is None:
            raise ConfigError(
                f"data.filters.foreign_letters: the script of data.{side}={language!r} is not known here; write it "
                f"behind the code, such as {base(language)[:3]}-Latn, or set data.filters.foreign_letters=null"
            )
        if config.language:
            try:
                accepted(language)
            except LanguageError as error:
                raise ConfigError(
                    f"data.filters.language: data.{side}={language!r}: {error}, or set data.filters.language=false"
                ) from error


def describe(config: FilterConfig) -> dict[str, str]:
    """What each reason of the filters that are switched on means, in their order, for the table of a report."""
    words = {"empty": "an empty side"}
    if config.max_words is not None:
        words["too_many_words"] = f"over {config.max_words} words a side"
    if config.max_ratio is not None:
        words["ratio"] = f"one side over {config.max_ratio:g} times as many words as the other"
    if config.max_word_length is not None:
        words["long_word"] = f"a word over {config.max_word_length} characters"
    if config.identical:
        words["identical"] = "the same text on both sides"
    if config.foreign_letters is not None:
        words["foreign_letters"] = f"over {config.foreign_letters:.0%} of a side's letters of another script"
    if config.numbers:
        words["numbers"] = "numbers that contradict each other"
    if config.language:
        words["language"] = "a side in another language"
    return words


class Filters:
    """The filters of a configuration for a language pair; holds no state, so that any process may ask a copy.

    Raises:
        ConfigError: as :func:`check_filters`.
    """

    def __init__(self, config: FilterConfig, source: str, target: str) -> None:
        check_filters(config, source, target)
        self._config = config
        self._words = (Words(source), Words(target))
        share = config.foreign_letters
        self._letters = None if share is None else (ForeignLetters(source, share), ForeignLetters(target, share))
        self._accepted = (accepted(source), accepted(target)) if config.language else None

    def reasons(self, texts: Sequence[tuple[str, str]]) -> list[str | None]:
        """For each cleaned pair the first reason why training leaves it out; None: it stays."""
        return [self._reason(source, target) for source, target in texts]

    def _reason(self, source: str, target: str) -> str | None:
        if is_blank(source) or is_blank(target):
            return "empty"
        config = self._config
        source_count, source_words = self._words[0](source)
        target_count, target_words = self._words[1](target)
        more, fewer = max(source_count, target_count), min(source_count, target_count)
        if config.max_words is not None and more > config.max_words:
            return "too_many_words"
        if config.max_ratio is not None and more > config.max_ratio * fewer:
            return "ratio"
        longest = config.max_word_length
        if longest is not None and (_longer(source, source_words, longest) or _longer(target, target_words, longest)):
            return "long_word"
        if config.identical and _same(source, target):
            return "identical"
        if self._letters and (self._letters[0].over(source) or self._letters[1].over(target)):
            return "foreign_letters"
        if config.numbers and contradict(source, target):
            return "numbers"
        if self._accepted and (is_another(source, self._accepted[0]) or is_another(target, self._accepted[1])):
            return "language"
        return None


def _longer(text: str, words: list[str], limit: int) -> bool:
    return len(text) > limit and max(map(len, words), default=0) > limit


def _same(source: str, target: str) -> bool:
    first, other = source.lstrip()[0].casefold(), target.lstrip()[0].casefold()  # one "ß" may be two letters
    return first[0] == other[0] and _folded(source) == _folded(target)


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold()
