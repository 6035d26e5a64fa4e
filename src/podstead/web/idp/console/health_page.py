"""``/.pages/console/health``: how the server is doing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

from podstead.idp.administration.audit_log import Operator, SlowRequest
from podstead.web.idp.console import addresses
from podstead.web.idp.console.access import for_operators
from podstead.web.pages.request import PageRequest
from podstead.web.pages.site import Site
from podstead.web.response import Response
from podstead.web.routes import route

LOW_SHARE: Final = 10
"""Below one such part of the disk, free space is low."""


@dataclass(frozen=True, slots=True)
class FailedWebhook:
    """A webhook whose deliveries fail. ``given_up`` is the reason why nothing is sent any more,
    empty if it is tried again."""

    topic: str
    host: str
    failures: int
    since_ms: int
    given_up: str


@dataclass(frozen=True, slots=True)
class MailHealth:
    """How many messages wait to be sent, and how many of these have failed at least once."""

    waiting: int
    failing: int


@dataclass(frozen=True, slots=True)
class Health:
    """What operators look at. ``started_ms`` is when the worker that answers started."""

    versions: Sequence[tuple[str, str]]
    started_ms: int
    workers: int
    disk_total_bytes: int
    disk_free_bytes: int
    database_bytes: int
    pods: int
    accounts: int
    used_bytes: int
    channels: int
    retrying: int
    given_up: int
    failed: Sequence[FailedWebhook]
    slow: Sequence[SlowRequest]
    mail: MailHealth | None
    """``None`` if the server sends no mail."""

    @property
    def disk_is_low(self) -> bool:
        return self.disk_free_bytes * LOW_SHARE < self.disk_total_bytes


ReadHealth = Callable[[], Awaitable[Health]]
"""Raises StorageError."""


@dataclass(frozen=True, slots=True)
class HealthPage:
    """Shows the health of the server."""

    site: Site
    read: ReadHealth

    @route(addresses.HEALTH, "GET")
    @for_operators
    async def get(self, page: PageRequest, _operator: Operator) -> Response:
        """The page."""
        return self.site.page(page, "console/health.html", health=await self.read())
