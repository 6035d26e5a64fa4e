"""Signed requests in a worker."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from podstead.features import WorkerFeature
from podstead.features.nostr import NostrSettings, requests, schnorr
from podstead.web.authority import is_loopback_url

if TYPE_CHECKING:
    from podstead.app.services import Services
    from podstead.authn.authenticate import CredentialScheme


def accepts_signed_events(base_url: str) -> bool:
    """Whether signed events are accepted: with plain http, anybody on the network path could use
    them (A-148)."""
    return base_url.startswith("https:") or is_loopback_url(base_url)


async def verify(public_key: bytes, message: bytes, signature: bytes) -> bool:
    """As :func:`schnorr.verify`, in a thread if it takes long."""
    if schnorr.IS_NATIVE:
        return schnorr.verify(public_key, message, signature)
    return await asyncio.to_thread(schnorr.verify, public_key, message, signature)


class NostrInWorker(WorkerFeature):
    """Verifies signed requests."""

    def __init__(self, services: Services) -> None:
        self.services = services
        self.uses = requests.EventVerifier(used=services.store, clock=services.clock, verify=verify)

    @property
    def linked(self) -> requests.LinkedKeys | None:
        """The keys of accounts; ``None`` if there are none."""
        return None

    @cached_property
    def credentials(self) -> Sequence[CredentialScheme]:  # type: ignore[override]
        services, settings = self.services, self.services.settings.of(NostrSettings)
        rules = requests.EventRules(
            accepted=accepts_signed_events(services.base_url),
            require_payload=settings.nostr_require_payload,
            basic=requests.BASIC_SCOPES[settings.nostr_basic],
        )
        return (
            requests.SignedRequests(
                uses=self.uses, clock=services.clock, rules=rules, linked=self.linked
            ),
        )
