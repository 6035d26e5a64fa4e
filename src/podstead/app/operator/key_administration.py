"""Lists and replaces the provider's keys, beside a running server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from podstead.app.adapters.audit import operator_audit
from podstead.app.adapters.engine import has_records, key_storage
from podstead.app.adapters.provider_keys import KeyFolder
from podstead.app.adapters.system import SystemClock
from podstead.app.operator.data_root import opened_records
from podstead.config import Settings
from podstead.core.clock import Clock
from podstead.core.errors import RootUnusable
from podstead.idp.audit import Audit
from podstead.idp.keys import ALGORITHMS, ProviderKeySet


@dataclass(frozen=True, slots=True)
class ListedKey:
    """A key as it is listed; times are Unix seconds."""

    key_id: str
    algorithm: str
    made_s: int
    signs_from_s: int
    state: str


class KeyAdministration:
    """Lists and replaces the keys of an existing data root."""

    def __init__(
        self, settings: Settings, clock: Clock | None = None, audit: Audit | None = None
    ) -> None:
        """Raises RootUnusable if the root contains no keys of a provider."""
        self._clock = clock or SystemClock()
        self._folder = KeyFolder(key_storage(settings), self._clock, audit)
        if not self._folder.exists():
            raise RootUnusable(
                f"There are no keys of an identity provider in {settings.root}. Set --root to the "
                "data root of a server that was started with --idp."
            )

    def list(self) -> Sequence[ListedKey]:
        """All keys, newest first."""
        roster = self._folder.roster()
        newest_first = sorted(roster.keys, key=lambda key: (-key.signs_from_s, key.pair.algorithm))
        return [
            ListedKey(
                key.pair.key_id,
                key.pair.algorithm,
                key.made_s,
                key.signs_from_s,
                _state(roster, key.pair.key_id, key.signs_from_s),
            )
            for key in newest_first
        ]

    def rotate(self, *, compromised: bool = False) -> int:
        """Create new keys, and return the Unix time from which they sign.

        With ``compromised``, all others are removed, and the new ones sign immediately.
        """
        if compromised:
            self._folder.replace_all()
        else:
            self._folder.rotate()
        roster = self._folder.roster()
        return max(key.signs_from_s for key in roster.keys)


@asynccontextmanager
async def open_key_administration(settings: Settings) -> AsyncIterator[KeyAdministration]:
    """The administration of the keys; the server logs the changes if the data root has a store."""
    if not has_records(settings):
        yield KeyAdministration(settings)
        return
    async with opened_records(settings) as records, operator_audit(records) as audit:
        yield KeyAdministration(settings, records.clock, audit)


def _state(roster: ProviderKeySet, key_id: str, signs_from_s: int) -> str:
    if key_id in {roster.signer(algorithm).key_id for algorithm in ALGORITHMS}:
        return "signs"
    if signs_from_s > roster.now_s:
        return "next"
    return "replaced" if roster.verifier(key_id) is not None else "retired"
