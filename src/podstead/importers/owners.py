"""Determines the owner of a pod, the type of RDF in a file, and rules that grant less here than
there."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from podstead.core.errors import RequestRefused
from podstead.core.media_types import JSON_LD, TURTLE
from podstead.rdf.codecs import parse
from podstead.rdf.graph import Graph
from podstead.wac.acl import Authorization, read_acl
from podstead.wac.modes import Mode

# How a Turtle document begins whose first subject is a blank node.
_BLANK_NODE: Final = re.compile(rb"\[\s*(?:\]|a\s|<|[A-Za-z]*:)")
_SPACE: Final = b"\xef\xbb\xbf \t\r\n"


def rdf_type_of(beginning: bytes) -> str:
    """The media type of RDF that begins like this: JSON-LD or Turtle."""
    text = beginning.lstrip(_SPACE)
    is_json = text[:1] in (b"{", b"[") and not _BLANK_NODE.match(text)
    return JSON_LD if is_json else TURTLE


def owner_in_acl(content: bytes, *, container_url: str) -> str | None:
    """The WebID that an ACL of a root container gives Control, if it names one and can be read."""
    try:
        document = parse(content, rdf_type_of(content), base_iri=f"{container_url}.acl")
    except RequestRefused:
        return None
    return owner_by(read_acl(document.graph, subject_url=container_url).authorizations)


def owner_by(rules: Iterable[Authorization]) -> str | None:
    """The only WebID that rules about a container give Control, if there is one."""
    named = {
        agent
        for rule in rules
        if rule.access_to and Mode.CONTROL in rule.modes
        for agent in rule.agents
        if agent.startswith(("http://", "https://"))
    }
    return min(named) if len(named) == 1 else None


def ignored_origins(graph: Graph, *, subject_url: str, only_public: bool = False) -> Iterator[str]:
    """The restrictions of an ACL to some applications that another server did not apply, because it
    ignores ``acl:origin`` or, with ``only_public``, ignores it in rules for everyone."""
    for rule in read_acl(graph, subject_url=subject_url).authorizations:
        if rule.origins and rule.names_agents and (rule.public or not only_public):
            named = ", ".join(sorted(rule.origins)) or "none that can be read"
            yield f"A rule had an effect with every application; here only with those of {named}"
