"""Content negotiation by Accept header (RFC 9110, section 12.5.1; R-3 to R-5).

Headers are parsed leniently: a part that is not a media range is skipped, and a header without any
valid part expresses no preference. Parameters other than ``q`` are ignored, so
``application/ld+json;profile=…`` requests JSON-LD. Results are cached, since most headers recur.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from podstead.core.media_types import HTML, JSON, RDF_TYPES

MAX_ACCEPT_CHARS = 4096
"""A longer header is treated as absent."""

_REMEMBERED = 1024

_WORD = r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"  # a token, RFC 9110 section 5.6.2
_QUOTED = r'"(?:[^"\\]|\\.)*'
# One member of the list: up to a comma outside quotes. An unterminated quote extends to the end.
# This and the patterns below never backtrack, so matching takes linear time.
_PART = re.compile(rf'(?:[^,"]|{_QUOTED}"?)+', re.DOTALL)
_RANGE = re.compile(rf"[ \t]*({_WORD}/{_WORD}|\*)[ \t]*(?=;|\Z)")
_PARAMETER = re.compile(
    rf';[ \t]*(?:({_WORD})[ \t]*(?:=[ \t]*([^;" \t]+|{_QUOTED}")[ \t]*)?)?(?=;|\Z)', re.DOTALL
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
        parameter = _PARAMETER.match(part, position)
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
