"""Official development and test sets: how many sentences they have, and what their text is.

Scores on these sets are compared with published ones, so they have to be the published sets. What is read, from the Hub
or from a copy in a folder, is held against the table here:

- **Another number of sentences is an error.** A truncated set gives a score that looks like any other.
- **Another text is a loud warning** and stands in the report. Publishers re-encode: white space at the ends, entities,
  quotation marks. The sentences are still those of the set, and refusing them would leave many copies unusable; but
  BLEU on such a text need not be the BLEU on the official one.

The numbers are those of the publishers' cards; hashes (SHA-256 of the UTF-8 text, ``\\n`` behind every sentence) are
given where the raw text was at hand to compute them. What is not known for sure is not in the table, and not checked.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from nmt.config import HubData
from nmt.data.corpus import Corpus, DataError, Reader, TextPair

_NO_HASHES: Mapping[str, str] = {}


class OfficialSet(NamedTuple):
    """A set by its name in the literature, which is also that of its files in a folder."""

    name: str
    sentences: int
    sha256: Mapping[str, str] = _NO_HASHES  # by language


def _wmt(development: tuple[str, int], test: tuple[str, int] | None) -> dict[str, OfficialSet]:
    sets = {"validation": OfficialSet(*development)}
    return sets if test is None else sets | {"test": OfficialSet(*test)}


_WMT14_FR_EN = {
    "validation": OfficialSet(
        "newstest2013",
        3000,
        {
            "en": "ace268a1d9724ca76f6d8e5c720ffdc08f01bdce45630ed8b269dc7918e1c16e",
            "fr": "909b63be5df3eb8c13e1d5967bf3f0adfdb9f6ed5e638c5bffff563ee2ff7f41",
        },
    ),
    "test": OfficialSet(
        "newstest2014",
        3003,
        {
            "en": "9a12cb6e8efb3509ebede627e4a9c83ee64935509d561ff70f4b7bd5f93f6096",
            "fr": "2bd07dc204f965bf88e90adb6223a8cb850f9bf9840df6af1f4945195936656e",
        },
    ),
}

_MULTI30K = {
    "validation": OfficialSet(
        "val",
        1014,
        {
            "en": "1f2a23d992769b5b3d209b0a10dd0b77c08cceb1f20dfb97ed0aafa49d107227",
            "de": "660e09eb7e1da2f856ea13ee5ad3cf6d36b3d5b0b733c857e94c5747a3dfc660",
            "fr": "5304e444d842e962b2dda4d816b70b22a1765b15401642b7ca37a67477e708dc",
        },
    ),
    "test": OfficialSet(
        "test_2016_flickr",
        1000,
        {
            "en": "399a4382932c1aadd3ceb9bef1008d388a64c76d4ae4e9d4728c6f4301cac182",
            "de": "4be6b5b3236b79c25475c6bb829800a7ce559e9ba7a1f6c2394fe4d40be46d16",
            "fr": "cb3160d69b002bb638e66cc7612fcd56cb0af82eadc9c142dedc438afb885ef6",
        },
    ),
}

_SETS: dict[str, dict[str, dict[str, OfficialSet]]] = {
    "bentrevett/multi30k": {"": _MULTI30K},
    "romrawinjp/multi30k": {"": _MULTI30K},
    "wmt/wmt14": {
        "fr-en": _WMT14_FR_EN,
        "de-en": _wmt(("newstest2013", 3000), ("newstest2014", 3003)),
        "cs-en": _wmt(("newstest2013", 3000), ("newstest2014", 3003)),
        "ru-en": _wmt(("newstest2013", 3000), ("newstest2014", 3003)),
        "hi-en": _wmt(("newsdev2014", 520), ("newstest2014", 2507)),
    },
    "wmt/wmt16": {
        "de-en": _wmt(("newstest2015", 2169), ("newstest2016", 2999)),
        "cs-en": _wmt(("newstest2015", 2656), ("newstest2016", 2999)),
        "ru-en": _wmt(("newstest2015", 2818), ("newstest2016", 2998)),
        "ro-en": _wmt(("newsdev2016", 1999), ("newstest2016", 1999)),
        "tr-en": _wmt(("newsdev2016", 1001), ("newstest2016", 3000)),
        "fi-en": _wmt(("newstest2015", 1370), ("newstest2016 + newstestB2016", 6000)),
    },
    "wmt/wmt19": {
        "de-en": _wmt(("newstest2018", 2998), None),
        "cs-en": _wmt(("newstest2018", 2983), None),
        "fi-en": _wmt(("newstest2018", 3000), None),
        "ru-en": _wmt(("newstest2018", 3000), None),
        "zh-en": _wmt(("newstest2018", 3981), None),
        "gu-en": _wmt(("newsdev2019", 1998), None),
        "kk-en": _wmt(("newsdev2019", 2066), None),
        "lt-en": _wmt(("newsdev2019", 2000), None),
        "fr-de": _wmt(("euelections_dev2019", 1512), None),
    },
}
"""By data set on the Hub, configuration ("": the only one) and split on the Hub."""


def official_set(config: HubData, role: str) -> OfficialSet | None:
    """The official set that a held-out split should be, if it is known.

    On the Hub that goes by the split's usual name, in a folder by the name of its files: another split or other files
    are another set.
    """
    by_pair = _SETS.get(config.dataset, {})
    pair = f"{config.source}-{config.target}"
    sets = by_pair.get("") or by_pair.get(pair) or by_pair.get(f"{config.target}-{config.source}") or {}
    found = sets.get(role)
    usual = role if config.folder is None else found and found.name
    used = getattr(config.splits if config.folder is None else config.folder_splits, role)
    return found if used == usual else None


def checked(corpus: Corpus, config: HubData, log: Callable[[str], None]) -> Corpus:
    """The corpus, its held-out splits checked as they are read. What was found goes to its origin and to the log.

    Reading raises:
        DataError: a set has another number of sentences than the official one.
    """
    splits = dict(corpus.splits)
    for role in ("validation", "test"):
        official = official_set(config, role)
        if official is not None and role in splits:
            (part,) = splits[role]
            read = partial(_checked_read, part.read, official, (config.source, config.target), role, corpus.origin, log)
            splits[role] = (replace(part, read=read),)
    return replace(corpus, splits=splits)


def _checked_read(
    read: Reader,
    official: OfficialSet,
    languages: tuple[str, str],
    role: str,
    origin: dict[str, Any],
    log: Callable[[str], None],
) -> Iterator[TextPair]:
    count = 0
    digests = tuple(hashlib.sha256() for _ in languages)
    for pair in read():
        count += 1
        for digest, text in zip(digests, (pair.source, pair.target), strict=True):
            digest.update(text.encode() + b"\n")
        yield pair
    if count != official.sentences:
        raise DataError(
            f"{role}: {official.name} has {official.sentences:,} sentences, found {count:,}: not the official set; "
            "fetch it again, or give another set its own name (data.splits, data.folder_splits)"
        )
    found = dict(zip(languages, (digest.hexdigest() for digest in digests), strict=True))
    same = {
        language: found[language] == official.sha256[language] for language in languages if language in official.sha256
    }
    origin.setdefault("official", {})[role] = {"name": official.name, "sentences": count, "text_as_published": same}
    if differing := [language for language, is_same in same.items() if not is_same]:
        log(
            f"WARNING: {role}: the text of {official.name} in {' and '.join(differing)} is not that of the official "
            "set (SHA-256 differs: re-encoded, or edited): scores on it may not be comparable with published ones"
        )
    else:
        extent = "the text of " + " and ".join(same) if same else "its size (no text is known to compare with)"
        log(f"{role}: {official.name}, {count:,} sentences: checked by {extent}")
