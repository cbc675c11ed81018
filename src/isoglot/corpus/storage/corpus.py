"""A prepared corpus, opened: its manifest, its vocabulary and its tables of token ids.

Importing this module loads no raw readers, cleaning, tokenizer training or multiprocessing.
"""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from isoglot.corpus.storage.derived import key_of_index, open_index
from isoglot.corpus.storage.manifest import read_manifest, verify_files
from isoglot.corpus.storage.row_index import file_of_rows, open_rows
from isoglot.corpus.storage.shards import PREPARE_AGAIN, ShardFiles, Table, columns_of
from isoglot.errors import CorpusError, nearest
from isoglot.folders import corpus_folder
from isoglot.remote.corpora import cached_folder, fetch_files, fetch_manifest, url_of
from isoglot.remote.urls import as_url

if TYPE_CHECKING:
    from collections.abc import Callable

    from isoglot.corpus.knowledge.store import Knowledge
    from isoglot.corpus.storage.array_file import Arrays, ArrayWriter
    from isoglot.corpus.storage.manifest import Manifest, Verify
    from isoglot.corpus.storage.row_index import TableRows
    from isoglot.corpus.storage.shards import Split
    from isoglot.types import Vocabulary

TOKENIZER_FOLDER = "tokenizer"


class Corpus:
    """What `prepare` wrote. Cheap to pickle: it travels as its path and opens again lazily."""

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        """Use `Corpus.open`."""
        self.folder = folder
        self.manifest = manifest

    @classmethod
    def open(cls, folder: Path | str, *, verify: Verify = "auto") -> Corpus:
        """Opens a corpus and checks that its files are complete.

        A folder that holds a single corpus, as `corpora/testbed` does, stands for that corpus. Of
        a corpus by URL (`s3://bucket/corpus`) all but the shards is fetched into the cache of
        remote files; a shard is fetched, and checked, when it is first read.
        Sizes are always compared; contents (SHA-256) unless `verify` is "never", or "auto" and
        the corpus is over 2 GiB.
        """
        folder = local_folder(folder)
        manifest = read_manifest(folder)
        files = [*manifest.shards(), *manifest.tokenizer.files]
        if url_of(folder) is not None:
            files = [*manifest.tokenizer.files]
            fetch_files(folder, files)
        verify_files(folder, files, verify=verify, remedy=PREPARE_AGAIN)
        return cls(folder, manifest)

    @override
    def __reduce__(self) -> tuple[Any, ...]:
        return _reopen, (self.folder, self.fingerprint)

    @override
    def __repr__(self) -> str:
        return f"Corpus({self.url or str(self.folder)!r})"

    @cached_property
    def url(self) -> str | None:
        """Where a remote corpus is; none: its folder holds all of it."""
        return url_of(self.folder)

    @property
    def languages(self) -> tuple[str, ...]:
        """All languages, sorted; a language's id is its index."""
        return self.manifest.languages

    @property
    def fingerprint(self) -> str:
        """Equal for corpora that give the same batches, and for no others."""
        return self.manifest.fingerprint

    @property
    def tokenizer_folder(self) -> Path:
        """A Hugging Face tokenizer folder."""
        return self.folder / TOKENIZER_FOLDER

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """What batching needs to know of the tokenizer."""
        from isoglot.corpus.tokenization.vocabulary import load_vocabulary

        return load_vocabulary(self.tokenizer_folder)

    @property
    def has_knowledge(self) -> bool:
        """Is there knowledge in its folder? A run's record of its corpus has none."""
        from isoglot.corpus.knowledge.store import FOLDER, MANIFEST

        fetch_manifest(self.folder, f"{FOLDER}/{MANIFEST}")
        return (self.folder / FOLDER / MANIFEST).is_file()

    @cached_property
    def knowledge(self) -> Knowledge:
        """Its entities, descriptions, mentions and triples, if it has any of its tokenizer."""
        from isoglot.corpus.knowledge.store import FOLDER, MANIFEST, Knowledge

        fetch_manifest(self.folder, f"{FOLDER}/{MANIFEST}")
        return Knowledge.open(self.folder / FOLDER, tokenizer=self.manifest.tokenizer.fingerprint)

    def token_texts(self) -> list[str]:
        """The text of each token id, special tokens as they are written."""
        from isoglot.corpus.tokenization.vocabulary import open_tokenizer

        tokenizer = open_tokenizer(self.tokenizer_folder)
        ids = [[number] for number in range(self.vocabulary.size)]
        texts: list[str] = tokenizer.backend_tokenizer.decode_batch(ids, skip_special_tokens=False)
        return texts

    def sources(self, kind: str) -> list[str]:
        """The names of all sources of one kind, sorted."""
        return sorted(name for name, entry in self.manifest.sources.items() if entry.kind == kind)

    def tokens_of_languages(self) -> dict[str, int]:
        """Tokens to train on in each language, in text and in either side of pairs."""
        found = dict.fromkeys(self.languages, 0)
        for entry in self.manifest.sources.values():
            for name, splits in entry.languages.items():
                codes = name.split("-") if entry.kind == "pairs" else [name]
                tokens = splits["train"].tokens
                for code, column in zip(codes, columns_of(entry.kind), strict=True):
                    found[code] += tokens.get(column, 0)
        return found

    def table(self, source: str, language: str, split: Split) -> Table:
        """The rows of one split of one language (or pair) of a source."""
        if source not in self.manifest.sources:
            hint = nearest(source, self.manifest.sources)
            raise CorpusError(f"{self.folder}: has no source {source!r}; {hint}")
        entry = self.manifest.sources[source]
        if language not in entry.languages:
            hint = nearest(language, entry.languages)
            raise CorpusError(f"{self.folder}: source {source!r} has no {language!r}; {hint}")
        entries = entry.languages[language][split].shards
        files, num_rows = [shard.file for shard in entries], [shard.rows for shard in entries]
        return Table(columns_of(entry.kind), ShardFiles(self.folder, files, num_rows))

    def rows(self, source: str, language: str, split: Split) -> TableRows:
        """The lengths of the rows of a table, from the index."""
        table = self.table(source, language, split)
        if self.url is not None:
            file = file_of_rows(source, language, split)
            fetch_files(self.folder, [one for one in self.manifest.index if one.file == file])
        return open_rows(self.folder, self.fingerprint, table, source, language, split)

    def index(
        self,
        name: str,
        settings: tuple[object, ...],
        build: Callable[[ArrayWriter], None],
        *,
        num_rows: int,
    ) -> Arrays:
        """Arrays made from `num_rows` rows with some settings: built once, and mapped.

        `name` tells them apart from others with the same settings: `news/en/train-blocks`.
        """
        key = key_of_index(self.fingerprint, name, settings)
        file = f"{name}-{key[:16]}.safetensors"
        return open_index(self.folder, self.fingerprint, file, key, build, num_rows=num_rows)

    def check_tokenizer(self, folder: Path | str) -> None:
        """Raises unless the tokenizer of a model folder gives the ids this corpus holds."""
        from isoglot.corpus.tokenization.pretokenization import Pretokenizer
        from isoglot.corpus.tokenization.vocabulary import (
            derive_vocabulary,
            open_tokenizer,
            tokenizer_fingerprint,
        )

        folder = Path(folder)
        tokenizer = open_tokenizer(folder)
        methods = Pretokenizer.load(folder).methods
        found = tokenizer_fingerprint(tokenizer, derive_vocabulary(tokenizer, folder), methods)
        expected = self.manifest.tokenizer.fingerprint
        if found != expected:
            raise CorpusError(
                f"{folder}: its tokenizer ({found[:12]}) is not the one of the corpus "
                f"{self.folder} ({expected[:12]}). Prepare the corpus with `tokenizer: "
                f"{{folder: {folder}}}`, or choose a model that has the corpus's tokenizer."
            )


def local_folder(name: Path | str) -> Path:
    """The folder of a corpus: a local one, or that of a URL in the cache of remote files."""
    url = as_url(name)
    return corpus_folder(name) if url is None else cached_folder(url)


def _reopen(folder: Path, fingerprint: str) -> Corpus:
    """A corpus on the other side of a pickle; it must still be the one that was sent."""
    corpus = Corpus.open(folder, verify="never")
    if corpus.fingerprint != fingerprint:
        raise CorpusError(f"{folder}: was prepared again while it was in use. Start the run again.")
    return corpus
