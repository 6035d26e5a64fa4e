"""Chromium as the tests run it: the system's own, without a window, and never on the network.

Debian has it twice: as the whole browser, and without all that belongs to windows, which takes a
third of the processor time. That is used where it is installed.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, expect, sync_playwright

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
    """A browser that is closed in the end. What is expected on its pages may take long, because the
    machine may be busy."""
    expect.set_options(timeout=_DEADLINE_MS)
    shell = shutil.which("chromium-headless-shell")
    options = _OPTIONS if shell is not None else ["--headless=new", *_OPTIONS]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shell or shutil.which("chromium"), args=options
        )
        yield browser
        browser.close()
