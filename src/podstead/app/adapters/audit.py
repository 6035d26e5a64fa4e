"""Where are the events of accounts and keys recorded? In the log ``podstead.audit`` (A-184)."""

from __future__ import annotations

import logging
from collections import Counter
from typing import ClassVar

from podstead.app.adapters.account_names import facts_of
from podstead.core.request_context import requester_address
from podstead.idp.audit import AuditEvent

logger = logging.getLogger("podstead.audit")

_NOTABLE = frozenset(
    {
        AuditEvent.SIGN_IN_FAILED,
        AuditEvent.SIGN_IN_PAUSED,
        AuditEvent.CODE_REUSED,
        AuditEvent.REFRESH_TOKEN_REUSED,
        AuditEvent.PASSKEY_COPIED,
        AuditEvent.FETCH_BLOCKED,
        AuditEvent.INVITATION_REFUSED,
    }
)


class LogAudit:
    """Implements Audit of ``idp.audit``, and counts the events of this process."""

    counts: ClassVar[Counter[AuditEvent]] = Counter()

    def note(self, event: AuditEvent, *, account_id: str | None = None, **facts: str) -> None:
        """Log an event, with the id and name of its account, if any, and the address of the client
        whose request caused it."""
        self.counts[event] += 1
        level = logging.WARNING if event in _NOTABLE else logging.INFO
        address = requester_address()
        known = facts_of(account_id) | ({} if address is None else {"client_address": address})
        logger.log(level, "%s", event.value, extra={**known, **facts})
