"""An application that leads browsers to the provider's pages, and what those pages contain."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from html import unescape
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from podstead.web.account.security_page import SecurityView
from podstead.web.pages.addresses import APPS, SECURITY
from tests.support.application import Server, password_of
from tests.support.browser import FORM, Browser, Page
from tests.support.oauth import authorization_parameters

REDIRECT_URI = "https://app.example/callback"
AFTERWARDS = "https://app.example/bye"
VERIFIER = "v" * 43


@dataclass(frozen=True)
class App:
    """An application that has registered itself."""

    server: Server
    client_id: str

    def request(self, **changes: str) -> str:
        """Where the application sends a browser; an empty parameter is left out."""
        parameters = authorization_parameters(self.client_id, REDIRECT_URI, VERIFIER, **changes)
        return f"/idp/auth?{urlencode({k: v for k, v in parameters.items() if v})}"

    async def tokens(self, page: Page) -> dict[str, Any]:
        """What the application gets for the code in the address that a browser ended at."""
        [code] = reply_of(page)["code"]
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": REDIRECT_URI,
            "code_verifier": VERIFIER,
            "client_id": self.client_id,
        }
        answer = await self.server.public.post("/idp/token", urlencode(form), FORM)
        assert answer.status == 200, answer.text
        tokens: dict[str, Any] = answer.json()
        return tokens

    async def refresh(self, refresh_token: str) -> int:
        """Whether a refresh token still gives tokens: the status."""
        form = {
            "grant_type": "refresh_token",
            "refresh_token": refresh_token,
            "client_id": self.client_id,
        }
        return (await self.server.public.post("/idp/token", urlencode(form), FORM)).status


async def register(server: Server, **changes: object) -> App:
    """An application that has just registered itself."""
    metadata = {
        "client_name": "Notes",
        "redirect_uris": [REDIRECT_URI],
        "post_logout_redirect_uris": [AFTERWARDS],
        "grant_types": ["authorization_code", "refresh_token"],
        "token_endpoint_auth_method": "none",
    } | changes
    answer = await server.public.post("/idp/reg", json.dumps(metadata), "application/json")
    assert answer.status == 201, answer.text
    return App(server, answer.json()["client_id"])


def reply_of(page: Page) -> dict[str, list[str]]:
    """The parameters that a browser brought to the application."""
    assert page.url.startswith(REDIRECT_URI), f"{page.url}: {page.text}"
    parts = urlsplit(page.url)
    return parse_qs(parts.query or parts.fragment)


def go_on(page: Page) -> Page:
    """Where the link leads of a page that names an address before it sends anybody there."""
    [link] = re.findall(r'<a class="button" href="([^"]+)">Continue to', page.text)
    return Page(unescape(link), page.answer)


async def sign_in(browser: Browser, name: str = "alice", **typed: str) -> Page:
    """Sign in on the page for it; all that is about the account."""
    page = await browser.get("/idp/login")
    page = await browser.send(
        page, "/idp/login", username=name, password=password_of(name), **typed
    )
    return await whole_account(browser, page)


async def whole_account(browser: Browser, page: Page | None = None) -> Page:
    """What the pages about an account show in all their parts, as one page; where the browser is
    led elsewhere, that page."""
    first = page or await browser.get("/idp/account")
    if first.path != SECURITY:
        return first
    addresses = (APPS, *(f"{SECURITY}?view={view.value}" for view in SecurityView))
    shown = [first.answer.body, *[(await browser.get(each)).answer.body for each in addresses]]
    return Page(first.url, replace(first.answer, body=b"".join(shown)))


def csrf_token(page: Page) -> str:
    """The token of the session that the forms of a page carry."""
    return page.form("/.pages/sign-out").fields["csrf_token"]
