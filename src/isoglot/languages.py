"""Language codes: the one table that dumps, data sets, corpora, recipes and results share.

A language's code is its BCP 47 tag in Unicode's canonical form, with `_` between subtags: `en`,
`zh_Hant`, `be_tarask`. The `-` joins the two languages of a pair: `en-zh_Hant`. Wherever a person
or a file names a language, other spellings are read too: `eng`, `ger`, `zh-min-nan`, `zh-Hant`.

    spelling --canonical--> code     `nob`, `nb` -> `no`;  `zh-min-nan` -> `nan`;  `por` -> `pt`
    spelling --canonical_pair--> pair      `deu-eng` -> `de-en`;  `en-be-tarask` -> `en-be_tarask`
    Wikipedia's code --from_wikipedia--> code      `als` -> `gsw`, where ISO's `als` is Albanian

Codes of members that stand for their macrolanguage (`arb`, `cmn`, `swh`) become that of the
macrolanguage, as in CLDR; `fil`, `nb` and `sh` become or stay what Wikipedia and XTREME call them.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping


def _pairs(text: str) -> dict[str, str]:
    return dict(pair.split(":") for pair in text.split())


# fmt: off
_ISO_639 = """
aa aar Afar; ab abk Abkhazian; ae ave Avestan; af afr Afrikaans; ak aka Akan; am amh Amharic;
an arg Aragonese; ar ara Arabic; as asm Assamese; av ava Avaric; ay aym Aymara; az aze Azerbaijani;
ba bak Bashkir; be bel Belarusian; bg bul Bulgarian; bi bis Bislama; bm bam Bambara; bn ben Bengali;
bo bod/tib Tibetan; br bre Breton; bs bos Bosnian; ca cat Catalan; ce che Chechen; ch cha Chamorro;
co cos Corsican; cr cre Cree; cs ces/cze Czech; cu chu Church Slavic; cv chv Chuvash;
cy cym/wel Welsh; da dan Danish; de deu/ger German; dv div Divehi; dz dzo Dzongkha; ee ewe Ewe;
el ell/gre Greek; en eng English; eo epo Esperanto; es spa Spanish; et est Estonian;
eu eus/baq Basque; fa fas/per Persian; ff ful Fula; fi fin Finnish; fj fij Fijian; fo fao Faroese;
fr fra/fre French; fy fry Western Frisian; ga gle Irish; gd gla Scottish Gaelic; gl glg Galician;
gn grn Guarani; gu guj Gujarati; gv glv Manx; ha hau Hausa; he heb Hebrew; hi hin Hindi;
ho hmo Hiri Motu; hr hrv Croatian; ht hat Haitian Creole; hu hun Hungarian; hy hye/arm Armenian;
hz her Herero; ia ina Interlingua; id ind Indonesian; ie ile Interlingue; ig ibo Igbo;
ii iii Sichuan Yi; ik ipk Inupiaq; io ido Ido; is isl/ice Icelandic; it ita Italian;
iu iku Inuktitut; ja jpn Japanese; jv jav Javanese; ka kat/geo Georgian; kg kon Kongo;
ki kik Kikuyu; kj kua Kuanyama; kk kaz Kazakh; kl kal Kalaallisut; km khm Khmer; kn kan Kannada;
ko kor Korean; kr kau Kanuri; ks kas Kashmiri; ku kur Kurdish; kv kom Komi; kw cor Cornish;
ky kir Kyrgyz; la lat Latin; lb ltz Luxembourgish; lg lug Ganda; li lim Limburgish; ln lin Lingala;
lo lao Lao; lt lit Lithuanian; lu lub Luba-Katanga; lv lav Latvian; mg mlg Malagasy;
mh mah Marshallese; mi mri/mao Māori; mk mkd/mac Macedonian; ml mal Malayalam; mn mon Mongolian;
mr mar Marathi; ms msa/may Malay; mt mlt Maltese; my mya/bur Burmese; na nau Nauru;
nd nde North Ndebele; ne nep Nepali; ng ndo Ndonga; nl nld/dut Dutch; nn nno Norwegian Nynorsk;
no nor Norwegian; nr nbl South Ndebele; nv nav Navajo; ny nya Nyanja; oc oci Occitan; oj oji Ojibwa;
om orm Oromo; or ori Odia; os oss Ossetic; pa pan Punjabi; pi pli Pali; pl pol Polish;
ps pus Pashto; pt por Portuguese; qu que Quechua; rm roh Romansh; rn run Rundi; ro ron/rum Romanian;
ru rus Russian; rw kin Kinyarwanda; sa san Sanskrit; sc srd Sardinian; sd snd Sindhi;
se sme Northern Sami; sg sag Sango; sh hbs Serbo-Croatian; si sin Sinhala; sk slk/slo Slovak;
sl slv Slovenian; sm smo Samoan; sn sna Shona; so som Somali; sq sqi/alb Albanian; sr srp Serbian;
ss ssw Swati; st sot Southern Sotho; su sun Sundanese; sv swe Swedish; sw swa Swahili; ta tam Tamil;
te tel Telugu; tg tgk Tajik; th tha Thai; ti tir Tigrinya; tk tuk Turkmen; tl tgl Tagalog;
tn tsn Tswana; to ton Tongan; tr tur Turkish; ts tso Tsonga; tt tat Tatar; tw twi Twi;
ty tah Tahitian; ug uig Uyghur; uk ukr Ukrainian; ur urd Urdu; uz uzb Uzbek; ve ven Venda;
vi vie Vietnamese; vo vol Volapük; wa wln Walloon; wo wol Wolof; xh xho Xhosa; yi yid Yiddish;
yo yor Yoruba; za zha Zhuang; zh zho/chi Chinese; zu zul Zulu
"""
"""Two-letter code, three-letter codes (ISO 639-2/T and 639-3, then 639-2/B), English name."""
_OTHER_NAMES = """
ang Old English; arq Algerian Arabic; ary Moroccan Arabic; arz Egyptian Arabic; ast Asturian;
azb South Azerbaijani; be_tarask Belarusian (Taraškievica); bho Bhojpuri; ceb Cebuano;
ckb Central Kurdish; crh Crimean Tatar; csb Kashubian; dsb Lower Sorbian; en_simple Simple English;
fon Fon; fur Friulian; gan Gan Chinese; grc Ancient Greek; gsw Swiss German; hak Hakka Chinese;
hsb Upper Sorbian; ilo Iloko; kab Kabyle; lij Ligurian; lmo Lombard; luo Luo; lzh Literary Chinese;
mai Maithili; min Minangkabau; mwl Mirandese; myv Erzya; nan Min Nan Chinese; nap Neapolitan;
nds Low German; nso Northern Sotho; pam Pampanga; pap Papiamento; pcm Nigerian Pidgin;
pms Piedmontese; pnb Western Punjabi; rup Aromanian; sah Yakut; scn Sicilian; sco Scots;
sgs Samogitian; szl Silesian; tpi Tok Pisin; udm Udmurt; vec Venetian; vro Võro; war Waray;
wuu Wu Chinese; yue Cantonese
"""
# fmt: on
_ALIASES = (
    # members that stand for their macrolanguage in CLDR
    "als:sq arb:ar ayr:ay azj:az cmn:zh ekk:et gaz:om gug:gn ike:iu khk:mn kmr:ku kpv:kv lvs:lv "
    "npi:ne ory:or pbt:ps pbu:ps pes:fa plt:mg quz:qu src:sc swh:sw uzn:uz ydd:yi zsm:ms zyb:za "
    # older codes, and two names of one language
    "bh:bho bih:bho eml:egl fil:tl in:id iw:he ji:yi jw:jv mo:ro mol:ro nb:no nob:no scc:sr "
    "scr:hr "
    # tags of BCP 47 that are registered whole, and Wikipedia's own codes with a hyphen
    "bat-smg:sgs be-x-old:be_tarask cbk-zam:cbk fiu-vro:vro map-bms:jv_x_bms no-bok:no no-nyn:nn "
    "roa-rup:rup roa-tara:nap_x_tara simple:en_simple zh-classical:lzh zh-cmn:zh zh-gan:gan "
    "zh-guoyu:zh zh-hakka:hak zh-min-nan:nan zh-wuu:wuu zh-xiang:hsn zh-yue:yue "
    # CoNLL-2002's codes, and the Amazon reviews'
    "esp:es ned:nl jp:ja"
)
_USUAL_SCRIPTS = {
    "Arab": "ar fa ps ur",
    "Cyrl": "be bg mk ru uk",
    "Deva": "hi mr ne",
    "Hebr": "he yi",
    "Latn": "af ca cs cy da de en eo es et eu fi fo fr fy ga gd gl ha hr ht hu id ig is it jv la "
    "lb lg lt lv mg mi mt nl nn no nso om pl pt ro rw sk sl sn so sq ss st su sv sw tl tn tr ts vi "
    "wo xh yo zu",
    **_pairs(
        "Armn:hy Beng:bn Ethi:am Geor:ka Grek:el Gujr:gu Hang:ko Jpan:ja Khmr:km Knda:kn Kore:ko "
        "Laoo:lo Mlym:ml Mymr:my Orya:or Sinh:si Taml:ta Telu:te Thai:th"
    ),
}
"""Script -> languages that are written in it unless their code says another (Suppress-Script)."""
_WIKIPEDIA_ALIASES = "als:gsw nds-nl:nds_NL nrm:nrf"
"""Wikipedia's codes that mean another language, or a pair, elsewhere."""


_ROWS = [row.split(maxsplit=2) for row in _ISO_639.strip().split(";")]
_CODES: Mapping[str, str] = {
    longer: code for code, codes, _ in _ROWS for longer in codes.split("/")
} | _pairs(_ALIASES)
_USUAL = {(code, script) for script, codes in _USUAL_SCRIPTS.items() for code in codes.split()}
_IN_WIKIPEDIA: Mapping[str, str] = _pairs(_WIKIPEDIA_ALIASES)
_MORE_ROWS = [row.split(maxsplit=1) for row in _OTHER_NAMES.strip().split(";")]
NAMES: Mapping[str, str] = {row[0]: row[-1] for row in (*_ROWS, *_MORE_ROWS)}
"""Code -> English name, of the languages that have a two-letter code and of some others."""
_BY_NAME = {name.lower(): code for code, name in NAMES.items()}

_LANGUAGE = re.compile(r"[A-Za-z0-9]{1,16}")
_SUBTAG = re.compile(r"[A-Za-z0-9]{1,8}")
_UNLIKE_LANGUAGES = re.compile(r"[A-Za-z]{4}|[A-Z]{2}|\d{3}|\w{5,8}|\d\w{3}|x")
"""Scripts, regions in capitals, variants: subtags that are not taken for a second language."""


@cache
def canonical(code: str) -> str:
    """The code of a language in any spelling; an unknown one is returned with its own subtags."""
    tag = code.strip().replace("_", "-")
    whole = _CODES.get(tag.lower())
    if whole is not None:
        return whole
    first, *rest = tag.split("-")
    language = _CODES.get(first.lower(), first.lower())
    subtags = [subtag for subtag in map(_subtag, rest) if (language, subtag) not in _USUAL]
    return "_".join([language, *subtags])


def from_wikipedia(code: str) -> str:
    """The code of the language of a Wikipedia, by the code that Wikipedia uses for it."""
    return _IN_WIKIPEDIA.get(code.lower().replace("_", "-")) or canonical(code)


@cache
def wikipedia_database(language: str) -> str:
    """The name of a Wikipedia's database, such as `enwiki` and `zh_min_nanwiki`."""
    named = {code: name for name, code in {**_hyphenated(), **_IN_WIKIPEDIA}.items()}
    code = from_wikipedia(language)
    return named.get(code, code).lower().replace("-", "_") + "wiki"


def _hyphenated() -> dict[str, str]:
    """Wikipedia's own codes; where two name one language, its database has the last."""
    own = "bat-smg be-x-old cbk-zam eml fiu-vro map-bms roa-rup roa-tara simple zh-classical"
    return {name: _CODES[name] for name in f"{own} bh zh-min-nan zh-yue".split()}


@cache
def three_letter_code(code: str) -> str:
    """The code of ISO 639-3 of a language without script and region: `swa` for `sw`."""
    plain = plain_code(code)
    return next((codes.split("/")[0] for short, codes, _ in _ROWS if short == plain), plain)


def plain_code(code: str) -> str:
    """The language alone, without script, region and variant: `zh` for `zh_Hant` and `zho`."""
    return canonical(code).partition("_")[0]


def bcp47(code: str) -> str:
    """The tag that HTML and other software read: `zh-Hant`."""
    return canonical(code).replace("_", "-")


def find(
    code: str, available: Iterable[str], reading: Callable[[str], str] = canonical
) -> str | None:
    """The name that a collection has for a language or pair, spelled as it may be; None: none.

    `reading` gives the code of each available name.
    """
    names = list(available)
    wanted = canonical_name(code)
    for same in (code, wanted):
        if same in names:
            return same
    reverse = "-".join(reversed(wanted.split("-")))
    known = {"-".join(map(reading, name.split("-"))): name for name in reversed(names)}
    return known.get(wanted) or known.get(reverse)


def name_of(code: str) -> str:
    """The English name of a language; its code where it has none here."""
    return NAMES.get(canonical(code)) or NAMES.get(plain_code(code)) or code


def code_of_name(name: str) -> str | None:
    """The code of a language by its English name, `swahili`."""
    return _BY_NAME.get(name.lower())


def is_language(text: str) -> bool:
    """Whether a text can be the code of one language: letters, digits, no second language."""
    if text.lower() in _CODES:
        return True
    first, *rest = re.split("[-_]", text)
    after_hyphens = text.split("-")[1:]
    return (
        bool(_LANGUAGE.fullmatch(first))
        and all(map(_SUBTAG.fullmatch, rest))
        and all(_UNLIKE_LANGUAGES.fullmatch(part.partition("_")[0]) for part in after_hyphens)
    )


def is_pair(language: str) -> bool:
    """Whether a code is that of a pair (`en-de`): of question and context, or of two sides."""
    return "-" in language


def split_pair(text: str) -> tuple[str, str] | None:
    """The two languages of a pair as they are spelled; None if the text is no pair."""
    parts = text.strip().split("-")
    splits = [("-".join(parts[:n]), "-".join(parts[n:])) for n in range(1, len(parts))]
    both = [split for split in splits if all(map(is_language, split))]
    return both[0] if len(both) == 1 else None


def language_sides(language: str) -> tuple[str, str]:
    """The languages of the first and the second text of examples in `de`, or in `en-de`."""
    first, _, second = language.partition("-")
    return first, second or first


def canonical_pair(text: str) -> str | None:
    """The code of a pair of languages, `en-be_tarask`; None if the text is no pair."""
    sides = split_pair(text)
    return None if sides is None else "-".join(map(canonical, sides))


@cache
def canonical_name(text: str) -> str:
    """The code of a language or of a pair, whichever a text names.

    `be-tarask`, `zh-min-nan`, `zh-Hant` and `pt-BR` are languages; `pt-br` is a pair.
    """
    if is_language(text):
        return canonical(text)
    return canonical_pair(text) or canonical(text)


def _subtag(subtag: str) -> str:
    """A subtag as BCP 47 writes it: `Hant`, `BR`, `tarask`."""
    if subtag.isalpha() and len(subtag) == 4:
        return subtag.title()
    return subtag.upper() if subtag.isalpha() and len(subtag) == 2 else subtag.lower()
