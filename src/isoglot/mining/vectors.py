"""Sentence vectors of one side in a file: encoded in chunks, continued after an interruption.

    NAME.vectors   unit vectors, row by row, float32 or float16
    NAME.json      what they are vectors of, and how many rows are complete

A chunk is appended and flushed to disk before NAME.json counts it; rows after the counted ones are
cut off and encoded again.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.nn.functional as F

from isoglot.atomic import write_array, write_errors, write_json
from isoglot.corpus.tokenization.pretokenization import Pretokenizer
from isoglot.errors import IsoglotError
from isoglot.evaluation.embed import StatePooling, language_ids
from isoglot.evaluation.exported import exported_vectors, module_files
from isoglot.evaluation.loading import load_for_scoring
from isoglot.evaluation.tokenize_texts import tokenize_chunks
from isoglot.mining.config import VectorType
from isoglot.model_results import fingerprint
from isoglot.models import language_embeddings

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt
    from torch import Tensor

    from isoglot.evaluation.settings import EncodeType
    from isoglot.mining.sentences import Sentences
    from isoglot.models.encoder import Encoder

    Note = Callable[[str], None]
    Count = Callable[[int], None]

_FORMAT = 1
_CHUNK, _GPU_CHUNK = 8192, 65_536
"""Sentences that are encoded, sorted by length, and written at a time, on a CPU and on a GPU."""


class SentenceEncoder:
    """The sentence vectors that a model folder gives its users; the model is loaded when needed."""

    def __init__(
        self,
        folder: Path,
        *,
        with_languages: bool = True,
        encode_type: EncodeType = "float32",
        note: Note | None = None,
        loaded: tuple[Encoder, Any] | None = None,
    ) -> None:
        """Read the pooling and projection of a folder.

        Args:
            folder: a Hugging Face or sentence-transformers folder.
            with_languages: use language embeddings that the model was trained with on all tokens.
            encode_type: type of the encoder's products.
            note: called with sentences about the model.
            loaded: encoder and tokenizer of the folder, if they are in memory already.
        """
        self.folder, self.with_languages = folder, with_languages
        self.encode_type, self.note = encode_type, note
        self.module = exported_vectors(folder)
        self.num_full = 0
        """Texts that fill the model's positions: longer ones are cut there."""
        self._loaded = loaded

    def require_languages(self, languages: Sequence[str] | None) -> None:
        """Refuse texts of unknown languages for a model that has to know them."""
        codes = language_embeddings.languages_of(self.folder) if self.with_languages else ()
        if languages is None and codes:
            raise IsoglotError(
                f"{self.folder} was trained with language embeddings ({', '.join(codes)}): name "
                "the languages of the two files, --languages en,de, or add "
                "--no-language-embeddings."
            )
        if languages is None and Pretokenizer.load(self.folder).methods:
            raise IsoglotError(
                f"{self.folder} was trained on pretokenized text: name the languages of the two "
                "files, --languages en,de, so that they are pretokenized in the same way."
            )

    def key(self) -> str:
        """A hash of all that decides the vectors of a text."""
        how = f"{fingerprint(self.folder)} {self.with_languages} {self.encode_type}"
        digest = hashlib.sha256(how.encode())
        named = ("config.json", "tokenizer.json", "pretokenize.json", language_embeddings.FILE)
        for file in (*(self.folder / name for name in named), *module_files(self.folder)):
            if file.is_file():
                digest.update(file.name.encode() + file.read_bytes())
        return digest.hexdigest()

    @torch.no_grad()
    def encode(
        self,
        texts: Sequence[str],
        language: str | None = None,
        progress: Count | None = None,
        *,
        before: int = 0,
    ) -> Tensor:
        """(texts, D) unit vectors; `progress` hears how many are done, `before` included."""
        if self._loaded is None:
            self._loaded = load_for_scoring(
                self.folder, language_embeddings=self.with_languages, note=self.note
            )
        encoder, tokenizer = self._loaded
        if language is not None:
            pretokenizer = Pretokenizer.load(self.folder)
            texts = [pretokenizer.apply(text, language) for text in texts]
        limit = min(encoder.max_positions, self.module.max_length or encoder.max_positions)
        languages = language_ids(encoder, language, len(texts), self.note)
        is_first = self.module.pooling == "cls"
        pooling = StatePooling(
            encoder, tokenizer, first_token=is_first, layers=[-1], encode_type=self.encode_type
        )
        vectors: list[Tensor] = []
        size = pooling.chunk_size(len(texts))
        for start, ids in tokenize_chunks(tokenizer, texts, limit, size):
            self.num_full += sum(len(one) >= limit for one in ids)
            own = None if languages is None else languages[start : start + len(ids)]
            (pooled,) = pooling(ids, own, before + start, _counted_from(before + start, progress))
            vectors.append(F.normalize(self.module(pooled), dim=-1))
        return torch.cat(vectors)


def _counted_from(start: int, progress: Count | None) -> Count | None:
    return None if progress is None else lambda done: progress(start + done)


@dataclass(frozen=True, slots=True)
class VectorFile:
    """The vectors of one side, which may be incomplete."""

    path: Path
    """Without suffix."""
    key: str
    """What the vectors are of."""
    rows: int
    vector_type: VectorType

    @property
    def data(self) -> Path:
        """The file of the numbers."""
        return self.path.with_suffix(".vectors")

    def state(self) -> tuple[int, int]:
        """Rows that are complete, and the width of a vector; zeros if there are none."""
        try:
            state = json.loads(self.path.with_suffix(".json").read_text("utf-8"))
            done, width = int(state["done"]), int(state["width"])
            size = self.data.stat().st_size
        except (OSError, ValueError, KeyError, TypeError):
            return 0, 0
        whole = size >= done * width * np.dtype(self.vector_type).itemsize
        return (done, width) if state.get("key") == self._key() and whole else (0, 0)

    def write(
        self,
        encoder: SentenceEncoder,
        sentences: Sentences,
        language: str | None,
        progress: Count | None = None,
    ) -> None:
        """Encode the sentences that the file lacks."""
        done, width = self.state()
        if done == self.rows:
            return
        with write_errors(self.data):
            self.data.parent.mkdir(parents=True, exist_ok=True)
            with self.data.open("r+b" if done else "wb") as file:
                file.truncate(done * width * np.dtype(self.vector_type).itemsize)
                file.seek(0, os.SEEK_END)
                size = _GPU_CHUNK if torch.cuda.is_available() else _CHUNK
                while done < self.rows:
                    texts = sentences.texts[done : done + size]
                    vectors = encoder.encode(texts, language, progress, before=done)
                    write_array(file, vectors.numpy().astype(self.vector_type))
                    file.flush()
                    os.fsync(file.fileno())
                    done, width = done + len(texts), vectors.shape[1]
                    state = {"key": self._key(), "done": done, "width": width}
                    write_json(self.path.with_suffix(".json"), state)

    def read(self) -> npt.NDArray[Any]:
        """(rows, D) vectors, memory-mapped; what is written to them stays in memory."""
        done, width = self.state()
        assert done == self.rows, "they are complete"
        return np.memmap(self.data, self.vector_type, "c", shape=(self.rows, width))

    def _key(self) -> str:
        return f"{_FORMAT} {self.vector_type} {self.rows} {self.key}"
