from __future__ import annotations

import json

import pytest

from isoglot.errors import FetchError
from isoglot.fetching.opus import newest_version
from tests.fetching.servers import Hosted

PATH = "/opus.nlpl.eu/opusapi/"
ALL = "?source=en&target=sw&preprocessing=moses&version=latest"
TATOEBA = f"?corpus=Tatoeba&{ALL[1:]}"


def corpus(name: str, version: str) -> dict[str, object]:
    return {"corpus": name, "version": version, "size": 40, "alignment_pairs": 900}


def host(server, query: str, corpora: list[dict[str, object]]) -> None:
    server.host(PATH + query, json.dumps({"corpora": corpora}).encode())


def test_the_newest_version_is_that_of_the_api(server, config):
    host(server, TATOEBA, [corpus("Tatoeba", "v2023-04-12")])
    found = newest_version("Tatoeba", "en", "sw", config)
    assert (found.version, found.about_bytes, found.num_pairs) == ("v2023-04-12", 40_960, 900)


def test_a_corpus_that_opus_does_not_have(server, config):
    host(server, "?corpus=Tatoba" + TATOEBA.partition("Tatoeba")[2], [])
    host(server, ALL, [corpus("Tatoeba", "v1"), corpus("QED", "v2")])
    with pytest.raises(FetchError, match="no 'Tatoba' for en and sw; did you mean 'Tatoeba'"):
        newest_version("Tatoba", "en", "sw", config)


def test_languages_that_opus_does_not_have(server, config):
    server.host(PATH, b'{"corpora": []}')
    with pytest.raises(FetchError, match="nothing for en and xx"):
        newest_version("Tatoeba", "en", "xx", config)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (Hosted(b"<html>"), "does not answer in JSON"),
        (Hosted(statuses=[(503, {})], forever=True), "OPUS does not answer"),
        (Hosted(b'{"corpora": "none"}'), "nothing for en and sw"),
        (Hosted(b"[" * 100_000), "does not answer in JSON"),
    ],
)
def test_answers_that_are_none(server, config, answer, message):
    server.host(PATH, answer)
    with pytest.raises(FetchError, match=message):
        newest_version("Tatoeba", "en", "sw", config)
