"""The page of consent and the pages of limits in a browser, with scripts and without."""

from __future__ import annotations

import json
import re

from playwright.sync_api import Page, expect

from tests.support.browser_fixtures import (
    app,
    application,
    axe,
    chromium,
    context,
    page,
    person,
    provider,
    window,
)
from tests.support.browser_people import IN_EVERY_WINDOW, App, allow, type_password, violations
from tests.support.people import PASSWORD, Account
from tests.support.server import ServerProcess

DETAILS = json.dumps(
    [
        {
            "type": "pod_access",
            "locations": ["notes/"],
            "actions": ["read", "add"],
            "own_folder": True,
        }
    ]
)


def consent_page(page: Page, app: App, person: Account, **asked: str) -> None:
    page.goto(app.request(prompt="consent", **asked))
    if page.get_by_label("Password").count():
        type_password(page, person.email)
    page.get_by_role("button", name="Allow", exact=True).wait_for()


@IN_EVERY_WINDOW
def test_a_person_confines_an_application_to_a_folder(
    page: Page,
    app: App,
    provider: ServerProcess,
    person: Account,
) -> None:
    consent_page(page, app, person)
    folder = page.get_by_label("private/", exact=True)
    expect(folder).to_be_hidden()
    page.get_by_label("Only what I choose here").check()
    page.get_by_text("Folders and documents").click()
    adjusted = page.get_by_label("What it may do in private/")
    expect(adjusted).to_be_hidden()
    folder.check()
    expect(adjusted).to_be_visible()
    page.get_by_label("Add something").uncheck()
    page.get_by_label("Change and delete").uncheck()
    allow(page)
    page.wait_for_url(f"{app.redirect_uri}**")
    page.goto(f"{provider.base_url}/.pages/apps")
    expect(page.get_by_text(re.compile(r"/private/\s*: read$"))).to_be_visible()
    page.get_by_role("link", name="Change what it may do").click()
    expect(page.get_by_label("private/", exact=True)).to_be_checked()
    expect(page.get_by_label("Change and delete")).not_to_be_checked()
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_text("Paused: it can do nothing now")).to_be_visible()
    page.get_by_role("button", name="Resume").click()
    page.get_by_label("Everything that you can").check()
    page.get_by_role("button", name="Save").click()
    page.goto(f"{provider.base_url}/.pages/apps")
    expect(page.get_by_text("Acts as you")).to_be_visible()


def test_the_pages_are_usable_by_everybody(
    page: Page,
    app: App,
    provider: ServerProcess,
    person: Account,
    axe: str,
) -> None:
    """On a phone and on a desk, in both colour schemes."""
    consent_page(page, app, person, authorization_details=DETAILS)
    assert violations(page, axe) == {}
    page.get_by_label("Only what I choose here").check()
    page.get_by_text("Folders and documents").click()
    assert violations(page, axe) == {}
    page.get_by_label("What it asks for").check()
    allow(page)
    page.wait_for_url(f"{app.redirect_uri}**")
    page.goto(f"{provider.base_url}/.pages/apps")
    address = page.get_by_role("link", name="Change what it may do").get_attribute("href")
    for each in (
        "/.pages/apps",
        address,
        f"{address}?path=/{person.name}/private/&mode=write",
        "/.pages/apps/limits",
    ):
        page.goto(f"{provider.base_url}{each}")
        assert violations(page, axe) == {}, each
