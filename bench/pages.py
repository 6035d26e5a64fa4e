"""How much work is a page for people? The page about a container, read by anybody.

The oracle is the set of members that were stored: the page has to link to each of them, as an HTML
parser that is not our code reads it. What a browser loads beside the page is weighed as well.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from dataclasses import dataclass
from html.parser import HTMLParser
from typing import Final
from urllib.parse import urljoin

from bench.documents import Container
from bench.exercises import require_bytes
from bench.load import Load, Outcome
from bench.messages import Answer, Request, WrongAnswer
from bench.site import Site

FILES: Final = "/.pages/files"
_HTML: Final = "text/html"


@dataclass(frozen=True, slots=True)
class ReadContainerPage:
    """GET of the page about a container, by a browser that is not signed in."""

    container: Container

    def furnish(self, site: Site) -> None:
        """Store the container."""
        self.container.furnish(site)

    def load(self, site: Site, label: str) -> Load:
        """The same request each time."""
        del label
        self._judged(site)
        return Load([self._request(site)])

    def verify(self, site: Site, label: str, load: Load, outcome: Outcome) -> None:
        """The page is still right, and as many bytes came as so many right pages have."""
        del label, load
        outcome.require_no_errors()
        require_bytes(self._judged(site), outcome)

    def weight(self, site: Site) -> Weight:
        """What a browser loads for the page."""
        page = self._judged(site).body
        loaded = [
            site.send(_get(site, urljoin(self._path(site), address))).require(200).body
            for address in _Links.of(page).assets
        ]
        return Weight(len(page), len(gzip.compress(page)), sum(map(len, loaded)))

    def _judged(self, site: Site) -> Answer:
        answer = site.send(self._request(site)).require(200)
        if answer.media_type != _HTML:
            raise WrongAnswer(f"Content-Type {answer.media_type or 'missing'} instead of {_HTML}")
        wanted = set(self._members(site))
        missing = wanted - _Links.of(answer.body).targets
        if missing:
            raise WrongAnswer(f"the page does not link to {len(missing)} of {len(wanted)} members")
        return answer

    def _members(self, site: Site) -> Iterator[str]:
        for number in range(self.container.size):
            yield f"{FILES}{site.pod}{self.container.member(number).path}"

    def _request(self, site: Site) -> Request:
        return _get(site, self._path(site))

    def _path(self, site: Site) -> str:
        return f"{FILES}{site.pod}{self.container.path}"


def _get(site: Site, path: str) -> Request:
    return Request("GET", path, {"Host": site.authority, "Accept": _HTML})


@dataclass(frozen=True, slots=True)
class Weight:
    """The bytes of a page, of the page as a proxy may compress it, and of its assets."""

    page_bytes: int
    compressed_bytes: int
    assets_bytes: int

    def __str__(self) -> str:
        """Say it for the report."""
        return (
            f"{self.page_bytes / 1000:.0f} kB of HTML ({self.compressed_bytes / 1000:.0f} kB as "
            f"gzip), and {self.assets_bytes / 1000:.0f} kB of scripts and styles"
        )


class _Links(HTMLParser):
    """Collects the addresses that a page links to, and those that it loads."""

    def __init__(self) -> None:
        super().__init__()
        self.targets: set[str] = set()
        self.assets: set[str] = set()

    @classmethod
    def of(cls, page: bytes) -> _Links:
        links = cls()
        links.feed(page.decode())
        return links

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "a" and (target := given.get("href")):
            self.targets.add(target)
        elif tag == "script" and (script := given.get("src")):
            self.assets.add(script)
        elif tag == "link" and given.get("rel") == "stylesheet" and (sheet := given.get("href")):
            self.assets.add(sheet)
