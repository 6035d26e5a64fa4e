"""What would the client like to have, where the server has a choice? (RFC 7240, LDP 1.0)

A preference may be ignored, so nothing here is an error: what is malformed or not known is left
out, and the rest counts. RFC 7240 section 2 says how the header is read: fields of the name are one
list, of a preference given twice the first counts, and words compare without case.

LDP 1.0 section 7.2 gives ``return=representation`` two parameters on a container: ``include`` and
``omit`` list parts of its representation. A basic container has two parts, what would be there
without members (the minimal container) and its containment; it has no membership beside that, so
nothing is left out by omitting it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

from podstead.core.memoization import memoize_short_keys
from podstead.core.vocab import (
    LDP_PREFER_CONTAINMENT,
    LDP_PREFER_EMPTY_CONTAINER,
    LDP_PREFER_MEMBERSHIP,
    LDP_PREFER_MINIMAL_CONTAINER,
)

MAX_PREFER_CHARS = 4096
"""A longer header is no preference that anybody has; it is read as if it were absent."""

_WORD = r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"  # a token, RFC 9110 section 5.6.2
_QUOTED = r'"(?:[^"\\]|\\.)*'
# One member of the list: up to a comma outside quotes. A quote left open takes the rest with it.
# This and the patterns below give back nothing once matched, so any header takes linear time.
_PART = re.compile(rf'(?:[^,"]|{_QUOTED}"?)+', re.DOTALL)
_TERM = re.compile(
    rf'[ \t]*(?:({_WORD})[ \t]*(?:=[ \t]*(?:(?:({_WORD})|({_QUOTED})")[ \t]*)?)?)?(?:;|\Z)',
    re.DOTALL,
)
_QUOTED_PAIR = re.compile(r"\\(.)", re.DOTALL)

_MINIMAL = frozenset({LDP_PREFER_MINIMAL_CONTAINER, LDP_PREFER_EMPTY_CONTAINER})
_PARTS = _MINIMAL | {LDP_PREFER_CONTAINMENT, LDP_PREFER_MEMBERSHIP}


class Return(Enum):
    """How much of a resource an answer shall hold (RFC 7240 section 4.2)."""

    MINIMAL = "minimal"
    REPRESENTATION = "representation"


@dataclass(frozen=True, slots=True)
class Preferences:
    """What one request prefers, as far as this server knows it.

    ``include`` and ``omit`` are the IRIs of the parts of a container's representation that are
    wanted and not wanted; only those that LDP defines, and empty unless ``returned`` is
    ``REPRESENTATION``.
    """

    returned: Return | None = None
    include: frozenset[str] = frozenset()
    omit: frozenset[str] = frozenset()

    @property
    def without_members(self) -> bool:
        """Whether a container shall be represented without its containment.

        Parts that are both wanted and not wanted are as if not mentioned (LDP 7.2.2, RFC 7240
        section 2). The minimal container is always given: a representation of a container without
        it would not say that it is one.
        """
        include, omit = self._mentioned()
        return LDP_PREFER_CONTAINMENT in omit or (
            bool(include) and LDP_PREFER_CONTAINMENT not in include
        )

    @property
    def choose_parts(self) -> bool:
        """Whether a container's representation is chosen by what was preferred."""
        include, omit = self._mentioned()
        return bool(include or omit - _MINIMAL)

    def _mentioned(self) -> tuple[frozenset[str], frozenset[str]]:
        return self.include - self.omit, self.omit - self.include


NO_PREFERENCES = Preferences()


def parse_prefer(value: str | None) -> Preferences:
    """Read a Prefer header, its fields joined with commas; never fails."""
    if value is None or len(value) > MAX_PREFER_CHARS:
        return NO_PREFERENCES
    return _parse(value)


@memoize_short_keys
def _parse(value: str) -> Preferences:
    returned = [each for each in _preferences(value) if each.name == "return"]
    wishes = {each.value.lower() for each in returned}
    if len(wishes) != 1:  # none, or both, which is as good as none (RFC 7240 section 4.2)
        return NO_PREFERENCES
    wish, first = wishes.pop(), returned[0]
    if wish == Return.MINIMAL.value:
        return Preferences(Return.MINIMAL)
    if wish != Return.REPRESENTATION.value:
        return NO_PREFERENCES
    return Preferences(
        Return.REPRESENTATION, include=first.parts("include"), omit=first.parts("omit")
    )


@dataclass(frozen=True, slots=True)
class _Preference:
    """One member of the header's list; names in lower case, "" for no value."""

    name: str
    value: str
    parameters: Mapping[str, str]

    def parts(self, parameter: str) -> frozenset[str]:
        return _PARTS & frozenset(self.parameters.get(parameter, "").split())


def _preferences(value: str) -> Iterator[_Preference]:
    """The well-formed members."""
    for part in _PART.findall(value):
        terms = _terms(part)
        if terms:
            (name, own_value), *parameters = terms
            # Of a repeated parameter the first counts.
            yield _Preference(name, own_value, dict(reversed(parameters)))


def _terms(part: str) -> list[tuple[str, str]]:
    """Name and value of a preference, then those of its parameters; nothing if malformed."""
    terms: list[tuple[str, str]] = []
    position = 0
    while position < len(part):
        term = _TERM.match(part, position)
        if term is None or (term[1] is None and position == 0):
            return []
        name, token, quoted = term.groups()
        if name is not None:
            value = token or "" if quoted is None else _QUOTED_PAIR.sub(r"\1", quoted[1:])
            terms.append((name.lower(), value))
        position = term.end()
    return terms
