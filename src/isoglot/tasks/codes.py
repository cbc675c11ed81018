"""Language codes: the two-letter one where there is one, whatever a distribution's files use."""

from __future__ import annotations

# fmt: off
_TWO_LETTERS = {
    "afr": "af", "amh": "am", "ara": "ar", "arb": "ar", "aze": "az", "bel": "be", "ben": "bn",
    "bos": "bs", "bre": "br", "bul": "bg", "cat": "ca", "ces": "cs", "cmn": "zh", "cym": "cy",
    "dan": "da", "deu": "de", "ell": "el", "eng": "en", "epo": "eo", "esp": "es", "est": "et",
    "eus": "eu", "fao": "fo", "fin": "fi", "fra": "fr", "gla": "gd", "gle": "ga", "glg": "gl",
    "hau": "ha", "heb": "he", "hin": "hi", "hrv": "hr", "hun": "hu", "hye": "hy", "ibo": "ig",
    "ido": "io", "ile": "ie", "ina": "ia", "ind": "id", "isl": "is", "ita": "it", "jav": "jv",
    "jp": "ja", "jpn": "ja", "kat": "ka", "kaz": "kk", "khm": "km", "kin": "rw", "kor": "ko",
    "kur": "ku", "lat": "la", "lav": "lv", "lit": "lt", "lug": "lg", "mal": "ml", "mar": "mr",
    "mkd": "mk", "mon": "mn", "ned": "nl", "nld": "nl", "nno": "nn", "nob": "nb", "oci": "oc",
    "pes": "fa", "pol": "pl", "por": "pt", "ron": "ro", "rus": "ru", "slk": "sk", "slv": "sl",
    "spa": "es", "sqi": "sq", "srp": "sr", "swa": "sw", "swe": "sv", "swh": "sw", "tam": "ta",
    "tat": "tt", "tel": "te", "tgl": "tl", "tha": "th", "tuk": "tk", "tur": "tr", "uig": "ug",
    "ukr": "uk", "urd": "ur", "uzb": "uz", "vie": "vi", "wol": "wo", "xho": "xh", "yid": "yi",
    "yor": "yo", "zho": "zh", "zsm": "ms", "zul": "zu",
}
# fmt: on
"""`esp` and `ned` are CoNLL-2002's own; `jp` is the Amazon reviews'."""

_NAMES = {
    "arabic": "ar",
    "bengali": "bn",
    "english": "en",
    "finnish": "fi",
    "indonesian": "id",
    "japanese": "ja",
    "korean": "ko",
    "russian": "ru",
    "swahili": "sw",
    "telugu": "te",
    "thai": "th",
}
"""The names that TyDi QA's files and question ids use."""


def two_letters(code: str) -> str:
    """The two-letter code of a language; one that has none keeps its own."""
    return _NAMES.get(code) or _TWO_LETTERS.get(code, code)


def english_name(code: str) -> str | None:
    """TyDi QA's name of a language, if it is one of its eleven."""
    return next((name for name, short in _NAMES.items() if short == code), None)
