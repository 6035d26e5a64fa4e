"""Browsers in which people are signed in to the pages of their pods."""

from __future__ import annotations

import re

from tests.support.application import Server, password_of
from tests.support.asgi import Client
from tests.support.browser import Browser, Page


async def sign_in_by_token(server: Server, owner: Client) -> Browser:
    """A browser in which the owner has signed in with the token of the pod."""
    browser = Browser(server.application)
    page = await browser.get("/.pages/sign-in?ways=all&next=/.pages/files/")
    page = await browser.send(page, "/.pages/sign-in", token=token_of(owner))
    assert page.status == 200, page.text
    assert page.path.startswith("/.pages/files/")
    return browser


async def sign_in_to_account(server: Server, name: str = "alice") -> Browser:
    """A browser in which a person has signed in to an account, to see their files."""
    browser = Browser(server.application)
    page = await browser.get("/idp/login?next=/.pages/files/")
    page = await browser.send(page, "/idp/login", username=name, password=password_of(name))
    assert page.status == 200, page.text
    assert page.path == f"/.pages/files/{name}/"
    return browser


def token_of(owner: Client) -> str:
    """The token that an owner's requests have."""
    return owner.authorization.removeprefix("Bearer ")


def csrf_token_of(page: Page) -> str:
    """The token that the scripts of a page send as ``X-CSRF-Token``."""
    found = re.search(r'data-csrf-token="([0-9a-f]{64})"', page.text)
    assert found is not None, page.text
    return found[1]
