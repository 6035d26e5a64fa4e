"""Which keys sign the notifications that this server sends? Those of the provider.

A server without an identity provider creates such keys when it sends the first message, and stores
them in the same folder.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from podstead.config import Settings
from podstead.core.clock import Clock
from podstead.jose.signing import SigningKeyPair
from podstead.jose.strict_json import Json
from podstead.storage.layout import RootLayout

if TYPE_CHECKING:
    from podstead.app.adapters.provider_keys import KeyFolder

_ALGORITHM: Final = "ES256"


class SenderKeyFolder:
    """Implements SenderKeys on the folder of the provider's keys."""

    def __init__(self, settings: Settings, clock: Clock) -> None:
        self._keys = RootLayout(settings.root).keys
        self._clock = clock
        self._folder: KeyFolder | None = None

    async def signer(self) -> SigningKeyPair:
        """The current signing pair, created if necessary. Raises StorageError."""
        folder = self._load()
        if not folder.exists() or (await folder.current()).wants_new(_ALGORITHM):
            await asyncio.to_thread(folder.maintain)
        return (await folder.current()).signer(_ALGORITHM)

    async def published(self) -> Sequence[Json]:
        """The public keys, if there are any. Raises StorageError."""
        folder = self._load()
        return (await folder.current()).published() if folder.exists() else ()

    def _load(self) -> KeyFolder:
        if self._folder is None:
            from podstead.app.adapters.provider_keys import KeyFolder  # loads cryptography

            self._folder = KeyFolder(self._keys, self._clock)
        return self._folder
