"""What the tabs of `isoglot explore` share: models, a corpus, files of pairs, text and results.

Opening a session checks every name and file, which takes a moment. Models, pairs and lines are
loaded when a tab first needs them, once, and kept.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any

from isoglot.corpus import Corpus
from isoglot.corpus.reading.files import read_lines, require_file
from isoglot.errors import IsoglotError
from isoglot.folders import model_folder
from isoglot.languages import canonical_pair

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isoglot.evaluation.pairs import PairsByName
    from isoglot.mining.vectors import SentenceEncoder
    from isoglot.models.encoder import Encoder

Progress = Callable[[str, int, int | None], None]
"""Called with (stage, done, total)."""
MAX_SENTENCES = 10_000
"""Sentences of each language and pair of a file or source, unless `--limit` says otherwise."""


class ExploreModel:
    """A model folder under the name it has on the page; loaded when it is first used."""

    def __init__(
        self,
        name: str,
        folder: Path,
        *,
        device: str | None = None,
        note: Callable[[str], None] | None = None,
    ) -> None:
        """Nothing is read yet.

        Args:
            name: on the page.
            folder: a Hugging Face or sentence-transformers folder.
            device: torch's name; none: a GPU if there is one.
            note: called with sentences about the model.
        """
        self.name, self.folder = name, folder
        self._device, self._note = device, note
        self._lock = RLock()

    @cached_property
    def _loaded(self) -> tuple[Encoder, Any]:
        from isoglot.evaluation.loading import load_for_scoring

        with self._lock:
            return load_for_scoring(self.folder, device=self._device, note=self._note)

    @property
    def encoder(self) -> Encoder:
        """The encoder, in evaluation mode."""
        return self._loaded[0]

    @property
    def tokenizer(self) -> Any:
        """The tokenizer of the folder."""
        return self._loaded[1]

    @cached_property
    def num_layers(self) -> int:
        """Transformer layers; states have one more, the embeddings (layer 0). Loads no weights."""
        from isoglot.models.loading import load_config

        return int(load_config(str(self.folder)).num_hidden_layers)

    @cached_property
    def sentence_encoder(self) -> SentenceEncoder:
        """Sentence vectors as users of the folder get them: its pooling and projection."""
        from isoglot.mining.vectors import SentenceEncoder

        return SentenceEncoder(self.folder, note=self._note, loaded=self._loaded)


@dataclass(frozen=True)
class ExploreSession:
    """Models and data of one page."""

    models: tuple[ExploreModel, ...]
    """At least one, in the order of the command line."""
    corpus: Corpus | None = None
    """A prepared corpus."""
    pairs_files: tuple[Path, ...] = ()
    """TSV files of translations, named after their languages: en-sw.tsv."""
    dictionary_files: tuple[Path, ...] = ()
    """Files of words and translations, named after their languages: en-sw.txt."""
    text_files: dict[str, Path] = field(default_factory=dict)
    """Language -> a file with a sentence on each line."""
    results_files: tuple[Path, ...] = ()
    """Results files and predictions files of `isoglot evaluate`."""
    data: tuple[Path, ...] = ()
    """Folders of the tasks' files."""
    recipe: str | None = None
    """Name or path of a recipe."""
    limit: int = MAX_SENTENCES
    """Most sentences of each language, or pairs of each file, that are read."""
    vectors_folder: Path | None = None
    """Folder in which sentence vectors are kept; none: in memory only."""
    note: Callable[[str], None] | None = None
    """Called with sentences about files and models."""
    progress: Callable[[], AbstractContextManager[Progress]] = lambda: nullcontext(_no_progress)
    """Opens a display of progress for one long computation."""

    def model(self, name: str) -> ExploreModel:
        """The model of a name on the page."""
        found = next((model for model in self.models if model.name == name), None)
        if found is None:
            raise IsoglotError(f"There is no model {name!r} on this page. Load the page again.")
        return found

    @cached_property
    def pairs(self) -> PairsByName:
        """Pair of languages (`en-sw`) -> sentences of both, from the files of pairs."""
        from isoglot.evaluation.pairs import read_pairs

        if not self.pairs_files:
            return {}
        return read_pairs(self.pairs_files, self.limit, note=self.note)

    @cached_property
    def words(self) -> PairsByName:
        """Pair of languages -> words and their translations, from the dictionaries."""
        return {
            name: (list(first), list(second))
            for name, entries in map(self._dictionary, self.dictionary_files)
            for first, second in [zip(*entries, strict=True)]
        }

    def _dictionary(self, file: Path) -> tuple[str, list[tuple[str, str]]]:
        """The two languages of a file, and its first entries: a tab or a space between."""
        name = canonical_pair(file.name.split(".")[0])
        if name is None:
            raise IsoglotError(f"{file}: name the file after its two languages, like en-de.txt.")
        lines = (line.strip() for line in read_lines(file) if isinstance(line, str))
        rows = (line.split("\t") if "\t" in line else line.split() for line in lines)
        found = ((row[0].strip(), row[1].strip()) for row in rows if len(row) == 2)
        entries = list(islice((row for row in found if all(row)), self.limit))
        if not entries:
            raise IsoglotError(f"{file}: has no line of a word, a tab and its translation.")
        return name, entries

    @cached_property
    def texts(self) -> dict[str, list[str]]:
        """Language -> lines of its text file that are not blank."""
        return {code: self._lines(file) for code, file in self.text_files.items()}

    def _lines(self, file: Path) -> list[str]:
        readable = (line.strip() for line in read_lines(file) if isinstance(line, str))
        return list(islice((line for line in readable if line), self.limit))


def _no_progress(stage: str, done: int, total: int | None) -> None:
    """Shows nothing."""


def open_session(
    models: Sequence[str | Path],
    *,
    corpus: str | Path | Corpus | None = None,
    pairs: Sequence[str | Path] = (),
    dictionaries: Sequence[str | Path] = (),
    text: Sequence[str] = (),
    results: Sequence[str | Path] = (),
    data: Sequence[str | Path] = (),
    recipe: str | None = None,
    vectors: str | Path | None = None,
    device: str | None = None,
    limit: int = MAX_SENTENCES,
    note: Callable[[str], None] | None = None,
    progress: Callable[[], AbstractContextManager[Progress]] | None = None,
) -> ExploreSession:
    """Check names and files, and open a session; models are loaded later.

    Args:
        models: Hugging Face folders, runs or names on the hub; `NAME=FOLDER` sets the name.
        corpus: a prepared corpus, or its folder.
        pairs: TSV files of translations, named after their languages, or `en-sw=FILE`.
        dictionaries: files of words and their translations, named after their languages.
        text: text files, `sw.txt` or `sw=FILE`.
        results: results files and predictions files of `isoglot evaluate`.
        data: folders of the tasks' files, for the texts of examples in results files.
        recipe: name or path of a recipe.
        vectors: folder in which sentence vectors are kept; none: in memory only.
        device: torch's name; none: a GPU if there is one.
        limit: most sentences of each language, or pairs of each file.
        note: called with sentences about files and models.
        progress: opens a display of progress for one long computation.
    """
    from isoglot.evaluation.pairs import pair_and_file
    from isoglot.evaluation.text_scores import text_files

    if not models:
        raise IsoglotError("Name at least one model: isoglot explore runs/NAME.")
    _check_device(device)
    of_pairs = (pair_and_file(Path(file))[1] for file in pairs)
    for file in (*of_pairs, *dictionaries, *results):
        require_file(Path(file))
    if recipe is not None:
        from isoglot.recipe import load_recipe

        load_recipe(recipe)
    if isinstance(corpus, str | Path):
        corpus = Corpus.open(corpus)
    shown = {} if progress is None else {"progress": progress}
    return ExploreSession(
        models=_open_models(models, device, note),
        corpus=corpus,
        pairs_files=tuple(map(Path, pairs)),
        dictionary_files=tuple(map(Path, dictionaries)),
        text_files=text_files(text),
        results_files=tuple(map(Path, results)),
        data=tuple(map(Path, data)),
        recipe=recipe,
        limit=limit,
        vectors_folder=None if vectors is None else Path(vectors),
        note=note,
        **shown,
    )


def _open_models(
    names: Sequence[str | Path], device: str | None, note: Callable[[str], None] | None
) -> tuple[ExploreModel, ...]:
    found: dict[str, ExploreModel] = {}
    for given in map(str, names):
        name, place = given, given
        if "=" in given and not Path(given).exists():
            name, _, place = given.partition("=")
        if name in found:
            raise IsoglotError(f"Two models are called {name!r}: write one of them as NAME={name}.")
        found[name] = ExploreModel(name, model_folder(place), device=device, note=note)
    return tuple(found.values())


def _check_device(device: str | None) -> None:
    if device is None or device == "cpu":
        return
    import torch

    if device.partition(":")[0] != "cuda":
        raise IsoglotError(f"--device {device}: is neither cpu nor cuda.")
    if not torch.cuda.is_available():
        raise IsoglotError(f"--device {device}: torch finds no GPU here. Leave --device out.")
