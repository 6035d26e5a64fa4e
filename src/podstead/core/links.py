"""Link headers (RFC 8288, P-35).

Serialization: all links of a response are in one header, and no target contains a raw comma or
semicolon, because some clients split the header at commas. Parsing is lenient: a malformed link is
skipped, and so are those after it in the same header, because its end is unknown.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

MAX_LINK_CHARS = 8192
"""A longer header is ignored."""

TYPE_REL = "type"

_WORD = r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"  # a token, RFC 9110 section 5.6.2
# No two adjacent parts of these patterns can match the same character: matching is linear.
_TARGET = re.compile(r"[ \t,]*<([^<>\"]*)>[ \t]*")
_PARAMETER = re.compile(
    rf';[ \t]*(?:({_WORD})[ \t]*(?:=[ \t]*(?:"((?:[^"\\]|\\.)*)"|([^;," \t]*))[ \t]*)?)?',
    re.DOTALL,
)
_QUOTED_PAIR = re.compile(r"\\(.)", re.DOTALL)
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
