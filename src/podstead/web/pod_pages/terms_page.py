"""``/.pages/terms``: the terms of this server, as the operator wrote them."""

from __future__ import annotations

from typing import Final

from markupsafe import Markup

from podstead.core.errors import NotFound
from podstead.previews.rendering import ContentRenderer
from podstead.web.codes import WebCodes
from podstead.web.pages import addresses
from podstead.web.pages.addresses import TERMS
from podstead.web.pages.rendering import PageRenderer
from podstead.web.pages.request import PageRequest
from podstead.web.registration import AboutOperator
from podstead.web.response import Response
from podstead.web.routes import route

_MARKDOWN: Final = "markdown"


class TermsPage:
    """Shows the terms."""

    def __init__(
        self,
        *,
        text: str,
        is_markdown: bool,
        about: AboutOperator,
        content: ContentRenderer,
        renderer: PageRenderer,
        base_url: str,
    ) -> None:
        """``text`` is empty if there are no terms."""
        self._text = text
        self._is_markdown = is_markdown
        self._about = about
        self._content = content
        self._renderer = renderer
        self._base_url = base_url
        self._rendered: Markup | None = None

    @route(addresses.TERMS, "GET", needs_terms=False)
    async def get(self, page: PageRequest) -> Response:
        """The page. Raises NotFound, Overloaded."""
        if not self._text:
            raise NotFound(WebCodes.NO_SUCH_PAGE)
        return self._renderer.page(
            page,
            "terms.html",
            text=self._text,
            rendered=await self._markup(page) if self._is_markdown else None,
            operator=self._about,
        )

    async def _markup(self, page: PageRequest) -> Markup | None:
        """The terms as safe HTML, ``None`` if it cannot be made."""
        if self._rendered is None:
            made = await self._content.render(
                _MARKDOWN,
                {"base_url": self._base_url, "document": TERMS},
                self._text.encode(),
                requester=page.requester,
            )
            if made is not None:
                self._rendered = Markup(made.decode())  # noqa: S704 - sanitised by the renderer
        return self._rendered
