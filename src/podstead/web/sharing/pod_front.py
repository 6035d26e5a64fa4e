"""The page about a pod for people who may not know what is in it."""

from dataclasses import dataclass

from podstead.core.identifiers import ResourcePath
from podstead.resources.sharing.shared import SharedLists
from podstead.web.account.profile import Profiles
from podstead.web.pages.addresses import shown_name
from podstead.web.pages.request import PageRequest
from podstead.web.pages.site import Site
from podstead.web.response import Response
from podstead.web.sharing.shared import ShownShared, shown_shared


@dataclass(frozen=True, slots=True)
class PodFront:
    """Shows whose pod it is, and what the person who asks can open there."""

    site: Site
    profiles: Profiles
    lists: SharedLists

    async def get(self, page: PageRequest, storage: ResourcePath) -> Response:
        """Raises NotAuthenticated, AccessDenied, NotFound for those who may not read the profile,
        and ServerTrouble."""
        web_id = f"{self.site.base_url}{storage}#me"
        details = await self.profiles.details(page, web_id)
        shared: list[ShownShared] = []
        has_more = False
        if page.person is not None:
            found = await self.lists.shared_with(
                page.person.identity, own=page.person.pods, storage=storage
            )
            shared = [shown_shared(each) for each in found.resources]
            has_more = found.after is not None
        return self.site.page(
            page,
            "sharing/pod_front.html",
            target=storage,
            name=shown_name(storage),
            web_id=web_id,
            details=details,
            shared=shared,
            has_more=has_more,
        )
