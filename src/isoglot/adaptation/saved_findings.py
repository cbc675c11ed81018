"""OUT/findings.json: what was found, kept so that the same command does not read the data again.

    findings, LookedAt --save_findings--> OUT/findings.json --read_findings--> findings, or why not

Findings are used again only where everything that they were made from is the same (`LookedAt`): the
request, size and time of every data file and of the encoder's files, and the held-out lines and
samples that were written with them. What has a name elsewhere (a URL, a dataset of the hub) counts
as its copy in OUT/downloads, which is what is read: one that was fetched again is looked at again.
A damaged file, and one of another version, are looked at again, too.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from isoglot import json_text
from isoglot.adaptation.findings import Findings
from isoglot.adaptation.folder import hash_folder, model_files
from isoglot.atomic import write_json
from isoglot.errors import CorpusError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from isoglot.adaptation.folder import AdaptFolder
    from isoglot.adaptation.request import AdaptConfig

_VERSION = 2
"""Raised when looking finds something else in the same files: they are looked at again."""
_Stamps = dict[str, list[int]]
"""Path -> size and time of change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LookedAt:
    """What findings are made from."""

    request: str
    """SHA-256 of the settings that looking depends on."""
    files: _Stamps
    """The user's data: text, pairs, tests, knowledge."""
    encoder: _Stamps
    """Configuration, weights and tokenizer of the encoder."""

    @classmethod
    def of(cls, config: AdaptConfig, files: Iterable[Path], encoder: Path) -> LookedAt:
        """What there is now; `files` are those of all data, `encoder` is the encoder's folder."""
        asked: tuple[object, ...] = (
            *(config.encoder, config.text, config.pairs, config.tests, config.heldout, config.seed),
            *(() if config.knowledge is None else (config.knowledge,)),
        )
        return cls(
            request=_sha256(asked),
            files=_stamps(files),
            encoder=_stamps(model_files(encoder.absolute())),
        )


def save_findings(findings: Findings, looked_at: LookedAt, folder: AdaptFolder) -> None:
    """Write OUT/findings.json; held-out lines and samples are there already."""
    found = findings.to_json()
    content = {
        "version": _VERSION,
        **asdict(looked_at),
        "written": _written(folder),
        "sha256": _sha256(found),
        "findings": found,
    }
    write_json(folder.findings, content, indent=1)


def read_findings(folder: AdaptFolder, looked_at: LookedAt) -> Findings | str:
    """The findings of an earlier command; or, in words, why they cannot be used.

    Raises:
        CorpusError: data have changed since a corpus was prepared from them.
    """
    try:
        found = json_text.parse(folder.findings.read_bytes())
        known = {name: found.get(name) for name in ("version", "request", "files", "encoder")}
        changed = _changed(known["files"] or {}, looked_at.files)
    except (OSError, ValueError, TypeError, AttributeError):
        return f"{folder.findings} is damaged"
    same_data = not changed and known["request"] == looked_at.request
    if not same_data and (folder.corpus / "manifest.json").is_file():
        raise CorpusError(
            f"{changed[0] if changed else folder.findings}: has changed since {folder.path} was "
            f"begun{f' ({len(changed):,} files in all)' if len(changed) > 1 else ''}, so what was "
            "held out may be trained on. Choose another --out."
        )
    if changed:
        return f"{_named(changed)} changed"
    if not same_data:
        return "the request has changed"
    if known["version"] != _VERSION:
        return f"{folder.findings} is from another version of Isoglot"
    return _unchanged(found, known, looked_at, folder)


def _unchanged(
    found: dict[str, Any], known: dict[str, Any], looked_at: LookedAt, folder: AdaptFolder
) -> Findings | str:
    """The findings, unless the encoder or what was written with them is another one."""
    try:
        changed = _changed(known["encoder"], looked_at.encoder)
        findings = Findings.from_json(found["findings"])
        whole = found["sha256"] == _sha256(found["findings"])
    except (ValueError, KeyError, TypeError, AttributeError):
        return f"{folder.findings} is damaged"
    if changed:
        return f"{_named(changed)} changed"
    if not whole:
        return f"{folder.findings} is damaged"
    if found.get("written") != _written(folder):
        return f"{folder.heldout.name}/ or {folder.sample.name}/ in {folder.path} has changed"
    return findings


def _stamps(files: Iterable[Path]) -> _Stamps:
    about = {str(path): path.stat() for path in files}
    return {name: [stat.st_size, stat.st_mtime_ns] for name, stat in about.items()}


def _changed(known: _Stamps, now: _Stamps) -> list[str]:
    """Files that are new, gone, or have another size or time."""
    changed = [name for name in now if known.get(name) != now[name]]
    return changed + [name for name in known if name not in now]


def _named(changed: list[str]) -> str:
    more = f" and {len(changed) - 1:,} more" if len(changed) > 1 else ""
    return f"{changed[0]}{more} {'have' if more else 'has'}"


def _written(folder: AdaptFolder) -> list[str]:
    """Contents of the held-out lines and of the samples: a copied folder has the same ones."""
    return [hash_folder(folder.heldout), hash_folder(folder.sample)]


def _sha256(content: object) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
