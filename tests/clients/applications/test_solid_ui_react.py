"""Components of @inrupt/solid-ui-react in a page that is made of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.clients.applications.sites import PAGES, bundled
from tests.clients.identity.field_notes import sign_in_at_provider
from tests.support.client import Client
from tests.support.people import Account
from tests.support.websites import Website, running_website

PAGE = "/react.html"
NAME = "http://xmlns.com/foaf/0.1/name"

pytestmark = pytest.mark.needs("chromium")


@pytest.fixture(scope="module")
def website() -> Iterator[Website]:
    with running_website() as website:
        website.publish(PAGE, (PAGES / "react.html").read_bytes(), "text/html")
        website.publish("/react.js", bundled(PAGES / "react.jsx"), "text/javascript")
        yield website


def test_somebody_signs_in_edits_uploads_and_signs_out(
    page: Page, website: Website, account: Account, owner: Client
) -> None:
    """The login library has a secret, and would give up one that has expired when it comes back."""
    page.goto(website.origin + PAGE)
    page.get_by_label("Provider").fill(account.provider.base_url)
    page.locator("button", has_text="Sign in").click()
    sign_in_at_provider(page, account)
    expect(page.locator("#who")).to_have_text(account.web_id)
    name = page.get_by_label("Name")
    expect(name).to_have_value(account.name)
    name.fill("Alice of the Roses")
    with page.expect_response(lambda answer: answer.request.method == "PATCH") as answer:
        name.blur()
    assert answer.value.ok
    profile = owner.get(f"/{account.name}/", Accept="application/n-triples").text
    assert f'<{account.web_id}> <{NAME}> "Alice of the Roses" .' in profile
    page.get_by_label("File").set_input_files(
        {"name": "roses.txt", "mimeType": "text/plain", "buffer": b"red, white"}
    )
    expect(page.locator("#uploaded")).to_have_text("saved")
    assert owner.get(f"/{account.name}/private/roses.txt").text == "red, white"
    expect(page.locator("#problem")).to_be_empty()
    page.locator("button", has_text="Sign out").click()
    expect(page.get_by_label("Provider")).to_be_visible()
