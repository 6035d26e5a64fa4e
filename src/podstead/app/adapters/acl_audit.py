"""Where are changes of access rules recorded? In the log ``podstead.audit``.

They are not in the log that operators read in the console: people change rules far more often than
operators do anything, and would displace the rest.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final

from podstead.core.identifiers import ResourcePath
from podstead.core.identity import Identity
from podstead.core.request_context import requester_address

logger = logging.getLogger("podstead.audit")

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
