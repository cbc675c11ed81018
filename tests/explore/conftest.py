"""A page of `isoglot explore` with a tiny trained model, served once for all tests of the folder.

`page` is a browser page on it. A test of a tab asks for `page`, clicks the tab and looks. Chromium
is Debian's; without it tests are skipped, except in CI.
"""

from __future__ import annotations

import gc
import os
import shutil
import threading
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import isoglot
from isoglot.explore.server import bind, make_server
from isoglot.explore.session import open_session
from tests.report.browser import chromium
from tests.tiny_corpus import words

if TYPE_CHECKING:
    from collections.abc import Iterator

    from isoglot.corpus import Corpus
    from isoglot.explore.session import ExploreSession

SETTINGS = (
    *("batch.row_length=64", "batch.rows=8", "batch.micro_rows=8", "loader.num_workers=0"),
    *("model.num_layers=2", "model.hidden_size=32", "model.num_heads=2", "stages.0.steps=20"),
    *("model.max_positions=128", "logging.trackers=[]", "logging.validate_every_steps=0"),
)
HOSTILE = "<script>document.title='broken'</script><img src=x onerror=\"document.title='broken'\">"
"""A sentence of both files that would run, were it not shown as text."""
ARABIC, CHINESE = "القطة تجلس على السجادة الحمراء.", "猫坐在红色的垫子上。"


@pytest.fixture(scope="session")
def models(corpus: Corpus, tmp_path_factory) -> tuple[Path, Path]:
    """Two runs of a few steps: MLM, and MLM with TLM."""
    runs = tmp_path_factory.mktemp("runs")
    outcomes = [
        isoglot.pretrain("tiny", corpus, runs / name, settings=(*SETTINGS, f"seed={seed}"))
        for seed, name in enumerate(("first", "second"), start=1)
    ]
    assert all(outcome.model for outcome in outcomes)
    return runs / "first", runs / "second"


@pytest.fixture(scope="session")
def files(corpus: Corpus, tmp_path_factory) -> Path:
    """Pairs and lines: sentences of the corpus, Arabic and Chinese, HTML, a very long line."""
    folder: Path = tmp_path_factory.mktemp("files")
    raw = corpus.folder.parent / "raw"
    pairs = (raw / "pairs/aa-bb.tsv").read_text("utf-8").splitlines()[:60]
    hard = [f"{HOSTILE}\t{HOSTILE} bb", f"{'x' * 100_000}\t{'y' * 100_000}"]
    (folder / "aa-bb.tsv").write_text("\n".join([*pairs, *hard]) + "\n", encoding="utf-8")
    (folder / "ar-zh.tsv").write_text(
        "".join(f"{ARABIC} {n}\t{CHINESE} {n}\n" for n in range(1, 9)), encoding="utf-8"
    )
    entries = zip(words("aa"), words("bb"), strict=True)
    (folder / "aa-bb.txt").write_text("".join(f"{one} {two}\n" for one, two in entries), "utf-8")
    return folder


@pytest.fixture(scope="session")
def session(corpus: Corpus, models: tuple[Path, Path], files: Path) -> ExploreSession:
    """Two models, a corpus and two files of pairs."""
    first, second = models
    return open_session(
        [f"first={first}", f"second={second}"],
        corpus=corpus,
        pairs=[files / "aa-bb.tsv", files / "ar-zh.tsv"],
        dictionaries=[files / "aa-bb.txt"],
        recipe="tiny",
        device="cpu",
        limit=500,
    )


@dataclass
class Served:
    """A page that is served in a thread."""

    address: str
    server: Any


@pytest.fixture(scope="session")
def served(session: ExploreSession) -> Iterator[Served]:
    """The session's page on a free loopback port."""
    pytest.importorskip("gradio")
    with bind("127.0.0.1", 0) as bound:
        with warnings.catch_warnings():
            # Gradio leaves event loops behind that it did not close
            warnings.simplefilter("ignore", ResourceWarning)
            server = make_server(session)
            gc.collect()
        thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]}, daemon=True)
        thread.start()
        yield Served(f"http://127.0.0.1:{bound.getsockname()[1]}/", server)
        server.should_exit = server.force_exit = True  # pages that are still open do not matter
        thread.join(2)  # an event loop that waits for the threads of pages ends with the process


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Debian's Chromium; Playwright cannot be started twice in a process, so modules take turns."""
    if shutil.which("chromium") is None:
        if os.environ.get("CI"):
            pytest.fail("chromium is not installed, and CI needs it: apt-get install chromium")
        pytest.skip("chromium is not installed")
    with chromium() as started:
        yield started


@pytest.fixture
def page(browser: Any, served: Served) -> Iterator[Any]:
    """The page, loaded, 1,280 pixels wide; all requests must go to the app, and no script may fail.

    `page.set_viewport_size` and `page.emulate_media(color_scheme="dark")` change it.
    """
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    opened = context.new_page()
    opened.set_default_timeout(60_000)
    elsewhere: list[str] = []
    errors: list[str] = []
    opened.on("request", lambda one: _keep_if_elsewhere(one.url, served.address, elsewhere))
    opened.on("pageerror", lambda error: errors.append(str(error)))
    opened.goto(served.address)
    opened.get_by_role("tab").first.wait_for()
    # components are drawn a moment before they listen, and the page asks for its tab when it is up
    opened.wait_for_timeout(1000)
    yield opened
    title = opened.title()
    context.close()
    assert elsewhere == []
    assert errors == []
    assert title == "Isoglot explore", "a script of a sentence ran"


def open_tab(page: Any, title: str) -> None:
    """Open the page at a tab, by its address: on a narrow page some tabs are in a menu."""
    page.goto(f"{page.url.partition('?')[0]}?tab={title.lower()}")
    page.get_by_role("tab", name=title, selected=True).wait_for()


def _keep_if_elsewhere(url: str, address: str, found: list[str]) -> None:
    if not url.startswith((address, "data:", "blob:")):
        found.append(url)
