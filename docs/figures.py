"""Draws the figures of the objectives, docs/images/objectives/*.svg, from batches of the testbed.

    python docs/figures.py

For each objective a recipe below is opened on a small generated corpus in Arabic, Chinese, English
and German; the figure is one draw of its first micro-batch, chosen by its length. A test draws all
figures again and compares the files.
"""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.console import Console

from isoglot import yaml_text
from isoglot.corpus import Corpus
from isoglot.demo.testbed_corpus import generated_corpus
from isoglot.explore.batch_figure import draw_figure, pairs_figure, row_figure
from isoglot.explore.drawn_batch import decode_batch
from isoglot.explore.stage_batches import open_stage
from isoglot.objectives import find_objective
from isoglot.objectives.cooccurrence import Cooccurrence
from isoglot.recipe import load_recipe

if TYPE_CHECKING:
    from isoglot.explore.drawn_batch import DrawnBatch

FOLDER = Path(__file__).parent / "images" / "objectives"
LANGUAGES = ("ar", "de", "en", "zh")
TEXT, PAIRS = {"unit": "sentence", "alpha": 0.0}, {"alpha": 0.0, "order": "fixed"}


class Drawing(NamedTuple):
    """What a figure is drawn from."""

    stream: str
    objectives: dict[str, dict[str, Any]]
    """Objectives of the stream and their settings; the first is drawn."""
    settings: dict[str, Any]
    """Of the stream."""
    origin: str
    """The end of the name of the examples to choose from: `text/de`."""
    tokens: int
    """Tokens of the draw that is chosen, about."""
    decoder: bool = False


MASKS = {"masking": {"rate": 0.3}}
DRAWINGS = {
    "mlm": Drawing("text", {"mlm": MASKS}, TEXT, "text/en", 14),
    "tlm": Drawing("parallel", {"tlm": MASKS}, PAIRS, "pairs/en-ar", 20),
    "camlm": Drawing("parallel", {"camlm": {"rate": 0.4}}, PAIRS, "pairs/en-de", 24),
    "btmlm": Drawing("text", {"btmlm": {**MASKS, "pseudo_rate": 0.4}}, TEXT, "text/en", 22),
    "moco": Drawing("parallel", {"moco": {}}, PAIRS, "pairs/en-zh", 16),
    "token_contrast": Drawing("parallel", {"token_contrast": {}}, PAIRS, "pairs/en-de", 16),
    "cooccurrence": Drawing("text", {"mlm": MASKS, "cooccurrence": {}}, TEXT, "text/de", 14),
    "distill": Drawing("text", {"mlm": MASKS, "distill": {}}, TEXT, "text/en", 22),
    "mass": Drawing("text", {"mass": {}}, TEXT, "text/en", 17, decoder=True),
    "denoise": Drawing("text", {"denoise": {}}, TEXT, "text/en", 17, decoder=True),
    "backtranslate": Drawing("text", {"backtranslate": {}}, TEXT, "text/en", 19, decoder=True),
    "entity": Drawing("mentions", {"entity": {}}, {"alpha": 0.0}, "en", 30),
    "entailment": Drawing("triples", {"entailment": {}}, {"alpha": 0.0}, "", 24),
}


def make_corpus(folder: Path) -> Corpus:
    """The corpus of all figures: some hundred sentences of the testbed, with knowledge."""
    console = Console(quiet=True)
    made = generated_corpus(
        folder,
        console,
        languages=LANGUAGES,
        num_sentences=300,
        num_pairs=150,
        num_concepts=60,
        max_entities=12,
        num_pages=40,
        vocab_size=1000,
    )
    make_teacher(folder / "teacher", (folder / "raw/text/en.txt").read_text(encoding="utf-8"))
    return Corpus.open(made)


def make_teacher(folder: Path, text: str) -> None:
    """A folder with the tokenizer of an English teacher: frequent words, letters for others."""
    from transformers import BertTokenizer

    counted = Counter(text.lower().replace(".", " . ").replace(",", " , ").split())
    letters = sorted({letter for word in counted for letter in word})
    words = [word for word, _ in sorted(counted.items(), key=lambda item: (-item[1], item[0]))]
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    known = dict.fromkeys([*special, *letters, *(f"##{one}" for one in letters), *words[:40]])
    folder.mkdir(parents=True, exist_ok=True)
    vocabulary = {token: number for number, token in enumerate(known)}
    BertTokenizer(vocab=vocabulary).save_pretrained(folder)
    (folder / "config.json").write_text(json.dumps({"model_type": "bert"}), encoding="utf-8")


def draw(name: str, corpus: Corpus) -> str:
    """The SVG of an objective's figure."""
    drawing = DRAWINGS[name]
    recipe = recipe_of(drawing, corpus)
    stage = open_stage(recipe, corpus)
    drawn = decode_batch(stage.micro_batch(), stage)
    chosen = _choose(drawn, drawing)
    summary = find_objective(name).summary
    label = f"{name}: {summary}. One draw of a batch, and who attends to whom."
    if name == "cooccurrence":
        objective = stage.objectives[name]
        assert isinstance(objective, Cooccurrence)
        return pairs_figure(drawn, chosen, objective, corpus.vocabulary, label=label).svg()
    return draw_figure(drawn, chosen, label=label).svg()


def draw_packing(corpus: Corpus) -> str:
    """The SVG of a row that holds sequences of several objectives."""
    objectives = {"mlm": MASKS, "tlm": MASKS, "camlm": {"rate": 0.3}}
    streams = {
        "text": {**TEXT, "objectives": ["mlm"], "share": 0.4},
        "parallel": {**PAIRS, "objectives": ["tlm", "camlm"], "share": 0.6},
    }
    stage = open_stage(_recipe(streams, objectives, row_length=44), corpus)
    rows = decode_batch(stage.micro_batch(), stage).rows
    mixed = [row for row in rows if len({one.objective for one in row.sequences}) == 3]
    chosen = min(mixed, key=lambda row: (abs(row.padding - 2), len(row.sequences), row.number))
    label = (
        "A row with sequences of three objectives, and its attention mask: none attends to another."
    )
    return row_figure(chosen, label=label).svg()


def recipe_of(drawing: Drawing, corpus: Corpus) -> Any:
    """The recipe that a figure is drawn from."""
    objectives = {name: dict(settings) for name, settings in drawing.objectives.items()}
    if "distill" in objectives:
        objectives["distill"]["teacher"] = str(corpus.folder.parent / "teacher")
    stream = {**drawing.settings, "objectives": list(objectives)}
    return _recipe({drawing.stream: stream}, objectives, decoder=drawing.decoder)


def _recipe(
    streams: dict[str, Any],
    objectives: dict[str, Any],
    *,
    row_length: int = 64,
    decoder: bool = False,
) -> Any:
    model = {"size": "tiny", "max_positions": 128}
    written = {
        "name": "figure",
        "model": {**model, "decoder": {}} if decoder else model,
        "batch": {"row_length": row_length, "rows": 32, "micro_rows": 32},
        "objectives": objectives,
        "stages": [{"steps": 1, "streams": streams}],
    }
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "figure.yaml"
        file.write_text(yaml_text.write(written), encoding="utf-8")
        return load_recipe(str(file))


def _choose(drawn: DrawnBatch, drawing: Drawing) -> int:
    """The draw to show: of the right languages, with many kinds of tokens, of about a length."""
    tokens: Counter[int] = Counter()
    kinds: dict[int, set[str]] = {}
    for row in drawn.rows:
        for one in row.sequences:
            if one.origin.endswith(drawing.origin):
                tokens[one.draw] += len(one.tokens)
                kinds.setdefault(one.draw, set()).update(token.kind for token in one.tokens)
    return min(tokens, key=lambda d: (abs(tokens[d] - drawing.tokens) - 2 * len(kinds[d]), d))


def main() -> None:
    """Write all figures."""
    with tempfile.TemporaryDirectory() as folder:
        corpus = make_corpus(Path(folder))
        FOLDER.mkdir(parents=True, exist_ok=True)
        for name in DRAWINGS:
            (FOLDER / f"{name}.svg").write_text(draw(name, corpus), encoding="utf-8")
        (FOLDER / "packing.svg").write_text(draw_packing(corpus), encoding="utf-8")


if __name__ == "__main__":
    main()
