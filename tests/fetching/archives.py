"""Archives made for tests."""

from __future__ import annotations

import io
import tarfile
import zipfile
from collections.abc import Mapping


def zip_of(files: Mapping[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def tar_of(files: Mapping[str, bytes], compression: str = "gz") -> bytes:
    buffer = io.BytesIO()
    # the mode is `w:gz`, which types cannot know
    with tarfile.open(fileobj=buffer, mode=f"w:{compression}") as archive:  # type: ignore[call-overload]
        for name, content in files.items():
            about = tarfile.TarInfo(name)
            about.size = len(content)
            archive.addfile(about, io.BytesIO(content))
    return buffer.getvalue()
