"""The pages on which people manage their client certificates."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.browser_people import AT_BOTH_WIDTHS, CHECK, Window, sign_in
from tests.support.listeners import LISTENERS, client_tls
from tests.support.people import Account, create_account
from tests.support.server import ServerProcess, server_fixture

pytestmark = pytest.mark.feature("webid_tls")

#
# A certificate from the account page: made, saved, used in another browser, and removed.


provider = server_fixture((*LISTENERS["webid-tls"], "--idp"), tls=client_tls())
"""A provider that takes client certificates."""


@pytest.fixture
def person(provider: ServerProcess) -> Account:
    return create_account(provider)


@AT_BOTH_WIDTHS
def test_a_certificate_is_saved_and_lets_another_browser_in(
    chromium: Browser,
    window: Window,
    provider: ServerProcess,
    person: Account,
    axe: str,
    tmp_path: Path,
) -> None:
    private = f"{provider.base_url}/{person.name}/private/"
    context = chromium.new_context(
        service_workers="block",
        ignore_https_errors=True,
        viewport={"width": window.width, "height": 700},
    )
    page = context.new_page()
    sign_in(page, provider, person)
    page.goto(f"{provider.base_url}/.pages/security?view=programs")
    page.get_by_role("button", name="Create a certificate").click()
    expect(page.get_by_role("heading", name="New client certificate")).to_be_visible()
    _check(page, axe)
    for kind in ("pem", "p12"):
        with page.expect_download() as saving:
            page.get_by_role("link", name=f".{kind}").click()
        name = saving.value.suggested_filename
        assert name.startswith(f"{person.name}-")
        assert name.endswith(f".{kind}")
        saving.value.save_as(tmp_path / f"alice.{kind}")
    password = page.get_by_role("group", name="Password of the file").inner_text()
    other = chromium.new_context(
        service_workers="block",
        ignore_https_errors=True,
        client_certificates=[
            {
                "origin": provider.base_url,
                "pfxPath": tmp_path / "alice.p12",
                "passphrase": password,
            }
        ],
    )
    visitor = other.new_page()
    assert _status(visitor, private) == 200
    assert page.request.get(private).status == 401, "cookies never open a pod"
    page.goto(f"{provider.base_url}/.pages/security?view=programs")
    _check(page, axe)
    page.get_by_role("button", name="Remove Key").click()
    expect(page.get_by_role("status")).to_contain_text("The key has been removed from your profile")
    assert _status(visitor, private) == 401
    pem = (tmp_path / "alice.pem").read_text()
    assert pem.count("-----BEGIN PRIVATE KEY-----") == pem.count("-----BEGIN CERTIFICATE-----") == 1


def _status(page: Page, url: str) -> int:
    answer = page.goto(url)
    assert answer is not None
    return answer.status


def _check(page: Page, axe: str) -> None:
    page.evaluate(axe)
    assert page.evaluate(CHECK) == []
    too_wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert page.evaluate(too_wide) <= 0
