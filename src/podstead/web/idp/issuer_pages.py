"""``/idp/account/issuer``: whether the profile names this provider, and adding it again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from podstead.authn.web_ids import UnusableDocument
from podstead.core.errors import Conflict
from podstead.idp.token_issuing import IssuerRestoration, ProfileIssuer
from podstead.web.browsers import json_response
from podstead.web.codes import WebCodes
from podstead.web.pages.addresses import ACCOUNT
from podstead.web.pages.request import PageRequest
from podstead.web.pages.site import Site
from podstead.web.response import Response
from podstead.web.routes import route

ISSUER_PATH: Final = f"{ACCOUNT}/issuer"


@dataclass(frozen=True, slots=True)
class IssuerPages:
    """Reports whether the statement exists, and restores it."""

    site: Site
    profile_issuer: ProfileIssuer
    restoration: IssuerRestoration

    @route(ISSUER_PATH, "GET", is_page=False)
    async def get(self, page: PageRequest) -> Response:
        """Raises NotAuthenticated, Conflict if the profile cannot be read."""
        try:
            named = await self.profile_issuer.is_named_by(page.owner().account.web_id)
        except UnusableDocument as error:
            raise Conflict(WebCodes.OWN_PROFILE_UNREADABLE) from error
        return json_response(200, {"issuer": self.profile_issuer.issuer, "named": named})

    @route(ISSUER_PATH, "POST", is_page=False)
    async def restore(self, page: PageRequest) -> Response:
        """Requires a recent sign-in: afterwards tokens of this provider are accepted again.

        Raises NotAuthenticated, WrongFormToken, SignInAgain, and what changing the profile raises.
        """
        await page.submission()
        owner = page.recent_owner("issuer")
        await self.restoration.restore(owner.account)
        return self.site.done(page, "issuer-restored")
