"""The login library that Penny is made with: @inrupt/solid-client-authn-browser 1.17.

Its part for ID tokens verifies them by the first key of the provider's key set, and no other.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page

from tests.clients.applications.sites import PACKAGES
from tests.clients.identity.field_notes import PAGES, opened, running_application
from tests.support.node import APPLICATIONS, install_packages
from tests.support.people import Account
from tests.support.websites import Website

LIBRARY = {
    "session.js": PAGES / "inrupt.js",
    "solid-client-authn.bundle.js": PACKAGES
    / "@inrupt/solid-client-authn-browser/dist/solid-client-authn.bundle.js",
}

pytestmark = pytest.mark.needs("chromium")


@pytest.fixture(scope="module")
def website() -> Iterator[Website]:
    install_packages(APPLICATIONS)
    with running_application(LIBRARY) as website:
        yield website


def test_somebody_signs_in_stays_signed_in_and_signs_out(
    page: Page, website: Website, account: Account
) -> None:
    """Registered by itself: the library has a secret, and would give up one that has expired."""
    application = opened(page.context, website, account)
    application.sign_in()
    url = account.pod_url + "private/note"
    assert application.does("Write", url, "my own words") == "201"
    application.page.reload()
    application.knows(account.web_id)
    assert application.does("Read", url) == "200 my own words"
    application.press("Sign out here")
    application.knows("nobody")
    assert application.does("Read", url).startswith("401")
