"""What does the navigation of every page link to?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from podstead.web.pod_pages.addresses import (
    ASK,
    COPY,
    DELETE,
    FILES,
    MOVE,
    NEW,
    PREFIX,
    RENAME,
    REQUESTS,
    SAVE,
    SEARCH,
    SHARE,
    SHARED,
    UPLOAD,
    WHY,
)
from podstead.web.pod_pages.texts import N_, _

NavigationRow = tuple[str, str, str]
"""An address, an icon and a title."""

ENTRIES: Final[Sequence[NavigationRow]] = (
    (f"{FILES}/", "folder", N_("Files")),
    (SHARED, "people", N_("Shared")),
    (f"{PREFIX}/apps", "apps", N_("Apps")),
    (f"{PREFIX}/activity", "activity", N_("Activity")),
    (f"{PREFIX}/profile", "person", N_("Profile")),
    (f"{PREFIX}/security", "shield", N_("Security")),
    (f"{PREFIX}/storage", "disk", N_("Storage")),
)
_OF_OWNERS: Final = frozenset(address for address, *_rest in ENTRIES) - {SHARED}
"""The pages about a pod, and about the account that it belongs to."""
_ABOUT_FILES: Final = (UPLOAD, NEW, SAVE, SEARCH, RENAME, MOVE, COPY, DELETE, SHARE, WHY, ASK)
_BELOW: Final = {f"{FILES}/": _ABOUT_FILES, SHARED: (REQUESTS,)}
"""Pages that belong to an entry though their addresses are not below it."""


@dataclass(frozen=True, slots=True)
class NavigationEntry:
    """One link; ``is_current`` on the page that it leads to, and on those below."""

    address: str
    icon: str
    title: str
    is_current: bool
    waiting: int = 0
    """How many requests for access wait behind the link."""

    @property
    def needs_pod(self) -> bool:
        """Whether the page shows something only to people with a pod on this server."""
        return self.address in _OF_OWNERS


def entries(
    paths: frozenset[str], among: Sequence[NavigationRow] = ENTRIES
) -> Callable[[str], Sequence[NavigationEntry]]:
    """The entries whose pages are among ``paths``, for each page that shows them."""
    existing = [entry for entry in among if entry[0] in paths or entry[0] + "{path...}" in paths]

    def on(path: str) -> Sequence[NavigationEntry]:
        return [
            NavigationEntry(address, icon, _(title), is_current=_is_at(path, address))
            for address, icon, title in existing
        ]

    return on


def with_waiting(shown: Sequence[NavigationEntry], waiting: int) -> Sequence[NavigationEntry]:
    """The entries, of which the one for what is shared leads to the requests that wait."""
    return [
        replace(entry, address=REQUESTS, waiting=waiting) if entry.address == SHARED else entry
        for entry in shown
    ]


def _is_at(path: str, address: str) -> bool:
    return any(
        path == each or path.startswith(each if each.endswith("/") else f"{each}/")
        for each in (address, *_BELOW.get(address, ()))
    )
