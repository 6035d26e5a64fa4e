"""What does the navigation of every page link to?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from podstead.web.pod_pages.addresses import FILES, PREFIX
from podstead.web.pod_pages.texts import N_, _

_ENTRIES: Final = (
    (f"{FILES}/", N_("Files")),
    (f"{PREFIX}/shared", N_("Shared")),
    (f"{PREFIX}/apps", N_("Apps")),
    (f"{PREFIX}/activity", N_("Activity")),
    (f"{PREFIX}/profile", N_("Profile")),
    (f"{PREFIX}/security", N_("Security")),
    (f"{PREFIX}/storage", N_("Storage")),
)


@dataclass(frozen=True, slots=True)
class NavigationEntry:
    """One link; ``is_current`` on the page that it leads to, and on those below."""

    address: str
    title: str
    is_current: bool


def entries(paths: frozenset[str]) -> Callable[[str], Sequence[NavigationEntry]]:
    """The entries whose pages are among ``paths``, for each page that shows them."""
    existing = [entry for entry in _ENTRIES if entry[0] in paths or entry[0] + "{path...}" in paths]

    def on(path: str) -> Sequence[NavigationEntry]:
        return [
            NavigationEntry(
                address, _(title), is_current=path == address or path.startswith(_below(address))
            )
            for address, title in existing
        ]

    return on


def _below(address: str) -> str:
    return address if address.endswith("/") else f"{address}/"
