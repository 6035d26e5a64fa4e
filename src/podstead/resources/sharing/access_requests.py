"""Asks the owner of a resource for access, and shows the owner the requests.

A request for access is a notification in the owner's inbox (:mod:`.offers`). It is posted with the
rights of the person who asks, so it needs an inbox to which that person may append; the server does
not lend its own rights. Anybody who can append to the inbox can write anything into it; reading one
of the requests therefore never grants anything. The owner decides, by an edit of the rules.
"""

from dataclasses import dataclass
from typing import Final, Protocol

from podstead.core import caches, media_types, vocab
from podstead.core.errors import Conflict, NotAuthenticated, NotFound, RateLimited, RequestRefused
from podstead.core.identifiers import ResourcePath, is_container, storage_root
from podstead.core.identity import Identity
from podstead.core.request_context import limit_key
from podstead.rdf.graph import Graph, Iri
from podstead.resources.codes import ResourceCodes
from podstead.resources.context import ResourceContext
from podstead.resources.documents import is_rdf
from podstead.resources.entity_tags import state_version
from podstead.resources.sharing import offers
from podstead.resources.sharing.documents import AgentDocuments
from podstead.storage import protocol, records
from podstead.wac.acl import agent_name, local_path
from podstead.wac.gate import StorageOwners
from podstead.wac.modes import Mode, Modes

REQUESTS_PER_HOUR: Final = 20
"""How many requests one person may send in an hour."""
REQUESTS_TO_ONE_OWNER_PER_DAY: Final = 10
"""How many of these may go to the same storage in a day."""

MAX_LISTED: Final = 100
"""How many notifications of an inbox are read, the newest first."""
MAX_MEMBERS: Final = 10_000
"""How many members of an inbox are searched for them."""
_PAGE: Final = 500
MAX_NOTIFICATION_BYTES: Final = 64 * 1024

_HOUR_S: Final = 3600
_DAY_S: Final = 86_400


class NoInbox(Conflict):
    """The owner has no inbox here to which the person may write."""

    code = ResourceCodes.NO_REQUESTS_HERE


class HasAccess(Conflict):
    """The person has the modes already."""

    code = ResourceCodes.HAS_ACCESS


@dataclass(frozen=True, slots=True)
class AccessRequest:
    """A request for access in an inbox. ``actor`` is its stated sender."""

    notification: ResourcePath
    actor: str
    resource: ResourcePath
    modes: Modes
    message: str
    published: str | None


@dataclass(frozen=True, slots=True)
class AccessAnswer:
    """The answer to a request for access. ``actor`` is its stated sender.

    It is the ``notification`` in an inbox, or stored under a ``key``.
    """

    notification: ResourcePath | None
    actor: str
    resource: ResourcePath
    modes: Modes
    allowed: bool
    key: str = ""


class RequestNotices(Protocol):
    """Tells owners who want to know that somebody asks them for access, and those who have asked
    what the answer is."""

    async def asked(self, storage: ResourcePath, *, by: str, about: ResourcePath) -> None:
        """Tell the owner of a storage. A failure does not affect the request."""

    async def answered(self, person: str, *, by: str, about: ResourcePath, allowed: bool) -> None:
        """Tell the person who has asked, by IRI. A failure does not affect the answer."""


@dataclass(frozen=True, slots=True)
class AccessRequests:
    """Sends requests for access, lists and removes them.

    ``answer_store`` takes the answers to people who have no inbox here; ``notices`` tells people
    of requests and answers.
    """

    context: ResourceContext
    documents: AgentDocuments
    owners: StorageOwners
    answer_store: offers.StoredAnswers | None = None
    notices: RequestNotices | None = None

    async def ask(
        self, person: Identity | None, resource: ResourcePath, modes: Modes, *, message: str = ""
    ) -> None:
        """Ask the owner of a resource for modes on it, whether or not the resource exists.

        Raises NotAuthenticated for the public, HasAccess, RateLimited and NoInbox.
        """
        if person is None:
            raise NotAuthenticated
        storage = storage_root(resource)
        if storage is None:
            raise NoInbox
        grant, _ = await self.context.gate.current_grant(person, None, resource)
        if modes <= grant.user:
            raise HasAccess
        await self._count(person, storage)
        inbox = await self.inbox_of(person, storage)
        offer = offers.Offer(person.iri, self.documents.base_url + resource, modes, message)
        content = offers.write_offer(offer, at_ms=self.context.records.now_ms())
        try:
            await self.documents.send(
                person, "POST", inbox, content, content_type=media_types.JSON_LD
            )
        except RequestRefused as error:
            raise NoInbox from error
        if self.notices is not None:
            await self.notices.asked(storage, by=person.iri, about=resource)

    async def pending(self, owner: Identity, storage: ResourcePath) -> tuple[AccessRequest, ...]:
        """The distinct requests for access to resources of a storage in the owner's inbox. Raises
        what reading the inbox raises."""
        inbox = await self.inbox_of(owner, storage)
        found: dict[tuple[str, ResourcePath, Modes], AccessRequest] = {}
        for path in await self._notifications(owner, inbox):
            request = await self._read(owner, path, storage)
            if request is not None:
                found.setdefault((request.actor, request.resource, request.modes), request)
        return tuple(found.values())

    async def read(self, owner: Identity, notification: ResourcePath) -> AccessRequest | None:
        """One of them. Raises what reading the notification raises."""
        storage = storage_root(notification)
        return None if storage is None else await self._read(owner, notification, storage)

    async def answer(self, owner: Identity, request: AccessRequest, *, allowed: bool) -> None:
        """Tell the person who has asked, in their inbox here or as soon as they come back, and
        remove the request.

        Raises what a DELETE raises.
        """
        await self._tell(owner, request, allowed=allowed)
        await self.dismiss(owner, request)
        if self.notices is not None:
            await self.notices.answered(
                request.actor, by=owner.iri, about=request.resource, allowed=allowed
            )

    async def answers(self, person: Identity, storage: ResourcePath) -> tuple[AccessAnswer, ...]:
        """The answers to requests of a person in the inbox of their storage. Raises what reading
        the inbox raises."""
        inbox = await self.inbox_of(person, storage)
        found: list[AccessAnswer] = []
        for path in await self._notifications(person, inbox):
            graph = await self._graph(person, path)
            read = offers.read_answer(graph)
            if read is None or read.offer.actor not in map(agent_name, person.names()):
                continue
            resource = local_path(read.offer.resource_url, self.documents.base_url)
            if resource is not None:
                found.append(
                    AccessAnswer(path, read.actor, resource, read.offer.modes, read.allowed)
                )
        return tuple(found)

    async def stored_answers(self, person: Identity) -> tuple[AccessAnswer, ...]:
        """The answers to a person that have not reached an inbox."""
        if self.answer_store is None:
            return ()
        return tuple(
            AccessAnswer(
                None,
                each.value.actor,
                ResourcePath(each.value.resource),
                frozenset(map(Mode, each.value.modes)),
                each.value.allowed,
                key=each.key,
            )
            for each in await self.answer_store.of(person)
        )

    async def remove_stored_answer(self, person: Identity, key: str) -> None:
        """Remove one of these. Raises NotFound."""
        if self.answer_store is None:
            raise NotFound
        await self.answer_store.forget(person, key)

    async def forget(self, person: Identity, answer: ResourcePath) -> None:
        """Remove an answer. Raises NotFound if it is none, and what a DELETE raises."""
        graph = await self._graph(person, answer)
        if offers.read_answer(graph) is None:
            raise NotFound
        await self.documents.send(person, "DELETE", answer)

    async def dismiss(self, owner: Identity, request: AccessRequest) -> None:
        """Remove a request, and others in the same inbox that ask for the same.

        Raises what a DELETE raises.
        """
        same = (request.actor, request.resource, request.modes)
        storage = storage_root(request.resource)
        if storage is None:
            raise NotFound
        inbox = await self.inbox_of(owner, storage)
        if not request.notification.startswith(inbox):
            raise NotFound
        for path in await self._notifications(owner, inbox):
            other = await self._read(owner, path, storage)
            if other is not None and (other.actor, other.resource, other.modes) == same:
                await self.documents.send(owner, "DELETE", path)

    # --- steps ----------------------------------------------------------------------------

    async def _count(self, person: Identity, storage: ResourcePath) -> None:
        """Count a request. The limits are each person's own, so nobody uses up another's; people
        from other servers share those of their network."""
        who = limit_key(person, base_url=self.documents.base_url)
        for key, capacity, period_s in (
            (f"access-request:{who}", REQUESTS_PER_HOUR, _HOUR_S),
            (f"access-request:{storage}:{who}", REQUESTS_TO_ONE_OWNER_PER_DAY, _DAY_S),
        ):
            wait_s = await self.context.records.take(key, capacity=capacity, period_s=period_s)
            if wait_s is not None:
                raise RateLimited(retry_after_s=wait_s)

    async def _tell(self, owner: Identity, request: AccessRequest, *, allowed: bool) -> None:
        """Post the answer with the rights of the owner, or keep it if no inbox accepts it."""
        offer = offers.Offer(
            request.actor, self.documents.base_url + request.resource, request.modes
        )
        answer = offers.OfferAnswer(owner.iri, offer, allowed)
        if await self._post(owner, answer):
            return
        storage = storage_root(request.resource)
        if self.answer_store is not None and storage is not None:
            await self.answer_store.keep(answer, request.resource, storage=storage)

    async def _post(self, owner: Identity, answer: offers.OfferAnswer) -> bool:
        """Post an answer to the inbox of the person who asked; whether an inbox accepted it."""
        profile = self.documents.path_of(answer.offer.actor)
        storage = None if profile is None else storage_root(profile)
        if storage is None:
            return False
        try:
            inbox = await self.inbox_of(owner, storage)
            content = offers.write_answer(answer, at_ms=self.context.records.now_ms())
            await self.documents.send(
                owner, "POST", inbox, content, content_type=media_types.JSON_LD
            )
        except RequestRefused:  # there is no inbox, or it accepts nothing from the owner
            return False
        return True

    async def inbox_of(self, agent: Identity, storage: ResourcePath) -> ResourcePath:
        """The inbox that the owner's profile names, if profile and inbox are in the storage. Raises
        NoInbox."""
        owner = await self.owners.owner_of(storage)
        if owner is None:
            raise NoInbox
        profile = await self.documents.graph(agent, owner)
        for iri in profile.iris(Iri(owner), Iri(vocab.LDP_INBOX)):
            inbox = local_path(iri, self.documents.base_url)
            if inbox is not None and is_container(inbox) and inbox.startswith(storage):
                return inbox
        raise NoInbox

    async def _notifications(
        self, owner: Identity, inbox: ResourcePath
    ) -> tuple[ResourcePath, ...]:
        """The newest notifications of an inbox that the owner may read."""
        found: list[records.Metadata] = []
        after: ResourcePath | None = None
        for _ in range(MAX_MEMBERS // _PAGE):
            members = await self.documents.members(owner, inbox, after=after, limit=_PAGE)
            found += [
                each
                for each in members
                if is_rdf(each.content_type)
                and not each.kind.is_container
                and each.size_bytes <= MAX_NOTIFICATION_BYTES
            ]
            if len(members) < _PAGE:
                break
            after = members[-1].path
        newest = sorted(found, key=lambda each: each.modified_ms, reverse=True)
        return tuple(each.path for each in newest[:MAX_LISTED])

    async def _graph(self, agent: Identity, path: ResourcePath) -> Graph:
        """The triples of a notification; none if it was removed or has an unknown context."""
        return await self.documents.graph(agent, self.documents.base_url + path)

    async def _read(
        self, owner: Identity, path: ResourcePath, storage: ResourcePath
    ) -> AccessRequest | None:
        graph = await self._graph(owner, path)
        offer = offers.read_offer(graph)
        resource = (
            None if offer is None else local_path(offer.resource_url, self.documents.base_url)
        )
        if offer is None or resource is None or not resource.startswith(storage):
            return None
        return AccessRequest(
            path, offer.actor, resource, offer.modes, offer.message, offer.published
        )


_KEPT_REQUESTS: Final = 10_000

_State = tuple[str | None, ...]


class PendingRequests:
    """Reads the requests in the inboxes of owners, once for each state of the inbox.

    Every page tells owners how many there are, so they are cached until the inbox or the profile
    that names it changes.
    """

    def __init__(self, requests: AccessRequests, store: protocol.ResourceStore) -> None:
        self._requests = requests
        self._store = store
        self._cached: caches.BoundedCache[
            tuple[str, ResourcePath], tuple[ResourcePath, _State, tuple[AccessRequest, ...]]
        ] = caches.BoundedCache(_KEPT_REQUESTS)

    async def of(self, owner: Identity, pod: ResourcePath) -> tuple[AccessRequest, ...]:
        """The requests for access to a pod of this owner; none without a readable inbox. Raises
        ServerTrouble."""
        cached = self._cached.get((owner.iri, pod))
        if cached is not None and cached[1] == await self._state(pod, cached[0]):
            return cached[2]
        try:
            inbox = await self._requests.inbox_of(owner, pod)
            state = await self._state(pod, inbox)
            found = await self._requests.pending(owner, pod)
        except RequestRefused:
            return ()
        self._cached.put((owner.iri, pod), (inbox, state, found), weight=len(found) + 1)
        return found

    async def _state(self, pod: ResourcePath, inbox: ResourcePath) -> _State:
        """A state that changes with the requests. The profile that names the inbox may be anywhere
        in the pod; mostly it is the root."""
        snapshot = await self._store.read_metadata((pod, inbox))
        root = snapshot[pod]
        listing = snapshot[inbox]
        return (
            None if root is None else root.version,
            None if listing is None else state_version(listing),
        )
