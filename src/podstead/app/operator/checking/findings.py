"""What a check works with and finds. Codes are stable: monitors and scripts rely on them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Final, Self

from podstead.app.operator.data_root import OnStep
from podstead.config import Settings
from podstead.core.identifiers import ResourcePath
from podstead.storage.inspection import Inspection
from podstead.storage.layout import RootLayout
from podstead.storage.protocol import Store

if TYPE_CHECKING:
    from podstead.app.operator.checking.repairs import Repairs


_RESTORE_BODY: Final = (
    "Take the body from a backup and store it again. --repair sets aside what is left of it and "
    "deletes the resource, empties it if it is a container, or, if it is an ACL, leaves only the "
    "owner with access"
)


class FindingCode(Enum):
    """A code, and what to do about it."""

    remedy: str

    def __new__(cls, code: str, remedy: str) -> Self:
        """The value is the code."""
        made = object.__new__(cls)
        made._value_ = code
        made.remedy = remedy
        return made


class Code(FindingCode):
    """The codes of findings about what every server has."""

    DATABASE_DAMAGED = (
        "database-damaged",
        "Stop the server, keep a copy of the root, and restore a backup",
    )
    BODY_MISSING = ("body-missing", _RESTORE_BODY)
    BODY_DAMAGED = ("body-damaged", _RESTORE_BODY)
    BODY_ORPHANED = ("body-orphaned", "Harmless; --repair sets it aside")
    FILE_ORPHANED = ("file-orphaned", "It only takes space; --repair sets it aside")
    UPLOAD_ORPHANED = ("upload-orphaned", "It only takes space; --repair sets it aside")
    UPLOAD_INCOMPLETE = (
        "upload-incomplete",
        "Its client has to start again; --repair removes the record",
    )
    CONTAINER_MISSING = (
        "container-missing",
        "--repair creates the container again, without rules of its own",
    )
    COUNT_WRONG = ("count-wrong", "--repair counts again")
    USAGE_WRONG = ("usage-wrong", "--repair counts again")
    ROWS_ORPHANED = (
        "rows-orphaned",
        "They only take space; --repair sets them aside and removes them",
    )
    ACL_UNREADABLE = (
        "acl-unreadable",
        ("Nobody has access by it. --repair sets it aside and leaves only the owner with access"),
    )
    RULES_INDEX_WRONG = (
        "rules-index-wrong",
        "Only lists of who has access are wrong; --repair corrects the index",
    )
    KEY_DAMAGED = (
        "key-damaged",
        (
            "Restore it from a backup; --repair sets it aside, and the next start with "
            "--accept-loss creates another, which ends all tokens that it signed"
        ),
    )
    MODE_OPEN = ("mode-open", "Others on this machine may have read it; --repair makes it private")
    DISK_LOW = ("disk-low", "Free some space: the server refuses new content")


Repair = Callable[[], Awaitable[bool | str]]
"""Sets a finding right; False if it has changed since and was left alone. A text says what was lost
so that the rest can stay in use."""


@dataclass(slots=True)
class Finding:
    """Something that is wrong. ``where`` is a resource's path or a file."""

    code: FindingCode
    where: str
    what: str
    repair: Repair | None = None
    is_repaired: bool = False
    loss: str = ""
    """What a repair could not bring back, and what the operator can do about it."""

    @property
    def remedy(self) -> str:
        return self.code.remedy


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
