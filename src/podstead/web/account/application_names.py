"""What pages call applications."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from podstead.web.pages.people import application_name
from podstead.web.pages.request import PageRequest

if TYPE_CHECKING:
    from podstead.idp.credentials import ClientCredentials
    from podstead.idp.grants import ConnectedClients


@dataclass(frozen=True, slots=True)
class ApplicationNames:
    """Names the applications and scripts of the person who looks at a page, as they are called
    where the person has let them in; others by their host. Both are ``None`` without accounts."""

    connected: ConnectedClients | None
    credentials: ClientCredentials | None

    async def of(self, page: PageRequest) -> Callable[[str | None], str]:
        """What applications are called, by client identifier; empty for ``None``. Raises
        StorageError."""
        session = page.open_session
        names: dict[str, str] = {}
        if session is not None and self.connected is not None and self.credentials is not None:
            account_id = session.account.account_id
            for client in await self.connected.of_account(account_id):
                names[client.client_id] = client.client_name or ""
            for credential in await self.credentials.of(account_id):
                names[credential.credential_id] = credential.name or ""
        return lambda client_id: names.get(client_id or "") or application_name(client_id)
