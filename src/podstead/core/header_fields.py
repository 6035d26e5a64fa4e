"""Parses and composes header fields: Prefer, Link, Range and Slug."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

from podstead.core import vocab
from podstead.core.caches import memoize_short_keys
from podstead.core.errors import AccessDenied, BadRequest, RangeNotSatisfiable
from podstead.core.identifiers import Auxiliary, encode_segment

# The Prefer header (RFC 7240, LDP 1.0).
#
# A preference may be ignored, so parsing never fails: malformed and unknown preferences are
# skipped. As RFC 7240, section 2, defines, several headers form one list, the first of a repeated
# preference applies, and names are case-insensitive.
#
# LDP 1.0, section 7.2, gives ``return=representation`` two parameters on a container: ``include``
# and ``omit`` list parts of its representation. A basic container has two parts, the minimal
# container (everything but the members) and its containment triples. It has no other membership
# triples, so omitting those has no effect.

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

_MINIMAL = frozenset({vocab.LDP_PREFER_MINIMAL_CONTAINER, vocab.LDP_PREFER_EMPTY_CONTAINER})
_PARTS = _MINIMAL | {vocab.LDP_PREFER_CONTAINMENT, vocab.LDP_PREFER_MEMBERSHIP}


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
        return vocab.LDP_PREFER_CONTAINMENT in omit or (
            bool(include) and vocab.LDP_PREFER_CONTAINMENT not in include
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
    Return.REPRESENTATION, include=frozenset({vocab.LDP_PREFER_MINIMAL_CONTAINER})
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


# Link headers (RFC 8288, P-35).
#
# Serialization: all links of a response are in one header, and no target contains a raw comma or
# semicolon, because some clients split the header at commas. Parsing is lenient: a malformed link
# is skipped, and so are those after it in the same header, because its end is unknown.

MAX_LINK_CHARS = 8192
"""A longer header is ignored."""

TYPE_REL = "type"

# No two adjacent parts of these patterns can match the same character: matching is linear.
_TARGET = re.compile(r"[ \t,]*<([^<>\"]*)>[ \t]*")
_PARAMETER = re.compile(
    rf';[ \t]*(?:({_WORD})[ \t]*(?:=[ \t]*(?:"((?:[^"\\]|\\.)*)"|([^;," \t]*))[ \t]*)?)?',
    re.DOTALL,
)
_UNSAFE_IN_TARGET = re.compile(r"[^!#$%&'()*+\-./:=?@\[\]_~0-9A-Za-z]")


@dataclass(frozen=True, slots=True)
class Link:
    """One link: its target, and its relation types.

    An ``anchored`` link has an ``anchor`` parameter, so its context is another resource than the
    one that the message is about (RFC 8288 section 3.2).
    """

    target: str
    relations: tuple[str, ...]
    """Registered relation types in lower case, extension types (IRIs) unchanged."""
    anchored: bool = False


def link_header(links: Iterable[tuple[str, str]]) -> str:
    """One Link header from (target, relation type) pairs, in their order (P-35)."""
    return ", ".join(f'<{_safe_target(target)}>; rel="{relation}"' for target, relation in links)


def parse_links(headers: Iterable[str]) -> tuple[Link, ...]:
    """Every well-formed link of the Link headers of a message, in order."""
    return tuple(
        link for header in headers if len(header) <= MAX_LINK_CHARS for link in _links(header)
    )


def type_links(headers: Iterable[str]) -> tuple[str, ...]:
    """The targets of ``rel="type"``: the interaction models that a request specifies (C-8)."""
    return tuple(
        link.target
        for link in parse_links(headers)
        if TYPE_REL in link.relations and not link.anchored
    )


def _links(header: str) -> Iterable[Link]:
    position = 0
    while (target := _TARGET.match(header, position)) is not None:
        parameters: dict[str, str] = {}
        position = target.end()
        while (parameter := _PARAMETER.match(header, position)) is not None:
            position = parameter.end()
            name, quoted, token = parameter.groups()
            if name is not None:
                value = token or "" if quoted is None else _QUOTED_PAIR.sub(r"\1", quoted)
                # Of a repeated parameter, the first applies (RFC 8288 section 3.3).
                parameters.setdefault(name.lower(), value)
        if header[position : position + 1] not in ("", ","):
            return
        yield Link(
            target=target[1].strip(" \t"),
            relations=tuple(map(_normal_relation, parameters.get("rel", "").split())),
            anchored="anchor" in parameters,
        )


def _normal_relation(relation: str) -> str:
    """Registered types are case-insensitive (RFC 8288 section 2.1.1); IRIs contain a colon."""
    return relation if ":" in relation else relation.lower()


def _safe_target(target: str) -> str:
    return _UNSAFE_IN_TARGET.sub(
        lambda unsafe: "".join(f"%{byte:02X}" for byte in unsafe[0].encode("utf-8")), target
    )


# Selects the bytes that a Range header requests (RFC 9110, section 14; P-27).
#
# A server may always send the entire representation, so a header that is malformed, has an unknown
# unit or requests several ranges is ignored. Only a well-formed single range that selects no byte
# is an error. Range is defined for GET only; the caller must not use it for other methods, nor for
# representations that are generated on demand.

# RFC 9110 section 14.1: unit names are case-insensitive.
# RFC 9110 section 5.6.1: list members may be empty.
# Eighteen digits are enough for any stored body and keep the numbers small.
_SINGLE_RANGE = re.compile(
    r"[Bb][Yy][Tt][Ee][Ss]=[ \t,]*(?P<first>[0-9]{0,18})-(?P<last>[0-9]{0,18})[ \t,]*"
)


@dataclass(frozen=True, slots=True)
class ByteRange:
    """The bytes from ``first`` to ``last``, both included."""

    first: int
    last: int

    @property
    def size_bytes(self) -> int:
        """The number of bytes, at least one."""
        return self.last - self.first + 1

    def content_range(self, complete_bytes: int) -> str:
        """The Content-Range header of the 206 (RFC 9110 section 14.4)."""
        return f"bytes {self.first}-{self.last}/{complete_bytes}"


def unsatisfied_content_range(complete_bytes: int) -> str:
    """The Content-Range header of the 416 (RFC 9110 section 14.4)."""
    return f"bytes */{complete_bytes}"


def select_range(header: str | None, complete_bytes: int) -> ByteRange | None:
    """The range to send of a representation of ``complete_bytes``; ``None`` means all of it.

    Raises RangeNotSatisfiable when a well-formed single range selects no byte.
    """
    matched = None if header is None else _SINGLE_RANGE.fullmatch(header)
    if matched is None:
        return None
    first, last = matched["first"], matched["last"]
    if first == "":
        return None if last == "" else _suffix(int(last), complete_bytes)
    if last != "" and int(last) < int(first):
        return None  # invalid (section 14.1.1), not unsatisfiable
    return _from_first(int(first), int(last) if last else None, complete_bytes)


def if_range_holds(header: str | None, etag: str, last_modified: str | None) -> bool:
    """Whether If-Range allows a Range header to be applied (RFC 9110, section 13.1.5).

    ``etag`` is the representation's entity tag as sent, including the quotes; the comparison is
    strong. ``last_modified`` is its Last-Modified as sent if that is a strong validator (section
    8.8.2.2: the representation cannot have changed twice in that second), else ``None``; then a
    date never matches, and the client gets the entire representation, which is safe.
    """
    if header is None:
        return True
    validator = header.strip(" \t")
    if validator.startswith('"'):
        return validator == etag
    return validator == last_modified


def _suffix(length_bytes: int, complete_bytes: int) -> ByteRange | None:
    if length_bytes == 0:
        raise _unsatisfiable(complete_bytes)
    if complete_bytes == 0:
        return None  # satisfiable by RFC 9110 section 14.1.2, but no Content-Range expresses it
    return ByteRange(max(0, complete_bytes - length_bytes), complete_bytes - 1)


def _from_first(first: int, last: int | None, complete_bytes: int) -> ByteRange:
    if first >= complete_bytes:
        raise _unsatisfiable(complete_bytes)
    end = complete_bytes - 1
    return ByteRange(first, end if last is None else min(last, end))


def _unsatisfiable(complete_bytes: int) -> RangeNotSatisfiable:
    return RangeNotSatisfiable(
        "The representation has no byte of the requested range", size_bytes=complete_bytes
    )


# Chooses the name that a Slug header proposes (RFC 5023, section 9.7; C-4, C-5).
#
# A Slug is a hint: characters that a name cannot contain are replaced, and a Slug that yields no
# name is ignored, so that the caller chooses one. Only three things are refused: the name of an
# auxiliary resource, a NUL, and a name that is too long (C-5). The caller checks whether the name
# is free.

MAX_NAME_BYTES = 255
"""The maximum length in bytes of UTF-8 before percent-encoding, as in most file systems."""

_ESCAPE = re.compile(rb"%([0-9A-Fa-f]{2})")
_STRIPPED = "/ \t\r\n\f\v"
# P-50 allows no control characters in a path; a slash would start another segment.
_NOT_IN_A_NAME = re.compile(r"[/\x00-\x1f\x7f-\x9f]+")
_REPLACEMENT = "-"


def proposed_name(slug_header: bytes | None, *, wants_container: bool) -> str | None:
    """The percent-encoded path segment that the header proposes; a container's ends in ``/``.

    ``None`` if it proposes nothing usable. Raises AccessDenied for a name that ends like an
    auxiliary resource's, and BadRequest for one with a NUL or of more than MAX_NAME_BYTES of UTF-8.
    """
    name = _readable_name(slug_header or b"")
    if name in ("", ".", ".."):
        return None
    encoded = name.encode("utf-8")
    if len(encoded) > MAX_NAME_BYTES:
        raise BadRequest(f"The Slug is longer than {MAX_NAME_BYTES} bytes")
    # Also for containers: without its slash, `x.acl/` would be the ACL of `x`.
    if any(name.endswith(kind.value) for kind in Auxiliary):
        raise AccessDenied("The Slug names an auxiliary resource")
    return encode_segment(encoded) + ("/" if wants_container else "")


def _readable_name(slug_header: bytes) -> str:
    text = _decode(_ESCAPE.sub(lambda escape: bytes([int(escape[1], 16)]), slug_header))
    if "\x00" in text:
        raise BadRequest("The Slug contains a NUL")
    return _NOT_IN_A_NAME.sub(_REPLACEMENT, text.strip(_STRIPPED))


def _decode(raw: bytes) -> str:
    """Decode as UTF-8, otherwise as Latin-1, which old clients use in header fields."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw.decode("latin-1")
