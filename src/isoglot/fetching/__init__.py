"""`isoglot fetch`: test sets and training data by name, downloaded, verified and unpacked.

    name --plan--> addresses, places, license --fetch--> download, unpack, record --> files

`resolve` is for commands and settings that take files: it gives local files for a name.
"""

from __future__ import annotations

from isoglot.fetching.progress_lines import ProgressLines
from isoglot.fetching.resolve import is_remote, resolve

__all__ = ["ProgressLines", "is_remote", "resolve"]
