"""What is known of languages by their codes: one code for each, and the scripts it is written in.

Settings name languages as their users do: `en`, `eng`, `zh_Hant`, `deu_1901`. Libraries know the
two-letter codes, and the scripts of a language are looked up under them too. A language that is
not listed is written in any script.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_LONGER_CODES = (
    "afr:af amh:am ara:ar arb:ar asm:as aze:az azj:az bel:be ben:bn bod:bo bos:bs bre:br "
    "bul:bg cat:ca ces:cs chi:zh cmn:zh cym:cy dan:da deu:de ell:el eng:en epo:eo est:et "
    "eus:eu ekk:et fas:fa pes:fa fin:fi fra:fr fry:fy gla:gd gle:ga glg:gl guj:gu hat:ht "
    "hau:ha heb:he hin:hi hrv:hr hun:hu hye:hy ibo:ig ind:id isl:is ita:it jav:jv jpn:ja "
    "kan:kn kat:ka kaz:kk khm:km khk:mn kin:rw kir:ky kmr:ku kor:ko kur:ku lao:lo lat:la "
    "lav:lv lvs:lv lit:lt lug:lg mal:ml mar:mr mkd:mk mlg:mg plt:mg mon:mn msa:ms zsm:ms "
    "mya:my nep:ne npi:ne nld:nl nno:nn nob:no nb:no nor:no ori:or ory:or orm:om pan:pa "
    "pol:pl por:pt pus:ps pbt:ps ron:ro rus:ru san:sa sin:si slk:sk slv:sl sna:sn snd:sd "
    "som:so spa:es sqi:sq als:sq srp:sr sun:su swa:sw swe:sv swh:sw tam:ta tat:tt tel:te "
    "tgk:tg tgl:tl fil:tl tha:th tuk:tk tur:tr uig:ug ukr:uk urd:ur uzb:uz uzn:uz vie:vi "
    "xho:xh yid:yi ydd:yi yor:yo zho:zh zul:zu iw:he in:id ji:yi"
)
_THREE_LETTERS: Mapping[str, str] = dict(pair.split(":") for pair in _LONGER_CODES.split())

_LATIN = (
    "af az bs br ca cs cy da de en eo es et eu fi fr fy ga gd gl ha hr ht hu id ig is it jv la lg "
    "lt lv mg ms mt nl nn no om pl pt qu ro rw sk sl sn so sq st su sv sw tk tl tr uz vi wo xh yo "
    "zu"
)
_WRITTEN: Mapping[str, str] = {
    "LATIN": _LATIN,
    "CYRILLIC": "be bg kk ky mk mn ru tg tt uk",
    "ARABIC": "ar fa ps sd ug ur",
    "DEVANAGARI": "hi mr ne sa",
    "HEBREW": "he yi",
    "CJK": "zh yue",
    "CJK HIRAGANA KATAKANA": "ja",
    "HANGUL CJK": "ko",
    "BENGALI": "as bn",
    "LATIN CYRILLIC": "sr",
    "LATIN ARABIC": "ku",
}
_OF_THEIR_OWN = (
    "am:ETHIOPIC ti:ETHIOPIC bo:TIBETAN dz:TIBETAN el:GREEK grc:GREEK gu:GUJARATI hy:ARMENIAN "
    "ka:GEORGIAN km:KHMER kn:KANNADA lo:LAO ml:MALAYALAM my:MYANMAR or:ORIYA pa:GURMUKHI "
    "si:SINHALA ta:TAMIL te:TELUGU th:THAI"
)

SCRIPTS: Mapping[str, tuple[str, ...]] = {
    **{
        code: tuple(scripts.split())
        for scripts, codes in _WRITTEN.items()
        for code in codes.split()
    },
    **{code: (script,) for code, script in (pair.split(":") for pair in _OF_THEIR_OWN.split())},
}
"""Language -> scripts, each the first word of its letters' Unicode names."""

_SUBTAGS: Mapping[str, tuple[str, ...]] = {
    "arab": ("ARABIC",),
    "beng": ("BENGALI",),
    "cyrl": ("CYRILLIC",),
    "deva": ("DEVANAGARI",),
    "grek": ("GREEK",),
    "hans": ("CJK",),
    "hant": ("CJK",),
    "hebr": ("HEBREW",),
    "latn": ("LATIN",),
    "mong": ("MONGOLIAN",),
}


def plain_code(language: str) -> str:
    """The shortest code of a language: `en` for `eng`, `zh` for `zh_Hant`."""
    code = language.replace("-", "_").split("_")[0].lower()
    return _THREE_LETTERS.get(code, code)


def scripts_of(language: str) -> tuple[str, ...]:
    """The scripts a language is written in, or the one its own name says (`sr_Latn`)."""
    for part in language.replace("-", "_").split("_")[1:]:
        if part.lower() in _SUBTAGS:
            return _SUBTAGS[part.lower()]
    return SCRIPTS.get(plain_code(language), ())
