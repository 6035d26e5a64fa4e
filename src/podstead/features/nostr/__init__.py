"""Nostr keys: requests signed with them authenticate their sender (NIP-98), and people sign in with
them (NIP-07)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from podstead.config import value_types
from podstead.config.table import Group, setting
from podstead.features import Feature, WorkerFeature

if TYPE_CHECKING:
    from podstead.app.services import Services
    from podstead.config import Settings
    from podstead.idp.sign_in_methods import SignInMethod
    from podstead.resources.planning import ContainerHook, WriteHook
    from podstead.storage.record_store import RecordStore

_FACT: Final = "profile-keys"
_RULES: Final = "1"
"""The version of the rules that find keys in profiles (:mod:`podstead.features.nostr.keys`); if it
changes, all profiles are read again."""


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
    """Signed requests and, at the identity provider, keys of accounts."""

    settings = NostrSettings
    templates = __name__

    def modules(self, settings: Settings) -> Sequence[str]:
        names = ("records", "worker", *(("accounts",) if settings.idp else ()))
        return [f"{__name__}.{each}" for each in names]

    def write_hooks(self, records: RecordStore) -> Sequence[WriteHook]:
        from podstead.features.nostr.records import ProfileKeyRecords

        return (ProfileKeyRecords(records),)

    def container_hooks(self, records: RecordStore) -> Sequence[ContainerHook]:
        from podstead.features.nostr.records import ProfileKeyRecords

        return (ProfileKeyRecords(records),)

    def prepare_root(self, settings: Settings, *, is_new: bool) -> None:
        from podstead.app.adapters.engine import stored_facts

        facts = stored_facts(settings)
        if facts.read_fact(_FACT) == _RULES:
            return
        if not is_new:
            import asyncio

            from podstead.features.nostr.profile_index import index_profiles  # loads much

            asyncio.run(index_profiles(settings))
        facts.write_fact(_FACT, _RULES)

    def sign_in_methods(self) -> Sequence[SignInMethod]:
        from podstead.features.nostr.records import NOSTR_LINKS
        from podstead.idp.sign_in_methods import SignInMethod

        return [SignInMethod(NOSTR_LINKS)]

    def in_worker(self, services: Services) -> WorkerFeature:
        from podstead.features.nostr.worker import NostrInWorker, accepts_signed_events

        if services.provider is None or not accepts_signed_events(services.base_url):
            return NostrInWorker(services)
        from podstead.features.nostr.accounts import NostrWithAccounts

        return NostrWithAccounts(services, services.provider)


FEATURE = NostrFeature()
