"""``/.pages/components``: every component of the pages, for those who build them."""

from __future__ import annotations

from podstead.web.pages import addresses
from podstead.web.pages.rendering import PageRenderer
from podstead.web.pages.request import PageRequest
from podstead.web.response import Response
from podstead.web.routes import route


class ComponentsPage:
    """Shows the components."""

    def __init__(self, renderer: PageRenderer) -> None:
        self._renderer = renderer

    @route(addresses.COMPONENTS, "GET")
    async def get(self, page: PageRequest) -> Response:
        """The page, which is the same for everybody."""
        return self._renderer.page(page, "components_page.html")
