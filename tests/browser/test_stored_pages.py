"""A page stored in a pod has no access to the visitor's session (A-61, R-15)."""

from __future__ import annotations

import pytest
from playwright.sync_api import BrowserContext, Page

from tests.support.browser_people import sign_in
from tests.support.people import Account
from tests.support.server import ServerProcess

pytestmark = pytest.mark.needs("chromium")

READ = """async () => {
    try {
        const answer = await fetch("/idp/account", {
            credentials: "include", headers: {Accept: "application/json"},
        });
        return "read " + await answer.text();
    } catch (error) { return error.name; }
}"""
READ_BLINDLY = """async () => {
    const answer = await fetch("/idp/account", {credentials: "include", mode: "no-cors"});
    return answer.type + ":" + await answer.text();
}"""
FRAME = """() => new Promise(resolve => {
    const frame = document.createElement("iframe");
    frame.onload = () => {
        try { resolve("read " + frame.contentDocument.body.textContent); }
        catch (error) { resolve(error.name); }
    };
    frame.src = "/idp/account";
    document.body.append(frame);
})"""
SEND = """async path => {
    const answer = await fetch(path, {
        method: "POST", credentials: "include", mode: "no-cors",
        headers: {"Content-Type": "application/x-www-form-urlencoded"},
        body: "username=mallory&password=a-long-password&confirmPassword=a-long-password",
    });
    return answer.type;
}"""
SUBMIT = """path => {
    const form = document.createElement("form");
    form.method = "post";
    form.action = path;
    document.body.append(form);
    form.submit();
}"""
COOKIES = "() => { try { return document.cookie; } catch (error) { return error.name; } }"


@pytest.fixture
def stored_page(provider: ServerProcess, person: Account) -> str:
    """The address of a page that somebody has put into their pod."""
    path = f"/{person.name}/public/page.html"
    content = "<!doctype html><title>Stored</title><body>A page of mine"
    with person.owner() as client:
        assert client.put(path, content, "text/html").status == 201
    return f"{provider.base_url}{path}"


@pytest.fixture
def visitor(page: Page, provider: ServerProcess, person: Account, stored_page: str) -> Page:
    """Somebody who is signed in, and opens the page."""
    sign_in(page, provider, person)
    page.goto(stored_page)
    assert page.title() == "Stored"
    return page


def test_it_cannot_read_the_account(visitor: Page) -> None:
    assert visitor.evaluate(READ) == "TypeError"
    assert visitor.evaluate(READ_BLINDLY) == "opaque:"
    assert "read" not in visitor.evaluate(FRAME)
    assert visitor.evaluate(COOKIES) == "SecurityError"


@pytest.mark.parametrize(
    "path", ["/idp/logout", "/idp/account/sessions", "/idp/account/delete", "/idp/register"]
)
def test_it_cannot_change_anything(
    visitor: Page, provider: ServerProcess, person: Account, path: str
) -> None:
    """Neither by a script nor by a form."""
    assert visitor.evaluate(SEND, path) == "opaque"
    assert _still_signed_in(visitor, provider, person)
    visitor.go_back()
    with visitor.expect_navigation():
        visitor.evaluate(SUBMIT, path)
    assert visitor.title().startswith(("This did not work", "Sign in"))
    assert _still_signed_in(visitor, provider, person)


def test_a_window_that_it_opens_is_closed_to_it(
    context: BrowserContext, visitor: Page, provider: ServerProcess
) -> None:
    with context.expect_page() as opened:
        visitor.evaluate("() => { window.opened = window.open('/idp/account'); }")
    opened.value.wait_for_load_state()
    read = "() => { try { return opened.document.title; } catch (error) { return error.name; } }"
    assert visitor.evaluate(read) in {"SecurityError", "TypeError"}


def _still_signed_in(page: Page, provider: ServerProcess, person: Account) -> bool:
    page.goto(f"{provider.base_url}/.pages/security?view=account")
    return page.url.endswith("/.pages/security?view=account") and person.web_id in page.inner_text(
        "main"
    )
