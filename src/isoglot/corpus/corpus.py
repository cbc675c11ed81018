"""A prepared corpus, opened: its manifest, its vocabulary and its tables."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from typing_extensions import override

from isoglot.corpus.cells import columns_of
from isoglot.corpus.knowledge.store import Knowledge
from isoglot.corpus.knowledge.store_about import FOLDER as KNOWLEDGE_FOLDER
from isoglot.corpus.manifest import read_manifest, verify_files
from isoglot.corpus.pretokenize import Pretokenization
from isoglot.corpus.table import Shard, Table
from isoglot.corpus.tokenizer import (
    derive_vocabulary,
    fingerprint_of_tokenizer,
    load_vocabulary,
    open_tokenizer,
)
from isoglot.errors import CorpusError, nearest

if TYPE_CHECKING:
    from isoglot.corpus.heldout import Split
    from isoglot.corpus.manifest import Manifest
    from isoglot.types import Vocabulary

TOKENIZER_FOLDER = "tokenizer"
_AUTO_HASH_BYTES = 2 * 2**30


class Corpus:
    """What `prepare` wrote. Cheap to pickle: it travels as its path and opens again lazily."""

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        """Use `Corpus.open`."""
        self.folder = folder
        self.manifest = manifest

    @classmethod
    def open(
        cls, folder: Path | str, *, verify: Literal["auto", "always", "never"] = "auto"
    ) -> Corpus:
        """Opens a corpus folder and checks that its files are all there, whole.

        Sizes are always compared; contents (SHA-256) unless `verify` is "never", or "auto" and
        the corpus is over 2 GiB.
        """
        folder = Path(folder)
        manifest = read_manifest(folder)
        total = sum(shard.bytes for shard in manifest.shards())
        hashes = verify == "always" or (verify == "auto" and total <= _AUTO_HASH_BYTES)
        verify_files(folder, manifest, hashes=hashes)
        return cls(folder, manifest)

    @override
    def __reduce__(self) -> tuple[Any, ...]:
        return _reopen, (self.folder, self.fingerprint)

    @override
    def __repr__(self) -> str:
        return f"Corpus({str(self.folder)!r})"

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
        return load_vocabulary(self.tokenizer_folder)

    @cached_property
    def knowledge(self) -> Knowledge:
        """Its entities, descriptions, mentions and triples.

        Raises:
            CorpusError: it has none, or they are damaged or of another tokenizer.
        """
        return Knowledge.open(
            self.folder / KNOWLEDGE_FOLDER, tokenizer=self.manifest.tokenizer.fingerprint
        )

    def pieces(self) -> list[str]:
        """What each id spells, special tokens as they are written."""
        tokenizer = open_tokenizer(self.tokenizer_folder)
        ids = [[number] for number in range(self.vocabulary.size)]
        spelled: list[str] = tokenizer.backend_tokenizer.decode_batch(
            ids, skip_special_tokens=False
        )
        return spelled

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
        shards = entry.languages[language][split].shards
        return Table(
            columns_of(entry.kind),
            [Shard(self.folder / shard.file, shard.rows) for shard in shards],
        )

    def check_tokenizer(self, folder: Path | str) -> None:
        """Raises unless the tokenizer of a model folder gives the ids this corpus holds."""
        tokenizer = open_tokenizer(Path(folder))
        found = fingerprint_of_tokenizer(
            tokenizer,
            derive_vocabulary(tokenizer, Path(folder)),
            Pretokenization.load(Path(folder)).names,
        )
        expected = self.manifest.tokenizer.fingerprint
        if found != expected:
            raise CorpusError(
                f"{folder}: its tokenizer ({found[:12]}) is not the one of the corpus "
                f"{self.folder} ({expected[:12]}). Prepare the corpus with `tokenizer: "
                f"{{folder: {folder}}}`, or choose a model that has the corpus's tokenizer."
            )


def _reopen(folder: Path, fingerprint: str) -> Corpus:
    """A corpus on the other side of a pickle; it must still be the one that was sent."""
    corpus = Corpus.open(folder, verify="never")
    if corpus.fingerprint != fingerprint:
        raise CorpusError(f"{folder}: was prepared anew while it was in use. Start the run again.")
    return corpus
