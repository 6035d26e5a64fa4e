"""How a node hears that the change log has grown on another: LISTEN and NOTIFY, and polling.

The connection that listens is opened with the first listener. Where notifications do not arrive,
because the connection is lost or a pooler in transaction mode is in between, listeners poll each
second.
"""

import logging
from typing import Final

import psycopg

from podstead.core.background import Background
from podstead.storage.change_listener import ChangeListener
from podstead.storage.postgresql.apply import CHANNEL
from podstead.storage.postgresql.connecting import connect_for

logger = logging.getLogger("podstead.storage")

_RECONNECT_S: Final = 2.0


class ChangeListening:
    """Wakes the listeners of this process. Used from one event loop only."""

    def __init__(self, conninfo: str) -> None:
        self._conninfo = conninfo
        self._listeners: set[ChangeListener] = set()
        self._relaying = Background(
            self._relay, logger, "Changes of other nodes could not be heard", every_s=_RECONNECT_S
        )

    def wake(self) -> None:
        """Wake the listeners of this process."""
        for listener in self._listeners:
            listener.wake()

    def listen(self) -> ChangeListener:
        """Start listening."""
        listener = ChangeListener(self.remove)
        self._listeners.add(listener)
        self._relaying.start()
        return listener

    def remove(self, listener: ChangeListener) -> None:
        """Remove a listener. Idempotent."""
        self._listeners.discard(listener)

    async def close(self) -> None:
        """Release the connection."""
        await self._relaying.stop()

    async def _relay(self) -> None:
        try:
            await self._hear()
        except (psycopg.Error, OSError) as error:
            logger.warning("Changes of other nodes are noticed after up to a second: %s", error)

    async def _hear(self) -> None:
        connection = await connect_for(self._conninfo)
        async with connection:
            await connection.execute(f"LISTEN {CHANNEL}")
            self.wake()  # for what was committed before
            async for _ in connection.notifies():
                self.wake()
