"""The folders that users of an adapted encoder open: OUT/model and OUT/sentence-transformers.

Both have a model card with languages, license, data, base model and the scores before and after.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from isoglot.adaptation.card import adapted_card
from isoglot.adaptation.knowledge import knowledge_origin
from isoglot.atomic import replace_folder, write_text
from isoglot.models.model_card import ModelCard, with_limitations
from isoglot.models.sentence_export import sentence_limitations
from isoglot.pretraining.export import data_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isoglot.adaptation.comparison import AdaptScores
    from isoglot.adaptation.config import AdaptConfig
    from isoglot.adaptation.folder import AdaptFolder
    from isoglot.corpus import Corpus
    from isoglot.pretraining.config import Recipe

_LINKED = ".safetensors"
"""Files that are linked, not copied, where the disk allows it: weights are large."""


def export_adapted(
    config: AdaptConfig,
    folder: AdaptFolder,
    recipe: Recipe,
    scores: AdaptScores,
    corpus: Corpus,
    *,
    vectors: str,
    tokens: int,
    limitations: Sequence[str] = (),
    tables: str | None = None,
) -> None:
    """Write OUT/model from the model of the run, and the cards of both folders.

    `vectors` are those of the sentence-transformers folder, in words, if there is one; `tokens`
    were trained on; `limitations` are sentences on what a plain folder cannot hold; `tables` is the
    folder of the knowledge that was trained on.
    """
    objectives = [name for n in range(len(recipe.stages)) for name in recipe.objectives_in(n)]
    card = ModelCard(
        name=folder.path.resolve().name,
        languages=tuple(corpus.languages),
        objectives=tuple(dict.fromkeys(objectives)),
        tokens_seen=tokens,
        init_from=config.encoder,
        license=config.license,
        data=tuple(data_rows(corpus, knowledge=tables is not None)),
        knowledge=None if tables is None else knowledge_origin(Path(tables), corpus),
        recipe=recipe.name,
    )
    readme = with_limitations(adapted_card(card, scores, "fill-mask"), limitations)
    source = folder.run / "model"
    with replace_folder(folder.model) as new:
        shutil.copytree(source, new, copy_function=_link_or_copy, dirs_exist_ok=True)
        (new / "README.md").unlink()
        (new / "README.md").write_text(readme, encoding="utf-8")
    if not vectors:
        return
    readme = adapted_card(card, scores, "sentence-similarity", pooling=vectors)
    readme = with_limitations(readme, sentence_limitations(folder.model))
    write_text(folder.sentence_model / "README.md", readme)


def _link_or_copy(source: str, target: str) -> None:
    """Link large files, which nothing changes in place; copy what another disk needs to have."""
    if source.endswith(_LINKED):
        try:
            os.link(source, target)
        except OSError:  # another disk, or one without links
            shutil.copyfile(source, target)
    else:
        shutil.copyfile(source, target)
