"""Bits per character of a model folder on text files, one for each language.

The code length of every line can be written to a JSON lines file, and those of two models compared
in pairs. A line has `language`, `line` (its number), `bits` and `characters`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from isoglot.corpus.reading.files import read_lines, require_file
from isoglot.corpus.reading.text import require_lines
from isoglot.corpus.storage.manifest import TokenizerStats
from isoglot.corpus.tokenization.pretokenization import Pretokenizer
from isoglot.errors import CorpusError
from isoglot.evaluation.bits_per_character import (
    CodeLengths,
    change,
    code_lengths,
    token_statistics,
)
from isoglot.evaluation.split_scores import load_model, pass_on_once
from isoglot.languages import canonical, is_language, plain_code
from isoglot.tasks.data_files import json_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from io import TextIOBase

    from isoglot.evaluation.bits_per_character import Change
    from isoglot.evaluation.settings import FeatureConfig

MAX_LINES = 2000
"""Lines of each file, unless `FeatureConfig.limit` is set."""

_CODE_LETTERS = (2, 3)
"""Letters of the code of a language that a file is named after."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextScore:
    """A model on the text of one language."""

    language: str
    lengths: CodeLengths
    """By line."""
    tokens: TokenizerStats
    """Words, tokens and unknown tokens of the whole text."""


def text_files(given: Sequence[str]) -> dict[str, Path]:
    """Language -> its file, from `sw.txt`, `sw.txt.xz` and `sw=news/latest.txt`."""
    found: dict[str, Path] = {}
    for text in given:
        code, _, path = text.partition("=")
        if is_name := not path or Path(text).is_file():
            code, path = Path(text).name.split(".")[0], text
        # news.txt is no text in the language `news`, nor t.en one in `t`
        if not is_language(code) or (is_name and len(plain_code(code)) not in _CODE_LETTERS):
            raise CorpusError(
                f"{text}: say the language of the file, as in sw={path}, or name it sw.txt."
            )
        file, language = Path(path).expanduser(), canonical(code)
        require_file(file)
        require_lines(file, "a sentence or paragraph")
        if language in found:
            raise CorpusError(
                f"{text}: {found[language]} is of {language} too. Give one file for a language."
            )
        found[language] = file
    return found


def score_texts(
    folder: Path,
    files: Mapping[str, Path],
    settings: FeatureConfig,
    *,
    progress: Callable[[str, int, int | None], None] | None = None,
    note: Callable[[str], None] | None = None,
) -> list[TextScore]:
    """Bits per character on the first lines of a file for each language.

    Args:
        folder: a Hugging Face folder of a masked language model.
        files: language -> text file with a sentence or paragraph on each line.
        settings: `limit`, the lines of each file, and `language_embeddings` are read.
        progress: called with (`text LANGUAGE`, lines done, lines).
        note: called with sentences about the model and its tokenizer.
    """
    texts = {language: _read(file, settings.limit, note) for language, file in files.items()}
    note = pass_on_once(note)
    encoder, tokenizer = load_model(folder, settings, note)
    pretokenizer = Pretokenizer.load(folder)
    found = []
    for language, lines in texts.items():

        def tell(done: int, language: str = language, total: int = len(lines)) -> None:
            if progress is not None:
                progress(f"text {language}", done, total)

        tell(0)
        lengths = code_lengths(
            encoder,
            tokenizer,
            lines,
            language=language,
            pretokenizer=pretokenizer,
            progress=tell,
            note=note,
        )
        words = [pretokenizer.apply(line, language) for line in lines]
        tokens = token_statistics(tokenizer, words)
        found.append(TextScore(language=language, lengths=lengths, tokens=tokens))
    return found


def _read(file: Path, limit: int | None, note: Callable[[str], None] | None) -> list[str]:
    number, found, unreadable = limit or MAX_LINES, list[str](), 0
    for line in read_lines(file):
        if not isinstance(line, str):
            unreadable += 1
        elif line.strip():
            found.append(line)
        if len(found) > number:
            break
    left_out = f"{unreadable:,} lines are not UTF-8, or too long"
    if not found:
        why = f": {left_out}" if unreadable else ""
        raise CorpusError(f"{file} has no text{why}. Name a file with a sentence on each line.")
    if unreadable and note is not None:
        note(f"{file}: {left_out}, and left out. Convert the file to UTF-8 to score them.")
    if len(found) > number and limit is None and note is not None:
        note(f"{file}: its first {number:,} lines are scored; --limit N reads more or fewer.")
    return found[:number]


def write_lengths(stream: TextIOBase, scores: Sequence[TextScore]) -> None:
    """Write the code length of each line as JSON lines."""
    for score in scores:
        for line, (bits, characters) in enumerate(
            zip(score.lengths.bits.tolist(), score.lengths.characters.tolist(), strict=True)
        ):
            row = {"language": score.language, "line": line, "bits": bits, "characters": characters}
            stream.write(json.dumps(row) + "\n")


def compare_lengths(scores: Sequence[TextScore], other: Path) -> dict[str, Change]:
    """Language -> change from another model, whose file `write_lengths` wrote, to this one.

    Both models must have read the same lines.
    """
    table: dict[str, list[tuple[float, int]]] = {}
    for row in json_lines(other):
        try:
            own = table.setdefault(str(row["language"]), [])
            own.append((float(row["bits"]), int(row["characters"])))
        except (KeyError, TypeError, ValueError):
            raise row.error("has no code length of a line of --text.") from None
    found = {}
    for score in scores:
        rows = np.array(table.get(score.language, []), float).reshape(-1, 2)
        if len(rows) != len(score.lengths.characters):
            raise CorpusError(
                f"{other} has {len(rows):,} lines of {score.language}, and "
                f"{len(score.lengths.characters):,} were scored. Score the same text with both."
            )
        before = CodeLengths(
            token_bits=rows[:, 0],
            count_bits=np.zeros(len(rows)),
            fallback_bits=np.zeros(len(rows)),
            characters=rows[:, 1].astype(np.int64),
            words=0,
            tokens=0,
        )
        found[score.language] = change(before, score.lengths)
    return found
