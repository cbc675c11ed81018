"""Pages in a real browser: Debian's Chromium, driven by Playwright."""

from __future__ import annotations

import os
import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, Page

needs_browser = pytest.mark.skipif(
    shutil.which("chromium") is None and not os.environ.get("CI"),
    reason="chromium is not installed",
)


@contextmanager
def chromium() -> Iterator[Browser]:
    """A headless browser."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def opened(browser: Browser, file: Path, *, width: int, scheme: str = "light") -> Iterator[Page]:
    """A page from disk; it may ask for no other file, run no dialog and log no error."""
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    asked: list[str] = []
    faults: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda line: faults.append(line.text) if line.type == "error" else None)
    page.on("dialog", lambda dialog: faults.append(dialog.message))
    page.goto(file.as_uri())
    yield page
    page.close()
    elsewhere = [url for url in asked if not url.startswith((file.as_uri(), "data:", "blob:"))]
    assert elsewhere == []
    assert faults == []


def assert_fits(page: Page) -> None:
    """Nothing is wider than the window, with every fold open; wide tables scroll by themselves."""
    page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
    size = page.evaluate(
        "[document.documentElement.scrollWidth, document.documentElement.clientWidth]"
    )
    assert size[0] <= size[1]
