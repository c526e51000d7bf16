"""Scripts that languages are written in, and how much text of a script makes a word.

Scripts are named as in Unicode (UAX #24); the table holds the languages of WMT, Europarl, OPUS-100 and Multi30k and
others by ISO 639-1 code, or 639-2/3 where there is none. A subtag for a region means nothing here (pt-BR is pt), one
for a script decides alone (sr-Latn, uzn_Cyrl: ISO 15924).
"""

import re
from functools import cache

import regex

_LATIN = (
    "af ak ast ay bcl bi bm br bs ca ceb ch co crh cs csb cy da de dsb ee en eo es et eu fi fil fj fo fr frp fur "
    "fy ga gd gl gn gsc gv ha haw hmn ho hr hsb ht hu ia id ie ig ilo io is it jv kea kg ki kl krl kw la lb lg li "
    "lij liv lmo ln lt ltg lu lv mg mh mi ms mt mwl na nap nb nd nds nl nn no nr nso ny oc olo om pag pam pap pl "
    "pms pt qu rm rn ro roa rw sc scn sco se sg sk sl sm sma smj smn sms sn so sq ss st su sv sw szl tet tl tn to "
    "tpi tr ts tvl tw ty ve vec vep vi vls vo vro wa war wo xh yo za zea zu"
)
_CYRILLIC = "ab av ba be bg bua bxr ce cu cv kbd koi kv ky lez mhr mk mrj myv mdf os ru rue sah tg tt tyv udm uk xal"
_ARABIC = "ar ary arz azb ckb fa glk lrc mzn pnb prs ps ug ur"
_DEVANAGARI = "awa bh bho bgc brx doi dty gom hi hne mag mai mr ne new sa"

SCRIPTS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(_LATIN.split(), ("Latin",)),
    **dict.fromkeys(_CYRILLIC.split(), ("Cyrillic",)),
    **dict.fromkeys(_ARABIC.split(), ("Arabic",)),
    **dict.fromkeys(_DEVANAGARI.split(), ("Devanagari",)),
    **dict.fromkeys(["am", "ti"], ("Ethiopic",)),
    **dict.fromkeys(["as", "bn", "bpy"], ("Bengali",)),
    **dict.fromkeys(["bo", "dz"], ("Tibetan",)),
    **dict.fromkeys(["he", "yi"], ("Hebrew",)),
    **dict.fromkeys(["ka", "xmf"], ("Georgian",)),
    **dict.fromkeys(["zh", "yue", "wuu", "lzh", "hak"], ("Han", "Bopomofo")),
    **dict.fromkeys(["az", "tk"], ("Latin", "Cyrillic", "Arabic")),
    **dict.fromkeys(["me", "cnr", "sh", "sr", "mo", "uz"], ("Latin", "Cyrillic")),
    "dv": ("Thaana",),
    "el": ("Greek",),
    "gu": ("Gujarati",),
    "hy": ("Armenian",),
    "iu": ("Canadian_Aboriginal", "Latin"),
    "ja": ("Han", "Hiragana", "Katakana"),
    "kk": ("Cyrillic", "Latin", "Arabic"),
    "km": ("Khmer",),
    "kn": ("Kannada",),
    "ko": ("Hangul", "Han"),
    "ks": ("Arabic", "Devanagari"),
    "ku": ("Latin", "Arabic"),
    "lo": ("Lao",),
    "ml": ("Malayalam",),
    "mn": ("Cyrillic", "Mongolian"),
    "mni": ("Bengali", "Meetei_Mayek"),
    "my": ("Myanmar",),
    "or": ("Oriya",),
    "pa": ("Gurmukhi", "Arabic"),
    "sat": ("Ol_Chiki",),
    "sd": ("Arabic", "Devanagari"),
    "shn": ("Myanmar",),
    "si": ("Sinhala",),
    "ta": ("Tamil",),
    "te": ("Telugu",),
    "th": ("Thai",),
    "zgh": ("Tifinagh", "Latin"),
}

_MIXED = {"hans": ("Han",), "hant": ("Han",), "jpan": SCRIPTS["ja"], "kore": SCRIPTS["ko"]}

_CHARACTERS_PER_WORD = {
    **dict.fromkeys(["zh", "yue", "wuu", "lzh", "hak"], 1.6),
    "ja": 2.0,
    "th": 4.5,
    "lo": 4.5,
    "km": 5.0,
    **dict.fromkeys(["my", "shn"], 5.5),
    **dict.fromkeys(["bo", "dz"], 6.0),
}
"""Languages written without spaces between words: code points that a word takes, marks counted; rounded means of
segmented text, good to a fifth or so, which a limit on a ratio bears."""


_THREE_LETTERS = {
    **dict.fromkeys(["zho", "cmn"], "zh"),
    "jpn": "ja",
    "tha": "th",
    "lao": "lo",
    "khm": "km",
    "mya": "my",
    "bod": "bo",
    "dzo": "dz",
}
"""Of the languages without spaces, where more than the script depends on the code."""


def base(language: str) -> str:
    """``pt_BR`` -> ``pt``."""
    code = re.split("[-_]", language.lower())[0]
    return _THREE_LETTERS.get(code, code)


def scripts_of(language: str) -> tuple[str, ...] | None:
    """Unicode names of the scripts that a language is written in; None where the table does not say."""
    for tag in re.split("[-_]", language.lower())[1:]:
        if tag in _MIXED:
            return _MIXED[tag]
        if len(tag) == 4 and tag.isalpha():
            try:
                regex.compile(rf"\p{{Script={tag}}}")
            except regex.error:
                return None
            return (tag,)
    return SCRIPTS.get(base(language))


# --- letters ----------------------------------------------------------------------------------------------------------

_NOT_PLAIN_LATIN = re.compile("[^\x00-\u024f\u1e00-\u1eff\u2000-\u206f\u20a0-\u20bf]")
_LETTER = regex.compile(r"\p{L}")


class ForeignLetters:
    """Tells text of which too many letters (general category L) are of scripts that the language is not written in.

    Letters that Unicode gives to no single script (``ー``, ``ʼ``: Common, Inherited) are nowhere foreign.

    Args:
        language: one that :func:`scripts_of` knows.
        limit: the share of foreign letters that is still allowed.
    """

    def __init__(self, language: str, limit: float) -> None:
        self._limit = limit
        scripts = scripts_of(language)
        assert scripts is not None, "checked before"
        own = "".join(rf"\p{{Script={script}}}" for script in (*scripts, "Common", "Inherited"))
        self._latin = {"Latin", "latn"} & set(scripts)
        self._foreign = regex.compile(rf"[\p{{L}}--[{own}]]", regex.V1)

    def over(self, text: str) -> bool:
        """Whether more than the allowed share of the letters is foreign; without letters: no."""
        if self._latin and (text.isascii() or not _NOT_PLAIN_LATIN.search(text)):
            return False
        foreign = len(self._foreign.findall(text))
        return foreign > 0 and foreign > self._limit * len(_LETTER.findall(text))


# --- words ------------------------------------------------------------------------------------------------------------


class Words:
    """Counts words: what stands between white space, and in languages without spaces what the length suggests.

    There, runs of the language's own scripts count as their code points by :data:`_CHARACTERS_PER_WORD`, rounded up;
    what else stands between white space and such runs (names in Latin letters, numbers) counts as one word each,
    punctuation as none.
    """

    def __init__(self, language: str) -> None:
        self._characters = _CHARACTERS_PER_WORD.get(base(language))
        self._language = language

    def __call__(self, text: str) -> tuple[int, list[str]]:
        """How many words (at least 1), and those that white space bounds."""
        words = text.split()
        if self._characters is None or text.isascii():
            return len(words) or 1, words
        run = _own_run(base(self._language))
        characters = sum(map(len, run.findall(text)))
        others = [word for word in run.sub(" ", text).split() if any(map(str.isalnum, word))]
        return (-int(-characters // self._characters) + len(others)) or 1, others


@cache
def _own_run(language: str) -> "regex.Pattern[str]":
    own = "".join(rf"\p{{Script={script}}}" for script in SCRIPTS[language])
    return regex.compile(rf"[{own}\p{{M}}ー々]+")
