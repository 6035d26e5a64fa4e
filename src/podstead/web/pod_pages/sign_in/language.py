"""``/.pages/language``: the language of the pages, as chosen in the footer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from podstead.core.errors import BadRequest
from podstead.web.browsers import see_other
from podstead.web.codes import WebCodes
from podstead.web.forms import read_submission
from podstead.web.pages import addresses
from podstead.web.pages.addresses import HOME, local_address
from podstead.web.pages.cookies import LANGUAGE
from podstead.web.pages.request import PageRequest
from podstead.web.pages.site import Site
from podstead.web.pages.texts import LANGUAGES
from podstead.web.response import Response
from podstead.web.routes import route

_KEPT_S: Final = 365 * 24 * 3600


@dataclass(frozen=True, slots=True)
class LanguageChoice:
    """Stores the choice in the browser. It changes nothing else, so it needs no token."""

    site: Site

    @route(addresses.LANGUAGE, "POST", needs_terms=False)
    async def post(self, page: PageRequest) -> Response:
        """Raises BadRequest."""
        sent = await read_submission(page.request)
        language = sent.text("language")
        if language not in LANGUAGES:
            raise BadRequest(WebCodes.NO_SUCH_LANGUAGE)
        chosen = self.site.cookies.set(LANGUAGE, language, _KEPT_S)
        asked = sent.text("next")
        if asked == "/":
            return see_other("/", chosen)
        # Also the pages of the identity provider have the choice.
        address = local_address(asked) or local_address(asked, below="/idp/")
        return see_other(address or HOME, chosen)
