"""JSON-LD in HTML pages: data islands (JSON-LD 1.1, section 7; A-109, A-164).

WebID documents can be HTML pages with RDF in script elements of the type ``application/ld+json``,
which browsers do not execute. Nothing else in a page is read.
"""

from dataclasses import dataclass
from html.parser import HTMLParser
from typing import Final

from podstead.core.media_types import JSON_LD

MAX_ISLANDS: Final = 16


@dataclass(frozen=True, slots=True)
class Islands:
    """The JSON-LD texts of a page, and the ``href`` of its ``base`` element (empty if there is
    none), against which relative references are resolved."""

    texts: tuple[str, ...]
    base_reference: str


def data_islands(page: str) -> Islands:
    """The first MAX_ISLANDS data islands of an HTML document; none if it is not HTML."""
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
        named = dict(reversed(attrs))  # of a repeated attribute, the first applies
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
    # The type of other scripts can be anything, or absent.
    return (media_type or "").partition(";")[0].strip().lower()
