"""The folders that users of an adapted encoder open, with their model cards, and the hub.

    OUT/run/model --export_adapted--> OUT/model, cards of both folders --push_folders--> hub

A card has languages, license, data, base model and the scores before and after. Its header has a
`model-index`, which the Hugging Face hub shows beside the model: the numbers after the adaptation,
on held-out data of the user. Repositories (NAME, and NAME-sentence-transformers) are private until
their owner says otherwise on the hub.
"""

from __future__ import annotations

import os
import shutil
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isoglot import json_text
from isoglot.adaptation.comparison import ALIGNMENT, BITS, RETRIEVAL, VECTORS
from isoglot.adaptation.page import HEADINGS, terminal_rows
from isoglot.atomic import replace_folder, write_text
from isoglot.corpus.knowledge.extract_tables import COUNTS
from isoglot.errors import IsoglotError
from isoglot.languages import bcp47
from isoglot.models.model_card import (
    ModelCard,
    is_hub_name,
    library_of,
    table,
    tags_of,
    with_limitations,
)
from isoglot.models.sentence_export import sentence_limitations
from isoglot.pretraining.export import data_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from huggingface_hub import EvalResult

    from isoglot.adaptation.comparison import AdaptScores
    from isoglot.adaptation.folder import AdaptFolder
    from isoglot.adaptation.request import AdaptConfig
    from isoglot.corpus import Corpus
    from isoglot.models.model_card import CardKind
    from isoglot.pretraining.config import Recipe

_INDEXED = {
    BITS: ("fill-mask", "bits-per-character"),
    RETRIEVAL: ("sentence-similarity", "accuracy"),
    VECTORS: ("sentence-similarity", "accuracy"),
    ALIGNMENT: ("token-classification", "alignment-error-rate"),
}
"""Metric -> the hub's task and the type of the metric; others are on the card only."""
_LINKED = ".safetensors"
"""Files that are linked, not copied, where the disk allows it: weights are large."""
SUFFIX = "-sentence-transformers"
"""Of the name of the folder for sentence-transformers, which loads a repository's root only."""


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


def knowledge_origin(folder: Path, corpus: Corpus) -> str:
    """What knowledge is from and how much there is, in a line for the model card."""
    manifest = corpus.knowledge.manifest
    facts = sum(manifest.triples.values())
    return f"{_sources(folder)}: {manifest.entities:,} entities, {facts:,} facts"


def _sources(folder: Path) -> str:
    """The graphs or dumps of tables by name; the tables' own name where they are gone."""
    try:
        told = json_text.parse((folder / COUNTS).read_bytes())
        graphs = (told.get("settings") or {}).get("graphs") or {}
        if graphs:
            return ", ".join(f"{name} ({one['format']})" for name, one in graphs.items())
        return ", ".join(sorted({Path(name).name for name in told["files"]})) or folder.name
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return folder.name


def adapted_card(
    card: ModelCard, scores: AdaptScores, kind: CardKind, *, pooling: str | None = None
) -> str:
    """README.md of a folder of the adapted encoder."""
    return card.render(
        kind, pooling, header=header(card, scores, kind), sections=score_sections(scores)
    )


def header(card: ModelCard, scores: AdaptScores, kind: CardKind) -> str:
    """The front matter with languages, license, base model and a model-index."""
    from huggingface_hub import ModelCardData

    base = card.init_from if card.init_from and is_hub_name(card.init_from) else None
    data = ModelCardData(
        language=list(dict.fromkeys(bcp47(code) for code in sorted(card.languages))),
        license=card.license,
        library_name=library_of(kind),
        pipeline_tag=kind,
        base_model=base,
        tags=tags_of(kind),
        model_name=card.name,
        eval_results=eval_results(scores, kind),
    )
    return f"---\n{data.to_yaml()}\n---"


def eval_results(scores: AdaptScores, kind: CardKind) -> list[EvalResult]:
    """The scores after the adaptation as the hub's evaluation results."""
    from huggingface_hub import EvalResult

    left_out = RETRIEVAL if kind == "sentence-similarity" else VECTORS
    found = []
    for one in scores.comparisons:
        if one.metric in _INDEXED and one.metric != left_out:
            task, metric = _INDEXED[one.metric]
            gold = one.metric == ALIGNMENT
            found.append(
                EvalResult(
                    task_type=task,
                    dataset_type="gold-word-alignments" if gold else "held-out",
                    dataset_name=f"{'gold word alignments' if gold else 'held-out data'}, "
                    f"{one.where}",
                    dataset_config=one.where,
                    metric_type=metric,
                    metric_value=round(one.after, 6),
                    metric_name=f"{one.metric}, {one.where}",
                )
            )
    return found


def score_sections(scores: AdaptScores) -> list[str]:
    """The table before and after in Markdown, and what was chosen on which data."""
    rows = terminal_rows(scores)
    explained = (
        "On lines and pairs that were held out before anything else. What got worse comes first "
        "within each metric. Intervals are paired bootstraps over lines or pairs."
    )
    parts = ["## Before and after", explained, table(HEADINGS, rows)]
    if scores.choices:
        parts.append(
            "\n".join(
                f"- {one.what}: {one.choice}. Chosen on {one.data}." for one in scores.choices
            )
        )
    return parts


class HubError(IsoglotError):
    """The hub cannot be reached, or does not take a folder."""


def check_hub(name: str) -> None:
    """Refuse a name or a token that the hub will not take, before any work.

    Raises:
        HubError: there is no token, it is wrong, the name is none, or the hub cannot be reached.
    """
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.utils._validators import validate_repo_id

    try:
        validate_repo_id(name)
        validate_repo_id(name + SUFFIX)
    except HFValidationError as error:
        raise HubError(
            f"--push-to-hub {name}: is not a repository name ({_first_line(error)}). Write "
            "OWNER/NAME."
        ) from error
    with _hub_errors(name):
        _api().whoami()


def push_folders(name: str, folders: Mapping[str, Path]) -> list[str]:
    """Upload folders (suffix of the name -> folder); gives the addresses of the repositories.

    Raises:
        HubError: the hub does not take them; what was uploaded before stays.
    """
    api, found = _api(), []
    for suffix, folder in folders.items():
        with _hub_errors(name + suffix):
            place = api.create_repo(name + suffix, private=True, exist_ok=True)
            api.upload_folder(
                repo_id=place.repo_id,
                folder_path=folder,
                commit_message="Adapted with Isoglot",
            )
            found.append(str(place))
    return found


def _api() -> Any:
    from huggingface_hub import HfApi

    return HfApi(endpoint=os.environ.get("HF_ENDPOINT"))


@contextmanager
def _hub_errors(name: str) -> Iterator[None]:
    """Turns the errors of the hub's library into sentences."""
    from huggingface_hub.errors import HfHubHTTPError, LocalTokenNotFoundError

    try:
        yield
    except LocalTokenNotFoundError as error:
        raise HubError(
            f"--push-to-hub {name}: there is no token of the Hugging Face hub. Run `hf auth "
            "login`, or set HF_TOKEN."
        ) from error
    except HfHubHTTPError as error:
        status = error.response.status_code if error.response is not None else 0
        if status in (401, 403):
            reason = "does not take the token" if status == 401 else "does not let this token write"
            raise HubError(
                f"--push-to-hub {name}: the Hugging Face hub {reason} ({status}). Make one with "
                "the right to write (huggingface.co/settings/tokens), and set HF_TOKEN."
            ) from error
        raise HubError(
            f"--push-to-hub {name}: the Hugging Face hub refuses ({_first_line(error)}). "
            "Everything is kept here: run the same command again."
        ) from error
    except Exception as error:  # of the network: the library passes on what it meets
        reason = _first_line(error.__cause__ or error)
        raise HubError(
            f"--push-to-hub {name}: the Hugging Face hub does not answer ({reason}). Look at the "
            "network, or leave --push-to-hub out and push later with the same command."
        ) from error


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(".:") if lines else type(error).__name__
