"""Media types, and which of them are RDF.

Implements RFC 9110, sections 8.3.1 (media types) and 5.6.6 (parameters), strictly: a value that is
not a media type is refused. Types are compared without their parameters (R-13); the parameters are
kept, because a stored text must be served with its original charset.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from podstead.core.codes import CoreCodes
from podstead.core.errors import BadRequest
from podstead.core.memoization import memoize_short_keys

TURTLE: Final = "text/turtle"
JSON_LD: Final = "application/ld+json"
N_TRIPLES: Final = "application/n-triples"
N_QUADS: Final = "application/n-quads"
TRIG: Final = "application/trig"
N3: Final = "text/n3"
RDF_XML: Final = "application/rdf+xml"
SPARQL_UPDATE: Final = "application/sparql-update"
JSON: Final = "application/json"
HTML: Final = "text/html"

RDF_TYPES: Final = (TURTLE, JSON_LD, N_TRIPLES, N_QUADS, TRIG, N3, RDF_XML)
"""The RDF types that Podstead reads and writes (R-6), in the order it prefers to write them.

``application/json`` is not among them: JSON is stored as bytes.
"""

_PASSIVE: Final = frozenset(
    {
        "application/gzip",
        "application/octet-stream",
        "application/pdf",
        "application/zip",
        "text/csv",
    }
)
_PASSIVE_KINDS: Final = ("audio/", "image/", "video/")

# Names that clients use for UTF-8 and its subset ASCII.
_UTF_8_NAMES = frozenset({"utf-8", "utf8", "us-ascii", "ascii"})

_NAME = r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"  # RFC 9110 section 5.6.2
_ESSENCE = re.compile(rf"[ \t]*({_NAME}/{_NAME})[ \t]*")
_PARAMETER = re.compile(
    rf";[ \t]*(?:({_NAME})=(?:({_NAME})|\"((?:[\t \x21\x23-\x5b\x5d-\x7e\x80-\uffff]"
    r'|\\[\t \x21-\x7e\x80-\uffff])*)"))?[ \t]*'
)
_QUOTED_PAIR = re.compile(r"\\(.)")


@dataclass(frozen=True, slots=True)
class MediaType:
    """A media type: ``essence`` is ``type/subtype`` in lower case; parameter names likewise."""

    essence: str
    parameters: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        return self.essence + "".join(
            f"; {name}={_quoted_if_needed(value)}" for name, value in self.parameters
        )

    def parameter(self, name: str) -> str | None:
        """The value of a parameter (name in lower case), the first if it is repeated."""
        return next((value for key, value in self.parameters if key == name), None)

    def is_utf_8(self) -> bool:
        """Whether the charset parameter is absent or means UTF-8 (R-13)."""
        if not self.parameters:
            return True
        charset = self.parameter("charset")
        return charset is None or charset.lower() in _UTF_8_NAMES


@memoize_short_keys
def parse_media_type(value: str) -> MediaType:
    """Parse one media type with its parameters.

    Raises BadRequest if the value is not ``type/subtype`` with well-formed parameters.
    """
    matched = _ESSENCE.match(value)
    if matched is None:
        raise BadRequest(CoreCodes.NO_MEDIA_TYPE)
    parameters = []
    position = matched.end()
    while position < len(value):
        parameter = _PARAMETER.match(value, position)
        if parameter is None:
            raise BadRequest(CoreCodes.MALFORMED_PARAMETER)
        name, token, quoted = parameter.groups()
        if name is not None:
            text = token if token is not None else _QUOTED_PAIR.sub(r"\1", quoted)
            parameters.append((name.lower(), text))
        position = parameter.end()
    return MediaType(matched.group(1).lower(), tuple(parameters))


def essence(value: str) -> str:
    """The ``type/subtype`` of a media type in lower case, without its parameters.

    Raises BadRequest as ``parse_media_type`` does.
    """
    return parse_media_type(value).essence


def is_passive(value: str) -> bool:
    """Whether browsers never run content of this type, neither as a page nor as a script, even
    without a policy of ours.

    Raises BadRequest as ``parse_media_type`` does.
    """
    kind = essence(value)
    if kind.endswith("xml"):  # an SVG image has scripts
        return False
    return kind in _PASSIVE or kind.startswith(_PASSIVE_KINDS)


def _quoted_if_needed(value: str) -> str:
    if re.fullmatch(_NAME, value):
        return value
    return '"' + re.sub(r'(["\\])', r"\\\1", value) + '"'
