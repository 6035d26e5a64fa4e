"""People with accounts who use a real browser, and an application that they sign in to."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.support.client import Pod
from tests.support.oauth import authorization_parameters
from tests.support.people import PASSWORD, Account
from tests.support.server import ServerProcess

CHECK = """rules => axe.run(document, {
        resultTypes: ["violations"], preload: false, selectors: false,
        ...(rules ? {runOnly: {type: "rule", values: rules}}
                  : {rules: {"target-size": {enabled: true}}}),
    }).then(found => found.violations.map(each => ({
        rule: each.id, help: each.help, where: each.nodes.map(node => node.html),
    })))"""
"""What axe finds on a page by all rules, or by some."""
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
_RULES = {"light": None, "dark": ["color-contrast", "link-in-text-block"]}
"""The rules by colour scheme: in the second one, those about colours, since the schemes differ in
nothing else."""
PHONE_WIDTH = 360
DESK_WIDTH = 1280


@dataclass(frozen=True, slots=True)
class Window:
    """How wide a browser's window is, and whether scripts run in it."""

    width: int = DESK_WIDTH
    scripts: bool = True

    def new_context(
        self, chromium: Browser, *, service_workers: Literal["allow", "block"] = "block"
    ) -> BrowserContext:
        """A browser that has been nowhere yet."""
        return chromium.new_context(
            viewport={"width": self.width, "height": 740},
            java_script_enabled=self.scripts,
            service_workers=service_workers,
        )

    def __str__(self) -> str:
        return f"{self.width}-{'scripts' if self.scripts else 'no-scripts'}"


AT_BOTH_WIDTHS = pytest.mark.parametrize(
    "window", [Window(PHONE_WIDTH), Window(DESK_WIDTH)], indirect=True, ids=str
)
"""On a phone and on a desk: the fixtures ``context`` and ``page`` have a window of this width."""
IN_EVERY_WINDOW = pytest.mark.parametrize(
    "window",
    [Window(width, scripts) for width in (PHONE_WIDTH, DESK_WIDTH) for scripts in (True, False)],
    indirect=True,
    ids=str,
)
"""At both widths, with scripts and without."""
WITHOUT_SCRIPTS = pytest.mark.parametrize(
    "window",
    [Window(width, scripts=False) for width in (PHONE_WIDTH, DESK_WIDTH)],
    indirect=True,
    ids=str,
)
"""At both widths, without scripts."""
_FITTING_WIDTHS = (PHONE_WIDTH, DESK_WIDTH, 2560)
_ACCOUNT = re.compile(r"/(?:idp/account|\.pages/security)(?:[?#].*)?$")
ON_THE_WEB = "https://notes.example/back"
"""A redirect URI on the web, where the others of these tests are on this device."""


def allow(page: Page) -> None:
    """Allow the application on the page that asks, as it does for one on this device."""
    page.get_by_role("button", name="Allow", exact=True).click()


def violations(page: Page, axe: str) -> dict[str, list[dict[str, str]]]:
    """What is wrong with the page: at which widths it is wider than the window, and what axe finds
    on a phone and on a desk, in each colour scheme."""
    page.evaluate(axe)
    found = {}
    size = page.viewport_size
    for width in _FITTING_WIDTHS:
        page.set_viewport_size({"width": width, "height": 740})
        if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
            found[f"{width}"] = [{"rule": "the page is wider than the window"}]
        for scheme in SCHEMES if width <= DESK_WIDTH else ():
            page.emulate_media(color_scheme=scheme)
            is_dark = page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
            assert is_dark is (scheme == "dark")
            found[f"{width}, {scheme}"] = page.evaluate(CHECK, _RULES[scheme])
    if size is not None:
        page.set_viewport_size(size)
    return {where: each for where, each in found.items() if each}


@dataclass(frozen=True, slots=True)
class App:
    """An application that has registered itself."""

    provider: ServerProcess
    redirect_uri: str
    client_id: str

    def request(self, **changes: str) -> str:
        """Where the application sends a browser."""
        parameters = authorization_parameters(
            self.client_id, self.redirect_uri, "v" * 43, **{"state": "the-state", **changes}
        )
        return f"{self.provider.base_url}/idp/auth?{urlencode(parameters)}"

    def signing_out(self) -> str:
        """Where the application sends a browser that is to be signed out, without an ID token."""
        parameters = {
            "client_id": self.client_id,
            "post_logout_redirect_uri": self.redirect_uri,
        }
        return f"{self.provider.base_url}/idp/session/end?{urlencode(parameters)}"


def sign_in(page: Page, provider: ServerProcess, person: Account) -> None:
    """Sign in without an application; the account shows. The form that browsers fill in for this
    has tests of its own, and takes longer to load than most pages."""
    _send(page, f"{provider.base_url}/idp/login", username=person.name, password=PASSWORD)
    page.goto(f"{provider.base_url}/idp/account")
    show_account(page)


def type_password(page: Page, login: str) -> None:
    """Fill in the form to sign in that shows, and send it."""
    page.get_by_label("E-mail address or pod name").fill(login)
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_role("button", name="Sign in", exact=True).click()


def sign_in_by_token(page: Page, pod: Pod, address: str) -> None:
    """Sign in with the token of a pod's owner, and go to a page of its server."""
    _send(page, f"{pod.server.base_url}/.pages/sign-in", token=pod.token)
    page.goto(pod.server.base_url + address)


def _send(page: Page, url: str, **typed: str) -> None:
    """Send a form, and keep the cookies of the answer in the browser."""
    headers = {"Sec-Fetch-Site": "same-origin"}
    answer = page.request.post(url, form={**typed}, headers=headers, max_redirects=0)
    assert answer.ok or answer.status == 303, answer.text()
    assert page.context.cookies()


def printed_link(server: ServerProcess) -> str:
    """The one-time link that the first start prints."""
    line = server.wait_for_line("  http")
    found = re.search(r"http://\S+/\.pages/link/[0-9a-f]{64}", line)
    assert found is not None
    return found[0]


def become_the_first_operator(page: Page) -> None:
    """Create the account that the page behind the link of the first start asks for."""
    page.get_by_label("Name of your pod").fill("olga")
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_label("Repeat the password").fill(PASSWORD)
    page.get_by_role("button", name="Create the account").click()
    expect(page.get_by_role("heading", name="Accounts and pods")).to_be_visible()


def show_account(page: Page) -> None:
    """Wait until the account shows."""
    page.wait_for_url(_ACCOUNT)


def sign_out(page: Page) -> None:
    """Sign out by the menu of the page, and wait until it is done."""
    page.get_by_label("Signed in as").click()
    page.get_by_role("button", name="Sign out", exact=True).first.click()
    page.get_by_text("You are signed out").wait_for()
