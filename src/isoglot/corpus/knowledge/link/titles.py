"""Titles of one wiki to Wikidata items: redirects followed, sitelinks looked up.

Reads the pages of a wiki and the sitelinks to it; gives one row for every title that a link can
name, with its item or the reason why it has none. Everything later asks this table.

    pages (title, redirect, kind) ─┬─ redirects followed ─┐
    sitelinks (title, item) ───────┴──────────────────────┴→ title, item, fate
"""

from __future__ import annotations

from typing import Any

from isoglot.corpus.knowledge.link.fates import DISAMBIGUATION, KEPT, LOOP, NO_SITELINK, RED_LINK


def unique_pages(pages: Any) -> Any:
    """One row a title; where it is there twice (moved while the dump was made), the article."""
    from daft import col

    # in the alphabet, article comes before disambiguation and redirect
    return pages.groupby("title").agg(col("kind").min(), col("redirect").min())


def titles(pages: Any, sitelinks: Any, disambiguations: Any, *, hops: int) -> Any:
    """Every title of a wiki: title, item (missing unless kept), fate.

    A title with a sitelink counts as a page even where the dump has none of that name, so that
    some parts of a dump do for a start.

    Args:
        pages: title, redirect, kind; titles are unique.
        sitelinks: title, item, to this wiki.
        disambiguations: item, those that Wikidata calls disambiguation pages.
        hops: redirects to follow; who is still at one then goes in circles.
    """
    from daft import col, lit
    from daft.functions import coalesce

    places = _places(pages, sitelinks, disambiguations)
    followed = (
        _ends(pages.where(col("kind") == "redirect"), hops)
        .join(places.select(col("title").alias("end"), "item", "fate"), on="end", how="left")
        .select("title", "item", coalesce(col("fate"), lit(RED_LINK)).alias("fate"))
    )
    return places.where(col("fate") != LOOP).concat(followed)


def _places(pages: Any, sitelinks: Any, disambiguations: Any) -> Any:
    """Every title as it is, before redirects are followed: one that is a redirect is a loop."""
    from daft import col, lit
    from daft.functions import when

    redirect = (col("kind") == "redirect").fill_null(lit(value=False))
    ambiguous = (col("kind") == "disambiguation").fill_null(lit(value=False)) | col(
        "listed"
    ).fill_null(lit(value=False))
    fate = (
        when(redirect, LOOP)
        .when(ambiguous, DISAMBIGUATION)
        .when(col("item").is_null(), NO_SITELINK)
        .otherwise(KEPT)
    )
    return (
        pages.join(sitelinks.groupby("title").agg(col("item").min()), on="title", how="outer")
        .join(
            disambiguations.distinct().with_column("listed", lit(value=True)),
            on="item",
            how="left",
        )
        .with_column("fate", fate)
        .select("title", when(col("fate") == KEPT, col("item")).alias("item"), "fate")
    )


def _ends(redirects: Any, hops: int) -> Any:
    """Where each redirect leads after so many hops: title, end."""
    from daft import col
    from daft.functions import coalesce

    ends = redirects.select("title", col("redirect").alias("end"))
    onward = redirects.select(col("title").alias("end"), col("redirect").alias("next"))
    for _ in range(hops - 1):
        ends = ends.join(onward, on="end", how="left").select(
            "title", coalesce(col("next"), col("end")).alias("end")
        )
    return ends
