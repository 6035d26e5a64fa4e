"""Media types, which of them are RDF, and content negotiation."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from podstead.core.caches import memoize_short_keys
from podstead.core.codes import CoreCodes
from podstead.core.errors import BadRequest

# Media types, and which of them are RDF.
#
# Implements RFC 9110, sections 8.3.1 (media types) and 5.6.6 (parameters), strictly: a value that
# is not a media type is refused. Types are compared without their parameters; the parameters
# are kept, because a stored text must be served with its original charset.

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


# Content negotiation by Accept header (RFC 9110, section 12.5.1; ).
#
# Headers are parsed leniently: a part that is not a media range is skipped, and a header without
# any valid part expresses no preference. Parameters other than ``q`` are ignored, so
# ``application/ld+json;profile=…`` requests JSON-LD. Results are cached, since most headers recur.

MAX_ACCEPT_CHARS = 4096
"""A longer header is treated as absent."""

_REMEMBERED = 1024

_QUOTED = r'"(?:[^"\\]|\\.)*'
# One member of the list: up to a comma outside quotes. An unterminated quote extends to the end.
# This and the patterns below never backtrack, so matching takes linear time.
_PART = re.compile(rf'(?:[^,"]|{_QUOTED}"?)+', re.DOTALL)
_RANGE = re.compile(rf"[ \t]*({_NAME}/{_NAME}|\*)[ \t]*(?=;|\Z)")
_RANGE_PARAMETER = re.compile(
    rf';[ \t]*(?:({_NAME})[ \t]*(?:=[ \t]*([^;" \t]+|{_QUOTED}")[ \t]*)?)?(?=;|\Z)', re.DOTALL
)
# Some clients send ".5", or more digits than RFC 9110 section 12.4.2 allows.
_WEIGHT = re.compile(r"[01]?\.[0-9]{1,9}|[01]\.?")
_ANY = "*/*"


@dataclass(frozen=True, slots=True)
class AcceptPreferences:
    """The weights of an Accept header for ``type/subtype``, ``type/*`` and ``*/*``."""

    weights: Mapping[str, float]

    def weight(self, media_type: str) -> float:
        """The weight of a media type by the most specific range; 0.0 if it is not accepted."""
        matched = self._matching_range(media_type)
        return 0.0 if matched is None else self.weights[matched]

    def rank(self, media_type: str) -> tuple[float, bool]:
        """A sort key: the weight, then whether the type is named and not matched by a wildcard.

        ``text/turtle, */*`` therefore prefers Turtle.
        """
        return self.weight(media_type), media_type in self.weights

    def excludes(self, media_type: str) -> bool:
        """Whether ``q=0`` excludes the type and ``*/*`` does not accept it nevertheless (R-5)."""
        ruled_out = self._matching_range(media_type) is not None and not self.weight(media_type)
        return ruled_out and not self.weights.get(_ANY)

    def _matching_range(self, media_type: str) -> str | None:
        ranges = (media_type, media_type.partition("/")[0] + "/*", _ANY)
        return next((candidate for candidate in ranges if candidate in self.weights), None)


_INDIFFERENT = AcceptPreferences({_ANY: 1.0})


def choose(accept: str | None, offered: Sequence[str]) -> str | None:
    """The offered media type that the header prefers, or ``None`` if it accepts none of them.

    ``offered`` are types without parameters, in lower case. Among types of equal weight, those that
    the header names precede those that wildcards accept; among these, the first offered wins (R-3).
    """
    return _choose(_bounded(accept), tuple(offered))


def prefers_html(accept: str | None) -> bool:
    """Whether HTML is preferred to JSON and to every RDF type (C-27, P-17).

    True for the header of a browser; false for ``*/*`` and an absent header.
    """
    return _prefers_html(_bounded(accept))


def excludes(accept: str | None, media_type: str) -> bool:
    """Whether the header excludes a type explicitly, so that a document gets 406 (R-5).

    A header that does not mention the type does not exclude it.
    """
    return parse_accept(accept).excludes(media_type)


def parse_accept(accept: str | None) -> AcceptPreferences:
    """Parse an Accept header; of a repeated range, the highest weight applies."""
    return _parse(_bounded(accept))


def _bounded(accept: str | None) -> str | None:
    return None if accept is None or len(accept) > MAX_ACCEPT_CHARS else accept


@lru_cache(maxsize=_REMEMBERED)
def _prefers_html(accept: str | None) -> bool:
    preferences = _parse(accept)
    html = preferences.weight(HTML)
    return all(html > preferences.weight(other) for other in (JSON, *RDF_TYPES))


@lru_cache(maxsize=_REMEMBERED)
def _choose(accept: str | None, offered: tuple[str, ...]) -> str | None:
    preferences = _parse(accept)
    # max() returns the first of equals.
    best = max(offered, key=preferences.rank, default=None)
    return best if best is not None and preferences.weight(best) > 0 else None


def _parse(accept: str | None) -> AcceptPreferences:
    if accept is None:
        return _INDIFFERENT
    weights: dict[str, float] = {}
    for part in _PART.findall(accept):
        weighed = _weighed_range(part)
        if weighed is not None:
            media_range, weight = weighed
            weights[media_range] = max(weight, weights.get(media_range, 0.0))
    return AcceptPreferences(weights) if weights else _INDIFFERENT


def _weighed_range(part: str) -> tuple[str, float] | None:
    """The range and weight of one list member, or ``None`` for one that is malformed."""
    matched = _RANGE.match(part)
    if matched is None:
        return None
    # Old Java clients send "*" for "*/*".
    media_range = _ANY if matched[1] == "*" else matched[1].lower()
    if media_range.startswith("*/") and media_range != _ANY:
        return None
    position = matched.end()
    while position < len(part):
        parameter = _RANGE_PARAMETER.match(part, position)
        if parameter is None:
            return None
        if (parameter[1] or "").lower() == "q":
            # Parameters after the weight are accept extensions, which are obsolete.
            return _weighed(media_range, parameter[2] or "")
        position = parameter.end()
    return media_range, 1.0


def _weighed(media_range: str, text: str) -> tuple[str, float] | None:
    if _WEIGHT.fullmatch(text) is None or float(text) > 1:
        return None
    return media_range, float(text)
