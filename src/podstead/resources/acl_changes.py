"""Tells the audit log which access rules a write has changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from podstead.core.identifiers import ACL_SUFFIX, ResourcePath
from podstead.core.identity import Identity
from podstead.storage.records import ResourceKind, Write


class AclListener(Protocol):
    """Receives changes of access rules."""

    def __call__(
        self,
        agent: Identity | None,
        *,
        stored: Sequence[ResourcePath],
        deleted: Sequence[ResourcePath],
    ) -> None:
        """Note that an agent has stored or deleted these ACLs. Raises nothing."""


def tell_acl_changes(listener: AclListener, agent: Identity | None, write: Write) -> None:
    """Notify the listener of the ACLs in a committed write, if there are any."""
    stored: list[ResourcePath] = []
    deleted: list[ResourcePath] = []
    for put in write.puts:
        if put.kind is ResourceKind.ACL:
            stored.append(put.path)  # noqa: PERF401 - as a comprehension, a call in each write
    for path in write.deletes:
        if path.endswith(ACL_SUFFIX):
            deleted.append(path)  # noqa: PERF401 - as above
    if stored or deleted:
        listener(agent, stored=stored, deleted=deleted)
