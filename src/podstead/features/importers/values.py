"""The data of other servers as values: pods, the resources in them, and accounts.

Readers only describe the data; they write nothing and do not decide what is imported.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from podstead.core.errors import RequestRefused
from podstead.core.media_types import JSON_LD, TURTLE
from podstead.core.value import Value
from podstead.rdf.codecs import parse
from podstead.rdf.graph import Graph
from podstead.wac.acl import Authorization, read_acl
from podstead.wac.modes import Mode


class NotThisServer(RequestRefused):
    """A folder does not contain what a server of this kind stores."""


class LeftOut(Value):
    """Something that cannot be imported, or not unchanged; ``path`` is where it is on the other
    server's disk, relative to its folder."""

    path: str
    reason: str


class FoundResource(msgspec.Struct, frozen=True):
    """A document, container, ACL or description.

    ``path`` is relative to the root container of its pod, in canonical form: empty for the root,
    with a slash at the end for containers; that of an ACL or a description ends in ``.acl`` or
    ``.meta``. ``url`` is the address that it had, against which its relative names are resolved.
    """

    path: str
    url: str
    content_type: str
    parts: tuple[str, ...] | None = None
    """Where its file is; ``None`` for a container, and for content that the reader provides."""
    modified_ms: int | None = None
    content: bytes | None = None


class FoundPod(msgspec.Struct, frozen=True):
    """A pod: its name there, the URL of its root container, and the WebID of its owner, as far as
    they are known."""

    name: str
    url: str
    owner: str | None
    folder: tuple[str, ...]
    """Where its files are, relative to the folder of all files."""


class FoundSecret(msgspec.Struct, frozen=True):
    """Client credentials of an account."""

    credential_id: str
    secret: str
    label: str
    web_id: str


class FoundAccount(msgspec.Struct, frozen=True):
    """The sign-in data of a person, for one pod or several."""

    pods: tuple[str, ...]
    """The URLs of its pods."""
    web_ids: tuple[str, ...]
    email: str | None
    password_hash: str | None
    secrets: tuple[FoundSecret, ...] = ()


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
    """The restrictions of an ACL that another server did not apply: those to some applications,
    because it ignores ``acl:origin`` or, with ``only_public``, ignores it in rules for everyone,
    and conditions."""
    for rule in read_acl(graph, subject_url=subject_url).authorizations:
        if rule.origins and rule.names_agents and (rule.public or not only_public):
            named = ", ".join(sorted(rule.origins)) or "none that can be read"
            yield f"A rule had an effect with every application; here only with those of {named}"
        if rule.conditions and rule.names_agents:
            yield "A rule had an effect without its conditions, which are evaluated here"
