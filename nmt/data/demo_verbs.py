"""The verbs of the demo grammar: both languages' forms, what they take and which adverbs go with them.

A line: English (``base+particle past participle``, regular if bare) | German (see ``german_verb``) | subject class |
complements in English order | class of manner adverb, and flags. A complement is

    acc:CLASS dat:CLASS              objects; ``to/dat:CLASS`` with an English preposition
    for/auf+acc:CLASS                a prepositional object, English / German + case
    dir loc                          whereto or where, a place
    put on                           onto, or on, a piece of furniture
    city price instrument            *to Paris*, *25 euros*, *the piano* (no article in German)
    refl                             a German reflexive pronoun without English counterpart
    that whether inf                 a clause: dass, ob, zu + infinitive (the subject does it)
    inf_object                       zu + infinitive, done by the object before it

Flags: ``stative`` (no English progressive), ``state`` (no perfect, no modal: the languages differ there), ``accident``
(nobody plans it), ``passive`` (may be passivised), ``only`` (of adjuncts only time), ``negative`` (in statements),
``nowhere`` (without a place).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from nmt.data.demo_morphology import EnglishVerb, GermanVerb, english_verb, german_verb
from nmt.data.demo_nouns import places

_INTRANSITIVE = """
sleep slept slept | schlafen schläft schlief geschlafen | person+animal | | rest
sing sang sung | singen singt sang gesungen | person | | song
dance | tanzen | person | | play
laugh | lachen | person | | voice
cry | weinen | person | | tears
smile | lächeln | person | | stative
work | arbeiten | person | | work
swim swam swum | schwimmen schwimmt schwamm geschwommen +sein | person+animal | | motion
travel travelled travelled | reisen +sein | person | |
cook | kochen | person | | work
dream dreamt dreamt | träumen | person | |
wait | warten | person | | patient
whisper | flüstern | person | |
scream | schreien schreit schrie geschrien | person | |
arrive | an|kommen kommt kam gekommen +sein | person | | nowhere
get+up got got | auf|stehen steht stand gestanden +sein | person | | motion
fall+asleep fell fallen | ein|schlafen schläft schlief geschlafen +sein | person+animal | | mind accident
wake+up woke woken | auf|wachen +sein | person+animal | | mind
come+back came come | zurück|kommen kommt kam gekommen +sein | person | | mind nowhere
go+out went gone | aus|gehen geht ging gegangen +sein | person | | nowhere
rest | sich aus|ruhen | person | refl |
hurry | sich beeilen | person | refl |
apologise | sich entschuldigen | person | refl | mind
get+changed got got | sich um|ziehen zieht zog gezogen | person | refl | motion
run+away ran run | weg|laufen läuft lief gelaufen +sein | person+animal | | mind nowhere
fly+away flew flown | weg|fliegen fliegt flog geflogen +sein | bird | | mind nowhere
disappear | verschwinden verschwindet verschwand verschwunden +sein | person+animal | | mind accident
lose lost lost | verlieren verliert verlor verloren | person | | only stative accident
win won won | gewinnen gewinnt gewann gewonnen | person | | only
bark | bellen bellt bellte gebellt | dog | | loud
"""

_ACCUSATIVE = """
read read read | lesen liest las gelesen | person | acc:text | work passive
write wrote written | schreiben schreibt schrieb geschrieben +du=schreibst | person | acc:written | work passive
translate | übersetzen | person | acc:text | work passive
sign | unterschreiben unterschreibt unterschrieb unterschrieben | person | acc:signed | work passive
eat ate eaten | essen isst aß gegessen | person | acc:food | motion
eat ate eaten | fressen frisst fraß gefressen | animal | acc:food | motion
drink drank drunk | trinken trinkt trank getrunken | person+animal | acc:drink | motion
bake | backen backt backte gebacken | person | acc:baked | work passive
peel | schälen | person | acc:vegetable+fruit | work
taste | probieren | person | acc:food | stative
order | bestellen | person | acc:food+drink | work
buy bought bought | kaufen | person | acc:owned+furniture+food | work passive
sell sold sold | verkaufen | person | acc:owned+furniture+vehicle | work passive
find found found | finden findet fand gefunden | person | acc:owned | mind passive stative accident
lose lost lost | verlieren verliert verlor verloren | person | acc:owned | passive stative accident
need | brauchen | person | acc:owned+expert+vehicle | stative only state
carry | tragen trägt trug getragen | person | acc:furniture+upright | work
steal stole stolen | stehlen stiehlt stahl gestohlen | person | acc:owned | spy passive
hide hid hidden | verstecken | person | acc:owned | work passive
repair | reparieren | person | acc:machine_like | work passive
break broke broken | zerbrechen zerbricht zerbrach zerbrochen | person | acc:fragile | stative passive accident
clean | reinigen | person | acc:room+carpet+machine_like | work passive
wash | waschen wäscht wusch gewaschen | person | acc:clothes+vehicle+fragile | work passive
throw+away threw thrown | weg|werfen wirft warf geworfen | person | acc:owned+food | work passive
lift | auf|heben hebt hob gehoben | person | acc:upright+flat | motion
bring+back brought brought | zurück|bringen bringt brachte gebracht | person | acc:owned | mind
pack | ein|packen | person | acc:owned | work
unpack | aus|packen | person | acc:owned | work
use | benutzen | person | acc:machine_like+flat | stative
have had had | haben hat hatte gehabt +du=hast | person | acc:owned+gift+idea | stative only state
put+on put put | an|ziehen zieht zog gezogen | person | acc:clothes | motion
take+off took taken | aus|ziehen zieht zog gezogen | person | acc:clothes | motion
try+on tried tried | an|probieren | person | acc:clothes | work
turn+on | ein|schalten | person | acc:switched | mind passive
turn+off | aus|schalten | person | acc:switched | mind passive
open | auf|machen | person | acc:closed | work passive
close | schließen schließt schloss geschlossen | person | acc:closed | work passive
lock | ab|schließen schließt schloss geschlossen | person | acc:locked | work passive
see saw seen | sehen sieht sah gesehen | person+animal | acc:person+animal+seen+vehicle | stative passive
visit | besuchen | person | acc:person+building | only passive
meet met met | treffen trifft traf getroffen | person | acc:person | only
know knew known | kennen kennt kannte gekannt | person | acc:person+settled+text | stative only state
invite | ein|laden lädt lud geladen +du=lädst | person | acc:person | mind passive
call | an|rufen ruft rief gerufen | person | acc:person | mind passive
pick+up | ab|holen | person | acc:person | mind passive
love | lieben | person | acc:person+pet | stative only state
admire | bewundern | person | acc:person+art | stative passive state
greet | begrüßen | person | acc:person | mind passive
recognise | erkennen erkennt erkannte erkannt | person | acc:person+vehicle | mind stative accident
wake woke woken | wecken | person | acc:person+animal | mind passive
comfort | trösten | person | acc:person | work passive
photograph | fotografieren | person | acc:person+animal+building | spy passive
watch | beobachten | person | acc:animal+person | spy passive
look | an|sehen sieht sah gesehen | person | at/acc:seen+clothes+map | patient
frighten | erschrecken | animal | acc:person | stative passive accident
bite bit bitten | beißen beißt biss gebissen | dog | acc:person | stative passive
feed fed fed | füttern | person | acc:animal | work passive
stroke | streicheln | person | acc:pet | work
catch caught caught | fangen fängt fing gefangen | animal | acc:mouse+frog | stative
drive drove driven | fahren fährt fuhr gefahren | person | acc:vehicle | motion
park | parken | person | acc:vehicle | work
rent | mieten | person | acc:vehicle+boat+room | only
enter | betreten betritt betrat betreten +du=betrittst | person | acc:building+room | motion
leave left left | verlassen verlässt verließ verlassen | person | acc:building+room+settled | motion
build built built | bauen | person | acc:building | passive
search | durchsuchen | person | acc:bag+suitcase+room | work passive
paint | malen | person | acc:art | work passive
play | spielen | person | instrument | play
solve | lösen | person | acc:solved | motion passive
discuss | besprechen bespricht besprach besprochen | person | acc:topic | work passive
understand understood understood | verstehen versteht verstand verstanden | person | acc:topic+text | stative only state
describe | beschreiben beschreibt beschrieb beschrieben | person | acc:topic+thief | work passive
prepare | vor|bereiten | person | acc:event | work passive
organise | organisieren | person | acc:event | passive
finish | beenden | person | acc:event | only
cancel cancelled cancelled | ab|sagen | person | acc:event | mind passive
interrupt | unterbrechen unterbricht unterbrach unterbrochen | person | acc:event | mind passive
cost cost cost | kosten | owned | price | stative only state
"""

_DATIVE = """
help | helfen hilft half geholfen | person | dat:person | mind
thank | danken | person | dat:person | stative
thank | danken | person | dat:person for/für+acc:gift | stative
congratulate | gratulieren | person | dat:person | stative
congratulate | gratulieren | person | dat:person on/zu+dat:wedding | stative
follow | folgen +sein | person+animal | dat:person+animal | spy
trust | vertrauen | person | dat:person | stative only state
listen | zu|hören | person | to/dat:person | patient
answer | antworten | person | dat:person | mind stative
forgive forgave forgiven | verzeihen verzeiht verzieh verziehen | person | dat:person | stative
contradict | widersprechen widerspricht widersprach widersprochen | person | dat:person | stative
belong | gehören | owned+vehicle | to/dat:person | stative only state
agree | zu|stimmen | person | with/dat:person | stative state
give gave given | geben gibt gab gegeben | person | dat:person acc:owned+gift | mind
show showed shown | zeigen | person | dat:person acc:owned+seen | mind
send sent sent | schicken | person | dat:person acc:sent | mind
lend lent lent | leihen leiht lieh geliehen | person | dat:person acc:owned | stative
bring brought brought | bringen bringt brachte gebracht | person | dat:person acc:food+drink+gift | mind
tell told told | erzählen | person | dat:person acc:told | stative
promise | versprechen verspricht versprach versprochen | person | dat:person acc:gift | stative
offer | an|bieten bietet bot geboten | person | dat:person acc:food+drink | mind
buy bought bought | kaufen | person | dat:person acc:gift | mind
explain | erklären | person | acc:topic to/dat:person | work
recommend | empfehlen empfiehlt empfahl empfohlen | person | acc:text+hotel+restaurant to/dat:person | stative
return | zurück|geben gibt gab gegeben | person | acc:owned to/dat:person | mind
introduce | vor|stellen | person | acc:person to/dat:person | mind
"""

_PREPOSITIONAL = """
wait | warten | person | for/auf+acc:person+transport+letter | patient
think thought thought | denken denkt dachte gedacht | person | of/an+acc:person+event | stative
dream dreamt dreamt | träumen | person | of/von+dat:person+settled+wild | stative
talk | sprechen spricht sprach gesprochen | person | about/über+acc:topic+person | voice
laugh | lachen | person | about/über+acc:mistake+story+film | voice
look | suchen | person | for/acc:owned+person+pet | work
ask | bitten bittet bat gebeten +du=bittest | person | acc:person for/um+acc:owned | stative
take+part took taken | teil|nehmen nimmt nahm genommen | person | in/an+dat:event | stative
look+forward | sich freuen | person | refl to/auf+acc:event | only state
remember | sich erinnern | person | refl an+acc:person+event | stative state
complain | sich beschweren | person | refl about/über+acc:person+food+hotel | loud
take+care took taken | sich kümmern | person | refl of/um+acc:child+animal+guest | work
concentrate | sich konzentrieren | person | refl on/auf+acc:exam+text | stative
fall+in+love fell fallen | sich verlieben | person | refl with/in+acc:person | suddenly accident
say+goodbye said said | sich verabschieden | person | refl to/von+dat:person | stative
quarrel quarrelled quarrelled | streiten streitet stritt gestritten | person | with/mit+dat:person | loud
look | auf|passen | person | after/auf+acc:child+pet | work
begin began begun | an|fangen fängt fing gefangen | person | with/mit+dat:exercise+lecture | mind
warn | warnen | person | acc:person about/vor+dat:wild+thief | stative
remind | erinnern | person | acc:person of/an+acc:event | stative
protect | schützen | person | acc:child+pet from/vor+dat:wild | stative
compare | vergleichen vergleicht verglich verglichen | person | acc:text with/mit+dat:text | work
invite | ein|laden lädt lud geladen +du=lädst | person | acc:person to/zu+dat:event | stative
"""

_PLACED = """
go went gone | gehen geht ging gegangen +sein | person | dir | motion
run ran run | laufen läuft lief gelaufen +sein | person+animal | dir | fast
drive drove driven | fahren fährt fuhr gefahren +sein | person | dir | fast
travel travelled travelled | reisen +sein | person | city |
fly flew flown | fliegen fliegt flog geflogen +sein | person | city |
return | zurück|kehren +sein | person | dir | mind
accompany | begleiten | person | acc:person dir | stative
take took taken | bringen bringt brachte gebracht | person | acc:person dir | mind
live | wohnen | person | loc | only state
live | leben | wild | loc | only state
sit sat sat | sitzen sitzt saß gesessen | person | loc | only state
stand stood stood | stehen steht stand gestanden | person | loc | only state
stay | bleiben bleibt blieb geblieben +sein | person | loc | only state
wait | warten | person | loc | patient
play | spielen | child+pet | loc | only
put put put | legen | person | acc:flat put | mind
put put put | stellen | person | acc:upright put | mind
lie lay lain | liegen liegt lag gelegen | flat | on | stative only state
stand stood stood | stehen steht stand gestanden | upright | on | stative only state
sit sat sat | sitzen sitzt saß gesessen | cat+dog+rabbit+bird | on | only state
"""

_CLAUSAL = """
say said said | sagen | person | that | stative
believe | glauben | person | that | stative state
know knew known | wissen weiß wusste gewusst +du=weißt | person | that | stative state
know knew known | wissen weiß wusste gewusst +du=weißt | person | whether | stative negative state
hope | hoffen | person | that | stative state
think thought thought | denken denkt dachte gedacht | person | that | stative state
claim | behaupten | person | that | stative
hear heard heard | hören | person | that | stative
notice | bemerken | person | that | stative accident
fear | befürchten | person | that | stative state
report | berichten | person | that | stative
tell told told | erzählen | person | dat:person that | stative
promise | versprechen verspricht versprach versprochen | person | dat:person that | stative
find+out found found | heraus|finden findet fand gefunden | person | that | stative
find+out found found | heraus|finden findet fand gefunden | person | whether | stative
ask | fragen | person | acc:person whether | stative
wonder | sich fragen | person | refl whether | stative state
try | versuchen | person | inf | stative
promise | versprechen verspricht versprach versprochen | person | dat:person inf | stative
forget forgot forgotten | vergessen vergisst vergaß vergessen | person | inf | stative
begin began begun | beginnen beginnt begann begonnen | person | inf | stative
decide | beschließen beschließt beschloss beschlossen | person | inf | stative
plan | planen | person | inf |
refuse | sich weigern | person | refl inf | stative
hope | hoffen | person | inf | stative state
ask | bitten bittet bat gebeten +du=bittest | person | acc:person inf_object | stative
advise | raten rät riet geraten +du=rätst | person | dat:person inf_object | stative
allow | erlauben | person | dat:person inf_object | stative
order | befehlen befiehlt befahl befohlen | person | dat:person inf_object | stative
persuade | überreden | person | acc:person inf_object | stative
"""


_FLAGS = {"stative", "state", "accident", "passive", "only", "negative", "nowhere"}


@dataclass(frozen=True, slots=True)
class Complement:
    """What a verb takes. ``kind``: object, prepositional, or one of the bare words of the module docstring."""

    kind: str
    case: str = ""
    nouns: str = ""  # noun class
    english: str = ""  # preposition
    german: str = ""


@dataclass(frozen=True, slots=True)
class Frame:
    """One reading of a verb."""

    english: EnglishVerb
    german: GermanVerb
    subject: str
    complements: tuple[Complement, ...]
    manner: str
    flags: frozenset[str]
    reflexive: bool
    kinds: tuple[str, ...]  # of the complements
    clausal: bool  # takes a clause
    ambiguous: bool  # the English past looks like the present
    placed: bool  # says where already


def _names_place(complement: Complement) -> bool:
    wanted = set(complement.nouns.split("+"))
    return any(wanted & noun.tags for noun in places())


def _complement(text: str) -> Complement:
    grammar, _, nouns = text.partition(":")
    if not nouns:
        return Complement(text)
    english, _, german = grammar.rpartition("/")
    preposition, _, case = german.rpartition("+")
    return Complement("prepositional" if preposition else "object", case, nouns, english, preposition)


@cache
def frames() -> tuple[Frame, ...]:
    """Every verb frame, in the order of the tables."""
    found = []
    tables = (_INTRANSITIVE, _ACCUSATIVE, _DATIVE, _PREPOSITIONAL, _PLACED, _CLAUSAL)
    for line in "".join(table.strip() + "\n" for table in tables).strip().split("\n"):
        english, german, subject, complements, words = _fields(line)
        flags = _FLAGS & set(words.split())
        manner = next((word for word in words.split() if word not in flags), "")
        taken = tuple(_complement(part) for part in complements.split() if part != "refl")
        kinds = tuple(complement.kind for complement in taken)
        found.append(
            Frame(
                english=english_verb(english),
                german=german_verb(german.removeprefix("sich ")),
                subject=subject,
                complements=taken,
                manner=manner,
                flags=frozenset(flags),
                reflexive=german.startswith("sich "),
                kinds=kinds,
                ambiguous=english_verb(english).past == english_verb(english).base,
                clausal=bool({"that", "whether", "inf", "inf_object"} & set(kinds)),
                placed="nowhere" in flags
                or bool({"dir", "loc", "put", "on", "city"} & set(kinds))
                or any(map(_names_place, taken)),
            )
        )
    return tuple(found)


def _fields(line: str) -> list[str]:
    """Splits a table line at its bars; the bar of a separable prefix has no spaces around it."""
    fields = [field.strip() for field in re.split(r"\s\|(?=\s|$)", line)]
    if len(fields) != 5:
        raise ValueError(f"verb line {line!r}: expected 5 fields, found {len(fields)}")
    return fields
