"""Pretokenization: texts are split into words by rules of their language before the tokenizer.

XLM and its successors do this: Moses for most languages, dictionaries for Chinese and Thai, which
write no spaces. Unlike theirs, only spaces are inserted: removing them restores the text. It serves
reproductions and word-level vocabularies; a SentencePiece unigram vocabulary does not need it.
pretokenize.json in a tokenizer's folder says what was done to its training text.
"""

from __future__ import annotations

import json
import logging
import unicodedata
import warnings
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Literal, get_args

from isoglot import json_text
from isoglot.atomic import write_text
from isoglot.corpus.tokenization.vocabulary import NO_SPACES, open_tokenizer
from isoglot.errors import CorpusError, RecipeError, nearest
from isoglot.languages import canonical, plain_code

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

Method = Literal["none", "moses", "thai", "zh", "indic"]
"""How text is split into words; `none` leaves it unchanged."""

FILE = "pretokenize.json"
OTHERS = "*"
"""Stands for every language that is not named."""


class TextTokenizer:
    """A Hugging Face tokenizer with the pretokenization of its training text."""

    def __init__(self, tokenizer: Any, pretokenizer: Pretokenizer) -> None:
        self.tokenizer, self.pretokenizer = tokenizer, pretokenizer

    @classmethod
    def open(cls, folder: Path) -> TextTokenizer:
        """The tokenizer of a folder."""
        return cls(open_tokenizer(folder), Pretokenizer.load(folder))

    def encode(self, texts: Sequence[str], language: str) -> list[list[int]]:
        """The token ids of each text; a text that spells a special token stays plain text."""
        if not texts:
            return []  # transformers' tokenizers fail on an empty list
        words = [self.pretokenizer.apply(text, language) for text in texts]
        found = self.tokenizer(words, add_special_tokens=False, split_special_tokens=True)
        ids: list[list[int]] = found["input_ids"]
        return ids

    def decode(self, ids: Any, language: str) -> list[str]:
        """The text of each row of ids, on one line, words joined as people write them."""
        join = detokenizer(self.pretokenizer.method_of(language), language)
        texts = self.tokenizer.batch_decode(ids, skip_special_tokens=True)
        return [join(" ".join(text.splitlines()).strip()) for text in texts]


class Pretokenizer:
    """Language -> how its text is split into words."""

    def __init__(self, methods: Mapping[str, Method]) -> None:
        """`*` stands for every other language. Libraries are imported when first used."""
        for language, method in methods.items():
            if method not in get_args(Method):
                raise RecipeError(
                    f"pretokenize.{language}: {method!r} is not a way to pretokenize; "
                    f"{nearest(method, get_args(Method))}"
                )
        self.methods = dict(methods)
        self._by_code = {canonical(language): method for language, method in methods.items()}

    def method_of(self, language: str) -> Method:
        """The method for one language."""
        return self._by_code.get(canonical(language), self._by_code.get(OTHERS, "none"))

    def apply(self, text: str, language: str) -> str:
        """The words of a text with single spaces between them."""
        method = self.method_of(language)
        if method == "none":
            return text
        return " ".join(word for word in _splitter(method, language)(text) if word.strip())

    def check(self) -> None:
        """Raises unless every library that is needed is installed."""
        for method in set(self.methods.values()) - {"none"}:
            _splitter(method, "en")

    def save(self, folder: Path) -> None:
        """Writes pretokenize.json into a tokenizer's folder, unless no language is named."""
        if self.methods:
            write_text(folder / FILE, json.dumps(self.methods, indent=1, sort_keys=True) + "\n")

    @classmethod
    def load(cls, folder: Path) -> Pretokenizer:
        """What pretokenize.json in a tokenizer's folder says; no pretokenization without one."""
        path = folder / FILE
        try:
            methods = json_text.parse(path.read_text("utf-8"))
            return cls({str(language): method for language, method in methods.items()})
        except FileNotFoundError:
            return cls({})
        except (OSError, ValueError, AttributeError) as error:
            raise CorpusError(
                f"{path}: is damaged ({error}). Copy it again with its tokenizer."
            ) from error


@cache
def _splitter(method: Method, language: str) -> Callable[[str], list[str]]:
    """The function of a method for one language; loaded once in a process."""
    code = plain_code(language)
    try:
        match method:
            case "moses":
                # keeps the language's abbreviations whole, English ones for an unknown language
                from sacremoses import MosesTokenizer

                return partial(MosesTokenizer(code).tokenize, escape=False)
            case "thai":
                # longest dictionary words; the safe engine has bounded time
                from pythainlp.tokenize import word_tokenize

                return partial(word_tokenize, engine="newmm-safe", keep_whitespace=False)
            case "zh":
                return _load_jieba()
            case "indic":
                # splits off Indic punctuation too; keeps numbers and dates whole
                from indicnlp.tokenize.indic_tokenize import trivial_tokenize

                return partial(trivial_tokenize, lang=code)
            case "none":
                return lambda text: [text]
    except ImportError as error:
        raise CorpusError(
            f"pretokenize: {method!r} needs one more package ({error}). "
            "Run: pip install 'isoglot[pretokenize]'"
        ) from error


def _load_jieba() -> Callable[[str], list[str]]:
    """Jieba splits Chinese by a dictionary, and a model of unknown words."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it uses the deprecated pkg_resources
        import jieba

    jieba.setLogLevel(logging.WARNING)
    jieba.initialize()
    split: Callable[[str], list[str]] = jieba.lcut
    return split


def detokenizer(method: Method, language: str) -> Callable[[str], str]:
    """A function from words with spaces between them to text as people write it.

    Where two texts have the same words (`3 %` and `3%`), it gives the usual one.
    """
    code = plain_code(language)
    try:
        match method:
            case "none":
                return str
            case "moses":
                from sacremoses import MosesDetokenizer

                moses = MosesDetokenizer(code)
                return lambda words: str(moses.detokenize(words.split(), unescape=False))
            case "indic":
                from indicnlp.tokenize.indic_detokenize import trivial_detokenize

                return lambda words: str(trivial_detokenize(words, code))
            case "thai" | "zh":
                return _join_without_spaces
    except ImportError as error:
        raise CorpusError(
            f"joining words that {method!r} split needs one more package ({error}). "
            "Run: pip install 'isoglot[pretokenize]'"
        ) from error


_OPENING, _CLOSING = "([{", ",.;:!?%)]}"


def _join_without_spaces(words: str) -> str:
    """The words without spaces, except between words of other scripts and numbers."""
    text = ""
    for word in words.split():
        after, before = text[-1:], word[0]
        apart = _is_spaced(after) and _is_spaced(before)
        apart = apart and after not in _OPENING and before not in _CLOSING
        text += f" {word}" if apart else word
    return text


def _is_spaced(character: str) -> bool:
    """Whether its script writes spaces beside this character; not beside wide signs, as `。`."""
    wide = unicodedata.east_asian_width(character) in "WF" if character else True
    return not wide and not NO_SPACES.match(character)
