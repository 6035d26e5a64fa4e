"""A small server in memory for access-control tests: resources, ACLs, groups, and faults.

``World`` is a source of resources like a store, a parser of RDF (by pyoxigraph itself, so that the
codecs are not needed here), a fetcher of foreign documents and the registry of owners.
"""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass, field

import pyoxigraph

from podstead.core.errors import (
    AccessDenied,
    BadRequest,
    NotAuthenticated,
    OutboundError,
    StorageError,
)
from podstead.core.identifiers import ResourcePath, acl_of, storage_root
from podstead.core.identity import AuthenticationMethod, Identity
from podstead.outbound.foreign_documents import FetchedDocument, Purpose
from podstead.rdf.errors import UnknownContext
from podstead.rdf.graph import BlankNode, Graph, Iri, Literal, Triple
from podstead.storage.records import Metadata, ResourceKind, Version
from podstead.wac.effective import EffectiveAcls, GroupMemberships, paths_to_read
from podstead.wac.gate import Gate, GrantedAccess
from podstead.wac.modes import Requirements
from tests.support.clock import FakeClock

BASE = "http://localhost:3000"
ALICE = "https://alice.example/profile#me"
BOB = "https://bob.example/profile#me"
CAROL = "https://carol.example/profile#me"
OWNER = f"{BASE}/pod/#me"

PREFIXES = """\
@prefix acl: <http://www.w3.org/ns/auth/acl#>.
@prefix foaf: <http://xmlns.com/foaf/0.1/>.
@prefix vcard: <http://www.w3.org/2006/vcard/ns#>.
@prefix ex: <http://example.org/>.
"""


def identity(agent: str, *aliases: str) -> Identity:
    return Identity(agent, AuthenticationMethod.SIMPLE, frozenset(aliases))


def path(text: str) -> ResourcePath:
    return ResourcePath(text)


def graph_of(turtle: str, base_iri: str) -> Graph:
    """Parse Turtle, with the prefixes above at hand."""
    return Graph(_triples((PREFIXES + turtle).encode(), base_iri))


def _triples(content: bytes, base_iri: str) -> list[Triple]:
    quads = pyoxigraph.parse(content, format=pyoxigraph.RdfFormat.TURTLE, base_iri=base_iri)
    triples: list[Triple] = []
    for quad in quads:
        assert isinstance(quad.subject, Iri | BlankNode)
        assert isinstance(quad.object, Iri | BlankNode | Literal)
        triples.append((quad.subject, quad.predicate, quad.object))
    return triples


@dataclass(frozen=True)
class MemoryBody:
    """A body in memory; ``streamed`` ones are only to be had in pieces."""

    stored: bytes
    streamed: bool = False

    @property
    def size_bytes(self) -> int:
        return len(self.stored)

    @property
    def content(self) -> bytes | None:
        return None if self.streamed else self.stored

    @property
    def file_path(self) -> str | None:
        return None

    async def chunks(self, start: int = 0, end: int | None = None) -> AsyncIterator[bytes]:
        for byte in self.stored[start:end]:
            yield bytes([byte])


@dataclass
class World:
    """What is stored, who owns it, what others serve, and what goes wrong."""

    resources: dict[ResourcePath, tuple[Metadata, MemoryBody]] = field(default_factory=dict)
    owners: dict[ResourcePath, str] = field(default_factory=dict)
    remote: dict[str, FetchedDocument] = field(default_factory=dict)
    fetched: list[str] = field(default_factory=list)
    bodies_opened: list[ResourcePath] = field(default_factory=list)
    broken: set[ResourcePath] = field(default_factory=set)
    """Bodies that cannot be read."""
    changes_while_opened: list[tuple[str, str | None]] = field(default_factory=list)
    """Contents that appear (or vanish) just when a body is about to be opened."""
    unknown_contexts: set[str] = field(default_factory=set)
    """Base IRIs of documents that need a JSON-LD context which is not to be had now."""
    owners_asked: list[ResourcePath] = field(default_factory=list)
    fetch_takes_ms: int = 0
    clock: FakeClock = field(default_factory=FakeClock)
    _versions: itertools.count[int] = field(default_factory=itertools.count)

    def __post_init__(self) -> None:
        self.acls = EffectiveAcls(self, self.parse, base_url=BASE)
        self.groups = GroupMemberships(self, self.parse, self, self.clock, base_url=BASE)
        self.gate = Gate(acls=self.acls, groups=self.groups, owners=self, clock=self.clock)

    # --- building -------------------------------------------------------------------------

    def store(
        self,
        name: str,
        turtle: str = "",
        *,
        kind: ResourceKind | None = None,
        content_type: str = "text/turtle",
        streamed: bool = False,
    ) -> Metadata:
        """Create or replace a resource, with a new version."""
        target = path(name)
        if kind is None:
            if name.endswith(".acl"):
                kind = ResourceKind.ACL
            else:
                kind = ResourceKind.CONTAINER if name.endswith("/") else ResourceKind.DOCUMENT
        content = (PREFIXES + turtle).encode() if turtle else b""
        metadata = Metadata(
            path=target,
            kind=kind,
            version=Version(f"{next(self._versions):016x}"),
            content_type=content_type,
            size_bytes=len(content),
            modified_ms=0,
            created_ms=0,
        )
        self.resources[target] = (metadata, MemoryBody(content, streamed))
        return metadata

    def acl(self, subject: str, turtle: str) -> Metadata:
        """Give a resource an ACL."""
        return self.store(acl_of(path(subject)), turtle)

    def remove(self, name: str) -> None:
        del self.resources[path(name)]

    def serve(self, url: str, turtle: str, *, final_url: str | None = None) -> None:
        """Have another server serve a document."""
        content = (PREFIXES + turtle).encode()
        self.remote[url] = FetchedDocument(content, "text/turtle", final_url or url)

    # --- asking ---------------------------------------------------------------------------

    def snapshot_for(self, name: str) -> dict[ResourcePath, Metadata | None]:
        return self._snapshot(paths_to_read(path(name)))

    async def grant(
        self, name: str, agent: Identity | None, origin: str | None = None
    ) -> GrantedAccess:
        return await self.gate.grant(agent, origin, path(name), self.snapshot_for(name))

    async def held(self, name: str, agent: Identity | None, origin: str | None = None) -> str:
        """The modes an agent holds, as in ``user`` of WAC-Allow."""
        header = (await self.grant(name, agent, origin)).wac_allow
        return header.split('"')[1]

    async def status(self, name: str, agent: Identity | None, requirements: Requirements) -> int:
        """How the gate answers: 200 for going on, else the status of the refusal (W-60)."""
        try:
            await self.gate.authorize(
                agent, None, path(name), requirements, self.snapshot_for(name)
            )
        except NotAuthenticated:
            return 401
        except AccessDenied:
            return 403
        return 200

    # --- the protocols that access control is given ---------------------------------------

    async def read_metadata(
        self, paths: Iterable[ResourcePath]
    ) -> Mapping[ResourcePath, Metadata | None]:
        return self._snapshot(paths)

    def _snapshot(self, paths: Iterable[ResourcePath]) -> dict[ResourcePath, Metadata | None]:
        return {
            place: self.resources[place][0] if place in self.resources else None for place in paths
        }

    async def open_body(self, metadata: Metadata) -> MemoryBody | None:
        self.bodies_opened.append(metadata.path)
        if self.changes_while_opened:
            name, turtle = self.changes_while_opened.pop(0)
            if turtle is None:
                self.remove(name)
            else:
                self.store(name, turtle)
        if metadata.path in self.broken:
            raise StorageError("The body cannot be read")
        stored = self.resources.get(metadata.path)
        if stored is None or stored[0].version != metadata.version:
            return None
        return stored[1]

    async def parse(self, content: bytes, content_type: str, base_iri: str) -> Graph:
        if base_iri in self.unknown_contexts:
            raise UnknownContext("https://contexts.example/c")
        if content_type != "text/turtle":
            raise BadRequest("Not Turtle")
        try:
            return Graph(_triples(content, base_iri))
        except SyntaxError as error:
            raise BadRequest("Malformed Turtle") from error

    async def fetch(self, url: str, purpose: Purpose) -> FetchedDocument:
        assert purpose is Purpose.GROUP
        self.fetched.append(url)
        self.clock.time_ms += self.fetch_takes_ms
        if url not in self.remote:
            raise OutboundError("The document could not be fetched")
        return self.remote[url]

    async def owner_of(self, storage: ResourcePath) -> str | None:
        assert storage_root(storage) == storage
        self.owners_asked.append(storage)
        return self.owners.get(storage)


def pod() -> World:
    """A pod at /pod/ whose ACL gives everything to the owner and nothing to others."""
    world = World()
    world.owners[path("/pod/")] = OWNER
    world.store("/pod/", kind=ResourceKind.STORAGE)
    world.acl("/pod/", owner_rule("./"))
    return world


def owner_rule(target: str) -> str:
    return f"""
    <#owner> a acl:Authorization; acl:agent <{OWNER}>; acl:accessTo <{target}>;
        acl:default <{target}>; acl:mode acl:Read, acl:Write, acl:Control.
    """


def rule(
    who: str, modes: str, target: str, *, access_to: bool = True, default: bool = False
) -> str:
    """One authorization: ``who`` in Turtle ("acl:agent <…>"), modes such as ``RW``."""
    names = {"R": "acl:Read", "W": "acl:Write", "A": "acl:Append", "C": "acl:Control"}
    objects = f"acl:accessTo <{target}>;" if access_to else ""
    objects += f"acl:default <{target}>;" if default else ""
    return f"""
    [] a acl:Authorization; {who}; {objects} acl:mode {", ".join(names[m] for m in modes)}.
    """
