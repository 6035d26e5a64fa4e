"""Where are the events of accounts and keys recorded? In the log ``podstead.audit`` (A-184)."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from typing import ClassVar, Final

from podstead.core.bounded_cache import BoundedCache
from podstead.core.identifiers import ResourcePath
from podstead.core.identity import Identity
from podstead.core.requester import requester_address
from podstead.idp.audit import AuditEvent
from podstead.idp.records import ACCOUNTS, Account
from podstead.storage.record_store import RecordStore
from podstead.storage.registry import RecordKind, Value, Versioned

_MAX_NAMES: Final = 10_000
_names: Final[BoundedCache[str, str]] = BoundedCache(_MAX_NAMES)


class NamingRecordStore(RecordStore):
    """A record store that remembers the names of the accounts that it reads."""

    async def read(self, kind: RecordKind[Value], key: str) -> Versioned[Value] | None:
        found = await super().read(kind, key)
        if kind is ACCOUNTS and found is not None and isinstance(found.value, Account):
            _names.put(key, found.value.pod)
        return found


def facts_of(account_id: str | None) -> dict[str, str]:
    """What a line of the log says of an account: its id, and its name if that is known."""
    if account_id is None:
        return {}
    name = _names.get(account_id)
    named = {} if name is None else {"account_name": name}
    return {"account": account_id, **named}


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


STORED: Final = "access rules stored"
DELETED: Final = "access rules deleted"
MAX_NAMED: Final = 20
"""How many ACLs of one write are named; the move of a tree may contain thousands."""


class AclAudit:
    """Implements AclListener of ``resources.acl_changes``."""

    def __call__(
        self,
        agent: Identity | None,
        *,
        stored: Sequence[ResourcePath],
        deleted: Sequence[ResourcePath],
    ) -> None:
        """Log the changes, a line for each ACL, with whoever made them."""
        known = {
            "client_address": requester_address(),
            "agent": None if agent is None else agent.iri,
        }
        facts = {name: value for name, value in known.items() if value is not None}
        for what, paths in ((STORED, stored), (DELETED, deleted)):
            if len(paths) > MAX_NAMED:
                facts["acls"] = str(len(paths))
            for path in paths[:MAX_NAMED]:
                logger.info("%s", what, extra={**facts, "acl": path})
