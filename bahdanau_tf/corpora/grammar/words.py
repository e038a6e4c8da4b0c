"""The words of the built-in corpora, one table per class.

Nouns have a kind, and adjectives and verbs list the kinds that they combine with: `p` people, `a`
animals, `t` things, `l` places.
"""

from __future__ import annotations

import re
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


def rows(table: str) -> list[list[str]]:
    """The cells of a text table, with a row a line or `|`; `-` is an empty cell, `_` a space."""
    rows = [row.split() for row in re.split(r"[\n|]", table.strip())]
    return [["" if cell == "-" else cell.replace("_", " ") for cell in row] for row in rows]


_NOUNS = """
man       men        homme      hommes      m p | woman     women      femme      femmes      f p
boy       boys       garçon     garçons     m p | girl      girls      fille      filles      f p
child     children   enfant     enfants     m p | neighbour neighbours voisin     voisins     m p
teacher   teachers   professeur professeurs m p | student   students   étudiant   étudiants   m p
actress   actresses  actrice    actrices    f p | queen     queens     reine      reines      f p
hero      heroes     héros      héros       m p | cat       cats       chat       chats       m a
dog       dogs       chien      chiens      m a | bird      birds      oiseau     oiseaux     m a
horse     horses     cheval     chevaux     m a | mouse     mice       souris     souris      f a
cow       cows       vache      vaches      f a | owl       owls       hibou      hiboux      m a
book      books      livre      livres      m t | tree      trees      arbre      arbres      m t
hat       hats       chapeau    chapeaux    m t | car       cars       voiture    voitures    f t
apple     apples     pomme      pommes      f t | sword     swords     épée       épées       f t
house     houses     maison     maisons     f l | garden    gardens    jardin     jardins     m l
school    schools    école      écoles      f l | church    churches   église     églises     f l
hotel     hotels     hôtel      hôtels      m l | park      parks      parc       parcs       m l
"""
NOUNS = [Noun(*row) for row in rows(_NOUNS)]

# Position: before or after the French noun; both may also be predicates. A `fixed` one is before
# the noun and never a predicate, where French uses another word.
_ADJECTIVES = """
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
"""
ADJECTIVES = [Adjective(*row) for row in rows(_ADJECTIVES)]

# English base, third person, particle; French je, il, nous, ils, tail; kinds (subject, object).
_VERBS = """
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
"""
VERBS = [Verb(*row) for row in rows(_VERBS)]

# Verbs that report a clause; never negated, since French would change the mood.
_REPORTS = """
say    says    -     dis      dit      disons       disent      - p -
think  thinks  -     pense    pense    pensons      pensent     - p -
know   knows   -     sais     sait     savons       savent      - p -
"""
REPORTS = [Verb(*row) for row in rows(_REPORTS)]

BE = Verb("be", "is", "", "suis", "est", "sommes", "sont", "", "patl", "")
DO = Verb("do", "does", "", "", "", "", "", "", "pa", "")

# English; `s` if plural; the French masculine and feminine.
_DETERMINERS = """
the - le la | the s les les | a - un une | some s des des
this - ce cette | these s ces ces | my - mon ma | my s mes mes | our - notre notre
our s nos nos | his - son sa | his s ses ses | her - son sa | her s ses ses
every - chaque chaque | two s deux deux | three s trois trois
"""
_ALL = [Determiner(word, bool(plural), *forms) for word, plural, *forms in rows(_DETERMINERS)]
ARTICLES, DETERMINERS = _ALL[:4], _ALL[4:]
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
ASKS = {"be": "est-ce que", "do": "est-ce que"}
CONNECTORS = COORDINATIONS | SUBORDINATIONS | QUESTION_WORDS[DO] | ASKS
_THIRD = {"he": "il", "she": "elle", "it": "il", "they": "ils", "who": "qui"}  # masculine
SUBJECT_PRONOUNS = {"I": "je", "we": "nous", **_THIRD}
CLITICS = OBJECT_PRONOUNS | FIRST_PERSON_OBJECTS

# The words of Korean and Japanese, by the English word and, where it matters, the kind of noun it
# belongs to. After a noun stands its counter, after a verb what follows its object. `of` is a
# number before a counter, `plural` a suffix, `form` that of a verb before `if` ..., with an ending.
_VERB_FINAL = """
man 남자 명 男性 人 | woman 여자 명 女性 人 | boy 소년 명 少年 人 | girl 소녀 명 少女 人
child 아이 명 子供 人 | neighbour 이웃 명 隣人 人 | teacher 교사 명 先生 人 | queen 여왕 명 女王 人
student 학생 명 学生 人 | actress 여배우 명 女優 人 | hero 영웅 명 英雄 人 | cat 고양이 마리 猫 匹
dog 개 마리 犬 匹 | bird 새 마리 鳥 羽 | horse 말 마리 馬 頭 | mouse 쥐 마리 ネズミ 匹
cow 소 마리 牛 頭 | owl 부엉이 마리 フクロウ 羽 | book 책 권 本 冊 | tree 나무 그루 木 本
hat 모자 개 帽子 つ | car 차 대 車 台 | apple 사과 개 リンゴ つ | sword 칼 자루 剣 本
house 집 채 家 軒 | garden 정원 곳 庭 つ | school 학교 곳 学校 つ | church 교회 곳 教会 つ
hotel 호텔 곳 ホテル つ | park 공원 곳 公園 つ
sleep 자다/자면/자요 - 寝-る - | sing 노래하다/노래하면/노래해요 - 歌う -
run 달리다/달리면/달려요 - 走る - | eat 먹다/먹으면/먹어요 - 食べ-る -
laugh 웃다/웃으면/웃어요 - 笑う - | work 일하다/일하면/일해요 - 働く -
wait 기다리다/기다리면/기다려요 - 待つ - | see 보다/보면/봐요 을 見-る を
find 발견하다/발견하면/발견해요 을 見つけ-る を | hear 듣다/들으면/들어요 의_소리를 聞く の_声を
hear_p 듣다/들으면/들어요 의_목소리를 聞く の_声を | love 좋아하다/좋아하면/좋아해요 을 好きな が
love_p 사랑하다/사랑하면/사랑해요 을 愛してい-る を | draw 그리다/그리면/그려요 을 描く を
know 알다/알면/알아요 을 知ってい-る を | help 돕다/도우면/도와요 을 助け-る を
buy 사다/사면/사요 을 買う を | have_a 키우다/키우면/키워요 을 飼ってい-る を
have_t 가지고_있다/가지고_있으면/가지고_있어요 을 持ってい-る を | sell 팔다/팔면/팔아요 을 売る を
look_for 찾다/찾으면/찾아요 을 探す を | wait_for 기다리다/기다리면/기다려요 을 待つ を
speak_to 이야기하다/이야기하면/이야기해요 과 話す と | need 필요하다/필요한/필요해요 이 必要な が
speak_about 이야기하다/이야기하면/이야기해요 에_대해 話す に_ついて
think_of 생각하다/생각하면/생각해요 을 考え-る の_ことを | be 있다/있으면/있어요 - い-る -
say_that 말하다/말하면/말해요 - 言ってい-る - | know_that 알다/알면/알아요 - 知ってい-る -
think_that 생각하다/생각하면/생각해요 - 思ってい-る -
big 크다/큰/커요 大きい | small 작다/작은/작아요 小さい | old_t 오래됐다/오래된/오래됐어요 古い
old 나이가_많다/나이_많은/나이가_많아요 年を_取った | old_l 오래됐다/오래된/오래됐어요 古い
young 젊다/젊은/젊어요 若い | young_a 어리다/어린/어려요 若い | young_child 어리다/어린/어려요 幼い
beautiful 아름답다/아름다운/아름다워요 美しい | new 새 新しい | black 까맣다/까만/까매요 黒い
white 하얗다/하얀/하얘요 白い | red 빨갛다/빨간/빨개요 赤い | expensive 비싸다/비싼/비싸요 高い
happy 행복하다/행복한/행복해요 幸せな | sad 슬프다/슬픈/슬퍼요 悲しそうな
clever 똑똑하다/똑똑한/똑똑해요 賢い | French 프랑스_사람이다/프랑스/프랑스_사람이에요 フランス人の
this 이 この | these 이 これらの | these_p 이 この | my 제 私の | our 우리 私たちの | his 그의 彼の
her 그녀의 彼女の | my_own 제 自分の | our_own 우리 自分たちの | his_own 자기 自分の
her_own 자기 自分の | every 모든 すべての | two_of 두_{} 二{}の | three_of 세_{} 三{}の | I 저 私
some_of 몇_{} 何{}かの | some_of_つ - いくつかの | plural_p 들 たち | plural_a 들 - | we 우리 私たち
plural_these 들 - | he 그 彼 | she 그녀 彼女 | them 그들 彼ら | them_t 그것들 それら | who 누 誰
very 아주 とても | very_not 그다지 あまり | very_no_longer 아주 あまり | contrast_no_longer 는 -
very_never - - | very_French 정말 本当に | never 절대 決して | no_longer 더_이상 もう | in - -
always 항상 いつも | sometimes 가끔 時々 | behind _뒤 の_後ろ | in_front_of _앞 の_前 | why 왜 なぜ
near _근처 の_近く | place 에서 で | place_be 에 に | when 언제 いつ | where 어디에서 どこで
often 자주 よく | topic 은 は | subject 이 が | owner 의 の | , , 、 | . . 。 | ? ? 。
form polite - polite - | form_? polite - polite か | form_noun adnominal - attribute -
form_and stem 고 te - | form_attribute attribute - attribute - | form_but stem 지만 polite が
form_if open 면 plain なら | form_because stem 기_때문에 causal ので
form_when prospective _때 adnominal _とき | form_while adnominal _동안 lasting _間
form_say_that plain 고 declarative と | form_think_that plain 고 declarative と
form_know_that plain 는_것을 fact _ことを
"""


def _verb_final(language: int) -> dict[str, str]:
    """The column of a language, with counters and particles as the words of `with ...`."""
    words: dict[str, str] = {}
    for english, *cells in rows(_VERB_FINAL):
        word, *companion = cells[language::2] if len(cells) == 2 else cells[2 * language :][:2]
        words |= {english: word} | {f"with {english}": other for other in companion}
    return words


VERB_FINAL = {"ko": _verb_final(0), "ja": _verb_final(1)}


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
