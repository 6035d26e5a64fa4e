"""Reads documents as an agent, the ACL that decides about a resource among them, and writes the
resource's own.

These are operations on resources like any other, carried out by :class:`ResourceService` for the
agent that asks. An agent therefore sees and changes exactly the rules that it could read and write
over HTTP, and a write is conditional on what was read.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from podstead.core import errors, identifiers
from podstead.core.conditional import UNCONDITIONAL, Conditions
from podstead.core.identity import Identity
from podstead.core.media_types import TURTLE
from podstead.core.operation import InMemoryBody, Operation
from podstead.rdf.codecs import Document
from podstead.rdf.errors import UnknownContext
from podstead.rdf.graph import EMPTY_GRAPH, Dataset, Graph
from podstead.resources.codes import ResourceCodes
from podstead.resources.context import ResourceContext
from podstead.resources.documents import Documents
from podstead.resources.outcome import Outcome, ResourceRequest, Result
from podstead.resources.service import ResourceService
from podstead.storage.protocol import Snapshot
from podstead.storage.records import AtVersion, Metadata, Precondition, Record, Version
from podstead.wac import modes
from podstead.wac.acl import local_path
from podstead.wac.effective import acl_paths, paths_to_read
from podstead.wac.sharing.editing import AccessChange, as_own_rules, with_changes


@dataclass(frozen=True, slots=True)
class ReadDocument:
    """A document as an agent has read it."""

    document: Document
    content_type: str
    etag: str
    version: Version


class AgentDocuments:
    """Reads and writes documents of this server as an agent, through the service that answers
    requests."""

    def __init__(self, resources: ResourceService, documents: Documents) -> None:
        self._resources = resources
        self._documents = documents
        self.base_url = documents.url_of(identifiers.ResourcePath(""))

    def path_of(self, iri: str) -> identifiers.ResourcePath | None:
        """The path of the document in which an IRI is described; ``None`` if it is elsewhere."""
        return local_path(iri.partition("#")[0], self.base_url)

    async def read(self, agent: Identity | None, path: identifiers.ResourcePath) -> ReadDocument:
        """The document at a path.

        Raises what a GET raises, NotFound if something else is there, BadRequest if it is not RDF,
        and UnknownContext.
        """
        request = ResourceRequest(Operation("GET", path), agent)
        outcome = await self._resources.handle(request)
        if outcome.result is not Result.REPRESENTED:
            raise errors.NotFound
        metadata, etag = outcome.metadata, outcome.etag
        representation = outcome.representation
        if metadata is None or etag is None or representation is None:
            raise errors.StorageError("The document has no content")
        content, content_type = await representation.read(), representation.content_type
        document = await self._documents.parse(content, content_type, path=path)
        return ReadDocument(document, content_type, etag, metadata.version)

    async def graph(self, agent: Identity | None, iri: str) -> Graph:
        """The triples of the document in which an IRI is described; none if it is elsewhere, or the
        agent cannot read it."""
        path = self.path_of(iri)
        if path is None:
            return EMPTY_GRAPH
        try:
            return (await self.read(agent, path)).document.graph
        except errors.RequestRefused:
            return EMPTY_GRAPH

    async def members(
        self,
        agent: Identity | None,
        container: identifiers.ResourcePath,
        *,
        after: identifiers.ResourcePath | None = None,
        limit: int,
    ) -> Sequence[Metadata]:
        """The members of a container, in the order of their paths. Raises what a GET raises."""
        request = ResourceRequest(Operation("GET", container), agent)
        return (await self._resources.members(request, after=after, limit=limit)).members

    async def send(
        self,
        agent: Identity | None,
        method: str,
        path: identifiers.ResourcePath,
        content: bytes = b"",
        *,
        content_type: str | None = None,
        conditions: Conditions = UNCONDITIONAL,
    ) -> Outcome:
        """Carry out an operation. Raises what it raises."""
        body = InMemoryBody(content)
        operation = Operation(method, path, body, conditions, content_type=content_type)
        return await self._resources.handle(ResourceRequest(operation, agent))

    async def create(
        self,
        agent: Identity | None,
        path: identifiers.ResourcePath,
        graph: Graph,
        prefixes: Mapping[str, str],
    ) -> None:
        """Store a new document. Raises PreconditionFailed if there is one, and what a PUT
        raises."""
        document = Document(Dataset(graph), prefixes)
        content = await self._documents.write(document, TURTLE, path=path)
        new = Conditions(if_none_match="*")
        await self.send(agent, "PUT", path, content, content_type=TURTLE, conditions=new)

    async def replace(
        self,
        agent: Identity | None,
        path: identifiers.ResourcePath,
        read: ReadDocument,
        graph: Graph,
        *,
        etag: str | None = None,
    ) -> None:
        """Store other triples in a document, if it is unchanged since it was ``read``, or since it
        had the ``etag``. Raises PreconditionFailed, and what a PUT raises."""
        document, content_type = read.document.with_graph(graph), read.content_type
        content = await self._documents.write(document, content_type, path=path)
        same = Conditions(if_match=etag or read.etag)
        await self.send(agent, "PUT", path, content, content_type=content_type, conditions=same)

    async def remove(
        self, agent: Identity | None, path: identifiers.ResourcePath, etag: str
    ) -> None:
        """Delete a document, if it is unchanged. Raises PreconditionFailed, and what a DELETE
        raises."""
        await self.send(agent, "DELETE", path, conditions=Conditions(if_match=etag))


@dataclass(frozen=True, slots=True)
class RulesDocument:
    """The ACL that decides about ``resource``: its own, or that of the container ``of``."""

    resource: identifiers.ResourcePath
    of: identifiers.ResourcePath
    document: Document
    content_type: str
    etag: str
    version: Version

    @property
    def is_own(self) -> bool:
        return self.of == self.resource

    @property
    def token(self) -> str:
        """Identifies this state of the rules: another ACL, or another version, has another."""
        return f"{identifiers.acl_of(self.of)} {self.version}"


class Inheritance(Enum):
    """How the rules of the containers above apply after the edit."""

    AS_IT_IS = "as it is"
    """A resource that inherits gets own rules only if the edit changes something."""
    STOP = "stop"
    """The resource gets own rules that grant what it inherited."""
    RESUME = "resume"
    """The resource loses its own rules."""


@dataclass(frozen=True, slots=True)
class Edit:
    """The changes that a person makes in one step."""

    changes: tuple[AccessChange, ...] = ()
    inheritance: Inheritance = Inheritance.AS_IT_IS


def edited(current: RulesDocument, edit: Edit, *, url: str) -> Document | None:
    """The resource's own ACL after an edit; ``None`` if it has none then.

    ``url`` is that of the resource.
    """
    if edit.inheritance is Inheritance.RESUME:
        return None
    acl_url = url + identifiers.ACL_SUFFIX
    if current.is_own:
        document = current.document
    else:
        base = url.removesuffix(current.resource)
        graph = as_own_rules(
            current.document.graph, from_url=base + current.of, acl_url=acl_url, subject_url=url
        )
        document = Document(Dataset(graph), current.document.prefixes)
    graph = with_changes(document.graph, edit.changes, acl_url=acl_url, subject_url=url)
    if edit.inheritance is Inheritance.AS_IT_IS and not current.is_own and graph == document.graph:
        return None
    return document.with_graph(graph)


_READ_ATTEMPTS = 8


class RulesOutOfReach(errors.AccessDenied):
    """The agent has Control of the resource, but may not read the rules that it inherits."""

    def __init__(self, folder: identifiers.ResourcePath) -> None:
        super().__init__(ResourceCodes.RULES_OUT_OF_REACH)
        self.folder = folder


class RulesUnreadable(errors.Conflict):
    """The ACL cannot be understood at present, so it cannot be edited."""

    code = ResourceCodes.RULES_UNREADABLE


class RulesChanged(errors.PreconditionFailed):
    """The rules are no longer those that the edit was made for."""

    code = ResourceCodes.RULES_CHANGED


class RulesDocuments:
    """Reads and writes ACLs for one agent at a time."""

    def __init__(self, context: ResourceContext, resources: ResourceService) -> None:
        self._resources = resources
        self._agent_documents = AgentDocuments(resources, context.documents)
        self._documents = context.documents
        self._gate = context.gate
        self._store = context.store

    def url_of(self, path: identifiers.ResourcePath) -> str:
        """The URL of a resource."""
        return self._documents.url_of(path)

    async def snapshot(
        self, agent: Identity | None, resource: identifiers.ResourcePath
    ) -> Snapshot:
        """The snapshot of a resource that the agent has Control of, and of everything above it.

        Raises NotAuthenticated and AccessDenied without Control, and NotFound for what does not
        exist, is in no storage or is itself auxiliary.
        """
        snapshot = await self._store.read_metadata(paths_to_read(resource))
        if (
            identifiers.storage_root(resource) is None
            or identifiers.auxiliary_kind(resource) is not None
        ):
            raise errors.NotFound
        acl = identifiers.acl_of(resource)
        await self._gate.authorize(agent, None, acl, modes.for_read(acl), snapshot)
        if snapshot[resource] is None:
            raise errors.NotFound
        return snapshot

    async def read(
        self, agent: Identity | None, resource: identifiers.ResourcePath
    ) -> RulesDocument:
        """The ACL that decides about the resource.

        Raises what :meth:`snapshot` raises, RulesOutOfReach and RulesUnreadable.
        """
        for _ in range(_READ_ATTEMPTS):
            snapshot = await self.snapshot(agent, resource)
            decisive = next((path for path in acl_paths(resource) if snapshot[path]), None)
            if decisive is None:
                raise RulesUnreadable  # no rules at all, for example after a manual repair
            try:
                return await self._read(agent, resource, identifiers.subject_of(decisive))
            except errors.NotFound:
                continue  # deleted since the snapshot
        raise errors.Overloaded(ResourceCodes.RULES_CHANGE_TOO_FAST)

    async def read_above(
        self, agent: Identity | None, resource: identifiers.ResourcePath
    ) -> RulesDocument:
        """The ACL that would decide if the resource had none of its own; raises as :meth:`read`."""
        snapshot = await self.snapshot(agent, resource)
        above = [path for path in acl_paths(resource)[1:] if snapshot[path]]
        if not above:
            raise RulesUnreadable
        return await self._read(agent, resource, identifiers.subject_of(above[0]))

    async def write(
        self,
        agent: Identity | None,
        current: RulesDocument,
        document: Document,
        records: Sequence[Record] = (),
    ) -> None:
        """Store the resource's own ACL, and ``records`` with it, if the rules are still
        ``current``.

        Raises RulesChanged otherwise, and everything that a PUT raises.
        """
        acl = identifiers.acl_of(current.resource)
        content_type = current.content_type if current.is_own else TURTLE
        conditions = Conditions(if_none_match="*")
        preconditions: tuple[Precondition, ...] = (
            AtVersion(identifiers.acl_of(current.of), current.version),
        )
        if current.is_own:
            conditions, preconditions = Conditions(if_match=current.etag), ()
        content = await self._documents.write(document, content_type, path=acl)
        operation = Operation(
            "PUT", acl, InMemoryBody(content), conditions, content_type=content_type
        )
        await self._change(agent, operation, current, preconditions, records)

    async def remove(self, agent: Identity | None, current: RulesDocument) -> None:
        """Delete the resource's own ACL, if it is still ``current``; raises as :meth:`write`."""
        conditions = Conditions(if_match=current.etag)
        operation = Operation("DELETE", identifiers.acl_of(current.resource), conditions=conditions)
        await self._change(agent, operation, current)

    async def _change(
        self,
        agent: Identity | None,
        operation: Operation,
        current: RulesDocument,
        preconditions: tuple[Precondition, ...] = (),
        records: Sequence[Record] = (),
    ) -> None:
        request = ResourceRequest(
            operation, agent, state_preconditions=preconditions, records=tuple(records)
        )
        try:
            await self._resources.handle(request)
        except errors.PreconditionFailed as error:
            raise RulesChanged from error
        except (errors.NotFound, errors.Overloaded) as error:
            now = await self.read(agent, current.resource)
            if now.token != current.token:
                raise RulesChanged from error
            raise

    async def _read(
        self,
        agent: Identity | None,
        resource: identifiers.ResourcePath,
        of: identifiers.ResourcePath,
    ) -> RulesDocument:
        path = identifiers.acl_of(of)
        try:
            found = await self._agent_documents.read(agent, path)
        except errors.AccessDenied as error:
            if of == resource:
                raise
            raise RulesOutOfReach(of) from error
        except UnknownContext as error:
            raise RulesUnreadable from error
        return RulesDocument(
            resource, of, found.document, found.content_type, found.etag, found.version
        )
