"""Columns of the tables, and the values that their rows become."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from podstead.core.identifiers import ResourcePath, storage_root
from podstead.storage.records import (
    Change,
    ChangeType,
    DeletedAcl,
    Entry,
    LoggedChange,
    Metadata,
    PodRecord,
    ResourceKind,
    TokenRecord,
)

Row = tuple[Any, ...]
"""One row as read; the reader knows the types of the selected columns."""

METADATA: Final = (
    "path, kind, version, content_type, size_bytes, modified_ms, created_ms, blob,"
    " members_version, members_modified_ms"
)
CHANGES: Final = "sequence, path, activity, agent, version, at_ms"
DELETED_ACLS: Final = "path, version, content_type, content, at_ms"
PODS: Final = "name, root, owner, created_ms, quota_bytes"
ENTRIES: Final = "entry, version, value, owner, expires_ms"
TOKENS: Final = "token_id, pod, web_id, issued_s, expires_s, revoked_s"

_KINDS: Final = {kind.value: kind for kind in ResourceKind}
_ACTIVITIES: Final = {activity.value: activity for activity in ChangeType}


def root_of(path: ResourcePath) -> str:
    """The first column of a key: the storage that contains the path, empty for none."""
    return storage_root(path) or ""


def end_of(container: ResourcePath) -> str:
    """What follows all paths that begin with that of the container: "0" follows "/"."""
    return f"{container[:-1]}0"


def metadata_of(row: Sequence[Any]) -> Metadata:
    """From the columns :data:`METADATA`."""
    path, kind, *rest = row
    return Metadata(path, _KINDS[kind], *rest)


def change_of(row: Row) -> LoggedChange:
    """From the columns :data:`CHANGES`."""
    sequence, path, activity, agent, version, at_ms = row
    return LoggedChange(sequence, Change(path, _ACTIVITIES[activity], agent), version, at_ms)


def deleted_acl_of(row: Row) -> DeletedAcl:
    """From the columns :data:`DELETED_ACLS`."""
    path, version, content_type, content, at_ms = row
    known = content or b""
    metadata = Metadata(path, ResourceKind.ACL, version, content_type, len(known), at_ms, at_ms)
    return DeletedAcl(metadata, known)


def pod_of(row: Row) -> PodRecord:
    """From the columns :data:`PODS`."""
    return PodRecord(*row)


def entry_of(row: Row) -> Entry:
    """From the columns :data:`ENTRIES`."""
    return Entry(*row)


def token_of(row: Row) -> TokenRecord:
    """From the columns :data:`TOKENS`."""
    return TokenRecord(*row)
