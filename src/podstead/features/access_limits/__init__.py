"""Limits to what applications, scripts and tokens may do for the person who let them in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from podstead.features import CommandOption, Feature, WorkerFeature

if TYPE_CHECKING:
    from podstead.app.services import Services
    from podstead.config import Settings
    from podstead.idp.records import ClientCredential
    from podstead.resources.planning import ContainerHook
    from podstead.storage.record_store import RecordStore
    from podstead.storage.records import Record, TokenRecord


class AccessLimitsFeature(Feature):
    """Always on: a token without a limit costs nothing."""

    templates = "podstead.features.access_limits"

    def container_hooks(self, records: RecordStore) -> Sequence[ContainerHook]:
        from podstead.features.access_limits.enforcement import AccessLimitsHook

        return (AccessLimitsHook(records),)

    def credential_options(self) -> Sequence[CommandOption]:
        from podstead.features.access_limits.credentials import OPTIONS

        return OPTIONS

    async def credential_records(
        self,
        records: RecordStore,
        credential: TokenRecord | ClientCredential,
        options: Mapping[str, object],
    ) -> Sequence[Record]:
        from podstead.features.access_limits.credentials import records_of

        return await records_of(records, credential, options)

    async def moved_base(self, records: RecordStore, renamed: Callable[[str], str]) -> None:
        from podstead.features.access_limits.enforcement import move_limits

        await move_limits(records, renamed)

    def modules(self, settings: Settings) -> Sequence[str]:
        names = [
            "enforcement",
            "worker",
            "form",
            "reminders",
            "pages",
            *(["consent"] if settings.idp else []),
        ]
        return [f"podstead.features.access_limits.{each}" for each in names]

    def in_worker(self, services: Services) -> WorkerFeature:
        from podstead.features.access_limits.worker import AccessLimitsInWorker

        return AccessLimitsInWorker(services)


FEATURE = AccessLimitsFeature()
