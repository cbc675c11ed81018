"""The tokenizer stage: trains a tokenizer on the words of a sample (`sample`), or copies one."""

from __future__ import annotations

import json
import re
import shutil
import time
from dataclasses import dataclass, field, fields
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from isoglot.atomic import write_bytes, write_errors
from isoglot.corpus.cleaning.sentences import UnicodeForm
from isoglot.corpus.storage.corpus import TOKENIZER_FOLDER
from isoglot.corpus.storage.manifest import TokenizerEntry
from isoglot.corpus.storage.shards import FileEntry
from isoglot.corpus.tokenization import sentencepiece
from isoglot.corpus.tokenization.encode import TokenizerInfo
from isoglot.corpus.tokenization.encoders import fastest_encoder
from isoglot.corpus.tokenization.hf_tokenizer import save_hf_tokenizer, train_word_level
from isoglot.corpus.tokenization.pretokenization import Method, Pretokenizer
from isoglot.corpus.tokenization.vocabulary import (
    derive_vocabulary,
    open_tokenizer,
    save_vocabulary,
    tokenizer_fingerprint,
)
from isoglot.corpus.tokenization.word_counts import count_words, read_words
from isoglot.ranges import Range, Seed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_BYTE_TOKEN = re.compile(r"<0x[0-9A-F]{2}>")


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenizerConfig:
    """The tokenizer of a corpus: taken from a folder, or trained on the corpus."""

    folder: str | None = None
    """A tokenizer to use as it is: its folder, a model, a run, a corpus or a Hugging Face name."""
    model: Literal["unigram", "bpe", "word"] = "unigram"
    """How text is segmented: into pieces of SentencePiece (unigram, bpe), or the most frequent
    words."""
    vocab_size: Annotated[int, Range(1, 2**24)] = 32_000
    """Number of ids, special tokens included; fewer if the text does not have as many pieces."""
    alpha: Annotated[float, Range(-10, 10)] = 0.5
    """Languages are sampled by (number of sentences)^alpha; 1 is as they are, 0 all alike."""
    max_sentences: Annotated[int, Range(1, 10**9)] = 1_000_000
    """Most sentences to train on."""
    character_coverage: Annotated[float, Range(0, 1, above=True)] = 0.9995
    """Share of the text's characters that get a piece of their own."""
    byte_fallback: bool = True
    """Whether a character without a piece becomes bytes (256 ids) rather than unknown; a word
    without an id is always unknown."""
    pretokenize: dict[str, Method] = field(default_factory=dict)
    """Language (`*`: every other) -> how its text is split into words first: none, moses, thai,
    zh or indic."""
    seed: Seed = 0
    """Random seed of the sampled sentences."""

    def training_settings(self) -> list[str]:
        """The names of the settings of training that differ from their defaults."""
        default = TokenizerConfig()
        return [
            one.name
            for one in fields(self)
            if one.name != "folder" and getattr(self, one.name) != getattr(default, one.name)
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenizerTask:
    """Everything that building the tokenizer reads."""

    config: TokenizerConfig
    form: UnicodeForm
    """The Unicode form of the cleaned text."""
    pretokenize: dict[str, Method]
    given: Path | None
    """The folder of a tokenizer to use as it is."""
    inputs: tuple[str, ...]
    """SHA-256 of the given tokenizer's files."""
    sample: tuple[tuple[Path, str], ...]
    """Files of counted words to train on, with their SHA-256; none where a tokenizer is given."""
    folder: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltTokenizer:
    """The tokenizer of a corpus, written."""

    entry: TokenizerEntry
    info: TokenizerInfo
    seconds: float


def is_complete(task: TokenizerTask, built: BuiltTokenizer) -> bool:
    """Whether the files of a finished tokenizer are still there."""
    paths = [(task.folder / Path(entry.file).name, entry.bytes) for entry in built.entry.files]
    return all(path.is_file() and path.stat().st_size == size for path, size in paths)


def build_tokenizer(task: TokenizerTask) -> BuiltTokenizer:
    """Trains or copies the tokenizer."""
    started, folder, config = time.monotonic(), task.folder, task.config
    # an earlier attempt with other settings may have left files of its own
    shutil.rmtree(folder, ignore_errors=True)
    if task.given is None:
        words = read_words([path for path, _ in task.sample])
        train_on_words(words, config, folder, form=task.form)
    else:
        given = open_tokenizer(task.given)
        with write_errors(folder):
            given.save_pretrained(str(folder))
            if sentencepiece.gives_same_ids(task.given, given, task.form):
                model = sentencepiece.MODEL_FILE
                shutil.copyfile(task.given / model, folder / model)
    Pretokenizer(task.pretokenize).save(folder)
    tokenizer = open_tokenizer(folder)
    vocabulary = derive_vocabulary(tokenizer, task.given or folder)
    save_vocabulary(folder, vocabulary)
    files = tuple(
        FileEntry.of(path, f"{TOKENIZER_FOLDER}/{path.name}") for path in sorted(folder.iterdir())
    )
    unknown = tokenizer.unk_token_id
    sections = json.loads(tokenizer.backend_tokenizer.to_str())
    has_model = (folder / sentencepiece.MODEL_FILE).is_file()
    return BuiltTokenizer(
        entry=TokenizerEntry(
            fingerprint=tokenizer_fingerprint(tokenizer, vocabulary, task.pretokenize),
            size=vocabulary.size,
            files=files,
        ),
        info=TokenizerInfo(
            folder=folder,
            sha256=sha256("".join(file.sha256 for file in files).encode()).hexdigest(),
            encoder="sentencepiece" if has_model else fastest_encoder(sections),
            special=tuple(index for index in vocabulary.special if index != unknown),
            unknown=unknown,
            byte_tokens=byte_token_ids(tokenizer.get_vocab()),
        ),
        seconds=time.monotonic() - started,
    )


def train_tokenizer(
    sentences: Iterable[str], config: TokenizerConfig, folder: Path, *, form: UnicodeForm = "NFC"
) -> None:
    """Trains on sentences of this Unicode form, and writes a tokenizer that normalizes to it."""
    train_on_words(count_words(sentences), config, folder, form=form)


def train_on_words(
    words: Mapping[str, int], config: TokenizerConfig, folder: Path, *, form: UnicodeForm
) -> None:
    """Trains on counted words of this Unicode form."""
    if config.model == "word":
        save_hf_tokenizer(train_word_level(words, config.vocab_size), folder, form)
        return
    model = sentencepiece.train_sentencepiece(words, config)
    write_bytes(folder / sentencepiece.MODEL_FILE, model)
    converted = sentencepiece.to_hf_model(model, config.model, byte_fallback=config.byte_fallback)
    save_hf_tokenizer(converted, folder, form)


def byte_token_ids(pieces: Mapping[str, int]) -> tuple[int, ...]:
    """The ids of the pieces that are single bytes, as `<0x41>`."""
    return tuple(sorted(number for piece, number in pieces.items() if _BYTE_TOKEN.fullmatch(piece)))
