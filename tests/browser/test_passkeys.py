"""Passkeys in a browser, with its own authenticator."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, CDPSession, Page

from tests.support.browser_people import (
    AT_BOTH_WIDTHS,
    App,
    allow,
    show_account,
    sign_in,
    sign_out,
    type_password,
    violations,
)
from tests.support.people import Account, create_account
from tests.support.server import ServerProcess, running_server, server_fixture

pytestmark = [pytest.mark.needs("chromium"), pytest.mark.feature("passkeys")]

DEVICE = {
    "protocol": "ctap2",
    "transport": "internal",
    "hasResidentKey": True,
    "hasUserVerification": True,
    "isUserVerified": True,
    "automaticPresenceSimulation": True,
}


provider = server_fixture(["--idp", "--passkey-requests-per-minute", "0"])


@dataclass
class Device:
    """The authenticator of a browser, which a test can look into."""

    session: CDPSession
    identifier: str

    def passkeys(self) -> list[dict[str, Any]]:
        asked = {"authenticatorId": self.identifier}
        answer: dict[str, Any] = self.session.send("WebAuthn.getCredentials", asked)
        return list(answer["credentials"])

    def set(self, **passkey: object) -> None:
        """Put a passkey into it, in place of one with the same id."""
        asked = {"authenticatorId": self.identifier}
        self.session.send(
            "WebAuthn.removeCredential", {**asked, "credentialId": passkey["credentialId"]}
        )
        self.session.send("WebAuthn.addCredential", {**asked, "credential": passkey})

    def verify(self, verified: bool) -> None:
        """Whether the person shows their finger."""
        asked = {"authenticatorId": self.identifier, "isUserVerified": verified}
        self.session.send("WebAuthn.setUserVerified", asked)

    def answer(self, automatically: bool) -> None:
        """Whether the person is there."""
        asked = {"authenticatorId": self.identifier, "enabled": automatically}
        self.session.send("WebAuthn.setAutomaticPresenceSimulation", asked)


def device_of(context: BrowserContext, page: Page, **changes: object) -> Device:
    session = context.new_cdp_session(page)
    session.send("WebAuthn.enable")
    made = session.send("WebAuthn.addVirtualAuthenticator", {"options": {**DEVICE, **changes}})
    return Device(session, made["authenticatorId"])


@pytest.fixture
def device(context: BrowserContext, page: Page) -> Device:
    # Without this the browser would offer, and use, passkeys before a button is pressed.
    page.add_init_script("PublicKeyCredential.isConditionalMediationAvailable = async () => false;")
    return device_of(context, page)


def add(page: Page, provider: ServerProcess, name: str = "my laptop") -> None:
    page.goto(f"{provider.base_url}/.pages/security")
    page.get_by_label("Name of the new passkey").fill(name)
    page.get_by_role("button", name="Add a passkey").click()


def enrol(page: Page, provider: ServerProcess, person: Account) -> None:
    """Sign in by password, add a passkey, and sign out."""
    sign_in(page, provider, person)
    enrol_signed_in(page, provider)


def enrol_signed_in(page: Page, provider: ServerProcess) -> None:
    add(page, provider)
    page.get_by_role("button", name="Remove my laptop").wait_for()
    sign_out(page)
    page.get_by_text("You are signed out").wait_for()


def use(page: Page) -> None:
    page.get_by_role("button", name="Use a passkey").click()


def problem(page: Page) -> str:
    alert = page.locator("#passkeys [role=alert]:not(:empty)")
    alert.wait_for()
    return alert.inner_text()


@AT_BOTH_WIDTHS
def test_an_application_gets_its_answer_by_a_passkey(
    page: Page, device: Device, provider: ServerProcess, app: App, person: Account
) -> None:
    """Added after signing in by password, and used without typing anything."""
    enrol(page, provider, person)
    page.goto(app.request())
    use(page)
    allow(page)
    page.wait_for_url(f"{app.redirect_uri}?code=**")
    [passkey] = device.passkeys()
    assert passkey["isResidentCredential"]
    assert passkey["rpId"] == "localhost"
    assert passkey["signCount"] > 0


@dataclass
class NamedServer(ServerProcess):
    """One that has a name of its own, below that of the domain its passkeys are of."""

    @property
    def base_url(self) -> str:
        return f"http://id.pods.localhost:{self.port}"

    def launch(self) -> None:
        self.options = [
            *("--idp", "--base-url", self.base_url, "--host-alias", f"localhost:{self.port}"),
            *("--host-alias", f"www.pods.localhost:{self.port}"),
            *("--passkey-origin", f"http://www.pods.localhost:{self.port}"),
            *("--passkey-rp-id", "pods.localhost"),
        ]
        super().launch()


def test_a_passkey_is_of_the_domain_that_the_operator_chose(
    page: Page, device: Device, tmp_path: Path
) -> None:
    """A-115: and of use on its other pages that the operator lists, to the browser as well."""
    with running_server(NamedServer(tmp_path / "root")) as provider:
        page.goto(f"{provider.base_url}/idp/login")  # only the browser knows the name
        type_password(page, create_account(provider).name)
        show_account(page)
        enrol_signed_in(page, provider)
        assert [each["rpId"] for each in device.passkeys()] == ["pods.localhost"]
        page.goto(f"{provider.base_url}/idp/login")
        use(page)
        page.wait_for_url(f"{provider.base_url}/.pages/security")
        page.goto(f"http://www.pods.localhost:{provider.port}/idp/login")
        with page.expect_response("**/idp/passkey/login/verify") as verified:
            use(page)
        assert verified.value.status == 200


def test_signing_in_without_an_application(
    page: Page, device: Device, provider: ServerProcess, person: Account
) -> None:
    enrol(page, provider, person)
    page.goto(f"{provider.base_url}/idp/login")
    page.get_by_label("E-mail address or pod name").fill("a name that does not matter")
    use(page)
    show_account(page)
    page.get_by_label(f"Signed in as {person.name}").wait_for()
    assert "last used" in page.inner_text("main")


def test_the_browser_suggests_the_passkey_by_itself(
    context: BrowserContext, provider: ServerProcess, person: Account
) -> None:
    """Conditional mediation: it is offered at the field of the name."""
    page = context.new_page()
    device = device_of(context, page)
    sign_in(page, provider, person)
    add(page, provider)
    page.get_by_role("button", name="Remove my laptop").wait_for()
    assert len(device.passkeys()) == 1
    context.clear_cookies()
    # The script may go on to the account before the page counts as loaded.
    page.goto(f"{provider.base_url}/idp/login", wait_until="commit")
    show_account(page)
    page.get_by_label(f"Signed in as {person.name}").wait_for()


def test_an_unverified_person_is_not_signed_in(
    page: Page, device: Device, provider: ServerProcess, person: Account
) -> None:
    enrol(page, provider, person)
    device.verify(False)
    page.goto(f"{provider.base_url}/idp/login")
    use(page)
    assert "Nothing was done" in problem(page)
    device.verify(True)
    use(page)
    show_account(page)


def test_a_copy_is_noticed(
    page: Page, device: Device, provider: ServerProcess, person: Account
) -> None:
    """Refused, noted for the operator, and shown to the owner. Counting nothing is fine."""
    enrol(page, provider, person)
    [passkey] = device.passkeys()
    page.goto(f"{provider.base_url}/idp/login")
    use(page)
    show_account(page)
    sign_out(page)
    page.get_by_text("You are signed out").wait_for()
    device.set(**{**passkey, "signCount": 0})
    page.goto(f"{provider.base_url}/idp/login")
    use(page)
    assert "could not be verified" in problem(page)
    assert "possible copy of a passkey" in provider.errors
    sign_in(page, provider, person)
    assert "may have a copy of this passkey" in page.inner_text("main")


def test_one_device_has_one_passkey_of_an_account(
    page: Page, device: Device, provider: ServerProcess, person: Account
) -> None:
    """The second time it is told what there is; another device may have one as well."""
    sign_in(page, provider, person)
    add(page, provider)
    page.get_by_role("button", name="Remove my laptop").wait_for()
    add(page, provider, "again")
    assert "already has a passkey for your account" in problem(page)
    device.session.send(
        "WebAuthn.removeVirtualAuthenticator", {"authenticatorId": device.identifier}
    )
    device_of(page.context, page, transport="usb")
    add(page, provider, "my key")
    page.get_by_role("button", name="Remove my key").wait_for()
    page.get_by_role("button", name="Remove my laptop").wait_for()


@AT_BOTH_WIDTHS
def test_names_and_removal(
    page: Page, device: Device, provider: ServerProcess, person: Account
) -> None:
    """What was removed signs nobody in any more."""
    sign_in(page, provider, person)
    add(page, provider)
    page.get_by_text("Rename", exact=True).first.click()
    page.get_by_label("New name").fill("the old laptop")
    page.get_by_role("button", name="Rename", exact=True).click()
    page.get_by_text("The passkey has been renamed").wait_for()
    page.get_by_role("button", name="Remove the old laptop").click()
    page.get_by_text("The passkey has been removed").wait_for()
    sign_out(page)
    page.get_by_text("You are signed out").wait_for()
    assert len(device.passkeys()) == 1
    page.goto(f"{provider.base_url}/idp/login")
    use(page)
    assert "No account on this server has this passkey" in problem(page)


def test_a_passkey_of_another_port_is_refused(
    page: Page, device: Device, provider: ServerProcess, person: Account, tmp_path: Path
) -> None:
    """Browsers tell hosts apart, and the server tells origins."""
    enrol(page, provider, person)
    with running_server(ServerProcess(root=tmp_path / "root", options=["--idp"])) as other:
        page.goto(f"{provider.base_url}/idp/login")
        options = page.evaluate(
            """() => fetch("/idp/passkey/login/options", {
                method: "POST", headers: {"Content-Type": "application/json"}, body: "{}",
            }).then(answer => answer.json())"""
        )
        page.goto(f"{other.base_url}/idp/login")
        credential = page.evaluate(
            """async options => (await navigator.credentials.get({
                publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(options)})).toJSON()""",
            options,
        )
        page.goto(f"{provider.base_url}/idp/login")
        sent = {"challengeKey": options["challengeKey"], "credential": credential}
        status, text = page.evaluate(
            """sent => fetch("/idp/passkey/login/verify", {
                method: "POST", headers: {"Content-Type": "application/json"},
                body: JSON.stringify(sent),
            }).then(async answer => [answer.status, await answer.text()])""",
            sent,
        )
    assert (status, json.loads(text)["error"]) == (400, "Verification failed")


def test_axe_finds_nothing_where_passkeys_are(
    chromium: Browser, provider: ServerProcess, person: Account, axe: str
) -> None:
    """With a form open, and with something that went wrong."""
    context = chromium.new_context(service_workers="block", viewport={"width": 375, "height": 700})
    page = context.new_page()
    device_of(context, page)
    sign_in(page, provider, person)
    add(page, provider)
    page.get_by_role("button", name="Remove my laptop").wait_for()
    add(page, provider, "again")
    problem(page)
    page.get_by_text("Rename", exact=True).first.click()
    assert violations(page, axe) == {}
