"""Every page of the provider, one after another, for what holds for all of them."""

from __future__ import annotations

import json
from collections.abc import Iterator

from playwright.sync_api import Page

from tests.support.browser_people import ON_THE_WEB, App, sign_in, type_password
from tests.support.people import PASSWORD, Account
from tests.support.server import ServerProcess


def tour(page: Page, provider: ServerProcess, app: App, person: Account) -> Iterator[str]:
    """Leads a page through everything; yields the name of what shows each time."""
    base = provider.base_url
    yield from _without_account(page, base, person)
    yield from _with_application(page, app, person)
    yield from _at_the_account(page, base, app)
    yield from _to_the_end(page, provider, person)


def _without_account(page: Page, base: str, person: Account) -> Iterator[str]:
    page.goto(f"{base}/idp/login")
    yield "sign-in"
    page.get_by_text("Other ways to sign in").click()
    page.get_by_role("link", name="With a token").click()
    page.get_by_label("Token").wait_for()
    yield "other-ways"
    page.get_by_role("link", name="Sign in to your account").click()
    page.get_by_label("E-mail address or pod name").fill(person.name)
    page.get_by_label("Password").fill("wrong")
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.get_by_role("alert").wait_for()
    yield "sign-in-failed"
    page.goto(f"{base}/idp/register")
    yield "registration"
    page.get_by_label("Name of your pod").fill(person.name)
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_label("Repeat the password").fill(PASSWORD)
    page.get_by_role("button", name="Create the account").click()
    page.get_by_role("alert").wait_for()
    yield "registration-failed"
    page.goto(f"{base}/idp/auth?client_id=nobody")
    yield "unusable-client"
    page.goto(f"{base}/idp/interaction/{'0' * 64}")
    yield "expired"


def _with_application(page: Page, app: App, person: Account) -> Iterator[str]:
    page.goto(app.request(prompt="none"))
    page.get_by_role("link", name="Continue to").wait_for()
    yield "leaving"
    page.goto(app.request(redirect_uri=ON_THE_WEB))
    page.get_by_text("If you sign in here").wait_for()
    yield "sign-in-that-is-consent"
    page.goto(app.request(prompt="consent", scope="openid webid offline_access webid:write"))
    yield "sign-in-for-application"
    type_password(page, person.email)
    page.get_by_role("button", name="Allow", exact=True).wait_for()
    yield "consent"
    page.get_by_role("button", name="Allow", exact=True).click()
    page.wait_for_url(f"{app.redirect_uri}**")


def _at_the_account(page: Page, base: str, app: App) -> Iterator[str]:
    page.goto(f"{base}/.pages/security?view=programs")
    yield "account-programs"
    page.get_by_label("What they are for").fill("nightly backup")
    page.get_by_role("button", name="Create client credentials").click()
    yield "credentials"
    page.get_by_role("link", name="Done").click()
    page.goto(f"{base}/.pages/security")
    page.get_by_text("Change your password").click()
    page.get_by_text("Change your e-mail address").click()
    yield "account-with-forms"
    page.locator("#password-current").fill("wrong")
    page.get_by_label("New password", exact=True).fill(PASSWORD)
    page.get_by_label("Repeat the new password").fill(PASSWORD)
    page.get_by_role("button", name="Change the password").click()
    page.get_by_role("alert").wait_for()
    yield "account-failed"
    page.goto(f"{base}/idp/account/delete")
    yield "deletion"
    page.goto(f"{base}/idp/login?again=delete")
    yield "sign-in-again"
    page.goto(f"{base}/idp/session/end")
    yield "sign-out"
    page.get_by_role("button", name="Sign out").click()
    yield "signed-out"
    page.goto(app.signing_out())
    page.get_by_role("link", name="Continue to").wait_for()
    yield "signed-out-before"


def _to_the_end(page: Page, provider: ServerProcess, person: Account) -> Iterator[str]:
    sign_in(page, provider, person)
    _name_another_issuer(provider, person)
    page.goto(f"{provider.base_url}/.pages/security")
    yield "account-without-issuer"
    page.get_by_role("button", name="Restore the statement").click()
    page.get_by_text("as your identity provider again").wait_for()
    page.goto(f"{provider.base_url}/idp/account/delete")
    page.get_by_label("To confirm, type the name of your pod").fill("another")
    page.get_by_role("button", name="Delete everything").click()
    yield "deletion-refused"
    page.get_by_label("To confirm, type the name of your pod").fill(person.name)
    page.get_by_role("button", name="Delete everything").click()
    page.get_by_text("Your account has been deleted").wait_for()
    yield "deleted"


def _name_another_issuer(provider: ServerProcess, person: Account) -> None:
    """Have the person's profile name another identity provider, by a token of their own."""
    sent = json.dumps({"username": person.name, "password": PASSWORD})
    answer = provider.request(
        "POST", "/idp/credentials", sent, {"Content-Type": "application/json"}
    )
    term = "<http://www.w3.org/ns/solid/terms#oidcIssuer>"
    fields = {
        "Content-Type": "application/sparql-update",
        "Authorization": f"Bearer {json.loads(answer.body)['access_token']}",
    }
    web_id = f"<{provider.base_url}/{person.name}/#me>"
    update = (
        f"DELETE WHERE {{ {web_id} {term} ?other }}; "
        f"INSERT DATA {{ {web_id} {term} <https://idp.example/> }}"
    )
    assert provider.request("PATCH", f"/{person.name}/", update, fields).status == 204
