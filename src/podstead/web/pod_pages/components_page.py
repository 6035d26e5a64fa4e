"""``/.pages/components``: every component of the pages, for those who build them."""

from __future__ import annotations

from dataclasses import dataclass

from podstead.web.pages import addresses
from podstead.web.pages.request import PageRequest
from podstead.web.pages.site import Site
from podstead.web.response import Response
from podstead.web.routes import route


@dataclass(frozen=True, slots=True)
class ComponentsPage:
    """Shows the components."""

    site: Site

    @route(addresses.COMPONENTS, "GET")
    async def get(self, page: PageRequest) -> Response:
        """The page, which is the same for everybody."""
        return self.site.page(page, "components_page.html")
