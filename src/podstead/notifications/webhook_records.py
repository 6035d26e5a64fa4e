"""The stored state of sending on a channel: how far it got, and its failed attempts."""

from __future__ import annotations

from typing import Final

import msgspec

from podstead.notifications.retries import DeliveryAttempts
from podstead.storage.record_store import RecordKind


class Webhook(msgspec.Struct, frozen=True):
    """How far sending on a channel got. Its record has the same key as the channel.

    ``position`` is the sequence number of the last change that is done with. ``given_up`` is the
    reason why nothing is sent any more. ``greeted`` is true if the ``state`` of the channel has
    been compared with the topic (N-14). Times are Unix milliseconds.
    """

    position: int
    greeted: bool = False
    failures: int = 0
    first_failed_ms: int = 0
    next_ms: int = 0
    given_up: str | None = None

    @property
    def attempts(self) -> DeliveryAttempts:
        return DeliveryAttempts(self.failures, self.first_failed_ms, self.next_ms)


WEBHOOKS: Final = RecordKind("webhook", Webhook)
