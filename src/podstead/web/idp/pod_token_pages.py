"""``/idp/account/tokens``: the pod tokens of a person's pod, which the operator created."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from podstead.core.errors import NotFound
from podstead.idp.codes import IdpCodes
from podstead.idp.credentials import PodTokens
from podstead.storage.records import TokenRecord
from podstead.web.browsers import json_response, see_other
from podstead.web.idp.display import machine_time
from podstead.web.pages.addresses import ACCOUNT, SECURITY
from podstead.web.pages.cookies import Cookies, Notice
from podstead.web.pages.request import PageRequest
from podstead.web.response import Response
from podstead.web.routes import route

POD_TOKENS_PATH: Final = f"{ACCOUNT}/tokens"


@dataclass(frozen=True, slots=True)
class PodTokenPages:
    """Lists and revokes tokens, for the account page and for programs."""

    tokens: PodTokens
    cookies: Cookies

    @route(POD_TOKENS_PATH, "GET", is_page=False)
    async def list(self, page: PageRequest) -> Response:
        """Raises NotAuthenticated."""
        listed = await self.tokens.of(page.owner().account)
        return json_response(200, {"tokens": [_as_json(each) for each in listed]})

    @route(POD_TOKENS_PATH + "/{id}", "GET", is_page=False)
    async def get(self, page: PageRequest) -> Response:
        """Raises NotAuthenticated, NotFound."""
        for each in await self.tokens.of(page.owner().account):
            if each.token_id == page.segment:
                return json_response(200, _as_json(each))
        raise NotFound(IdpCodes.NO_SUCH_TOKEN)

    @route(POD_TOKENS_PATH + "/{id}", "POST", "DELETE", is_page=False)
    async def revoke(self, page: PageRequest) -> Response:
        """Raises NotAuthenticated, WrongFormToken, NotFound."""
        await page.submission()
        await self.tokens.revoke(page.owner().account, page.segment, page.source)
        if page.wants_page:
            flash_message = self.cookies.set_notice(Notice("token-revoked"))
            return see_other(page.back or SECURITY, flash_message)
        return json_response(204, None)


def _as_json(token: TokenRecord) -> dict[str, object]:
    expires_s = token.expires_s
    return {
        "id": token.token_id,
        "webId": token.web_id,
        "issued": machine_time(token.issued_s),
        "expires": None if expires_s is None else machine_time(expires_s),
    }
