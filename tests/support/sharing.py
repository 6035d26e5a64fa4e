"""What the services of sharing are built from, in tests."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class KnownEmails:
    """Accounts in memory."""

    web_ids: dict[str, str]

    async def web_id_of(self, email: str) -> str | None:
        return self.web_ids.get(email)
