"""What the services of sharing are built from, in tests."""

from __future__ import annotations

from dataclasses import dataclass

from podstead.app.resources import Owners
from podstead.resources.documents import Documents
from podstead.resources.service import ResourceService
from podstead.storage.sqlite import SqliteStore
from podstead.wac.gate import Gate


@dataclass(frozen=True)
class SharingParts:
    """What the services of sharing are built from."""

    store: SqliteStore
    resources: ResourceService
    documents: Documents
    gate: Gate
    owners: Owners


@dataclass(frozen=True)
class KnownEmails:
    """Accounts in memory."""

    web_ids: dict[str, str]

    async def web_id_of(self, email: str) -> str | None:
        return self.web_ids.get(email)
