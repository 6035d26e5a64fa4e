"""Chromium as the tests run it: the system's own, without a window, and never on the network.

Debian has it twice: as the whole browser, and without all that belongs to windows, which takes a
third of the processor time. That is used where it is installed. A process of tests starts it once;
each test has a context of its own, which is a browser that has been nowhere yet.
"""

from __future__ import annotations

import asyncio
import atexit
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from playwright.sync_api import Browser, BrowserContext, Playwright, expect, sync_playwright

_OPTIONS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


_DEADLINE_MS = 60_000


@contextmanager
def running_chromium() -> Iterator[Browser]:
    """The browser, whose contexts are closed in the end. What is expected on its pages may take
    long, because the machine may be busy."""
    expect.set_options(timeout=_DEADLINE_MS)
    chromium = _started()
    with chromium.in_use():
        browser = chromium.browser()
        yield browser
        for context in browser.contexts:
            context.close()


@contextmanager
def with_notifications(browser: Browser, folder: Path, origin: str) -> Iterator[BrowserContext]:
    """A whole browser with a profile in a folder, in which a site may show notifications: no other
    context can."""
    context = browser.browser_type.launch_persistent_context(
        folder,
        executable_path=shutil.which("chromium"),
        args=["--headless=new", *_OPTIONS],
        viewport={"width": 360, "height": 740},
    )
    try:
        context.grant_permissions(["notifications"], origin=origin)
        yield context
    finally:
        context.close()


class _Chromium:
    """The browser of this process and the driver that controls it, which end with the process."""

    def __init__(self) -> None:
        self._playwright: Playwright = sync_playwright().start()
        self._loop = asyncio.get_running_loop()
        self._browser: Browser | None = None
        atexit.register(self._end)

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """The driver's loop counts as running for as long as the driver may be called, and no
        longer: other tests run loops of their own."""
        asyncio._set_running_loop(self._loop)
        try:
            yield
        finally:
            asyncio._set_running_loop(None)

    def browser(self) -> Browser:
        """Started at the first call, and again if it ended."""
        if self._browser is None or not self._browser.is_connected():
            shell = shutil.which("chromium-headless-shell")
            options = _OPTIONS if shell is not None else ["--headless=new", *_OPTIONS]
            self._browser = self._playwright.chromium.launch(
                executable_path=shell or shutil.which("chromium"), args=options
            )
        return self._browser

    def _end(self) -> None:
        with self.in_use():
            self._playwright.stop()


_started = cache(_Chromium)
