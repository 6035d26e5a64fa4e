"""Opens the provider's keys for commands, beside a running server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from podstead.app.adapters.audit import operator_audit
from podstead.app.adapters.engine import has_records, key_storage
from podstead.app.adapters.provider_keys import KeyFolder
from podstead.app.adapters.system import SystemClock
from podstead.app.operator.data_root import opened_records
from podstead.config import Settings
from podstead.core.clock import Clock
from podstead.core.errors import RootUnusable
from podstead.idp.audit import Audit
from podstead.idp.keys import ALGORITHMS, ProviderKey, ProviderKeySet


def existing_keys(
    settings: Settings, clock: Clock | None = None, audit: Audit | None = None
) -> KeyFolder:
    """The keys of an existing data root. Raises RootUnusable if the root contains none of a
    provider."""
    keys = KeyFolder(key_storage(settings), clock or SystemClock(), audit)
    if not keys.exists():
        raise RootUnusable(
            f"There are no keys of an identity provider in {settings.root}. Set --root to the "
            "data root of a server that was started with --idp."
        )
    return keys


@asynccontextmanager
async def opened_keys(settings: Settings) -> AsyncIterator[KeyFolder]:
    """The keys, to be changed; the server logs the changes if the data root has a store."""
    if not has_records(settings):
        yield existing_keys(settings)
        return
    async with opened_records(settings) as records, operator_audit(records) as audit:
        yield existing_keys(settings, records.clock, audit)


def state_of(key: ProviderKey, roster: ProviderKeySet) -> str:
    """What a key is used for."""
    key_id = key.pair.key_id
    if key_id in {roster.signer(algorithm).key_id for algorithm in ALGORITHMS}:
        return "signs"
    if key.signs_from_s > roster.now_s:
        return "next"
    return "replaced" if roster.verifier(key_id) is not None else "retired"
