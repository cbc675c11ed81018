"""`isoglot.mine`: translations among the sentences of two files (Artetxe and Schwenk 2019).

    lines --read_sentences--> different sentences --VectorFile--> vectors on disk
          --search_exact or search_faiss--> neighbors --propose_pairs--> pairs, best first

Vectors and the state of the search lie in a folder beside the output until the pairs are written:
the same command continues an interrupted mining.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from isoglot.argument_names import public
from isoglot.atomic import replace_file, write_errors
from isoglot.evaluation.mining_strategies import propose_pairs
from isoglot.evaluation.split_scores import pass_on_once
from isoglot.folders import model_folder
from isoglot.languages import canonical
from isoglot.locks import lock_file, lock_folder
from isoglot.mining.config import MineConfig
from isoglot.mining.faiss_search import import_faiss, search_faiss
from isoglot.mining.search import Saver, search_exact
from isoglot.mining.sentences import Sentences, read_sentences
from isoglot.mining.vectors import SentenceEncoder, VectorFile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from isoglot.evaluation.mining_strategies import ProposedPairs
    from isoglot.evaluation.retrieval import Neighbors

    Progress = Callable[[str, int, int | None], None]
    Note = Callable[[str], None]

EXACT_SENTENCES = 1_000_000
"""With `index: auto`, more sentences on a side are searched with FAISS."""
_SEARCH = "search"
_SPACES = str.maketrans("\t\n\r", "   ")


class MinedPair(NamedTuple):
    """Two sentences and their ratio margin."""

    score: float
    source: str
    target: str


@public
def mine(
    first: str | Path | Sequence[str],
    second: str | Path | Sequence[str],
    model: str | Path,
    out: str | Path | None = None,
    *,
    languages: tuple[str, str] | None = None,
    config: MineConfig | None = None,
    vectors: str | Path | None = None,
    progress: Progress | None = None,
    note: Note | None = None,
) -> list[MinedPair]:
    """Find translations among the sentences of two files, best first.

        pairs = isoglot.mine("wiki.en.txt", "wiki.sw.txt", "runs/mine", "pairs.tsv")

    Args:
        first: a text file, one sentence a line, plain or compressed; or sentences.
        second: the same in the other language.
        model: a Hugging Face or sentence-transformers folder, a run or a name on the hub; pooling
            and projection of a sentence-transformers folder are used, else the mean state.
        out: TSV file of score, source and target; none: pairs are only returned.
        languages: codes of both files, for models with language embeddings or pretokenization.
        config: settings; none: the defaults.
        vectors: folder of the sentence vectors, kept and used again by later calls with the same
            texts and model; none: `OUT.vectors`, which is removed in the end.
        progress: called with (stage, sentences done, all sentences).
        note: called with sentences about texts and model.

    Returns:
        The pairs with a ratio margin of at least `config.threshold`, at most `config.top`.
    """
    config = config or MineConfig()
    told = pass_on_once(note)
    codes = (None, None) if languages is None else tuple(map(canonical, languages))
    with _work_folder(out, vectors) as folder:
        encoder = SentenceEncoder(
            model_folder(model),
            with_languages=config.language_embeddings,
            encode_type=config.encode_type,
            note=told,
        )
        encoder.require_languages(languages)
        sides = _read_sides(first, second, config, note)
        one, other = (
            _encode(side, encoder, code, folder / name, config, progress)
            for side, code, name in zip(sides, codes, ("first", "second"), strict=True)
        )
        if encoder.num_full and note is not None:
            note(
                f"{encoder.num_full:,} sentences fill the model's positions; longer ones are cut "
                "there."
            )
        neighbors = _search(one, other, config, folder / "search.npz", progress)
        found = propose_pairs(*neighbors, config.strategy)
        pairs = list(_pairs(found, sides, config))
        if out is not None:
            _write(pairs, Path(out))
    return pairs


@contextmanager
def _work_folder(out: str | Path | None, vectors: str | Path | None) -> Iterator[Path]:
    """The folder of vectors, locked with the output; a folder of its own goes in the end."""
    if vectors is not None:
        folder, is_kept = Path(vectors), True
    elif out is not None:
        folder, is_kept = Path(f"{out}.vectors"), False
    else:
        with tempfile.TemporaryDirectory(prefix="isoglot-mine-") as name:
            yield Path(name)
        return
    with lock_folder(folder):
        if out is None:
            yield folder
        else:
            with lock_file(Path(out)):
                yield folder
    if not is_kept:
        shutil.rmtree(folder, ignore_errors=True)


def _read_sides(
    first: str | Path | Sequence[str],
    second: str | Path | Sequence[str],
    config: MineConfig,
    note: Note | None,
) -> tuple[Sentences, Sentences]:
    sides = read_sentences(first, "the first side"), read_sentences(second, "the second side")
    if note is not None:
        for side in sides:
            note(side.describe())
    if _is_faiss(max(map(len, sides)), config):
        import_faiss()  # before hours of encoding
    return sides


def _is_faiss(number: int, config: MineConfig) -> bool:
    return config.index == "faiss" or (config.index == "auto" and number > EXACT_SENTENCES)


def _encode(
    side: Sentences,
    encoder: SentenceEncoder,
    language: str | None,
    path: Path,
    config: MineConfig,
    progress: Progress | None,
) -> VectorFile:
    """The complete vectors of one side."""
    stage = f"encode {Path(side.name).name}"
    key = f"{side.fingerprint()} {encoder.key()} {language}"
    file = VectorFile(path, key, len(side), config.vector_type)

    def report(done: int) -> None:
        if progress is not None:
            progress(stage, done, len(side))

    report(file.state()[0])
    file.write(encoder, side, language, report)
    return file


def _search(
    first: VectorFile,
    second: VectorFile,
    config: MineConfig,
    state: Path,
    progress: Progress | None,
) -> tuple[Neighbors, Neighbors]:
    sides = first.read(), second.read()
    is_faiss = _is_faiss(max(first.rows, second.rows), config)
    total = first.rows + (second.rows if is_faiss else 0)
    settings: dict[str, Any] = {}
    if is_faiss:
        settings = {"num_clusters": config.num_clusters, "num_probes": config.num_probes}
    how = f"{first.key} {second.key} {config.vector_type} {config.num_neighbors} {settings}"
    saver = Saver(state, hashlib.sha256(how.encode()).hexdigest())

    def report(done: int) -> None:
        if progress is not None:
            progress(_SEARCH, done, total)

    report(0)
    search: Callable[..., tuple[Neighbors, Neighbors]] = search_faiss if is_faiss else search_exact
    return search(*sides, config.num_neighbors, saver=saver, progress=report, **settings)


def _pairs(
    found: ProposedPairs, sides: tuple[Sentences, Sentences], config: MineConfig
) -> Iterator[MinedPair]:
    sources, targets = (side.texts for side in sides)
    kept = int((found.margins >= config.threshold).sum())
    kept = kept if config.top is None else min(kept, config.top)
    columns = found.margins, found.first, found.second
    for margin, i, j in zip(*(column[:kept].tolist() for column in columns), strict=True):
        yield MinedPair(margin, sources[i], targets[j])


def _write(pairs: Sequence[MinedPair], out: Path) -> None:
    """A line for each pair: score, source, target; tabs in a sentence become spaces."""
    with (
        write_errors(out),
        replace_file(out) as partial,
        partial.open("w", encoding="utf-8", newline="\n") as file,
    ):
        for score, source, target in pairs:
            texts = (text.translate(_SPACES) for text in (source, target))
            file.write("\t".join([f"{score:.5f}", *texts]) + "\n")
