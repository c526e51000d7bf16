"""The words of the demo grammar that are neither verbs nor nouns: adjectives, names, adverbs and times."""

from __future__ import annotations

from functools import cache

from nmt.data.demo_morphology import Adjective, Noun

_ADJECTIVES = """
young jung person,animal
old alt person,animal,text,object,clothes,building,seen,instrument,transport,closed
clever klug person,animal
brave mutig person
friendly freundlich person
tired müde/müd person,animal
happy glücklich person
sad traurig person
hungry hungrig person,animal
rich reich person
poor arm person
polite höflich person
shy schüchtern person,animal
strong stark person,animal
famous berühmt person,text,building,seen
patient geduldig person
lazy faul person,animal
diligent fleißig person
nervous nervös person,animal
curious neugierig person,animal
proud stolz person
strict streng person
honest ehrlich person
tall groß person
lonely einsam person
angry wütend person
cheerful fröhlich person
experienced erfahren expert
careful vorsichtig person
serious ernst person
modest bescheiden person
small klein animal,object,building,food,clothes
big groß animal,object,building,food,clothes
black schwarz animal,object,clothes
brown braun animal,object,clothes
white weiß animal,object,clothes
red rot object,clothes
blue blau object,clothes
green grün object,clothes
yellow gelb object,clothes
grey grau animal,object,clothes
wild wild wild
dangerous gefährlich wild
fat dick animal
fast schnell animal,vehicle
new neu text,object,clothes,building,seen,event,instrument,transport,closed
expensive teuer/teur object,clothes,food
cheap billig object,clothes,food
beautiful schön object,clothes,building,seen
heavy schwer object
practical praktisch object
strange seltsam object,text,seen,topic
modern modern building,machine_like
useful nützlich machine_like,text
valuable wertvoll object
broken kaputt machine_like
round rund furniture
comfortable bequem furniture
pretty hübsch clothes
elegant elegant clothes
dirty schmutzig clothes,object
clean sauber clothes,object
wet nass clothes
warm warm clothes,drink
thin dünn clothes
fresh frisch food,mass_food,drink
hot heiß dish,drink
cold kalt drink,dish
delicious köstlich food,mass_food
ripe reif fruit
sweet süß fruit,baked
sour sauer/saur fruit
interesting interessant text,seen,topic,event,building
boring langweilig text,seen,event
exciting spannend text,seen,event
long lang text,seen,event
short kurz text,seen,event
difficult schwierig topic,solved
important wichtig text,topic,event
easy einfach solved
secret geheim text,plan
bad schlecht topic,food
successful erfolgreich event
quiet ruhig building
empty leer building
dark dunkel/dunkl building
"""

_MEN = "Peter Paul Michael Stefan David Jan Leon Martin Daniel Erik Robert Florian Simon Anton Julian Oskar"
_WOMEN = "Anna Maria Julia Laura Lena Sophie Clara Emma Eva Sarah Nina Hannah Katharina Paula Marta Lisa"
_CITIES = """Berlin Hamburg Frankfurt Leipzig Dresden London Paris Madrid Amsterdam Oslo Munich/München Vienna/Wien
Cologne/Köln Rome/Rom Zurich/Zürich Warsaw/Warschau Prague/Prag Lisbon/Lissabon"""
COUNTRIES = (
    ("Germany", "Deutschland"),
    ("France", "Frankreich"),
    ("Italy", "Italien"),
    ("Spain", "Spanien"),
    ("Austria", "Österreich"),
    ("Poland", "Polen"),
)
MEN, WOMEN = tuple(_MEN.split()), tuple(_WOMEN.split())
CITIES = tuple((name.split("/")[0], name.split("/")[-1]) for name in _CITIES.split())

# One-word adverbs of manner, by the class of verb they go with.
MANNER = {
    "work": (
        *(("carefully", "sorgfältig"), ("quickly", "schnell"), ("slowly", "langsam"), ("patiently", "geduldig")),
        *(("secretly", "heimlich"), ("immediately", "sofort")),
    ),
    "voice": (("quietly", "leise"), ("loudly", "laut"), ("cheerfully", "fröhlich")),
    "song": (("quietly", "leise"), ("loudly", "laut"), ("beautifully", "schön"), ("cheerfully", "fröhlich")),
    "tears": (("quietly", "leise"), ("loudly", "laut")),
    "spy": (("secretly", "heimlich"), ("patiently", "geduldig")),
    "motion": (("quickly", "schnell"), ("slowly", "langsam"), ("immediately", "sofort")),
    "rest": (("quietly", "ruhig"), ("peacefully", "friedlich")),
    "mind": (("suddenly", "plötzlich"), ("immediately", "sofort"), ("finally", "endlich")),
    "patient": (("patiently", "geduldig"),),
    "fast": (("quickly", "schnell"), ("slowly", "langsam")),
    "loud": (("loudly", "laut"),),
    "suddenly": (("suddenly", "plötzlich"),),
    "play": (("wonderfully", "wunderbar"), ("badly", "schlecht"), ("well", "gut")),
}
# Of these, those that name a point of time: in English before the verb, and not with a progressive.
PUNCTUAL = frozenset(("immediately", "suddenly", "finally"))
# Between subject and verb in English, early in the German middle field.
FREQUENCY = (
    *(("often", "oft"), ("always", "immer"), ("sometimes", "manchmal"), ("rarely", "selten")),
    *(("usually", "meistens"), ("never", "nie")),
)

# With the present perfect.
SO_FAR = (("often", "oft"), ("already", "schon"), ("never", "nie"), ("just", "gerade"))

WEEKDAYS = (
    *(("Monday", "Montag"), ("Tuesday", "Dienstag"), ("Wednesday", "Mittwoch"), ("Thursday", "Donnerstag")),
    *(("Friday", "Freitag"), ("Saturday", "Samstag"), ("Sunday", "Sonntag")),
)
MONTHS = tuple(
    zip(
        [
            "January",
            "February",
            "March",
            "April",
            "May",
            "June",
            "July",
            "August",
            "September",
            "October",
            "November",
            "December",
        ],
        [
            "Januar",
            "Februar",
            "März",
            "April",
            "Mai",
            "Juni",
            "Juli",
            "August",
            "September",
            "Oktober",
            "November",
            "Dezember",
        ],
        strict=True,
    )
)
SEASONS = (("spring", "Frühling"), ("summer", "Sommer"), ("autumn", "Herbst"), ("winter", "Winter"))
# Whole time expressions as "English words | German words | links"; tense classes that they fit.
TIMES = {
    "present": """
today | heute | 0-0
every day | jeden Tag | 0-0 1-1
every morning | jeden Morgen | 0-0 1-1
every evening | jeden Abend | 0-0 1-1
every week | jede Woche | 0-0 1-1
in the morning | am Morgen | 0-0 1-0 2-1
in the afternoon | am Nachmittag | 0-0 1-0 2-1
in the evening | am Abend | 0-0 1-0 2-1
at night | nachts | 0-0 1-0
at noon | mittags | 0-0 1-0
nowadays | heutzutage | 0-0
""",
    "past": """
yesterday | gestern | 0-0
yesterday evening | gestern Abend | 0-0 1-1
last week | letzte Woche | 0-0 1-1
last month | letzten Monat | 0-0 1-1
last year | letztes Jahr | 0-0 1-1
last summer | letzten Sommer | 0-0 1-1
in the morning | am Morgen | 0-0 1-0 2-1
in the afternoon | am Nachmittag | 0-0 1-0 2-1
in the evening | am Abend | 0-0 1-0 2-1
recently | neulich | 0-0
back then | damals | 0-0 1-0
""",
    "future": """
tomorrow | morgen | 0-0
tomorrow evening | morgen Abend | 0-0 1-1
next week | nächste Woche | 0-0 1-1
next month | nächsten Monat | 0-0 1-1
next year | nächstes Jahr | 0-0 1-1
next summer | nächsten Sommer | 0-0 1-1
soon | bald | 0-0
later | später | 0-0
""",
    "now": """
now | jetzt | 0-0
at the moment | im Moment | 0-0 1-0 2-1
today | heute | 0-0
""",
}
# Masculine, feminine and neuter nouns of circumstance, each for one preposition with the genitive.
CIRCUMSTANCES = (
    (("because", "of"), "wegen", ("rain", "Regen", "m", "Regens"), ("storm", "Sturm", "m", "Sturms")),
    (("because", "of"), "wegen", ("cold", "Kälte", "f", "Kälte"), ("noise", "Lärm", "m", "Lärms")),
    (("in", "spite", "of"), "trotz", ("heat", "Hitze", "f", "Hitze"), ("fog", "Nebel", "m", "Nebels")),
    (("in", "spite", "of"), "trotz", ("danger", "Gefahr", "f", "Gefahr"), ("snow", "Schnee", "m", "Schnees")),
    (("during",), "während", ("break", "Pause", "f", "Pause"), ("lesson", "Unterricht", "m", "Unterrichts")),
    (("during",), "während", ("holidays", "Ferien", "p", "Ferien"), ("thunderstorm", "Gewitter", "n", "Gewitters")),
)


@cache
def adjectives() -> tuple[Adjective, ...]:
    """Every adjective with the noun classes it may describe."""
    found = []
    for line in _ADJECTIVES.strip().split("\n"):
        english, german, tags = line.split()
        word, _, stem = german.partition("/")
        found.append(Adjective(english, word, stem or word, frozenset(tags.split(","))))
    return tuple(found)


# Two adjectives before a noun are of two kinds, in this order; those of no set come first.
_KINDS = (
    {"small", "big", "tall", "heavy", "long", "short", "fat", "thin", "round"},
    {"young", "old", "new", "modern", "fresh"},
    {"black", "brown", "white", "red", "blue", "green", "yellow", "grey"},
)


def adjective_rank(adjective: Adjective) -> int:
    """0 quality, 1 size, 2 age, 3 colour."""
    return next((rank for rank, words in enumerate(_KINDS, start=1) if adjective.english in words), 0)


# What an adjective of a general class may stand with: things that are bought, carried and seen.
_GENERAL = {"object": {"owned", "furniture", "vehicle", "gift", "upright", "flat"}, "building": {"place"}}


@cache
def adjectives_for(noun: Noun) -> tuple[Adjective, ...]:
    """The adjectives that may describe a noun (possibly none)."""
    classes = set(noun.tags) | {name for name, members in _GENERAL.items() if members & noun.tags}
    if classes & {"clothes", "text"}:
        classes.discard("object")
    if "drink" in classes or "mass_food" in classes:
        classes.discard("food")
    return tuple(adjective for adjective in adjectives() if adjective.tags & classes)


@cache
def times(tense: str) -> tuple[tuple[tuple[str, ...], tuple[str, ...], tuple[tuple[int, int], ...]], ...]:
    """The fixed time expressions of a tense class: English words, German words, links between them."""
    found = []
    for line in TIMES[tense].strip().split("\n"):
        english, german, links = (part.split() for part in line.split("|"))
        pairs = tuple((int(link.split("-")[0]), int(link.split("-")[1])) for link in links)
        found.append((tuple(english), tuple(german), pairs))
    return tuple(found)
