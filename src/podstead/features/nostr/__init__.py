"""Requests signed with a Nostr key authenticate their sender (NIP-98)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from podstead.config import value_types
from podstead.config.table import Group, setting
from podstead.features import Feature, WorkerFeature

if TYPE_CHECKING:
    from podstead.app.services import Services
    from podstead.authn.authenticate import CredentialScheme
    from podstead.config import Settings


@dataclass(frozen=True, kw_only=True)
class NostrSettings:
    """The settings of this part."""

    nostr_require_payload: bool = setting(
        False,
        value_types.SWITCH,
        Group.IDENTITY,
        "Whether a request signed with a Nostr key must contain the hash of its body.",
        reason="NIP-98 only recommends the hash, but without it the signature does not cover the "
        "body.",
    )
    nostr_basic: str = setting(
        "safe",
        value_types.one_of("safe", "any", "off"),
        Group.IDENTITY,
        "What a request may do if its Nostr signature is valid for every method and for part of "
        "the path, as sent by git credential helpers with Basic authentication: read, and push "
        "with git (safe); anything (any); or nothing, because the server rejects this form (off).",
    )


class NostrFeature(Feature):
    """Signed requests."""

    settings = NostrSettings

    def modules(self, settings: Settings) -> Sequence[str]:  # noqa: ARG002 - always on
        return (f"{__name__}.requests",)

    def in_worker(self, services: Services) -> WorkerFeature:
        return NostrInWorker(services)


class NostrInWorker(WorkerFeature):
    """Verifies signed requests."""

    def __init__(self, services: Services) -> None:
        self._services = services

    @cached_property
    def credentials(self) -> Sequence[CredentialScheme]:  # type: ignore[override]
        from podstead.features.nostr.requests import BASIC_SCOPES, EventRules, SignedRequests

        services, settings = self._services, self._services.settings.of(NostrSettings)
        keys = services.provider.nostr if services.provider else None
        rules = EventRules(
            accepted=services.accepts_signed_events,
            require_payload=settings.nostr_require_payload,
            basic=BASIC_SCOPES[settings.nostr_basic],
        )
        return (
            SignedRequests(
                uses=services.event_uses,
                clock=services.clock,
                rules=rules,
                linked=None if keys is None else keys.linked,
            ),
        )


FEATURE = NostrFeature()
