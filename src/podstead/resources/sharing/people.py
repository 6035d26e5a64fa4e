"""Finds the person meant by a typed name, e-mail address or WebID.

A name is that of a pod of this server and means its owner. An e-mail address means somebody only if
that person's own public profile states the address, so that the answer reveals nothing that is not
public, least of all who has an account. Look-ups are limited for each person who makes them;
those of people from other servers for each network.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol
from urllib.parse import urlsplit

from podstead.core import vocab
from podstead.core.clock import Clock
from podstead.core.errors import BadRequest, NotFound, RateLimited, RequestRefused
from podstead.core.identity import Identity
from podstead.core.request_context import limit_key
from podstead.rdf.graph import EMPTY_GRAPH, Graph, Iri, Literal
from podstead.resources.documents import Documents
from podstead.resources.service import ResourceService
from podstead.resources.sharing.reading import read_rdf
from podstead.storage.protocol import PodRegistry, RateCounters
from podstead.wac.iris import agent_name, local_path

LOOKUPS_PER_HOUR: Final = 60
MAX_IRI_CHARS: Final = 2_000

_HOUR_S: Final = 3600
_EMAIL_PROPERTIES: Final = tuple(
    Iri(iri)
    for iri in (
        vocab.FOAF + "mbox",
        vocab.VCARD + "hasEmail",
        vocab.VCARD + "email",
        vocab.VCARD + "value",
    )
)


class UnusableIri(BadRequest):
    """The text is not the IRI of a person, a group or an application."""

    def __init__(self) -> None:
        super().__init__("This is not the address (WebID) of a person or group")


class NobodyFound(NotFound):
    """Nobody visible to the person has this name or address."""

    def __init__(self) -> None:
        super().__init__("Nobody was found by this name or address")


class EmailOwners(Protocol):
    """Knows the accounts with e-mail addresses."""

    async def web_id_of(self, email: str) -> str | None:
        """The WebID of the account; ``None`` if there is none."""


class NoAccounts:
    """A server without accounts."""

    async def web_id_of(self, email: str) -> None:
        """None."""


@dataclass(frozen=True, slots=True)
class PeopleDirectory:
    """Finds agents by what people call them."""

    base_url: str
    resources: ResourceService
    documents: Documents
    pods: PodRegistry
    emails: EmailOwners
    counters: RateCounters
    clock: Clock

    async def find(self, person: Identity, text: str) -> str:
        """The IRI of the agent that ``person`` means.

        Raises UnusableIri, NobodyFound and RateLimited.
        """
        wanted = text.strip()
        if "://" in wanted or wanted.startswith("did:"):
            return agent_iri(wanted)
        await self._count(person)
        if "@" in wanted:
            return await self._by_email(person, wanted)
        pod = await self.pods.read_pod(wanted) if wanted else None
        if pod is None:
            raise NobodyFound
        return agent_name(pod.owner)

    async def _by_email(self, person: Identity, email: str) -> str:
        web_id = await self.emails.web_id_of(email)
        # For an unknown address another profile is read, so that the answer takes as long.
        profile = await self._public_profile(web_id or person.iri)
        if web_id is None or not _states(profile, email):
            raise NobodyFound
        return agent_name(web_id)

    async def _public_profile(self, web_id: str) -> Graph:
        path = local_path(web_id.partition("#")[0], self.base_url)
        if path is None:
            return EMPTY_GRAPH
        try:
            return (await read_rdf(self.resources, self.documents, None, path)).document.graph
        except RequestRefused:
            return EMPTY_GRAPH

    async def _count(self, person: Identity) -> None:
        wait_s = await self.counters.take(
            f"people:{limit_key(person, base_url=self.base_url)}",
            capacity=LOOKUPS_PER_HOUR,
            per_s=LOOKUPS_PER_HOUR / _HOUR_S,
            now_ms=self.clock.now_ms(),
        )
        if wait_s is not None:
            raise RateLimited(retry_after_s=wait_s)


def agent_iri(text: str) -> str:
    """The canonical IRI of an agent or group: an HTTP URL, or ``did:nostr:``. Raises
    UnusableIri."""
    try:
        iri = Iri(text).value
        parts = urlsplit(iri)
        usable = bool(parts.hostname) if parts.scheme in ("http", "https") else False
    except ValueError as error:
        raise UnusableIri from error
    if len(iri) > MAX_IRI_CHARS or not (usable or iri.startswith("did:nostr:")):
        raise UnusableIri
    return agent_name(iri)


def _states(profile: Graph, email: str) -> bool:
    """Whether a profile states an e-mail address, in one of the usual ways."""
    wanted = email.casefold()
    for _, predicate, object_ in profile:
        if predicate in _EMAIL_PROPERTIES and isinstance(object_, Iri | Literal):
            stated = object_.value.removeprefix("mailto:").casefold()
            if stated == wanted:
                return True
    return False
