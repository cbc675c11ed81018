"""What a user may write for a model, a run, a corpus or a tokenizer, and the folder that it names.

model      a Hugging Face folder (config.json), a run (its model/), or a Hugging Face hub name
run        the folder of a pre-training run, its model/, or a folder of `isoglot adapt` (its run/)
corpus     a prepared corpus, or a folder with exactly one of them in it
tokenizer  a folder with tokenizer.json, a corpus, a run, or a name on the hub

All commands, recipes (`model.init_from`) and the Python interface use these functions. What looks
like a path is never looked up on the hub: it has more than one slash, begins with `.`, `/`, `~` or
`runs/`, or its first folder exists.
"""

from __future__ import annotations

import re
from pathlib import Path

from isoglot import json_text
from isoglot.errors import CorpusError, IsoglotError, ModelError, nearest

RUNS = "runs"
"""Folder of runs, relative to where commands run."""
_MODEL = "model"
_ADAPT_REQUEST, _ADAPT_RUN = "adapt.yaml", "run"
_CONFIG, _MANIFEST, _TOKENIZER = "config.json", "manifest.json", "tokenizer"
_RUN_FILES = ("recipe.yaml", "metrics.jsonl", "checkpoints")
TOKENIZER_FILES = ("tokenizer.json", "vocab.*", "*.model")
"""Patterns, of which a folder with a tokenizer has one."""
_HUB_NAME = re.compile(r"[\w-][\w.-]*(/[\w-][\w.-]*)?")
_HUB_FILES = ["*.json", "*.safetensors", "*.txt", "*.model"]
_RECIPES = Path(__file__).parent / "recipes"
_ACCEPTED = "Give a Hugging Face folder, a run (runs/NAME) or a name on the Hugging Face hub."


def model_folder(name: str | Path) -> Path:
    """The folder of a model; one that only the hub has is downloaded into the hub's cache."""
    found = find_model(name)
    return _fetch(str(name)) if found is None else found


def find_model(name: str | Path) -> Path | None:
    """The folder of a model on this machine; none for a name that only the hub can know.

    Raises:
        ModelError: it is a path, and there is no model.
    """
    path = _path(name)
    for folder in (path, path / _MODEL):
        if (folder / _CONFIG).is_file():
            return folder
    if path.is_dir():
        raise ModelError(_no_model_in(path))
    if path.exists():
        raise ModelError(f"{name} is a file. {_ACCEPTED}")
    if _looks_like_path(str(name)):
        raise ModelError(f"{no_folder(path, _recipe_of(path))} {_ACCEPTED}")
    if _is_run(Path(RUNS) / path):
        raise ModelError(_in_runs(name))
    return None


def run_folder(name: str | Path) -> Path:
    """The folder of a run, which may be named by its model/ or by the folder of `adapt` too."""
    path = _path(name)
    for folder in (path, *([path.parent] if path.name == _MODEL else [])):
        if _is_run(folder):
            return folder
    if (path / _ADAPT_REQUEST).is_file() and _is_run(path / _ADAPT_RUN):
        return path / _ADAPT_RUN
    if path.is_dir():
        raise IsoglotError(
            f"{path} is not a run: it has neither of {', '.join(_RUN_FILES)}. Give the folder that "
            "isoglot pretrain wrote, runs/NAME."
        )
    if not path.is_absolute() and _is_run(Path(RUNS) / path):
        raise IsoglotError(_in_runs(name))
    raise IsoglotError(no_folder(path, _recipe_of(path)))


def corpus_folder(name: str | Path) -> Path:
    """The folder of a prepared corpus, which may be the only one in the folder named."""
    path = _path(name)
    if (path / _MANIFEST).is_file():
        return path
    if not path.is_dir():
        raise CorpusError(
            f"{path}: is not a prepared corpus: {no_folder(path)} "
            "`isoglot prepare FILE --out FOLDER` makes one."
        )
    inside = corpora_in(path)
    if len(inside) == 1:
        return inside[0]
    if inside:
        raise CorpusError(
            f"{path}: holds {len(inside)} prepared corpora. Name one of them: "
            f"{', '.join(map(str, inside))}."
        )
    raise CorpusError(
        f"{path}: is not a prepared corpus, or preparing it was interrupted: it has no "
        f"{_MANIFEST}. Run isoglot prepare."
    )


def tokenizer_folder(name: str | Path, base: Path | None = None) -> Path:
    """The folder of a tokenizer: that of a model, of a run or of a prepared corpus.

    A relative path begins at `base`; none: where the command runs.
    """
    path = _path(name if base is None else base / _path(name))
    if path.is_dir():
        if _is_corpus(path):
            return path / _TOKENIZER
        for folder in (path, path / _MODEL, path / _TOKENIZER):
            if any(any(folder.glob(pattern)) for pattern in TOKENIZER_FILES):
                return folder
        inside = corpora_in(path)
        return inside[0] / _TOKENIZER if len(inside) == 1 else path
    return model_folder(path if _looks_like_path(str(name)) else name)


def with_home(name: str | Path) -> Path:
    """The name as a path; `~` is the home folder.

    Raises:
        IsoglotError: there is no home folder.
    """
    try:
        return Path(name).expanduser()
    except RuntimeError as error:
        raise IsoglotError(f"{name}: {error} Write the folder in full.") from error


def _path(name: str | Path) -> Path:
    """The name as a path; `~` is the home folder."""
    path = with_home(name)
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return path
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        shown = f"{str(name)[:80]}..." if len(str(name)) > 80 else str(name)
        raise IsoglotError(
            f"{shown!r} cannot be opened ({reason}). Name another folder."
        ) from error
    return path


def _looks_like_path(name: str) -> bool:
    if name.startswith((".", "/", "~", f"{RUNS}/")) or not _HUB_NAME.fullmatch(name):
        return True
    return "/" in name and Path(name.partition("/")[0]).exists()


def _in_runs(name: str | Path) -> str:
    return f"There is no folder {name}. Did you mean {RUNS}/{name}?"


def _is_run(folder: Path) -> bool:
    return any((folder / name).exists() for name in _RUN_FILES)


def _is_corpus(folder: Path) -> bool:
    # the knowledge of a corpus has a manifest too, and no tokenizer
    return (folder / _MANIFEST).is_file() and (folder / _TOKENIZER).is_dir()


def corpora_in(folder: Path) -> list[Path]:
    """The prepared corpora that are folders of a folder."""
    return [path for path in _folders_in(folder) if _is_corpus(path)]


def _no_model_in(folder: Path) -> str:
    """Why a folder is no model, and what to do."""
    if _is_run(folder):
        return (
            f"{folder} holds no model (no {_CONFIG} there or in {folder / _MODEL}): the run has "
            "not finished. Continue it with isoglot pretrain --resume, or get the model of its "
            f"newest checkpoint: isoglot export {folder}."
        )
    modules = [folder / path for path in _module_paths(folder)]
    if modules and (modules[0] / _CONFIG).is_file():
        return (
            f"{folder} is a sentence-transformers folder whose encoder is in {modules[0]}. Give "
            "that folder."
        )
    models = [
        path
        for path in _folders_in(folder)
        if (path / _CONFIG).is_file() or (path / _MODEL / _CONFIG).is_file()
    ]
    hint = f"Models in it: {', '.join(map(str, models[:20]))}." if models else _ACCEPTED
    if _is_corpus(folder):
        hint = f"It is a prepared corpus. {_ACCEPTED}"
    return f"{folder} holds no model (no {_CONFIG} there or in {folder / _MODEL}). {hint}"


def no_folder(path: Path, recipe: str = "") -> str:
    """A sentence on a path that does not exist: the recipe that makes it, or near names."""
    if recipe:
        return f"There is no folder {path}. Make it first: isoglot pretrain {recipe}."
    there = next(folder for folder in path.parents if folder.is_dir())
    missing = path.relative_to(there).parts[0]
    sentence = f"There is no folder {there / missing}"
    names = [entry.name for entry in _folders_in(there) if not entry.name.startswith(".")]
    if names:
        sentence += f"; {nearest(missing, names)}"
    return sentence if sentence.endswith("?") else f"{sentence}."


def _folders_in(folder: Path) -> list[Path]:
    """The folders in a folder, sorted; none where it must not be read."""
    try:
        return sorted(path for path in folder.iterdir() if path.is_dir())
    except OSError:
        return []


def _recipe_of(path: Path) -> str:
    """The built-in recipe whose run, by default, is this path."""
    parts = path.parts
    if RUNS not in parts:
        return ""
    rest = parts[parts.index(RUNS) + 1 :]
    names = ("/".join(rest[:number]) for number in range(len(rest), 0, -1))
    return next((name for name in names if (_RECIPES / f"{name}.yaml").is_file()), "")


def _module_paths(folder: Path) -> list[str]:
    """The folders of a sentence-transformers folder's modules; the encoder is the first."""
    try:
        modules = json_text.parse((folder / "modules.json").read_text("utf-8"))
        return [str(module["path"]) for module in modules]
    except (OSError, ValueError, TypeError, KeyError):
        return []


def _module_files(folder: Path) -> list[str]:
    """Patterns of the files that a sentence-transformers folder has in folders of its modules."""
    paths = _module_paths(folder)
    return [f"{path}/{file}" for path in paths if path for file in ("*.json", "*.safetensors")]


def _fetch(name: str) -> Path:
    """The folder of a model of the hub in its cache: config, tokenizer and safetensors, no code."""
    from huggingface_hub import snapshot_download, try_to_load_from_cache

    try:
        folder = Path(snapshot_download(name, allow_patterns=_HUB_FILES, ignore_patterns="*/*"))
        modules = _module_files(folder)
        return Path(snapshot_download(name, allow_patterns=modules)) if modules else folder
    except Exception as error:
        # without a network, what transformers has cached is as good
        cached = try_to_load_from_cache(name, _CONFIG)
        if isinstance(cached, str):
            return Path(cached).parent
        reason = str(error).strip().split("\n")[0].rstrip(".")
        near = nearest(name, [folder.name for folder in _folders_in(Path())])
        hint = f" D{near[1:]}" if near.endswith("?") else ""  # did you mean ...?
        raise ModelError(
            f"There is no folder {name} here, and the Hugging Face hub does not give a model of "
            f"that name ({reason}).{hint} {_ACCEPTED}"
        ) from error
