"""One code for each language, however it is spelled: ISO's, Wikipedia's, those of data sets."""

from __future__ import annotations

import pytest
from babel.core import get_global
from babel.localedata import load

from isoglot.corpus.knowledge.markup.localized import WIKIPEDIAS
from isoglot.languages import (
    NAMES,
    bcp47,
    canonical,
    canonical_name,
    canonical_pair,
    code_of_name,
    find,
    from_wikipedia,
    is_language,
    name_of,
    plain_code,
    wikipedia_database,
)

TATOEBA = """
afr amh ang ara arq arz ast awa aze bel ben ber bos bre bul cat cbk ceb ces cha cmn cor csb cym dan
deu dsb dtp ell epo est eus fao fin fra fry gla gle glg gsw heb hin hrv hsb hun hye ido ile ina ind
isl ita jav jpn kab kat kaz khm kor kur kzj lat lfn lit lvs mal mar max mhr mkd mon nds nld nno nob
nov oci orv pam pes pms pol por ron rus slk slv spa sqi srp swe swg swh tam tat tel tgl tha tuk tur
tzl uig ukr urd uzb vie war wuu xho yid yue zsm
""".split()
OTHERWISE = {"twi": "tw", "nob": "no", "hbs": "sh", "tgl": "tl", "tl": "tl", "sh": "sh"}
"""Where the library differs from CLDR, which has `ak`, `nb`, `sr_Latn` and `fil`."""
UNJOINED = "adp cls cwd drh esk fat fuc knc kng ojg prp"
"""Members that CLDR joins to their macrolanguage, and the library does not."""


@pytest.mark.parametrize(
    ("spelled", "code"),
    [
        ("en", "en"),
        ("ENG", "en"),
        ("eng_Latn", "en"),
        ("ger", "de"),
        ("por", "pt"),
        ("lvs", "lv"),
        ("fry", "fy"),
        ("cor", "kw"),
        ("cha", "ch"),
        ("sna", "sn"),
        ("tsn", "tn"),
        ("nob", "no"),
        ("nb", "no"),
        ("fil", "tl"),
        ("iw", "he"),
        ("zho_Hans", "zh_Hans"),
        ("zh-hant", "zh_Hant"),
        ("pt_br", "pt_BR"),
        ("deu_1901", "de_1901"),
        ("zh-min-nan", "nan"),
        ("zh-yue", "yue"),
        ("be-x-old", "be_tarask"),
        ("be-tarask", "be_tarask"),
        ("simple", "en_simple"),
        ("als", "sq"),
        ("xx", "xx"),
    ],
)
def test_every_spelling_of_a_language_gives_one_code(spelled, code):
    assert canonical(spelled) == code
    assert canonical(code) == code
    assert plain_code(spelled) == code.split("_")[0]


def test_three_letter_codes_are_those_of_cldr():
    aliases = get_global("language_aliases")
    longer = {code: two for code, two in aliases.items() if len(code) == 3 and len(two) == 2}
    assert len(longer) > 200
    expected = {code: OTHERWISE.get(code, two) for code, two in longer.items()}
    expected |= {code: code for code in UNJOINED.split()}
    assert {code: canonical(code) for code in longer} == expected


def test_names_are_those_of_cldr():
    names = load("en")["languages"]
    differing = {code for code, name in NAMES.items() if names.get(code, name) != name}
    assert differing == {"bn"}  # Bangla there, Bengali in data sets
    assert name_of("swh") == "Swahili"
    assert name_of("zh_Hant") == "Chinese"
    assert code_of_name("Bengali") == "bn"
    assert code_of_name("klingonese") is None


def test_no_two_languages_of_tatoeba_or_wikipedia_become_one():
    assert len(TATOEBA) == 112
    assert len(set(map(canonical, TATOEBA))) == 112
    both = {"be-x-old", "be-tarask", "nb", "no", "zh-yue", "yue", "zh-min-nan", "nan"}
    both |= {"zh-classical", "lzh", "roa-rup", "rup", "bat-smg", "sgs", "fiu-vro", "vro"}
    both |= {"als", "gsw", "mo", "ro", "bh", "bho"}
    others = WIKIPEDIAS - both
    codes = set(map(from_wikipedia, others))
    assert len(codes) == len(others)
    assert codes.isdisjoint(map(from_wikipedia, both & WIKIPEDIAS))


def test_wikipedias_codes_are_their_own():
    assert from_wikipedia("als") == "gsw" != canonical("als")
    assert from_wikipedia("nds-nl") == "nds_NL"
    names = "en zh-yue yue nb no be-tarask be-x-old gsw als simple nds-nl zh-classical eml".split()
    databases = "en zh_yue zh_yue no no be_x_old be_x_old als als simple nds_nl zh_classical eml"
    assert [wikipedia_database(name) for name in names] == [f"{x}wiki" for x in databases.split()]
    # the codes of the library have the same wikis
    assert [wikipedia_database(from_wikipedia(name)) for name in names] == [
        f"{x}wiki" for x in databases.split()
    ]


@pytest.mark.parametrize(
    ("spelled", "pair"),
    [
        ("en-de", "en-de"),
        ("deu-eng", "de-en"),
        ("en-zh_Hant", "en-zh_Hant"),
        ("en-zh-TW", "en-zh_TW"),
        ("en-be-tarask", "en-be_tarask"),
        ("zh-min-nan-en", "nan-en"),
        ("zh-yue-en", "yue-en"),
        ("zh-yue", "zh-yue"),
        ("en", None),
        ("en-de-fr", None),
        ("en-../x", None),
    ],
)
def test_pairs_of_codes_with_hyphens(spelled, pair):
    assert canonical_pair(spelled) == pair


def test_a_language_and_a_pair_are_told_apart():
    names = ["zh-min-nan", "be-tarask", "pt-BR", "zh-Hant", "pt-br", "en-de", "deu-eng", "por"]
    codes = ["nan", "be_tarask", "pt_BR", "zh_Hant", "pt-br", "en-de", "de-en", "pt"]
    assert [canonical_name(name) for name in names] == codes
    assert [is_language(name) for name in names] == [True] * 4 + [False] * 3 + [True]
    assert not any(map(is_language, ("", "../x", "/etc", "a b", "en-", "é", "a" * 40)))
    assert bcp47("zh_Hant") == "zh-Hant"


def test_a_language_is_found_under_the_name_that_a_corpus_has_for_it():
    assert find("no", ["nb", "en"]) == "nb"
    assert find("nob", ["nb", "no"]) == "no"
    assert find("nb", ["nb", "no"]) == "nb"
    assert find("be-tarask", ["be", "be_tarask"]) == "be_tarask"
    assert find("zh", ["zh_Hant"]) is None
    assert find("deu-eng", ["en-de", "en-fr"]) == "en-de"
    assert find("gsw", ["als", "sq"], from_wikipedia) == "als"
