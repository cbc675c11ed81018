"""What the grammars must get right, sentence by sentence, as a speaker would write it."""

from __future__ import annotations

import unicodedata

import pytest

from isoglot.testbed import LANGUAGES, World
from isoglot.testbed.languages import grammar_of
from isoglot.testbed.languages.ru import genitive, prepositional
from isoglot.testbed.languages.tr import genitive_ending, locative_ending
from isoglot.testbed.meaning import Clause, Compound, Fact, Location, Quality, Tense, Thing

READS = Clause(
    Thing("boy", "brave"), "read", Thing("book", "new"), "school", "yesterday", Tense.PAST
)
SEES = Clause(Thing("woman"), "see", Thing("doctor", "good"), "territory:CH", "", Tense.FUTURE)
COUNTS = Clause(Thing("king"), "buy", Thing("book", "red", "five"), tense=Tense.PAST)
FEW = Clause(Thing("aunt"), "buy", Thing("book", "red", "three"), tense=Tense.PAST)
DENIES = Clause(Thing("mother"), "eat", Thing("apple"), "", "today", negated=True)
BORED = Quality(Thing("book"), "boring")
BECAUSE = Compound(READS._replace(place="", time=""), "because", BORED)
SOMEWHERE = Location(Thing("chair", "small"), "library", negated=True)

SENTENCES = [
    ("en", READS, "The brave boy read the new book at school yesterday."),
    ("de", READS, "Der mutige Junge hat gestern das neue Buch in der Schule gelesen."),
    ("es", READS, "El niño valiente leyó el libro nuevo en la escuela ayer."),
    ("ru", READS, "Смелый мальчик вчера прочитал новую книгу в школе."),
    ("tr", READS, "Cesur oğlan dün okulda yeni kitabı okudu."),
    ("hi", READS, "बहादुर लड़के ने कल स्कूल में नई किताब पढ़ी।"),
    ("ar", READS, "قرأ الولد الشجاع الكتاب الجديد في المدرسة أمس."),
    ("zh", READS, "勇敢的男孩昨天在学校里读了新书。"),
    ("sw", READS, "Mvulana jasiri alisoma kitabu kipya shuleni jana."),
    ("en", SEES, "The woman will see the good doctor in Switzerland."),
    ("de", SEES, "Die Frau wird den guten Arzt in der Schweiz sehen."),
    ("es", SEES, "La mujer verá al médico bueno en Suiza."),
    ("ru", SEES, "Женщина увидит хорошего врача в Швейцарии."),
    ("tr", SEES, "Kadın İsviçre'de iyi doktoru görecek."),
    ("hi", SEES, "औरत स्विट्ज़रलैंड में अच्छे डॉक्टर को देखेगी।"),
    ("ar", SEES, "سترى المرأة الطبيب الجيد في سويسرا."),
    ("zh", SEES, "女人会在瑞士看见好医生。"),
    ("sw", SEES, "Mwanamke atamwona daktari mzuri nchini Uswisi."),
    ("en", COUNTS, "The king bought five red books."),
    ("de", COUNTS, "Der König hat fünf rote Bücher gekauft."),
    ("es", COUNTS, "El rey compró cinco libros rojos."),
    ("ru", COUNTS, "Король купил пять красных книг."),
    ("tr", COUNTS, "Kral beş kırmızı kitap satın aldı."),
    ("hi", COUNTS, "राजा ने पाँच लाल किताबें ख़रीदीं।"),
    ("ar", COUNTS, "اشترى الملك خمسة كتب حمراء."),
    ("zh", COUNTS, "国王买了五本红色的书。"),
    ("sw", COUNTS, "Mfalme alinunua vitabu vyekundu vitano."),
    ("ru", FEW, "Тётя купила три красные книги."),
    ("en", DENIES, "The mother does not eat the apple today."),
    ("de", DENIES, "Die Mutter isst heute den Apfel nicht."),
    ("es", DENIES, "La madre no come la manzana hoy."),
    ("ru", DENIES, "Мать сегодня не ест яблоко."),
    ("tr", DENIES, "Anne bugün elmayı yemiyor."),
    ("hi", DENIES, "माँ आज सेब नहीं खातीं।"),
    ("ar", DENIES, "لا تأكل الأم التفاحة اليوم."),
    ("zh", DENIES, "母亲今天不吃苹果。"),
    ("sw", DENIES, "Mama hali tofaa leo."),
    ("de", BECAUSE, "Der mutige Junge hat das neue Buch gelesen, weil das Buch langweilig ist."),
    ("ar", BECAUSE, "قرأ الولد الشجاع الكتاب الجديد لأن الكتاب ممل."),
    ("sw", BECAUSE, "Mvulana jasiri alisoma kitabu kipya kwa sababu kitabu ni cha kuchosha."),
    ("en", SOMEWHERE, "The small chair is not in the library."),
    ("de", SOMEWHERE, "Der kleine Stuhl ist nicht in der Bibliothek."),
    ("es", SOMEWHERE, "La silla pequeña no está en la biblioteca."),
    ("ru", SOMEWHERE, "Маленький стул не находится в библиотеке."),
    ("tr", SOMEWHERE, "Küçük sandalye kütüphanede değil."),
    ("hi", SOMEWHERE, "छोटी कुर्सी पुस्तकालय में नहीं है।"),
    ("ar", SOMEWHERE, "الكرسي الصغير ليس في المكتبة."),
    ("zh", SOMEWHERE, "小椅子不在图书馆里。"),
    ("sw", SOMEWHERE, "Kiti kidogo hakiko maktabani."),
]  # fmt: skip


@pytest.mark.parametrize(("language", "meaning", "expected"), SENTENCES)
def test_sentence_is_what_a_speaker_writes(language, meaning, expected):
    assert grammar_of(language).text(meaning) == expected


def test_german_verb_comes_second_after_a_fronted_time_and_an_adverb():
    german = grammar_of("de")
    fronted = READS._replace(fronted=True, object=None, verb="run", place="")
    assert german.text(fronted) == "Gestern ist der mutige Junge gerannt."
    joined = Compound(fronted, "therefore", fronted._replace(fronted=False, verb="laugh"))
    assert german.text(joined).endswith(", deshalb hat der mutige Junge gestern gelacht.")


def test_arabic_and_is_written_with_the_next_word():
    sentence = grammar_of("ar").sentence(Compound(READS, "and", SEES))
    assert " وسترى المرأة" in sentence.text
    assert "و" in sentence.forms()


def test_spanish_questions_open_with_their_own_mark():
    asked = READS._replace(subject=Thing("who"), time="", place="")
    assert grammar_of("es").text(asked, question=True) == "¿Quién leyó el libro nuevo?"


@pytest.mark.parametrize(
    ("language", "expected"),
    [
        ("en", "The currency of Iran is the Iranian Rial."),
        ("de", "Die Währung des Iran heißt Iranischer Rial."),
        ("es", "La moneda de Irán es el rial iraní."),
        ("ru", "Валюта Ирана — иранский риал."),
        ("tr", "İran'ın para birimi İran riyali."),
        ("hi", "ईरान की मुद्रा ईरानी रियाल है।"),
        ("ar", "عملة إيران هي الريال الإيراني."),
        ("zh", "伊朗的货币是伊朗里亚尔。"),
        ("sw", "Sarafu ya Iran ni Rial ya Iran."),
    ],
)
def test_fact(language, expected):
    fact = Fact("currency", "territory:IR", "currency:IRR")
    assert grammar_of(language).text(fact) == expected


def test_russian_names_are_declined():
    names = ("Япония", "Китай", "Египет", "Куба", "Мексика", "Перу", "Никарагуа", "Ирак")
    assert [prepositional(name) for name in names] == [
        "Японии", "Китае", "Египте", "Кубе", "Мексике", "Перу", "Никарагуа", "Ираке",
    ]  # fmt: skip
    assert [genitive(name) for name in names] == [
        "Японии", "Китая", "Египта", "Кубы", "Мексики", "Перу", "Никарагуа", "Ирака",
    ]  # fmt: skip


def test_turkish_endings_follow_the_vowels():
    names = ("Japonya", "Türkiye", "Irak", "Çin", "Peru", "Ürdün", "Nepal", "Mısır")
    assert [locative_ending(name) for name in names] == [
        "da", "de", "ta", "de", "da", "de", "de", "da",
    ]  # fmt: skip
    assert [genitive_ending(name) for name in names] == [
        "nın", "nin", "ın", "in", "nun", "ün", "in", "ın",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("language", "script"),
    [("en", "LATIN"), ("de", "LATIN"), ("es", "LATIN"), ("tr", "LATIN"), ("sw", "LATIN"),
     ("ru", "CYRILLIC"), ("hi", "DEVANAGARI"), ("ar", "ARABIC"), ("zh", "CJK")],
)  # fmt: skip
def test_letters_belong_to_the_languages_script(language, script):
    text = "".join(sentence for document in World(5).text(language, 60) for sentence in document)
    letters = [character for character in text if character.isalpha()]
    own = sum(unicodedata.name(letter).startswith(script) for letter in letters)
    assert own == len(letters)


@pytest.mark.parametrize("language", LANGUAGES)
def test_quick_text_and_words_agree(language):
    world = World(8)
    quick = [text for _, text in world.pairs("en", language, 300)]
    slow = [pair.second_text for pair in world.translations("en", language, 300)]
    assert quick == slow
    assert not [text for text in quick if "  " in text or text != text.strip()]
