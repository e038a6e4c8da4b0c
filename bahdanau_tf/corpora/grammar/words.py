"""The words of the built-in English-French corpus, one table per class.

Nouns have a kind, and adjectives and verbs list the kinds that they combine with: `p` people, `a`
animals, `t` things, `l` places.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple


class Noun(NamedTuple):
    """A noun in both languages; `gender` ("m", "f") is that of the French noun."""

    singular: str
    plural: str
    french_singular: str
    french_plural: str
    gender: str
    kind: str


class Adjective(NamedTuple):
    """An adjective; `liaison` is the masculine singular before a vowel."""

    english: str
    masculine: str
    feminine: str
    masculine_plural: str
    feminine_plural: str
    liaison: str
    position: str
    kinds: str

    def form(self, gender: str, plural: bool) -> str:
        """The French form that agrees with a gender and a number."""
        if gender == "m":
            return self.masculine_plural if plural else self.masculine
        return self.feminine_plural if plural else self.feminine


class Verb(NamedTuple):
    """A verb; `particle` follows it in English, `tail` in French."""

    base: str
    third: str
    particle: str
    je: str
    il: str
    nous: str
    ils: str
    tail: str
    subjects: str
    objects: str

    def form(self, first_person: bool, plural: bool) -> str:
        """The French form that agrees with a person and a number."""
        if first_person:
            return self.nous if plural else self.je
        return self.ils if plural else self.il


class Determiner(NamedTuple):
    """A determiner of one number."""

    english: str
    plural: bool
    masculine: str
    feminine: str


def _rows(table: str) -> list[list[str]]:
    """The cells of a text table; `-` is an empty cell, `_` a space in a cell."""
    rows = [line.split() for line in table.strip().split("\n")]
    return [["" if cell == "-" else cell.replace("_", " ") for cell in row] for row in rows]


NOUNS = [
    Noun(*row)
    for row in _rows("""
man        men         homme       hommes       m p
woman      women       femme       femmes       f p
boy        boys        garçon      garçons      m p
girl       girls       fille       filles       f p
child      children    enfant      enfants      m p
neighbour  neighbours  voisin      voisins      m p
teacher    teachers    professeur  professeurs  m p
student    students    étudiant    étudiants    m p
actress    actresses   actrice     actrices     f p
queen      queens      reine       reines       f p
hero       heroes      héros       héros        m p
cat        cats        chat        chats        m a
dog        dogs        chien       chiens       m a
bird       birds       oiseau      oiseaux      m a
horse      horses      cheval      chevaux      m a
mouse      mice        souris      souris       f a
cow        cows        vache       vaches       f a
owl        owls        hibou       hiboux       m a
book       books       livre       livres       m t
tree       trees       arbre       arbres       m t
hat        hats        chapeau     chapeaux     m t
car        cars        voiture     voitures     f t
apple      apples      pomme       pommes       f t
sword      swords      épée        épées        f t
house      houses      maison      maisons      f l
garden     gardens     jardin      jardins      m l
school     schools     école       écoles       f l
church     churches    église      églises      f l
hotel      hotels      hôtel       hôtels       m l
park       parks       parc        parcs        m l
""")
]

# Position: before or after the French noun; both may be predicates, too. A `fixed` one is before
# the noun and never a predicate, where French uses another word.
ADJECTIVES = [
    Adjective(*row)
    for row in _rows("""
big        grand       grande       grands       grandes       - before atl
small      petit       petite       petits       petites       - before patl
old        vieux       vieille      vieux        vieilles      vieil before patl
young      jeune       jeune        jeunes       jeunes        - before pa
beautiful  beau        belle        beaux        belles        bel before patl
new        nouveau     nouvelle     nouveaux     nouvelles     nouvel fixed tl
black      noir        noire        noirs        noires        - after atl
white      blanc       blanche      blancs       blanches      - after atl
red        rouge       rouge        rouges       rouges        - after tl
expensive  cher        chère        chers        chères        - after tl
happy      heureux     heureuse     heureux      heureuses     - after pa
sad        triste      triste       tristes      tristes       - after pa
clever     intelligent intelligente intelligents intelligentes - after pa
French     français    française    français     françaises    - after p
""")
]

# English base, third person, particle; French je, il, nous, ils, tail; kinds of subject and of
# object.
VERBS = [
    Verb(*row)
    for row in _rows("""
sleep  sleeps  -     dors     dort     dormons      dorment     - pa -
sing   sings   -     chante   chante   chantons     chantent    - pa -
run    runs    -     cours    court    courons      courent     - pa -
eat    eats    -     mange    mange    mangeons     mangent     - pa -
laugh  laughs  -     ris      rit      rions        rient       - p  -
work   works   -     travaille travaille travaillons travaillent - p -
wait   waits   -     attends  attend   attendons    attendent   - pa -
see    sees    -     vois     voit     voyons       voient      - pa patl
find   finds   -     trouve   trouve   trouvons     trouvent    - pa patl
hear   hears   -     entends  entend   entendons    entendent   - pa pa
love   loves   -     aime     aime     aimons       aiment      - p  patl
draw   draws   -     dessine  dessine  dessinons    dessinent   - p  patl
know   knows   -     connais  connaît  connaissons  connaissent - p  p
help   helps   -     aide     aide     aidons       aident      - p  p
buy    buys    -     achète   achète   achetons     achètent    - p  at
have   has     -     ai       a        avons        ont         - p  at
sell   sells   -     vends    vend     vendons      vendent     - p  at
look   looks   for   cherche  cherche  cherchons    cherchent   - pa pat
wait   waits   for   attends  attend   attendons    attendent   - pa pa
speak  speaks  to    parle    parle    parlons      parlent     à p  p
speak  speaks  about parle    parle    parlons      parlent     de p patl
think  thinks  of    pense    pense    pensons      pensent     à p  patl
need   needs   -     ai       a        avons        ont         besoin_de p pat
""")
]

# Verbs that report a clause; never negated, since French would change the mood.
REPORTS = [
    Verb(*row)
    for row in _rows("""
say    says    -     dis      dit      disons       disent      - p -
think  thinks  -     pense    pense    pensons      pensent     - p -
know   knows   -     sais     sait     savons       savent      - p -
""")
]

BE = Verb("be", "is", "", "suis", "est", "sommes", "sont", "", "patl", "")
DO = Verb("do", "does", "", "", "", "", "", "", "pa", "")

ARTICLES = [
    Determiner("the", False, "le", "la"),
    Determiner("the", True, "les", "les"),
    Determiner("a", False, "un", "une"),
    Determiner("some", True, "des", "des"),
]

DETERMINERS = [
    Determiner("this", False, "ce", "cette"),
    Determiner("these", True, "ces", "ces"),
    Determiner("my", False, "mon", "ma"),
    Determiner("my", True, "mes", "mes"),
    Determiner("our", False, "notre", "notre"),
    Determiner("our", True, "nos", "nos"),
    Determiner("his", False, "son", "sa"),
    Determiner("his", True, "ses", "ses"),
    Determiner("her", False, "son", "sa"),
    Determiner("her", True, "ses", "ses"),
    Determiner("every", False, "chaque", "chaque"),
    Determiner("two", True, "deux", "deux"),
    Determiner("three", True, "trois", "trois"),
]

OWNERS = [each for each in ARTICLES[:1] + DETERMINERS if not each.plural]

OBJECT_PRONOUNS = {"him": "le", "her": "la", "them": "les"}
FIRST_PERSON_OBJECTS = {"me": "me", "us": "nous"}
NEGATIONS = {"not": "pas", "never": "jamais", "no longer": "plus"}
ADVERBS = {"often": "souvent", "always": "toujours", "sometimes": "parfois"}
PREPOSITIONS = {"in": "dans", "behind": "derrière", "in front of": "devant", "near": "près de"}
COORDINATIONS = {"and": "et", "but": "mais"}
SUBORDINATIONS = {"because": "parce que", "when": "quand", "while": "pendant que", "if": "si"}
OPENERS = {"when": "quand", "if": "si"}
_WHY = {"why": "pourquoi", "when": "quand"}
QUESTION_WORDS = {BE: _WHY, DO: {**_WHY, "where": "où"}}


@cache
def nouns(kind: str) -> list[Noun]:
    """The nouns of a kind."""
    return [noun for noun in NOUNS if noun.kind == kind]


@cache
def adjectives(kind: str, *positions: str) -> list[Adjective]:
    """The adjectives for nouns of a kind, in one of these positions."""
    return [each for each in ADJECTIVES if each.position in positions and kind in each.kinds]


@cache
def verbs(subject: str) -> list[Verb]:
    """The verbs that a subject of this kind can have."""
    return [verb for verb in VERBS if subject in verb.subjects]


@cache
def transitives(subject: str, direct_object: str) -> list[Verb]:
    """The verbs with these kinds and no preposition in French."""
    return [each for each in verbs(subject) if direct_object in each.objects and not each.tail]
