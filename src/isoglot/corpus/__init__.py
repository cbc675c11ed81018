"""Raw text to a prepared corpus, and the corpus that training reads. No torch.

    reading -> cleaning -> deduplication, decontamination -> tokenization -> storage

`corpus.pipeline` runs these steps, as resumable tasks of `corpus.engine`. Training imports only
`corpus.storage`.
"""

from __future__ import annotations

from isoglot.corpus.storage.corpus import Corpus
from isoglot.corpus.storage.manifest import Manifest
from isoglot.corpus.storage.shards import Shard, Table

__all__ = ["Corpus", "Manifest", "Shard", "Table"]
