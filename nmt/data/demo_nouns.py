"""The nouns of the demo grammar.

A line: English (``/`` and the plural when irregular), German, gender (``m*`` is a weak masculine), genitive, plural
(``-``: a mass noun), the semantic classes that verbs select by. ``=`` repeats the nominative (in the plural of a weak
masculine: the genitive).
"""

from __future__ import annotations

from functools import cache

from nmt.data.demo_morphology import Noun, english_plural

_PEOPLE = """
man/men Mann m Mannes Männer
woman/women Frau f = Frauen
child/children Kind n Kindes Kinder child
boy Junge m* Jungen = child
girl Mädchen n Mädchens = child
teacher Lehrer m Lehrers = expert
student Student m* Studenten =
pupil Schüler m Schülers = child
doctor Arzt m Arztes Ärzte expert
nurse Krankenschwester f = Krankenschwestern
neighbour Nachbar m* Nachbarn =
colleague Kollege m* Kollegen =
customer Kunde m* Kunden =
tourist Tourist m* Touristen =
policeman/policemen Polizist m* Polizisten = expert
witness Zeuge m* Zeugen =
soldier Soldat m* Soldaten =
journalist Journalist m* Journalisten = expert
pilot Pilot m* Piloten = expert
farmer Bauer m* Bauern =
baker Bäcker m Bäckers =
waiter Kellner m Kellners =
gardener Gärtner m Gärtners =
singer Sänger m Sängers =
painter Maler m Malers =
writer Schriftsteller m Schriftstellers = expert
actress Schauspielerin f = Schauspielerinnen
mother Mutter f = Mütter kin,single
father Vater m Vaters Väter kin,single
brother Bruder m Bruders Brüder kin
sister Schwester f = Schwestern kin
aunt Tante f = Tanten kin
uncle Onkel m Onkels = kin
grandmother Großmutter f = Großmütter kin
grandfather Großvater m Großvaters Großväter kin
daughter Tochter f = Töchter kin
son Sohn m Sohnes Söhne kin
friend Freund m Freundes Freunde kin
queen Königin f = Königinnen
king König m Königs Könige
princess Prinzessin f = Prinzessinnen
thief/thieves Dieb m Diebes Diebe
guest Gast m Gastes Gäste
cook Koch m Kochs Köche
driver Fahrer m Fahrers =
mechanic Mechaniker m Mechanikers = expert
lawyer Anwalt m Anwalts Anwälte expert
judge Richter m Richters = expert
lady Dame f = Damen
engineer Ingenieur m Ingenieurs Ingenieure expert
secretary Sekretärin f = Sekretärinnen
dentist Zahnarzt m Zahnarztes Zahnärzte expert
mayor Bürgermeister m Bürgermeisters =
"""

_ANIMALS = """
dog Hund m Hundes Hunde pet
cat Katze f = Katzen pet
horse Pferd n Pferdes Pferde pet
bird Vogel m Vogels Vögel
cow Kuh f = Kühe
goat Ziege f = Ziegen
pig Schwein n Schweins Schweine
mouse/mice Maus f = Mäuse
duck Ente f = Enten
lion Löwe m* Löwen = wild
monkey Affe m* Affen = wild
bear Bär m* Bären = wild
elephant Elefant m* Elefanten = wild
rabbit Kaninchen n Kaninchens = pet
fox Fuchs m Fuchses Füchse wild
wolf/wolves Wolf m Wolfes Wölfe wild
hen Henne f = Hennen
donkey Esel m Esels =
snake Schlange f = Schlangen wild
frog Frosch m Frosches Frösche
"""

_FOOD = """
apple Apfel m Apfels Äpfel fruit
pear Birne f = Birnen fruit
banana Banane f = Bananen fruit
cherry Kirsche f = Kirschen fruit
plum Pflaume f = Pflaumen fruit
tomato/tomatoes Tomate f = Tomaten fruit
potato/potatoes Kartoffel f = Kartoffeln vegetable
carrot Karotte f = Karotten vegetable
onion Zwiebel f = Zwiebeln vegetable
mushroom Pilz m Pilzes Pilze dish
cake Kuchen m Kuchens = baked
pancake Pfannkuchen m Pfannkuchens = dish
pizza Pizza f = Pizzas baked
biscuit Keks m Kekses Kekse baked
roll Brötchen n Brötchens = baked
sausage Wurst f = Würste dish
egg Ei n Eies Eier dish
soup Suppe f = Suppen dish
salad Salat m Salats Salate dish
bread Brot n Brotes - mass_food
cheese Käse m Käses - mass_food
meat Fleisch n Fleisches - mass_food
rice Reis m Reises - mass_food
chocolate Schokolade f = - mass_food
honey Honig m Honigs - mass_food
"""

_DRINKS = """
water Wasser n Wassers -
milk Milch f = -
coffee Kaffee m Kaffees -
tea Tee m Tees -
beer Bier n Biers -
wine Wein m Weins -
juice Saft m Safts -
"""

_THINGS = """
book Buch n Buches Bücher text,flat,owned,gift
newspaper Zeitung f = Zeitungen text,flat,owned
letter Brief m Briefes Briefe text,flat,owned,sent,written
story/stories Geschichte f = Geschichten text,topic,told,written
poem Gedicht n Gedichts Gedichte text,told,written
novel Roman m Romans Romane text,flat,written
report Bericht m Berichts Berichte text,sent,written
magazine Zeitschrift f = Zeitschriften text,flat,owned
message Nachricht f = Nachrichten text,sent,written
article Artikel m Artikels = text,written
postcard Postkarte f = Postkarten text,flat,sent,owned,written
recipe Rezept n Rezepts Rezepte text,sent,written
contract Vertrag m Vertrags Verträge text,signed,topic
invitation Einladung f = Einladungen text,sent,written
film Film m Films Filme seen,topic
picture Bild n Bildes Bilder seen,hung,owned,gift,art
painting Gemälde n Gemäldes = seen,hung,owned,art
photo Foto n Fotos Fotos seen,sent,owned
car Auto n Autos Autos vehicle,owned,machine_like
bicycle Fahrrad n Fahrrads Fahrräder gift,owned,machine_like
bus Bus m Busses Busse vehicle
train Zug m Zuges Züge transport
lorry Lastwagen m Lastwagens = vehicle,machine_like
taxi Taxi n Taxis Taxis vehicle
ship Schiff n Schiffes Schiffe transport
boat Boot n Bootes Boote owned,machine_like
motorcycle Motorrad n Motorrads Motorräder owned,machine_like
tractor Traktor m Traktors Traktoren vehicle,machine_like
tram Straßenbahn f = Straßenbahnen transport
table Tisch m Tisches Tische furniture,on
chair Stuhl m Stuhls Stühle furniture,on
bed Bett n Bettes Betten furniture,on
sofa Sofa n Sofas Sofas furniture,on
cupboard Schrank m Schranks Schränke furniture,closed,in
shelf/shelves Regal n Regals Regale furniture
desk Schreibtisch m Schreibtischs Schreibtische furniture,on
armchair Sessel m Sessels = furniture,on
bench Bank f = Bänke furniture,on
carpet Teppich m Teppichs Teppiche furniture,on
mirror Spiegel m Spiegels = owned,hung
bottle Flasche f = Flaschen upright,closed,fragile,owned
glass Glas n Glases Gläser upright,fragile,owned
cup Tasse f = Tassen upright,fragile,owned
vase Vase f = Vasen upright,fragile,owned,gift
lamp Lampe f = Lampen upright,switched,owned,machine_like
plate Teller m Tellers = upright,fragile,owned
bowl Schüssel f = Schüsseln upright,fragile,owned
suitcase Koffer m Koffers = upright,closed,owned,in,gift
bag Tasche f = Taschen owned,in,closed,gift
basket Korb m Korbes Körbe upright,owned,in
box Kiste f = Kisten upright,closed,in
bucket Eimer m Eimers = upright,owned
candle Kerze f = Kerzen upright,owned
key Schlüssel m Schlüssels = flat,owned
knife/knives Messer n Messers = flat,owned
spoon Löffel m Löffels = flat,owned
fork Gabel f = Gabeln flat,owned
pencil Bleistift m Bleistifts Bleistifte flat,owned
ring Ring m Ringes Ringe flat,owned,gift
coin Münze f = Münzen flat,owned
blanket Decke f = Decken flat,owned
towel Handtuch n Handtuchs Handtücher flat,owned
camera Kamera f = Kameras owned,gift,machine_like
umbrella Regenschirm m Regenschirms Regenschirme owned
ball Ball m Balles Bälle owned,gift
doll Puppe f = Puppen owned,gift,machine_like
flower Blume f = Blumen owned,gift
map Landkarte f = Landkarten flat,owned,gift
ticket Fahrkarte f = Fahrkarten flat,owned
passport Pass m Passes Pässe flat,owned,signed
hammer Hammer m Hammers Hämmer flat,owned
guitar Gitarre f = Gitarren instrument,owned,gift
piano Klavier n Klaviers Klaviere instrument
violin Geige f = Geigen instrument,owned
flute Flöte f = Flöten instrument,owned
coat Mantel m Mantels Mäntel clothes,owned
hat Hut m Hutes Hüte clothes,owned,gift
shirt Hemd n Hemdes Hemden clothes,owned
dress Kleid n Kleides Kleider clothes,owned,gift
jacket Jacke f = Jacken clothes,owned
skirt Rock m Rockes Röcke clothes,owned
scarf/scarves Schal m Schals Schals clothes,owned,gift
suit Anzug m Anzugs Anzüge clothes,owned
sweater Pullover m Pullovers = clothes,owned,gift
computer Computer m Computers = switched,owned,machine_like
radio Radio n Radios Radios switched,owned,machine_like
television Fernseher m Fernsehers = switched,owned,machine_like
printer Drucker m Druckers = switched,owned,machine_like
oven Ofen m Ofens Öfen switched,machine_like
clock Uhr f = Uhren machine_like,owned,hung
door Tür f = Türen closed,locked
window Fenster n Fensters = closed
gate Tor n Tores Tore closed,locked
drawer Schublade f = Schubladen closed,in
problem Problem n Problems Probleme topic,solved
question Frage f = Fragen topic
plan Plan m Plans Pläne topic
idea Idee f = Ideen topic
mistake Fehler m Fehlers = topic
decision Entscheidung f = Entscheidungen topic
riddle Rätsel n Rätsels = solved
exercise Übung f = Übungen solved
accident Unfall m Unfalls Unfälle topic,past_event
exam Prüfung f = Prüfungen event,topic
concert Konzert n Konzerts Konzerte event
meeting Besprechung f = Besprechungen event
wedding Hochzeit f = Hochzeiten event,topic
journey Reise f = Reisen event,topic
festival Fest n Festes Feste event
exhibition Ausstellung f = Ausstellungen event
lecture Vortrag m Vortrags Vorträge event
"""

# Places: the noun's line, then where (English, German preposition) and whereto (English, German, German case).
_PLACES = """
house Haus n Hauses Häuser building,room | in in | into in acc
school Schule f = Schulen building | at in | to in acc
church Kirche f = Kirchen building | in in | to in acc
museum Museum n Museums Museen building | in in | to in acc
theatre Theater n Theaters = building | in in | to in acc
cinema Kino n Kinos Kinos building | in in | to in acc
restaurant Restaurant n Restaurants Restaurants building | in in | to in acc
hotel Hotel n Hotels Hotels building | in in | to zu dat
library Bibliothek f = Bibliotheken building | in in | to in acc
hospital Krankenhaus n Krankenhauses Krankenhäuser building | in in | to in acc
factory Fabrik f = Fabriken building | in in | to zu dat
office Büro n Büros Büros room,building | in in | to in acc
shop Laden m Ladens Läden building | in in | to zu dat
bakery Bäckerei f = Bäckereien building | in in | to zu dat
station Bahnhof m Bahnhofs Bahnhöfe building | at an | to zu dat
airport Flughafen m Flughafens Flughäfen building | at an | to zu dat
castle Schloss n Schlosses Schlösser building | in in | to zu dat
tower Turm m Turmes Türme building | in in | to zu dat
kitchen Küche f = Küchen room | in in | into in acc
cellar Keller m Kellers = room | in in | into in acc
bedroom Schlafzimmer n Schlafzimmers = room | in in | into in acc
room Zimmer n Zimmers = room | in in | into in acc
garden Garten m Gartens Gärten outside | in in | into in acc
park Park m Parks Parks outside | in in | to in acc
forest Wald m Waldes Wälder outside | in in | into in acc
zoo Zoo m Zoos Zoos outside | in in | to in acc
village Dorf n Dorfes Dörfer settled,outside | in in | to in acc
city Stadt f = Städte settled,outside | in in | to in acc
market Markt m Marktes Märkte outside | at auf | to auf acc
bridge Brücke f = Brücken outside | on auf | to zu dat
street Straße f = Straßen outside | in auf | to zu dat
beach Strand m Strandes Strände outside | on an | to an acc
lake See m Sees Seen outside | by an | to an acc
river Fluss m Flusses Flüsse outside | by an | to an acc
island Insel f = Inseln outside,settled | on auf | to auf acc
farm Bauernhof m Bauernhofs Bauernhöfe settled,outside | on auf | to auf acc
field Feld n Feldes Felder outside | in auf | into auf acc
mountain Berg m Berges Berge outside | on auf | to zu dat
"""


def _noun(line: str, *classes: str) -> Noun:
    english, german, gender, genitive, plural, *tags = line.split()
    singular, _, irregular = english.partition("/")
    genitive = german if genitive == "=" else genitive
    if plural == "=":
        plural = genitive if gender == "m*" else german
    names = {singular, *classes, *(tags[0].split(",") if tags else ()), *(("mass",) if plural == "-" else ())}
    weak = gender == "m*"
    return Noun(singular, irregular or english_plural(singular), german, gender[0], genitive, plural, weak,
                frozenset(names))  # fmt: skip


def _lines(table: str) -> list[str]:
    return table.strip().split("\n")


@cache
def nouns() -> tuple[Noun, ...]:
    """Every noun, with its classes (``person``, ``animal``, ``food``, ``thing`` and ``place`` among them)."""
    tables = ((_PEOPLE, "person"), (_ANIMALS, "animal"), (_FOOD, "food"), (_DRINKS, "drink"), (_THINGS, "thing"))
    found = [_noun(line, name) for table, name in tables for line in _lines(table)]
    return (*found, *places())


@cache
def places() -> dict[Noun, tuple[str, str, str, str, str]]:
    """Each place with its prepositions: where (English, German), whereto (English, German, German case)."""
    found = {}
    for line in _lines(_PLACES):
        noun, where, whereto = line.split("|")
        found[_noun(noun, "place")] = (*where.split(), *whereto.split())
    return found  # type: ignore[return-value]  # the table has two and three words in each row


@cache
def nouns_of(name: str) -> tuple[Noun, ...]:
    """The nouns of a class; ``a+b`` is the union."""
    wanted = set(name.split("+"))
    found = tuple(noun for noun in nouns() if wanted & noun.tags)
    if not found:
        raise ValueError(f"no noun of class {name!r}")
    return found
