"""Words before pieces: texts are divided into words by a language's own rules before BPE.

XLM and the papers that follow it divide text this way: by Moses for most languages, by dictionaries
for Chinese and Thai, which write no spaces. Unlike them, only spaces are put in: no punctuation is
changed and nothing escaped, so that leaving out the spaces gives the text back. A SentencePiece
unigram vocabulary needs none of this; it is there for reproductions and for word-level
vocabularies. To add a way, write its file and list it in `WAYS`.
"""

from __future__ import annotations

from isoglot.corpus.pretokenize.words import FILE, WAYS, Name, Pretokenization

__all__ = ["FILE", "WAYS", "Name", "Pretokenization"]
