"""Translators in a byte for each weight, and those that come with the package."""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path

import keras
import numpy as np
import pytest
from processes import run_python
from refusals import refused
from toys import english, french, toy_translator

from bahdanau_tf import Decoding, RNNEncDec, RNNSearch, Translator
from bahdanau_tf.commands import main as cli
from bahdanau_tf.options.training import PRETRAINED, pretrained_names

pytestmark = pytest.mark.usefixtures("eager_search")
NAMES = pretrained_names()
SENTENCES = ["the cat sleeps.", "", "the red dog sees a cat.", "e\u0301\u200b \U0001f600"]


@pytest.mark.parametrize("model_class", [RNNSearch, RNNEncDec])
def test_int8_is_within_half_a_step_of_the_weights(tmp_path, model_class):
    translator = toy_translator(english(), french(), Decoding(beam_size=2), model_class=model_class)
    translator.model.weights[0].assign(keras.ops.zeros_like(translator.model.weights[0]))
    translator.card = "# From a test\n"
    before = translator.model.get_weights()
    translator.save(tmp_path / "int8", int8=True)
    loaded = Translator.load(tmp_path / "int8")
    assert loaded.card == translator.card
    assert loaded.decoding == translator.decoding
    for own, weights, rounded in zip(
        translator.model.get_weights(), before, loaded.model.get_weights(), strict=True
    ):
        np.testing.assert_array_equal(own, weights)
        step = np.abs(weights).max(-1, keepdims=True) / 63 if weights.ndim == 2 else 0
        assert rounded.dtype == weights.dtype
        assert np.all(np.abs(rounded - weights) <= step / 2 + 1e-7)
    again = tmp_path / "again"
    loaded.save(again, int8=True)  # rounding twice changes nothing more
    for first, second in zip(
        loaded.model.get_weights(), Translator.load(again).model.get_weights(), strict=True
    ):
        np.testing.assert_allclose(first, second, rtol=1e-6, atol=1e-9)
    translations = [translation.text for translation in loaded.translate(SENTENCES)]
    loaded.save(tmp_path / "float")
    assert translations == [
        x.text for x in Translator.load(tmp_path / "float").translate(SENTENCES)
    ]


@pytest.mark.parametrize(
    ("name", "contents", "message"),
    [
        ("weights.npz", None, "weights.npz missing"),
        ("weights.npz", b"PK", ".npz file"),
        ("model.json", b"[]", "JSON object"),
        ("model.json", b'{"class_name": "Lambda", "module": "os"}', "os.Lambda"),
    ],
)
def test_damaged_files_are_refused(tmp_path, name, contents, message):
    toy_translator(english(), french()).save(tmp_path / "int8", int8=True)
    path = tmp_path / "int8" / name
    path.unlink() if contents is None else path.write_bytes(contents)
    refused(lambda: Translator.load(tmp_path / "int8"), *message.split())


def test_there_is_no_other_preset():
    refused(lambda: Translator.from_preset("tatoeba-fr-en"), "'tatoeba-fr-en'", "name")


@pytest.mark.parametrize("name", NAMES)
def test_a_pretrained_translator_is_small_and_has_a_card(name):
    files = [x for x in Path(str(PRETRAINED), name).rglob("*") if x.is_file()]
    assert sum(path.stat().st_size for path in files) <= 6.2e6
    card = Translator.from_preset(name).card
    assert "CC BY 2.0" in card
    assert re.search(r"BLEU \|? ?\d\d\.\d\d", card)


def test_a_new_process_translates_at_once(tmp_path):
    """From any folder."""
    program = (
        "import bahdanau_tf as bt; t = bt.Translator.from_preset('tatoeba-en-fr'); "
        "print(t.translate('The cat sleeps.').text); print(t.translate('The cat sleeps.').pharaoh)"
    )
    text, links = run_python("-c", program, cwd=tmp_path).stdout.splitlines()
    assert text == "Le chat dort."
    assert "1-1" in links.split()


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_the_card_has_what_its_command_prints(name, shared, monkeypatch, capsys):
    monkeypatch.chdir(shared(f"data/{name}"))
    card = Translator.from_preset(name).card
    (command,) = re.findall(r"^ *bahdanau-tf (evaluate .*)$", card, re.MULTILINE)
    assert cli.main(command.split()) == 0
    (score,) = re.findall(r"BLEU.*?(\d+\.\d+)", capsys.readouterr().out)
    assert score in card


@pytest.mark.parametrize("name", NAMES)
def test_a_pretrained_translator_knows_its_languages(name):
    """It reads curly quotes as straight ones; Japanese has no spaces beside names."""
    translator = Translator.from_preset(name)
    assert [*translator.habits.languages] == name.split("-")[1:]
    assert translator.target_text.tight is (translator.habits.languages[1] == "ja")
    text = translator.source_text
    curly = "\u201cDon\u2019t\u201d\u2026 she\u00a0said \u2014 no."
    assert text.encode(curly) == text.encode('"Don\'t"... she said - no.')


def phrases() -> list[list[str]]:
    texts = (Path(str(PRETRAINED), f"phrases.{x}").read_text("utf-8") for x in ("en", "fr", "ja"))
    return [*map(list, zip(*(text.rstrip("\n").split("\n") for text in texts), strict=True))]


def test_a_phrase_is_in_three_languages_and_keeps_its_numbers():
    """But hours with p.m., and the short forms of a chat. In order the file is compressed best."""
    rows = phrases()
    assert rows == sorted(rows, key="\t".join)
    lines = [english for english, _, _ in rows]
    assert len({(x.lower(), len(x) > 1 and x.isupper()) for x in lines}) == len(rows) > 4000
    for row in rows:
        assert all(x and x == " ".join(unicodedata.normalize("NFKC", x).split()) for x in row[:2])
        assert row[2] == row[2].strip() != ""
        assert not {*"’“”«»"} & {*"".join(row)}
        if not re.search(r"[0-9] ?[apAP]\.?[mM]\b|\b[24] [a-z]", row[0]):  # what 2 do
            numbers = re.findall(r"\b[0-9]+\b", row[0])
            assert all(number in x for number in numbers for x in row), row


@pytest.mark.parametrize("name", NAMES)
def test_no_phrase_is_in_the_dev_text_of_a_translator(name, shared):
    dev = (shared(f"data/{name}") / "dev.en").read_text("utf-8").split("\n")
    assert not {*dev} & {english for english, _, _ in phrases()}


# What people type first: names, numbers, addresses; short inputs; a missing capital or mark.
TYPED = {
    "tatoeba-en-fr": {
        "TO BE OR NOT TO BE": ["\u00catre ou ne pas \u00eatre"],
        "# Shopping list": ["# Liste de courses"],
        "1. Milk": ["1. Lait"],
        "Onion": ["Oignon"],
        "Umbrella": ["Parapluie"],
        "LIBRARY": ["Biblioth\u00e8que"],
        "EXIT": ["Sortie"],
        "Terms And Conditions": ["Conditions g\u00e9n\u00e9rales"],
        "WHERE IS TOM'S CAR?": ["Tom", "voiture"],
        "i live in new york": ["\u00e0 New York"],
        "It is REALLY cold today.": ["vraiment", "froid"],
        "Daniel": ["Daniel"],
        "Happy Birthday, Mark!": ["anniversaire, Mark"],
        "The WHO is in Geneva.": ["OMS"],
        "USA": ["\u00c9tats-Unis"],
        "John Black": ["John Black"],
        "Ten Tips for Better Sleep": ["Dix conseils"],
        "AT&T": ["AT&T"],
        'She said: "I am tired."': ["fatigu\u00e9"],
        '"I am tired."': ['"Je suis fatigu\u00e9."'],
        "(I am tired.)": ["(Je suis fatigu\u00e9.)"],
        "Anna: Where are you?": ["Anna : O\u00f9 "],
        "The US president is old.": ["am\u00e9ricain"],
        "My daughter is 7.": ["7 ans"],
        "See you tommorow.": ["demain"],
        "I'm tired.Let's go home.": ["fatigu\u00e9. ", "maison"],
        "(555) 123-4567": ["(555) 123-4567"],
        "My name is Barbara and I live in Chicago.": ["Barbara", "Chicago"],
        "There are 347 books on the table.": ["347", "livres", "table"],
        "I paid $20 for it.": ["20"],
        "The price is 3.50 euros.": ["3.50", "euros"],
        "The train to Lyon leaves at 9:45.": ["train", "Lyon", "9:45"],
        "I love you \U0001f60d": ["\U0001f60d", "aime"],
        "https://www.example.com/a/b?c=1": ["https://www.example.com/a/b?c=1"],
        "Open the file report_2024.pdf, please.": ["report_2024.pdf", "Ouvre"],
        "Write to anna.schmidt@firma.de.": ["anna.schmidt@firma.de"],
        "Call me at 555-0199.": ["Appel", "555-0199"],
        "Mr. Nakamura was born on 12/05/1987.": ["Nakamura", "12/05/1987"],
        "Version 2.4.1 is out.": ["ersion 2.4.1"],
        "I live in Seoul.": ["S\u00e9oul"],
        "Anika and Giovanni are friends.": ["Anika", "Giovanni", "amis"],
        "Tom": ["Tom"],
        "OK": ["OK"],
        "where are you": ["O\u00f9 "],
        "i love you": ["Je t'aime"],
        "I love you": ["Je t'aime"],
        "I love you.": ["Je t'aime."],
        "Thank you very much!": ["Merci beaucoup"],
        "Hello": ["Bonjour"],
        "Good morning": ["Bonjour"],
        "cat": ["chat"],
        "umbrella": ["parapluie"],
        "airport": ["aéroport"],
        'What does "zorbling" mean?': ['"zorbling" ?'],
        "I dont know.": ["sais pas"],
        "i dont like coffee": ["n'aime pas"],
        "im tired": ["Je suis fatigu"],
        "do you speak english": ["anglais"],
        "we arent ready": ["pas pr\u00eat"],
        "I have two cats and 3 dogs.": ["deux chats", "3 chiens"],
        "It's 15 km from here.": ["15 km d'ici"],
        "He is 1.80 m tall.": ["1.80 m"],
        "Open report.pdf.": ["report.pdf"],
        "My daughter is 7 years old.": ["7 ans"],
        "Dear Tom,": ["Cher Tom,"],
        "Kind regards,": ["ordialement,"],
        "What's the wifi password?": ["mot de passe", "wifi"],
        "See you in November.": ["novembre"],
        "I paid $17.50 for lunch.": ["pay\u00e9 $17.50 pour"],
        "Dr. Okafor will call you back.": ["docteur Okafor"],
        "My name is Zofia Kowalczyk.": ["Zofia Kowalczyk"],
        'He said "no".': ['"non"'],
        "where r u": ["O\u00f9"],
        "Please find the invoice attached.": ["facture ci-joint"],
        "Nurse": ["Infirmi\u00e8re"],
        "The shop opens at 3 p.m.": ["15 h"],
        "Tom & Mary are asleep.": ["Tom et Mary"],
    },
    "tatoeba-en-ja": {
        "Mum": ["お母さん"],
        "beauty and the beast": ["美女と野獣"],
        "To be or not to be": ["生きるべき"],
        "# Shopping list": ["# 買い物リスト"],
        "1. Milk": ["1. 牛乳"],
        "Library": ["図書館"],
        "LIBRARY": ["図書館"],
        "EXIT": ["出口"],
        "Terms And Conditions": ["利用規約"],
        "i live in new york": ["ニューヨークに住んで"],
        "Daniel": ["ダニエル"],
        "emily": ["エミリー"],
        "John Smith": ["ジョン・スミス"],
        "Tokyo": ["東京"],
        "UK": ["イギリス"],
        "PS: I love you.": ["追伸："],
        "Happy Birthday, Mark!": ["Mark", "おめでとう"],
        '"I am tired."': ['"疲れました。"'],
        "(I am tired.)": ["(疲れました。)"],
        "Anna: Where are you?": ["アンナ："],
        "See you tommorow.": ["明日"],
        "I'm tired.Let's go home.": ["疲れました", "家に"],
        "1,000,000": ["1,000,000"],
        "My name is Zorfina and I live in Brandtoft.": ["Zorfina", "Brandtoftに住んで"],
        "Mr. Yamamoto is our teacher.": ["Yamamoto", "先生"],
        "I live in Osaka.": ["大阪に住んで"],
        "There are 347 books on the table.": ["テーブル", "347冊"],
        "I have 3 cats.": ["3匹", "猫"],
        "She is 25 years old.": ["25歳"],
        "I paid 1,500 yen for this shirt.": ["シャツ", "1,500円"],
        "We moved here in 2015.": ["2015年", "引っ越し"],
        "The flight AB-123 is late.": ["AB-123便は"],
        "I love you \U0001f60d": ["大好き", "\U0001f60d"],
        "WHERE IS MY BAG?": ["どこ"],
        "How much is this?": ["いくら"],
        "What time is it?": ["何時"],
        "i like green tea": ["緑茶", "好き"],
        "See you tomorrow.": ["明日"],
        "Thank you very much!": ["ありがとう"],
        "Hello": ["こんにちは"],
        "cat": ["猫"],
        "Umbrella": ["傘"],
        "Bicycle": ["自転車"],
        "Family": ["家族"],
        "we arent ready": ["準備", "いません"],
        "im hungry": ["すい"],
        "airport": ["空港"],
        'What does "zorbling" mean?': ["zorbling", "意味"],
        "My name is Zofia Kowalczyk.": ["名前はZofia Kowalczykです"],
        "Best regards,": ["よろしくお願い"],
        "Where is the nearest pharmacy?": ["薬局", "どこ"],
        "The meeting is on September 14.": ["会議は9月14日"],
        "See you in November.": ["11月に"],
        "It costs $15.99.": ["$15.99"],
        "Dr. Okafor will call you back.": ["Okafor先生", "電話"],
        'He said "no".': ["「いいえ」と言いました"],
        "where r u": ["どこにいるの"],
        "Nurse": ["看護師"],
        "I am allergic to peanuts.": ["ピーナッツアレルギー"],
    },
}


@pytest.mark.parametrize("name", NAMES)
def test_what_people_type_first_arrives(name):
    typed = TYPED[name]
    translations = Translator.from_preset(name).translate([*typed])
    for x, kept in zip(translations, typed.values(), strict=True):
        assert all(word in x.text for word in kept), x
        assert not {"number", "cut", "repeated"} & {doubt.kind for doubt in x.doubts}, x


@pytest.mark.parametrize("name", NAMES)
def test_a_text_is_translated_sentence_by_sentence(name):
    translator = Translator.from_preset(name)
    sentences = ["Hello!", "How are you?", "I am fine."]
    parts = [x.text for x in translator.translate(sentences)]
    gap = "" if name.endswith("ja") else " "
    assert translator.translate(" ".join(sentences)).text == gap.join(parts)


@pytest.mark.parametrize("name", NAMES)
def test_what_a_translator_cannot_know_is_doubted(name):
    typed = ["very " * 300, "\ub098\ub294 \uc790\ub2e4.", "Wir gehen morgen ins Kino."]
    typed += ["He shortened the zorblings."]
    for x in Translator.from_preset(name).translate(typed, max_length=30):
        assert x.doubts, x
