"""Somebody with a pod, who makes links, and browsers without an account, which open them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tests.support.application import Server
from tests.support.browser import Browser, Page
from tests.support.multipart import encode_form
from tests.support.pod_pages import csrf_token_of

FOLDER = "/alice/photos/"
SHARE = "/.pages/share"
MANAGE = "/.pages/sharing-links"
_ADDRESS = re.compile(r'id="link-address"[^>]*value="([^"]+)"')


@dataclass
class Owner:
    """The browser of somebody who makes links."""

    browser: Browser

    async def asks(self, path: str, **fields: str) -> Page:
        """Send a form of the section about links."""
        page = await self.browser.get(SHARE + path)
        token = csrf_token_of(page)
        return await self.browser.post(MANAGE + path, {"csrf_token": token, **fields})

    async def link(self, path: str = FOLDER, kind: str = "view", **fields: str) -> str:
        """The address of a new link."""
        page = await self.asks(path, change="create", kind=kind, **fields)
        found = _ADDRESS.search(page.text)
        assert found is not None, page.text
        return found[1]

    async def ids(self, path: str = FOLDER) -> Sequence[str]:
        """The public IDs of the links that the sharing page of a resource lists."""
        page = await self.browser.get(SHARE + path)
        return re.findall(r'name="link" value="([0-9a-f]+)"', page.text)

    async def changes(self, change: str, path: str = FOLDER) -> Page:
        """End, pause or resume the only link of a resource."""
        [link] = await self.ids(path)
        return await self.asks(path, change=change, link=link)


@dataclass
class Visitor:
    """A browser that has opened a link."""

    browser: Browser
    page: Page

    @property
    def address(self) -> str:
        return self.page.path

    async def get(self, rest: str = "", action: str = "view") -> Page:
        return await self.browser.get(self.at(action, rest))

    def at(self, action: str, rest: str = "") -> str:
        """The address for an action at something in what is shared."""
        base = "/".join(self.page.path.split("/")[:4])
        return f"{base}/{action}/{rest}"

    async def upload(
        self, *files: tuple[str, bytes], action: str = "add", rest: str = "", token: str = ""
    ) -> Page:
        """Send files with the form of the page."""
        token = token or csrf_token_of_form(self.page)
        fields = [("csrf_token", token)]
        content_type, body = encode_form(fields, [(*each, "text/plain") for each in files])
        headers = {
            "Sec-Fetch-Site": "same-origin",
            "Origin": self.browser.base_url,
            "Content-Type": content_type,
        }
        return await self.browser.go("POST", self.at(action, rest), headers=headers, body=body)


def csrf_token_of_form(page: Page) -> str:
    found = re.search(r'name="csrf_token" value="([0-9a-f]+)"', page.text)
    return "" if found is None else found[1]


async def visit(server: Server, url: str, *, peer: str = "192.0.2.7") -> Visitor:
    """Open a link in a new browser."""
    browser = Browser(server.application, peer=peer)
    return Visitor(browser, await browser.get(url))
