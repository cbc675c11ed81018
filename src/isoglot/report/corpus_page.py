"""A prepared corpus as one HTML page: what it holds, what was dropped, how it is drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isoglot import __version__
from isoglot.corpus.dropped import ALL_REASONS
from isoglot.report import colours
from isoglot.report.corpus_view import by_number, contaminated, draws, parts_of, samples_of
from isoglot.report.page import environment

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isoglot.corpus import Corpus


def corpus_page(corpus: Corpus, *, alphas: Sequence[float], samples: int, title: str) -> str:
    """The HTML of the page; it needs no other file and no network."""
    manifest = corpus.manifest
    total = manifest.total()
    return str(
        environment()
        .get_template("corpus.html")
        .render(
            title=title,
            version=__version__,
            colours=colours,
            languages={},
            corpus=corpus,
            total=total,
            parts=parts_of(manifest),
            reasons=by_number(total.dropped),
            meanings=ALL_REASONS,
            contaminated=contaminated(manifest),
            alphas=alphas,
            draws=list(draws(manifest, alphas)),
            fits=manifest.tokenizer.fits,
            samples=list(samples_of(corpus, samples)),
        )
    )
