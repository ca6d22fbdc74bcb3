"""A real browser: Chromium as the system has it, driven by Playwright, which says nothing of its own to the network."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Page

_NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome", "chrome")
_QUIET = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip


@dataclass
class Opened:
    """A page, and what its browser had to say of it: addresses that were asked for, and whatever went wrong."""

    page: Page
    asked: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)


@contextmanager
def opened(path: Path, scheme: str = "light", width: int = 1100, *, scripts: bool = True) -> Iterator[Opened]:
    """The file in a real browser. Skips the test where there is none."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed: `make setup`")
    browser_path = next(filter(None, map(shutil.which, _NAMES)), None)
    if browser_path is None:
        pytest.skip("no browser is installed; on Debian: apt-get install chromium")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_path, args=_QUIET)
        page = browser.new_page(
            viewport={"width": width, "height": 900}, color_scheme=scheme, java_script_enabled=scripts
        )
        seen = Opened(page)
        page.on("request", lambda request: seen.asked.append(request.url))
        page.on("console", lambda message: seen.wrong.append(message.text))
        page.on("pageerror", lambda error: seen.wrong.append(str(error)))
        page.goto(path.as_uri())
        yield seen
        browser.close()
