"""Where does an IRI in content lead a person?

To the page about the resource if it is on this server, to the other site if it is an HTTP URL, to a
program for mail and telephone, and nowhere for every other scheme: ``javascript:`` and ``data:``
are text. Whether a page or picture may be read is decided when it is asked for, as always.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, urljoin

from podstead.core.identifiers import ResourcePath
from podstead.core.iris import canonical_url

FILES: Final = "/.pages/files"
RAW: Final = "/.pages/raw"

_HTTP: Final = re.compile(r"https?://[^\s/?#@\\]+(?:[/?#]|\Z)", re.IGNORECASE)
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
        url = self._own(iri)
        if url is None or url.startswith("/."):
            return None
        return ResourcePath(url)

    def _own(self, iri: str) -> str | None:
        """The path of a URL of this server, with reserved ones; ``None`` elsewhere."""
        url = canonical_url(iri.partition("#")[0].partition("?")[0])
        if url is None or not url.startswith(self._base_url + "/"):
            return None
        return url[len(self._base_url) :]

    def of(self, iri: str) -> Address | None:
        """The link for an absolute IRI; ``None`` if it leads nowhere."""
        if len(iri) > _MAX_LENGTH:
            return None
        path = self.path_of(iri)
        if path is not None:
            fragment = iri.partition("#")[2]
            suffix = f"#{quote(fragment, safe=_SAFE)}" if fragment else ""
            return Address(f"{FILES}{path}{suffix}", external=False)
        if self._own(iri) is not None:
            return None  # content has no business with the server's own pages
        if _HTTP.match(iri):
            return Address(quote(iri, safe=_SAFE), external=True)
        return Address(quote(iri, safe=_SAFE), external=True) if _OTHER.match(iri) else None

    def picture(self, iri: str) -> str | None:
        """The address of a picture's bytes for this server's pages; ``None`` if it is elsewhere.

        A picture on another server would tell that server who looks at this document.
        """
        path = self.path_of(iri)
        return None if path is None or path.endswith("/") else f"{RAW}{path}"

    def resolve(self, reference: str) -> str | None:
        """The absolute IRI of a reference in the document; ``None`` if it is malformed."""
        try:
            return urljoin(self.document_url, reference.strip())
        except ValueError:
            return None
