"""Allows or refuses writes that change who can act as a WebID.

Authentication trusts what the document of a WebID states: its providers, keys, other names and
storages (:mod:`podstead.rdf.identity_statements`). An agent who can change these statements can act
as the WebID. A write that changes them, by any method, therefore needs more than the modes of the
method:

1. **Control** of the document; otherwise Append would be enough to become its owner. This rule
   applies to every statement of identity in any document.
2. **Credentials that may state identity** (:attr:`Identity.may_state_identity`): the agent's own,
or
   the token of an application with the scope for it. The public has none. This rule applies to the
   statements of a profile; a document that only links a thing to other pages about it, as recipes
   and films do with ``schema:sameAs``, is not a profile.
3. **In the document of a storage's owner, the agent must be that owner.** Rule 2 alone could be
   bypassed: an application that may change access rules could give Control to an accomplice, who
   has a token of their own.

Deleting a document, or replacing it with content that is not RDF, removes all its statements.

Statements are compared only if these rules do not allow the write anyway, so the check costs
nothing for an owner with their own token. For applications, the statements after a write are cached
by version, so that the next write need not read the document again.
"""

from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

from podstead.core.caches import BoundedCache
from podstead.core.errors import AccessDenied, NotAuthenticated
from podstead.core.identifiers import ResourcePath, description_of, is_container, storage_root
from podstead.core.identity import IDENTITY_SCOPE, Identity
from podstead.rdf import identity_statements as rdf_identity_statements
from podstead.rdf.graph import Dataset
from podstead.resources.codes import ResourceCodes
from podstead.resources.context import ResourceContext
from podstead.resources.documents import EMPTY_DATASET, is_rdf
from podstead.resources.outcome import ResourceRequest
from podstead.resources.target_state import TargetState
from podstead.storage.records import Metadata, Precondition, ResourceKind, Version
from podstead.wac.gate import GrantedAccess
from podstead.wac.modes import Mode, identity_change

_CACHED_STATEMENTS: Final = 16_384
"""The statements of identity to cache; a document without any weighs as much as one statement."""


class ApplicationMayNotIdentify(AccessDenied):
    """The token of an application lacks the scope for changing statements of identity."""

    known_text = "insufficient_scope"
    """RFC 6750 section 3.1."""

    def __init__(self) -> None:
        super().__init__(
            "This changes who can act as a WebID: its identity providers, keys, owl:sameAs or "
            f"storages. For that, the token of an application needs the scope {IDENTITY_SCOPE}, "
            "which its user grants on the consent page of this server. Or use a credential of your "
            "own: the account page, client credentials, a token from /idp/credentials, a pod "
            "token, a linked key or a client certificate"
        )


class OnlyOwnerMayIdentify(AccessDenied):
    """Control is not enough to change statements of identity about the owner of a storage."""

    code = ResourceCodes.OWNER_ONLY


class _Change(msgspec.Struct, frozen=True):
    """A write to a document, with the content after it and, if not the stored one, before it."""

    state: TargetState
    after: Dataset
    version: Version | None = None
    before: Dataset | None = None

    @property
    def path(self) -> ResourcePath:
        return self.state.stored_path

    @property
    def has_no_statements(self) -> bool:
        """Whether neither side is RDF, as with images, so that the owner need not be looked up."""
        if self.after is not EMPTY_DATASET or self.before is not None:
            return False
        existing = self.state.existing
        return existing is None or not is_rdf(existing.content_type)


class IdentityChanges:
    """Allows or refuses writes that change statements of identity."""

    def __init__(self, context: ResourceContext) -> None:
        self._documents = context.documents
        self._gate = context.gate
        self._cache: BoundedCache[
            tuple[ResourcePath, Version], rdf_identity_statements.IdentityStatements
        ] = BoundedCache(_CACHED_STATEMENTS)

    async def check(
        self,
        request: ResourceRequest,
        state: TargetState,
        after: Dataset,
        version: Version,
        *,
        before: Dataset | None = None,
    ) -> None:
        """Check a write that gives the target this content, as this version.

        ``before``, if given, replaces the stored content, for an agent that must not learn anything
        about that. Raises AccessDenied or NotAuthenticated, and Superseded if the current content
        changed while it was read.
        """
        change = _Change(state, after, version, before)
        request.identity_preconditions = await self._preconditions(request, change)

    async def preconditions(
        self,
        request: ResourceRequest,
        state: TargetState,
        after: Callable[[], Awaitable[Dataset]],
        version: Version | None = None,
    ) -> tuple[Precondition, ...]:
        """Check one of the changes of a request that changes several resources.

        ``after`` reads the content after the change, and is called only if it matters. Returns the
        preconditions of allowing the change. Raises as :meth:`check` does.
        """
        grant = await self._grant(request, state)
        if (
            grant.allows(Mode.CONTROL)
            and await self._refusal_despite_control(request.agent, state.stored_path) is None
        ):
            return grant.preconditions
        return await self._preconditions(request, _Change(state, await after(), version))

    async def check_deletion(self, request: ResourceRequest, state: TargetState) -> None:
        """Check a deletion. Raises as :meth:`check` does.

        The description of a document is deleted with it (C-20), and can be the document of a WebID
        as well. The deletion requires that a missing description is not created meanwhile.
        """
        preconditions = await self._preconditions(request, _Change(state, EMPTY_DATASET))
        existing = state.existing
        if existing is not None and existing.kind is ResourceKind.DOCUMENT:
            path = description_of(existing.path)
            if state.metadata(path) is not None:
                change = _Change(TargetState(path, state.snapshot), EMPTY_DATASET)
                preconditions += await self._preconditions(request, change)
        request.identity_preconditions = preconditions

    async def _preconditions(
        self, request: ResourceRequest, change: _Change
    ) -> tuple[Precondition, ...]:
        """The preconditions of allowing the change; empty if it changes no statement of
        identity."""
        if change.has_no_statements:
            return ()
        path, agent = change.path, request.agent
        grant = await self._grant(request, change.state)
        if grant.allows(Mode.CONTROL):
            refusal = await self._refusal_despite_control(agent, path)
            if refusal is not None and await self._changes_profile(change):
                raise refusal
            return grant.preconditions
        before = change.before
        if before is None:
            before = await self._documents.read_dataset(change.state.existing)
        if self._statements(path, before) == self._statements(path, change.after):
            return ()
        return await self._gate.require(
            identity_change(path), agent, request.operation.origin, change.state.snapshot
        )

    async def _grant(self, request: ResourceRequest, state: TargetState) -> GrantedAccess:
        grant = request.grant_for(state)
        if grant is not None:
            return grant
        return await self._gate.grant(
            request.agent, request.operation.origin, state.stored_path, state.snapshot
        )

    async def _refusal_despite_control(
        self, agent: Identity | None, path: ResourcePath
    ) -> AccessDenied | NotAuthenticated | None:
        """Why an agent with Control must not change a profile at the path; ``None`` if it may."""
        if agent is None:
            return NotAuthenticated()
        if await self._gate.another_owns(agent, path) and await self._is_owners_profile(path):
            return OnlyOwnerMayIdentify()
        return None if agent.may_state_identity else ApplicationMayNotIdentify()

    async def _is_owners_profile(self, path: ResourcePath) -> bool:
        """Whether the document is that of its storage's owner: WebIDs here are
        ``{base}/<pod>/#me``, and imported pods keep theirs."""
        if storage_root(path) == path:
            return True
        owner = await self._gate.owner_of(path)
        if owner is None:
            return False
        document = owner.partition("#")[0]
        return document in map(self._documents.url_of, _documents_at(path))

    async def _changes_profile(self, change: _Change) -> bool:
        """Whether the write changes what the target states as a profile."""
        path = change.path
        if change.before is None:
            before = await self._stated_before(change.state.existing)
        else:
            before = self._statements(path, change.before)
        after = self._statements(path, change.after)
        if change.version is not None:
            self._cache_statements(path, change.version, change.after, after)
        if await self._is_owners_profile(path):
            return before != after
        return rdf_identity_statements.stated_by_profile(
            before
        ) != rdf_identity_statements.stated_by_profile(after)

    async def _stated_before(
        self, existing: Metadata | None
    ) -> rdf_identity_statements.IdentityStatements:
        if existing is None:
            return frozenset()
        cached = self._cache.get((existing.path, existing.version))
        if cached is None:
            content = await self._documents.read_dataset(existing)
            cached = self._statements(existing.path, content)
            self._cache_statements(existing.path, existing.version, content, cached)
        return cached

    def _cache_statements(
        self,
        path: ResourcePath,
        version: Version,
        content: Dataset,
        stated: rdf_identity_statements.IdentityStatements,
    ) -> None:
        """Cache what a version states, even before it is stored.

        A document that could not be read is not cached, since that may be temporary.
        """
        if content is not EMPTY_DATASET:
            self._cache.put((path, version), stated, weight=1 + len(stated))

    def _statements(
        self, path: ResourcePath, content: Dataset
    ) -> rdf_identity_statements.IdentityStatements:
        """What the document states about its own WebIDs."""
        return frozenset[rdf_identity_statements.IdentityStatement]().union(
            *(
                rdf_identity_statements.identity_statements(
                    content, document_iri=self._documents.url_of(document)
                )
                for document in _documents_at(path)
            )
        )


def _documents_at(path: ResourcePath) -> tuple[ResourcePath, ...]:
    """The URLs at which the document is available: a container's triples have two, so they are the
    document of the WebIDs at both."""
    return (path, description_of(path)) if is_container(path) else (path,)
