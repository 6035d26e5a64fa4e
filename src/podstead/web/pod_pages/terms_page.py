"""``/.pages/terms``: the terms of this server, as the operator wrote them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from markupsafe import Markup

from podstead.core.errors import NotFound
from podstead.previews.rendering import ContentRenderer
from podstead.web.codes import WebCodes
from podstead.web.pages import addresses
from podstead.web.pages.addresses import TERMS
from podstead.web.pages.request import PageRequest
from podstead.web.pages.site import Site
from podstead.web.response import Response
from podstead.web.routes import route

_MARKDOWN: Final = "markdown"


@dataclass(slots=True)
class TermsPage:
    """Shows the terms.

    ``text`` is empty if there are no terms.
    """

    site: Site
    text: str
    is_markdown: bool
    content: ContentRenderer
    _rendered: Markup | None = field(init=False, default_factory=lambda: None)

    @route(addresses.TERMS, "GET", needs_terms=False)
    async def get(self, page: PageRequest) -> Response:
        """The page. Raises NotFound, Overloaded."""
        if not self.text:
            raise NotFound(WebCodes.NO_SUCH_PAGE)
        return self.site.page(
            page,
            "terms.html",
            text=self.text,
            rendered=await self._markup(page) if self.is_markdown else None,
            operator=self.site.registration.about,
        )

    async def _markup(self, page: PageRequest) -> Markup | None:
        """The terms as safe HTML, ``None`` if it cannot be made."""
        if self._rendered is None:
            made = await self.content.render(
                _MARKDOWN,
                {"base_url": self.site.base_url, "document": TERMS},
                self.text.encode(),
                requester=page.requester,
            )
            if made is not None:
                self._rendered = Markup(made.decode())  # noqa: S704 - sanitised by the renderer
        return self._rendered
