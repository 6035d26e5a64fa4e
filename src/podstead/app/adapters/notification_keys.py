"""Which keys sign the notifications that this server sends? Those of the provider.

A server without an identity provider creates such keys when it sends the first message, and stores
them in the same place.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from podstead.core.clock import Clock
from podstead.jose.tokens import Json, SigningKeyPair
from podstead.storage.keys import KeyStorage

if TYPE_CHECKING:
    from podstead.app.adapters.provider_keys import KeyFolder

_ALGORITHM: Final = "ES256"


class SenderKeyFolder:
    """Implements SenderKeys on the folder of the provider's keys."""

    def __init__(self, keys: KeyStorage, clock: Clock) -> None:
        self._keys = keys
        self._clock = clock
        self._folder: KeyFolder | None = None
        self._has_keys = False

    async def signer(self) -> SigningKeyPair:
        """The current signing pair, created if necessary. Raises StorageError."""
        folder = self._load()
        if not await self._exists(folder) or (await folder.current()).wants_new(_ALGORITHM):
            await asyncio.to_thread(folder.maintain)
        return (await folder.current()).signer(_ALGORITHM)

    async def published(self) -> Sequence[Json]:
        """The public keys, if there are any. Raises StorageError."""
        folder = self._load()
        return (await folder.current()).published() if await self._exists(folder) else ()

    async def _exists(self, folder: KeyFolder) -> bool:
        """Whether there are keys; once there are, they stay."""
        if not self._has_keys:
            if self._keys.is_remote:
                self._has_keys = await asyncio.to_thread(folder.exists)
            else:
                self._has_keys = folder.exists()
        return self._has_keys

    def _load(self) -> KeyFolder:
        if self._folder is None:
            from podstead.app.adapters.provider_keys import KeyFolder  # loads cryptography

            self._folder = KeyFolder(self._keys, self._clock)
        return self._folder
