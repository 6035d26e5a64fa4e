"""Which JSON-LD does a page hold? Its data islands (JSON-LD 1.1 section 7, A-109, A-164).

Pages that are WebID documents say to programs what they say to people in script elements of the
type ``application/ld+json``, which browsers do not run. Nothing else of a page is read.
"""

from __future__ import annotations

from dataclasses import dataclass
from html.parser import HTMLParser
from typing import Final

from podstead.core.media_types import JSON_LD

MAX_ISLANDS: Final = 16


@dataclass(frozen=True, slots=True)
class Islands:
    """The JSON-LD texts of a page, and what relative references in them are resolved against: the
    page's ``base`` element, itself relative, empty without one."""

    texts: tuple[str, ...]
    base_reference: str


def data_islands(page: str) -> Islands:
    """The data islands of an HTML document, the first few; none in what is no HTML."""
    reader = _Reader()
    reader.feed(page)
    reader.close()
    return Islands(tuple(reader.texts[:MAX_ISLANDS]), reader.base_reference or "")


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=False)
        self.texts: list[str] = []
        self.base_reference: str | None = None
        self._open: list[str] | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(reversed(attrs))  # of an attribute that is repeated, the first counts
        if tag == "script" and _essence(named.get("type")) == JSON_LD:
            self._open = []
        elif tag == "base" and self.base_reference is None:
            self.base_reference = named.get("href")

    def handle_data(self, data: str) -> None:
        if self._open is not None:
            self._open.append(data)

    def handle_endtag(self, tag: str) -> None:
        if tag == "script" and self._open is not None:
            self.texts.append("".join(self._open))
            self._open = None


def _essence(media_type: str | None) -> str:
    # Of other scripts the type may be anything, or nothing.
    return (media_type or "").partition(";")[0].strip().lower()
