"""Resolves the IRIs in content to links for people.

A resource on this server becomes a link to the page about it, any other HTTP URL to its site, and
mail and telephone IRIs to their programs. Every other scheme, such as ``javascript:`` and
``data:``, is shown as text. Access to a page or picture is decided when it is requested, as always.

An IRI is read as browsers do (WHATWG URL): they drop line breaks, take a backslash for a slash and
``%2e`` for a dot, and resolve ``..``. The link has the normalized form. Only this module uses the
library for that.
"""

import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

from ada_url import URL

from podstead.core.errors import BadRequest
from podstead.core.identifiers import ResourcePath, parse_path

FILES: Final = "/.pages/files"
RAW: Final = "/.pages/raw"

_HTTP: Final = ("http:", "https:")
_OTHER: Final = re.compile(
    r"(?:mailto:[^\s<>\"?]+@[^\s<>\"?]+|tel:\+?[0-9().\-]+)\Z", re.IGNORECASE
)
_SAFE: Final = "!#$%&'()*+,-./:;=?@[]_~"
_MAX_LENGTH: Final = 4096


@dataclass(frozen=True, slots=True)
class Address:
    """An address to link to. ``external`` leads away from this server."""

    href: str
    external: bool


class Links:
    """Resolves the IRIs of one document."""

    def __init__(self, base_url: str, document: ResourcePath) -> None:
        self._base_url = base_url
        self.document = document
        self.document_url = base_url + document

    def path_of(self, iri: str) -> ResourcePath | None:
        """The path of the resource on this server that an IRI is about, ``None`` elsewhere."""
        url = _parsed(iri)
        return self._resource(url) if url is not None and self._is_own(url) else None

    def of(self, iri: str) -> Address | None:
        """The link for an absolute IRI; ``None`` if it leads nowhere."""
        if len(iri) > _MAX_LENGTH:
            return None
        url = _parsed(iri)
        if url is None or url.username or url.password:
            return None
        if url.protocol not in _HTTP:
            other = _OTHER.match(iri)
            return Address(quote(iri, safe=_SAFE), external=True) if other else None
        if not self._is_own(url):
            return Address(quote(url.href, safe=_SAFE), external=True)
        path = self._resource(url)
        if path is None:
            return None
        return Address(f"{FILES}{path}{quote(url.hash, safe=_SAFE)}", external=False)

    def picture(self, iri: str) -> str | None:
        """The address of a picture's bytes for this server's pages; ``None`` if it is elsewhere.

        Loading a picture from another server would reveal to it who looks at this document.
        """
        path = self.path_of(iri)
        return None if path is None or path.endswith("/") else f"{RAW}{path}"

    def resolve(self, reference: str) -> str | None:
        """The absolute IRI of a reference in the document; ``None`` if it is malformed."""
        url = _parsed(reference, self.document_url)
        return None if url is None else url.href

    def _is_own(self, url: URL) -> bool:
        own = _parsed(self._base_url)
        return own is not None and url.origin == own.origin

    def _resource(self, url: URL) -> ResourcePath | None:
        """The path of the resource at a URL of this server; ``None`` if it is none, such as the
        server's own pages, which content must not link to."""
        try:
            path = parse_path(url.pathname.encode("ascii"))
        except BadRequest:
            return None
        return None if path.startswith("/.") else path


def _parsed(text: str, base: str | None = None) -> URL | None:

    try:
        return URL(text, base)
    except ValueError:  # also for text that UTF-8 cannot encode
        return None
