"""``/.pages/``: an overview of what the person has here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from podstead.core.identifiers import ResourcePath
from podstead.resources.activity import ChangeFilter, PodActivity
from podstead.resources.sharing.shared import SharedLists
from podstead.resources.storage_usage import PodUsage
from podstead.wac.modes import Mode
from podstead.web.pages import addresses
from podstead.web.pages.addresses import files_url
from podstead.web.pages.request import PageRequest, Person
from podstead.web.pages.site import Site
from podstead.web.pod_pages.account.activity_page import shown_change
from podstead.web.pod_pages.files.names import shown_name
from podstead.web.pod_pages.storage_notes import percent_used
from podstead.web.response import Response
from podstead.web.routes import route

RECENT_CHANGES: Final = 6
SHOWN_SHARED: Final = 5
SHOWN_REQUESTS: Final = 3


class ShownRequests(Protocol):
    """Reads the requests for access that wait for a person."""

    async def __call__(
        self, person: Person, *, limit: int
    ) -> tuple[Sequence[object], frozenset[ResourcePath]]:
        """The newest as the list of requests shows them, and the notifications of all. Raises
        ServerTrouble."""


@dataclass(frozen=True, slots=True)
class HomePage:
    """Shows pods with their used space, addresses to copy, and what happened last.

    ``issuer`` is the provider's URL, if this server has one.
    """

    site: Site
    activity: PodActivity
    usage: PodUsage
    shared: SharedLists
    requests: ShownRequests
    issuer: str | None

    @route(addresses.HOME, "GET")
    async def get(self, page: PageRequest) -> Response:
        """Raises NotAuthenticated, StorageError."""
        person = page.signed_in()
        requests, notifications = await self.requests(person, limit=SHOWN_REQUESTS)
        pods = []
        changes = []
        for root in person.pods:
            used_bytes, quota_bytes = await self.usage.total(page.identity, root)
            pods.append(
                {
                    "name": root.strip("/"),
                    "root": root,
                    "url": self.site.base_url + root,
                    "used_bytes": used_bytes,
                    "quota_bytes": quota_bytes,
                    "percent": percent_used(used_bytes, quota_bytes),
                }
            )
            found = await self.activity.page(
                page.identity, ChangeFilter(below=root), limit=RECENT_CHANGES + len(notifications)
            )
            changes += [
                shown_change(change, person, root, self.site.base_url)
                for change in found.changes
                if change.path not in notifications
            ]
        shared = await self.shared.shared_with(person.identity, own=person.pods)
        changes.sort(key=lambda each: -each.at_ms)
        return self.site.page(
            page,
            "account/home.html",
            requests=requests,
            more_requests=page.waiting > len(requests),
            pods=pods,
            changes=changes[:RECENT_CHANGES],
            shared=[
                {
                    "name": shown_name(each.resource),
                    "address": files_url(each.resource),
                    "is_container": each.resource.endswith("/"),
                    "whose": shown_name(each.storage),
                }
                for each in shared.resources
                if Mode.READ in each.here
            ][:SHOWN_SHARED],
            issuer=self.issuer,
            issuer_of_person=self.issuer if person.account_id else None,
        )
