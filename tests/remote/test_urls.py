from pathlib import Path

import pytest

from isoglot.errors import FetchError
from isoglot.remote.urls import as_url, is_streamed


@pytest.mark.parametrize(
    ("name", "url"),
    [
        ("s3://bucket/corpus", "s3://bucket/corpus"),
        (Path("s3://bucket/corpus"), "s3://bucket/corpus"),
        (Path("https://host/a/b"), "https://host/a/b"),
        ("hf://datasets/o/n", "hf://datasets/o/n"),
        ("corpora/s3/x", None),
        ("opus:Tatoeba/en-sw", None),
        ("hf:org/data", None),
        ("/s3:/x", None),
        ("s3:", None),
    ],
)
def test_what_is_a_url(name, url):
    assert as_url(name) == url


def test_archives_of_the_web_are_fetched_and_others_refused():
    assert is_streamed("https://host/a.txt.gz")
    assert not is_streamed("https://host/a.tar.gz?download=1")
    with pytest.raises(FetchError, match=r"^s3://b/a.zip: is an archive. Unpack it"):
        is_streamed("s3://b/a.zip")
