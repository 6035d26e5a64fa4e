"""Where is noted what happens to accounts and keys? In the log, as ``podstead.audit`` (A-184)."""

from __future__ import annotations

import logging

from podstead.idp.audit import Event

logger = logging.getLogger("podstead.audit")

_NOTABLE = frozenset(
    {
        Event.SIGN_IN_FAILED,
        Event.SIGN_IN_PAUSED,
        Event.CODE_REUSED,
        Event.REFRESH_TOKEN_REUSED,
        Event.PASSKEY_COPIED,
        Event.FETCH_BLOCKED,
    }
)


class LogAudit:
    """Implements Audit of ``idp.audit``."""

    def note(self, event: Event, *, account_id: str | None = None, **facts: str) -> None:
        """Log an event, with the account's id if there is one."""
        level = logging.WARNING if event in _NOTABLE else logging.INFO
        account = {} if account_id is None else {"account": account_id}
        logger.log(level, "%s", event.value, extra={**account, **facts})
