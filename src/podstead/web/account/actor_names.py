"""What pages call whoever did something: people, and the applications that they used."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from podstead.core.identifiers import ResourcePath
from podstead.core.identity import Identity
from podstead.web.pages.people import application_name, short_name
from podstead.web.pages.request import PageRequest
from podstead.web.pages.texts import _

if TYPE_CHECKING:
    from podstead.idp.credentials import ClientCredentials
    from podstead.idp.grants import ConnectedClients


class AgentNames(Protocol):
    """Finds the names of agents that are no persons, such as sharing links."""

    async def __call__(self, pod: ResourcePath, agents: Iterable[str | None]) -> Mapping[str, str]:
        """The names of those that belong to a pod, by IRI, also of former ones. Raises
        StorageError."""


def agent_text(
    iri: str | None, *, viewer: Identity | None, base_url: str, names: Mapping[str, str]
) -> str:
    """“You”, one of ``names``, or :func:`short_name`."""
    if iri is None:
        return _("Somebody who was not signed in")
    if iri in names:
        return names[iri]
    if viewer is not None and iri in viewer.names():
        return _("You")
    return short_name(iri, base_url)


@dataclass(frozen=True, slots=True)
class ActorNames:
    """Names agents, and the applications and scripts of the person who looks at a page, as they are
    called where the person has let them in; others by their host. ``connected`` and ``credentials``
    are ``None`` without accounts."""

    agents: AgentNames
    base_url: str
    connected: ConnectedClients | None
    credentials: ClientCredentials | None

    async def of(
        self, page: PageRequest, pod: ResourcePath, agents: Iterable[str | None]
    ) -> Callable[[str | None, str | None], tuple[str, str]]:
        """What one of the agents and a client are called on a page about a pod; the latter is empty
        where no application is known. Raises StorageError."""
        names, applications = await self.agents(pod, agents), await self._applications(page)

        def named(agent: str | None, client: str | None) -> tuple[str, str]:
            who = agent_text(agent, viewer=page.identity, base_url=self.base_url, names=names)
            return who, applications.get(client or "") or application_name(client)

        return named

    async def _applications(self, page: PageRequest) -> Mapping[str, str]:
        session = page.open_session
        names: dict[str, str] = {}
        if session is not None and self.connected is not None and self.credentials is not None:
            account_id = session.account.account_id
            for client in await self.connected.of_account(account_id):
                names[client.client_id] = client.client_name or ""
            for credential in await self.credentials.of(account_id):
                names[credential.credential_id] = credential.name or ""
        return names
