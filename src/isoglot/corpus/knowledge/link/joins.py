"""Joins of numbers and titles: which entity each title, page, link and claim belongs to (Daft).

    pages (title, redirect, kind) ─┬─ redirects followed ─┐
    sitelinks (title, item) ───────┴──────────────────────┴→ titles: title, item, status

    titles + pages -> the item of every page        titles + sentences -> the item of every link

Text takes no part: a link is identified by shard, page, sentence and characters, and meets its
sentence again in tokenization. `status` is `kept` or the one reason why a row is dropped, so that
for every language kept and dropped rows add up to the rows read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from isoglot.corpus.knowledge.dataframes import SHARD

if TYPE_CHECKING:
    from collections.abc import Mapping

KEPT = "kept"

# reasons of dropped links
RED_LINK = "red link"  # the target is no page, and no sitelink names it
DISAMBIGUATION = "disambiguation page"  # the target (the page), by the wiki or by Wikidata
NO_SITELINK = "no sitelink"  # the page belongs to no item
LOOP = "redirect loop"  # redirects lead in a circle, or further than `max_redirects`
SELF_LINK = "self link"  # the target is the entity of the link's own page
NO_DESCRIPTION = "no description"  # the entity has none in any wanted language
NO_TOKENS = "no tokens"  # the tokenizer gives none for the anchor text (the page)
TOO_LONG = "too long"  # the anchor text has more than `max_mention_tokens`
SPECIAL = "special token"  # the text spells a special token that the tokenizer recognizes
EXCLUDED = "in an evaluation file"  # the sentence, which `exclude` names
SHARED = "shared token"  # the anchor text shares a token with the previous mention
# of dropped pages and claims
REPEATED = "repeated"  # the page is in two dumps, the claim in two statements
REDIRECT = "redirect"  # the page is a redirect and describes nothing
NO_TEXT = "no text"  # the page has none, or none before its first heading (`description: lead`)
NO_SUBJECT = "subject without description"
NO_OBJECT = "object without description"
SELF_CLAIM = "subject is object"
RARE = "rare relation"  # the relation has fewer than `min_relation_triples`

_INSTANCE_OF, _DISAMBIGUATION_PAGE = 31, 4167410
"""Wikidata's property `instance of`, and its item for disambiguation pages."""


def drop_counts(reasons: Mapping[str, int]) -> dict[str, int]:
    """Reasons in alphabetical order, without those of count 0."""
    return {reason: number for reason, number in sorted(reasons.items()) if number}


def unique_pages(pages: Any) -> Any:
    """One row a title; of a title that occurs twice (moved during the dump), the article."""
    from daft import col

    # in alphabetical order, article comes before disambiguation and redirect
    return pages.groupby("title").agg(col("kind").min(), col("redirect").min())


def resolve_titles(pages: Any, sitelinks: Any, disambiguations: Any, *, max_redirects: int) -> Any:
    """Every title of a wiki: title, item (null unless kept), status.

    Joins pages (title, redirect, kind; unique titles), sitelinks to this wiki (title, item) and the
    disambiguation pages of Wikidata (item). A title with a sitelink counts as a page even where the
    dump lacks it, so that a part of a dump is enough to start with.
    """
    from daft import col, lit
    from daft.functions import coalesce

    direct = _direct_titles(pages, sitelinks, disambiguations)
    followed = (
        _follow(pages.where(col("kind") == "redirect"), max_redirects)
        .join(direct.select(col("title").alias("end"), "item", "status"), on="end", how="left")
        .select("title", "item", coalesce(col("status"), lit(RED_LINK)).alias("status"))
    )
    return direct.where(col("status") != LOOP).concat(followed)


def _direct_titles(pages: Any, sitelinks: Any, disambiguations: Any) -> Any:
    """Every title before redirects are followed; a redirect has the status LOOP."""
    from daft import col, lit
    from daft.functions import when

    no = lit(value=False)
    redirect = (col("kind") == "redirect").fill_null(no)
    ambiguous = (col("kind") == "disambiguation").fill_null(no) | col("listed").fill_null(no)
    status = (
        when(redirect, LOOP)
        .when(ambiguous, DISAMBIGUATION)
        .when(col("item").is_null(), NO_SITELINK)
        .otherwise(KEPT)
    )
    listed = disambiguations.distinct().with_column("listed", lit(value=True))
    return (
        pages.join(sitelinks.groupby("title").agg(col("item").min()), on="title", how="outer")
        .join(listed, on="item", how="left")
        .with_column("status", status)
        .select("title", when(col("status") == KEPT, col("item")).alias("item"), "status")
    )


def _follow(redirects: Any, hops: int) -> Any:
    """The target of each redirect after so many hops: title, end."""
    from daft import col
    from daft.functions import coalesce

    ends = redirects.select("title", col("redirect").alias("end"))
    onward = redirects.select(col("title").alias("end"), col("redirect").alias("next"))
    for _ in range(hops - 1):
        ends = ends.join(onward, on="end", how="left").select(
            "title", coalesce(col("next"), col("end")).alias("end")
        )
    return ends


def page_entities(pages: Any, titles: Any) -> Any:
    """Pages (shard, page, title, kind) and `resolve_titles` -> shard, page, item, status."""
    from daft import col
    from daft.functions import when

    redirect = col("kind") == "redirect"
    return pages.join(titles, on="title", how="left").select(
        SHARD,
        "page",
        when(~redirect, col("item")).alias("item"),
        when(redirect, REDIRECT).otherwise(col("status")).alias("status"),
    )


def link_entities(sentences: Any, titles: Any, pages: Any) -> Any:
    """The item of every link: shard, page, index, start, end, item, status.

    Joins sentences (shard, page, index, links) with `resolve_titles` and `page_entities`.
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
        .with_column("status", coalesce(col("status"), lit(RED_LINK)))
        .select(
            *(SHARD, "page", "index", "start", "end"),
            when(~own_link, col("item")).alias("item"),
            when(own_link, SELF_LINK).otherwise(col("status")).alias("status"),
        )
    )


def disambiguation_items(claims: Any) -> Any:
    """The items that are disambiguation pages in Wikidata: item."""
    from daft import col

    listed = (col("relation") == _INSTANCE_OF) & (col("object") == _DISAMBIGUATION_PAGE)
    return claims.where(listed).select(col("subject").alias("item"))


def triple_status(claims: Any, described: Any) -> Any:
    """Every distinct claim: subject, relation, object, status; rare relations are still kept.

    `described` are the items with a description in a wanted language.
    """
    from daft import col, lit
    from daft.functions import when

    known = described.with_column("known", lit(value=True))
    subjects = known.select(col("item").alias("subject"), col("known").alias("has_subject"))
    objects = known.select(col("item").alias("object"), col("known").alias("has_object"))
    status = (
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
        .select("subject", "relation", "object", status.alias("status"))
    )


def relation_counts(triples: Any) -> Any:
    """The number of kept triples of each relation: relation, count."""
    from daft import col

    kept = triples.where(col("status") == KEPT)
    return kept.groupby("relation").agg(col("subject").count().alias("count"))
