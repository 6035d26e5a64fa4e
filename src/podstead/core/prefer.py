"""The Prefer header (RFC 7240, LDP 1.0).

A preference may be ignored, so parsing never fails: malformed and unknown preferences are skipped.
As RFC 7240, section 2, defines, several headers form one list, the first of a repeated preference
applies, and names are case-insensitive.

LDP 1.0, section 7.2, gives ``return=representation`` two parameters on a container: ``include`` and
``omit`` list parts of its representation. A basic container has two parts, the minimal container
(everything but the members) and its containment triples. It has no other membership triples, so
omitting those has no effect.
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
"""A longer header is treated as absent."""

_WORD = r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"  # a token, RFC 9110 section 5.6.2
_QUOTED = r'"(?:[^"\\]|\\.)*'
# One member of the list: up to a comma outside quotes. An unterminated quote extends to the end.
# This and the patterns below never backtrack, so matching takes linear time.
_PART = re.compile(rf'(?:[^,"]|{_QUOTED}"?)+', re.DOTALL)
_TERM = re.compile(
    rf'[ \t]*(?:({_WORD})[ \t]*(?:=[ \t]*(?:(?:({_WORD})|({_QUOTED})")[ \t]*)?)?)?(?:;|\Z)',
    re.DOTALL,
)
_QUOTED_PAIR = re.compile(r"\\(.)", re.DOTALL)

_MINIMAL = frozenset({LDP_PREFER_MINIMAL_CONTAINER, LDP_PREFER_EMPTY_CONTAINER})
_PARTS = _MINIMAL | {LDP_PREFER_CONTAINMENT, LDP_PREFER_MEMBERSHIP}


class Return(Enum):
    """How much of a resource a response should contain (RFC 7240, section 4.2)."""

    MINIMAL = "minimal"
    REPRESENTATION = "representation"


@dataclass(frozen=True, slots=True)
class Preferences:
    """The preferences of one request that this server supports.

    ``include`` and ``omit`` are the IRIs of the parts of a container's representation that the
    client wants or does not want. They contain only IRIs that LDP defines, and are empty unless
    ``returned`` is ``REPRESENTATION``.
    """

    returned: Return | None = None
    include: frozenset[str] = frozenset()
    omit: frozenset[str] = frozenset()

    @property
    def without_members(self) -> bool:
        """Whether to represent a container without its containment triples.

        Parts that are both included and omitted are ignored (LDP 7.2.2, RFC 7240, section 2). The
        minimal container is always included, because without it the representation would not state
        that the resource is a container.
        """
        include, omit = self._mentioned()
        return LDP_PREFER_CONTAINMENT in omit or (
            bool(include) and LDP_PREFER_CONTAINMENT not in include
        )

    @property
    def choose_parts(self) -> bool:
        """Whether the preferences select the parts of a container's representation."""
        include, omit = self._mentioned()
        return bool(include or omit - _MINIMAL)

    def _mentioned(self) -> tuple[frozenset[str], frozenset[str]]:
        return self.include - self.omit, self.omit - self.include


NO_PREFERENCES = Preferences()
MINIMAL_CONTAINER = Preferences(
    Return.REPRESENTATION, include=frozenset({LDP_PREFER_MINIMAL_CONTAINER})
)
"""A container without its members."""


def parse_prefer(value: str | None) -> Preferences:
    """Parse a Prefer header, its fields joined with commas; never fails."""
    if value is None or len(value) > MAX_PREFER_CHARS:
        return NO_PREFERENCES
    return _parse(value)


@memoize_short_keys
def _parse(value: str) -> Preferences:
    returned = [each for each in _preferences(value) if each.name == "return"]
    wishes = {each.value.lower() for each in returned}
    if len(wishes) != 1:  # none, or contradictory ones, which are ignored (RFC 7240 section 4.2)
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
            # Of a repeated parameter, the first applies.
            yield _Preference(name, own_value, dict(reversed(parameters)))


def _terms(part: str) -> list[tuple[str, str]]:
    """Name and value of a preference, then those of its parameters; empty if malformed."""
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
