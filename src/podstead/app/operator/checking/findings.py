"""What a check works with and finds. Codes are stable: monitors and scripts rely on them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Final

from podstead.app.operator.backup import OnStep
from podstead.config import Settings
from podstead.core.identifiers import ResourcePath
from podstead.storage.inspection import Inspection
from podstead.storage.layout import RootLayout
from podstead.storage.protocol import Store

if TYPE_CHECKING:
    from podstead.app.operator.checking.repairs import Repairs


class Code(Enum):
    """The codes of findings, and what to do about each."""

    DATABASE_DAMAGED = "database-damaged"
    BODY_MISSING = "body-missing"
    BODY_DAMAGED = "body-damaged"
    BODY_ORPHANED = "body-orphaned"
    FILE_ORPHANED = "file-orphaned"
    UPLOAD_ORPHANED = "upload-orphaned"
    UPLOAD_INCOMPLETE = "upload-incomplete"
    CONTAINER_MISSING = "container-missing"
    COUNT_WRONG = "count-wrong"
    USAGE_WRONG = "usage-wrong"
    ACL_UNREADABLE = "acl-unreadable"
    RULES_INDEX_WRONG = "rules-index-wrong"
    REPOSITORY_MISSING = "repository-missing"
    REPOSITORY_DAMAGED = "repository-damaged"
    REPOSITORY_ORPHANED = "repository-orphaned"
    KEY_DAMAGED = "key-damaged"
    MODE_OPEN = "mode-open"
    DISK_LOW = "disk-low"


_RESTORE_BODY: Final = (
    "Take the body from a backup and store it again. --repair sets aside what is left of it and "
    "deletes the resource, empties it if it is a container, or, if it is an ACL, leaves only the "
    "owner with access"
)
REMEDIES: Final = {
    Code.DATABASE_DAMAGED: "Stop the server, keep a copy of the root, and restore a backup",
    Code.BODY_MISSING: _RESTORE_BODY,
    Code.BODY_DAMAGED: _RESTORE_BODY,
    Code.BODY_ORPHANED: "Harmless; --repair sets it aside",
    Code.FILE_ORPHANED: "It only takes space; --repair sets it aside",
    Code.UPLOAD_ORPHANED: "It only takes space; --repair sets it aside",
    Code.UPLOAD_INCOMPLETE: "Its client has to start again; --repair removes the record",
    Code.CONTAINER_MISSING: "--repair creates the container again, without rules of its own",
    Code.COUNT_WRONG: "--repair counts again",
    Code.USAGE_WRONG: "--repair counts again",
    Code.ACL_UNREADABLE: (
        "Nobody has access by it. --repair sets it aside and leaves only the owner with access"
    ),
    Code.RULES_INDEX_WRONG: "Only lists of who has access are wrong; --repair corrects the index",
    Code.REPOSITORY_MISSING: (
        "Restore it from a backup; --repair removes the record, so that a push can begin anew"
    ),
    Code.REPOSITORY_DAMAGED: (
        "Restore it from a backup, or have somebody push a clone; --repair sets it aside"
    ),
    Code.REPOSITORY_ORPHANED: "It only takes space; --repair sets it aside",
    Code.KEY_DAMAGED: (
        "Restore it from a backup; --repair sets it aside, and the next start with "
        "--accept-loss creates another, which ends all tokens that it signed"
    ),
    Code.MODE_OPEN: "Others on this machine may have read it; --repair makes it private",
    Code.DISK_LOW: "Free some space: the server refuses new content",
}

Repair = Callable[[], Awaitable[bool | str]]
"""Sets a finding right; False if it has changed since and was left alone. A text says what was lost
so that the rest can stay in use."""


@dataclass(slots=True)
class Finding:
    """Something that is wrong. ``where`` is a resource's path or a file."""

    code: Code
    where: str
    what: str
    repair: Repair | None = None
    is_repaired: bool = False
    loss: str = ""
    """What a repair could not bring back, and what the operator can do about it."""

    @property
    def remedy(self) -> str:
        return REMEDIES[self.code]


@dataclass(frozen=True, slots=True)
class CheckContext:
    """A data root as of one moment, and the means to look at it again and to repair it."""

    settings: Settings
    layout: RootLayout
    store: Store
    records: Inspection
    base_url: str
    repairs: Repairs
    on_step: OnStep
    is_quick: bool
    damaged: set[ResourcePath] = field(default_factory=set)
    """The resources whose bodies were found to be damaged or missing."""

    @contextmanager
    def look_again(self) -> Iterator[Inspection]:
        """The records as of now."""
        with closing(self.store.inspect()) as records:
            yield records
