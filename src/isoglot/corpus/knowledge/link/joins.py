"""Which entity a page, a link and a claim belong to: joins of numbers and titles.

Text takes no part: a link is known by its shard, page, sentence and characters, and meets its
sentence again where the shard is tokenized. Each row keeps its fate.
"""

from __future__ import annotations

from typing import Any

from isoglot.corpus.knowledge.link.fates import (
    KEPT,
    NO_OBJECT,
    NO_SUBJECT,
    RED_LINK,
    REDIRECT,
    SELF_CLAIM,
    SELF_LINK,
)
from isoglot.corpus.relational import SHARD

IS_A, DISAMBIGUATION_PAGE = 31, 4167410
"""Wikidata's `instance of`, and its item for disambiguation pages."""


def page_entities(pages: Any, titles: Any) -> Any:
    """The item of every page: shard, page, item, fate.

    Args:
        pages: shard, page, title, kind.
        titles: title, item, fate.
    """
    from daft import col
    from daft.functions import when

    redirect = col("kind") == "redirect"
    return pages.join(titles, on="title", how="left").select(
        SHARD,
        "page",
        when(~redirect, col("item")).alias("item"),
        when(redirect, REDIRECT).otherwise(col("fate")).alias("fate"),
    )


def link_entities(sentences: Any, titles: Any, pages: Any) -> Any:
    """The item of every link: shard, page, index, start, end, item, fate.

    Args:
        sentences: shard, page, index, links.
        titles: title, item, fate.
        pages: page, item, as `page_entities` gives them.
    """
    from daft import col, lit
    from daft.functions import coalesce, when

    links = sentences.explode("links", ignore_empty_and_null=True).select(
        SHARD, "page", "index", *(col("links").get(name) for name in ("start", "end", "target"))
    )
    own = pages.where(~col("item").is_null()).groupby("page").agg(col("item").min().alias("own"))
    own_link = (col("item") == col("own")).fill_null(lit(value=False))
    return (
        links.join(titles, left_on="target", right_on="title", how="left")
        .join(own, on="page", how="left")
        .with_column("fate", coalesce(col("fate"), lit(RED_LINK)))
        .select(
            *(SHARD, "page", "index", "start", "end"),
            when(~own_link, col("item")).alias("item"),
            when(own_link, SELF_LINK).otherwise(col("fate")).alias("fate"),
        )
    )


def disambiguation_items(claims: Any) -> Any:
    """The items that Wikidata calls disambiguation pages: item."""
    from daft import col

    listed = (col("relation") == IS_A) & (col("object") == DISAMBIGUATION_PAGE)
    return claims.where(listed).select(col("subject").alias("item"))


def triple_fates(claims: Any, described: Any) -> Any:
    """Every distinct claim: subject, relation, object, fate; the floor is not asked yet.

    Args:
        claims: subject, relation, object.
        described: item, those with a description in some wanted language.
    """
    from daft import col, lit
    from daft.functions import when

    known = described.with_column("known", lit(value=True))
    subjects = known.select(col("item").alias("subject"), col("known").alias("has_subject"))
    objects = known.select(col("item").alias("object"), col("known").alias("has_object"))
    fate = (
        when(col("has_subject").is_null(), NO_SUBJECT)
        .when(col("has_object").is_null(), NO_OBJECT)
        .when(col("subject") == col("object"), SELF_CLAIM)
        .otherwise(KEPT)
    )
    return (
        claims.select("subject", "relation", "object")
        .distinct()
        .join(subjects, on="subject", how="left")
        .join(objects, on="object", how="left")
        .select("subject", "relation", "object", fate.alias("fate"))
    )


def relation_counts(triples: Any) -> Any:
    """How many kept triples each relation has: relation, count."""
    from daft import col

    kept = triples.where(col("fate") == KEPT)
    return kept.groupby("relation").agg(col("subject").count().alias("count"))
