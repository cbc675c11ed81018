"""The third stage: the tokenizer is trained on a sample of the cleaned text, or taken as given."""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from isoglot.corpus.cleaned import Stretch
from isoglot.corpus.corpus import TOKENIZER_FOLDER
from isoglot.corpus.disk import writing
from isoglot.corpus.encode import TokenizerFacts
from isoglot.corpus.fast import Form
from isoglot.corpus.fit import byte_ids
from isoglot.corpus.manifest import TokenizerEntry, file_entry
from isoglot.corpus.pieces import MODEL_FILE, TokenizerConfig, takes_pieces, train_tokenizer
from isoglot.corpus.pretokenize import Name, Pretokenization
from isoglot.corpus.sampling import sample
from isoglot.corpus.tokenizer import (
    derive_vocabulary,
    fingerprint_of_tokenizer,
    open_tokenizer,
    save_vocabulary,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenizerTask:
    """All that is needed to make the tokenizer, here or elsewhere."""

    config: TokenizerConfig
    form: Form
    """The Unicode form of the cleaned text."""
    pretokenize: dict[str, Name]
    given: Path | None
    """The folder of a tokenizer to take as it is."""
    inputs: tuple[str, ...]
    """SHA-256 of the given tokenizer's files."""
    stretches: tuple[Stretch, ...]
    """The text to train on; none where a tokenizer is given."""
    sentences: dict[str, int]
    """Language -> sentences in it, repeated ones left out."""
    folder: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeTokenizer:
    """The tokenizer of a corpus, written."""

    entry: TokenizerEntry
    facts: TokenizerFacts
    seconds: float


def is_whole(task: TokenizerTask, made: MadeTokenizer) -> bool:
    """Are the files of a finished tokenizer still there?"""
    paths = [(task.folder / Path(entry.file).name, entry.bytes) for entry in made.entry.files]
    return all(path.is_file() and path.stat().st_size == size for path, size in paths)


def make_tokenizer(task: TokenizerTask) -> MadeTokenizer:
    """Trains or copies the tokenizer."""
    started, folder, config = time.monotonic(), task.folder, task.config
    # an earlier attempt with other settings may have left files of its own
    shutil.rmtree(folder, ignore_errors=True)
    if task.given is None:
        sentences = sample(
            task.stretches,
            task.sentences,
            alpha=config.alpha,
            limit=config.max_sentences,
            seed=config.seed,
        )
        train_tokenizer(sentences, config, folder, form=task.form)
    else:
        given = open_tokenizer(task.given)
        with writing(folder):
            given.save_pretrained(str(folder))
            if takes_pieces(task.given, given, task.form):
                shutil.copyfile(task.given / MODEL_FILE, folder / MODEL_FILE)
    Pretokenization(task.pretokenize).save(folder)
    tokenizer = open_tokenizer(folder)
    vocabulary = derive_vocabulary(tokenizer, task.given or folder)
    save_vocabulary(folder, vocabulary)
    files = tuple(
        file_entry(path, f"{TOKENIZER_FOLDER}/{path.name}") for path in sorted(folder.iterdir())
    )
    unknown = tokenizer.unk_token_id
    return MadeTokenizer(
        entry=TokenizerEntry(
            fingerprint=fingerprint_of_tokenizer(tokenizer, vocabulary, task.pretokenize),
            size=vocabulary.size,
            files=files,
        ),
        facts=TokenizerFacts(
            folder=folder,
            sha256=sha256("".join(file.sha256 for file in files).encode()).hexdigest(),
            pieces=(folder / MODEL_FILE).is_file(),
            forbidden=tuple(index for index in vocabulary.special if index != unknown),
            unknown=unknown,
            spelled=byte_ids(tokenizer.get_vocab()),
        ),
        seconds=time.monotonic() - started,
    )
