"""An existing model with another vocabulary: transplanted, grown or trimmed.

transplant(source, tokenizer, out, ...)  another tokenizer's vocabulary on the source's body
grow(source, out, words, ...)            more words, the old ones untouched
trim(source, out, texts=...)             the tokens that some text uses
"""

from isoglot.models.transplant.dictionary import Dictionary, read_dictionaries
from isoglot.models.transplant.grow import grow
from isoglot.models.transplant.matching import KINDS, Matches, match
from isoglot.models.transplant.report import Report
from isoglot.models.transplant.run import transplant
from isoglot.models.transplant.settings import TransplantConfig
from isoglot.models.transplant.tokens import Tokens
from isoglot.models.transplant.trim import trim, trim_to
from isoglot.models.transplant.used import read_words, split_words

__all__ = [
    "KINDS",
    "Dictionary",
    "Matches",
    "Report",
    "Tokens",
    "TransplantConfig",
    "grow",
    "match",
    "read_dictionaries",
    "read_words",
    "split_words",
    "transplant",
    "trim",
    "trim_to",
]
