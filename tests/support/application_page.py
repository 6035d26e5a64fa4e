"""The page of an application that runs in a browser, on an origin of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tests.support.http_servers import Handler, serving


class ApplicationPage(Handler):
    """Shows with which parameters a browser came, in its text; its title is ``Back``."""

    def respond(self) -> None:
        text = self.body().decode() if self.command == "POST" else self.path
        shown = text.replace("&", "&amp;").replace("<", "&lt;")
        page = f"<!doctype html><title>Back</title><p>{shown}</p>"
        self.answer(200, page.encode(), {"Content-Type": "text/html; charset=utf-8"})


@contextmanager
def running_application() -> Iterator[str]:
    """The URL of the application's page."""
    with serving(ApplicationPage) as port:
        yield f"http://127.0.0.1:{port}/"
