"""What is kept of the sending on a channel? Not much: how far it got, and what was in vain."""

from __future__ import annotations

from typing import Final

import msgspec

from podstead.notifications.retries import DeliveryAttempts
from podstead.storage.registry import Records


class Webhook(msgspec.Struct, frozen=True):
    """How far the sending on a channel got; the key is the channel's.

    ``position`` is the sequence number of the last change that needs no telling any more.
    ``given_up`` says why nothing is sent any more. ``greeted`` tells that the channel's state was
    looked at (N-14). Times are Unix milliseconds.
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


WEBHOOKS: Final = Records("webhook", Webhook)
