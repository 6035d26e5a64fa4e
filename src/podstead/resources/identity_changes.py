"""May this write change who somebody is? The one place that decides about statements of identity.

A WebID is believed because of what its document states: its providers, keys, other names and
storages (:mod:`podstead.rdf.identity_statements`). Whoever can change these can become the WebID,
so a write that changes them, by whatever method, needs more than the modes of the method:

1. **Control** of the document, or an append would make an owner. This compares every statement of
   identity, whatever the document.
2. **A credential that may state identity** (:attr:`Identity.may_state_identity`): one that is the
   agent's own, or the token of an application with the scope for it. The public has none. This
   compares what a profile states; a document that only links a thing to other pages about it, as
   recipes and films do by ``schema:sameAs``, is no profile.
3. **In the document of a storage's owner, to be that owner.** Rule 2 alone could be avoided: an
   application that may change access rules gives Control to an accomplice, who has a token of
   their own.

A deletion, and a replacement by what is not RDF, remove all that was stated. What git stores is in
repositories, which nothing reads as a WebID's document.

What is stated before and after is compared only for those whom these rules do not let pass anyway:
an owner with a token of their own pays nothing. For applications, what a document states after
their write is remembered with its version, so that the next write reads no document twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from podstead.core.bounded_cache import BoundedCache
from podstead.core.errors import AccessDenied, NotAuthenticated
from podstead.core.identifiers import ResourcePath, description_of, is_container, storage_root
from podstead.core.identity import IDENTITY_SCOPE, Identity
from podstead.rdf.graph import Dataset
from podstead.rdf.identity_statements import (
    IdentityStatement,
    IdentityStatements,
    identity_statements,
    stated_by_profile,
)
from podstead.resources.documents import EMPTY_DATASET, Documents
from podstead.resources.outcome import ResourceRequest
from podstead.resources.target_state import TargetState
from podstead.storage.records import Metadata, Precondition, ResourceKind, Version
from podstead.wac.gate import Gate, Grant
from podstead.wac.modes import Mode, identity_change

_KEPT_STATEMENTS: Final = 16_384
"""Of identity, in the documents that applications wrote last; a document without any weighs one."""


class ApplicationMayNotIdentify(AccessDenied):
    """An application's token does not reach as far as to say who somebody is."""

    known_text = "insufficient_scope"
    """RFC 6750 section 3.1."""

    def __init__(self) -> None:
        super().__init__(
            "This changes who can act as a WebID: its identity providers, keys, owl:sameAs or "
            f"storages. For that, the token of an application needs the scope {IDENTITY_SCOPE}, "
            "which its user grants on the consent page of this server. Or use a credential of your "
            "own: the account page, client credentials, a token from /idp/credentials, a pod "
            "token, a linked Nostr key or a client certificate"
        )


class OnlyOwnerMayIdentify(AccessDenied):
    """Control does not reach as far as to say who the owner of a storage is."""

    def __init__(self) -> None:
        super().__init__(
            "This changes who can act as the owner of this storage: their identity providers, "
            "keys, owl:sameAs or storages. Only the owner may do that, even if others have Control"
        )


@dataclass(frozen=True, slots=True)
class _Change:
    """A write: where, and what is said there after and before it."""

    state: TargetState
    after: Dataset
    version: Version | None = None
    before: Dataset | None = None

    @property
    def path(self) -> ResourcePath:
        return self.state.stored_path


class IdentityChanges:
    """Lets a write pass, or refuses it, for what it changes of statements of identity."""

    def __init__(self, *, documents: Documents, gate: Gate) -> None:
        self._documents = documents
        self._gate = gate
        self._kept: BoundedCache[tuple[ResourcePath, Version], IdentityStatements] = BoundedCache(
            _KEPT_STATEMENTS
        )

    async def check(
        self,
        request: ResourceRequest,
        state: TargetState,
        after: Dataset,
        version: Version,
        *,
        before: Dataset | None = None,
    ) -> None:
        """Check a write after which the state's target says this, as this version.

        ``before`` stands in the place of what is stored, for an agent who must not set_grant that.
        Raises AccessDenied or NotAuthenticated, and Superseded if the current content changed
        while it was read.
        """
        change = _Change(state, after, version, before)
        request.identity_preconditions = await self._preconditions(request, change)

    async def check_deletion(self, request: ResourceRequest, state: TargetState) -> None:
        """Check a deletion. Raises as :meth:`check` does.

        A document's description goes with it (C-20), and may be a WebID's document as well.
        """
        preconditions = await self._preconditions(request, _Change(state, EMPTY_DATASET))
        existing = state.existing
        if existing is not None and existing.kind is ResourceKind.DOCUMENT:
            description = TargetState(description_of(existing.path), state.snapshot)
            preconditions += await self._preconditions(request, _Change(description, EMPTY_DATASET))
        request.identity_preconditions = preconditions

    async def _preconditions(
        self, request: ResourceRequest, change: _Change
    ) -> tuple[Precondition, ...]:
        """What a change of identity relied on, empty if there is none."""
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

    async def _grant(self, request: ResourceRequest, state: TargetState) -> Grant:
        grant = request.grant_for(state)
        if grant is not None:
            return grant
        return await self._gate.grant(
            request.agent, request.operation.origin, state.stored_path, state.snapshot
        )

    async def _refusal_despite_control(
        self, agent: Identity | None, path: ResourcePath
    ) -> AccessDenied | NotAuthenticated | None:
        """Why an agent with Control may not change a profile at the path; ``None`` if it may."""
        if agent is None:
            return NotAuthenticated()
        if _is_owners_profile(path) and await self._gate.another_owns(agent, path):
            return OnlyOwnerMayIdentify()
        return None if agent.may_state_identity else ApplicationMayNotIdentify()

    async def _changes_profile(self, change: _Change) -> bool:
        """Whether what the target states as a profile is another thing after the write."""
        path = change.path
        if change.before is None:
            before = await self._stated_before(change.state.existing)
        else:
            before = self._statements(path, change.before)
        after = self._statements(path, change.after)
        if change.version is not None:
            self._keep(path, change.version, change.after, after)
        if _is_owners_profile(path):
            return before != after
        return stated_by_profile(before) != stated_by_profile(after)

    async def _stated_before(self, existing: Metadata | None) -> IdentityStatements:
        if existing is None:
            return frozenset()
        known = self._kept.get((existing.path, existing.version))
        if known is None:
            said = await self._documents.read_dataset(existing)
            known = self._statements(existing.path, said)
            self._keep(existing.path, existing.version, said, known)
        return known

    def _keep(
        self, path: ResourcePath, version: Version, said: Dataset, stated: IdentityStatements
    ) -> None:
        """Remember what a version states, be it one that is only about to be stored; but not that
        it could not be read, which may pass."""
        if said is not EMPTY_DATASET:
            self._kept.put((path, version), stated, weight=1 + len(stated))

    def _statements(self, path: ResourcePath, said: Dataset) -> IdentityStatements:
        """What is said there of the WebIDs whose document it is."""
        # A container's triples are had at two URLs, so they are the document of both's WebIDs.
        documents = (path, description_of(path)) if is_container(path) else (path,)
        return frozenset[IdentityStatement]().union(
            *(
                identity_statements(said, document_iri=self._documents.url_of(document))
                for document in documents
            )
        )


def _is_owners_profile(path: ResourcePath) -> bool:
    """Whether the document is that of a storage's owner: WebIDs here are ``{base}/<pod>/#me``."""
    return storage_root(path) == path
