"""Visitors in a real browser, who sign in at another provider: a second server of ours. One whose
provider is the Community Solid Server is in ``test_story.py``."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.support.browser_people import IN_EVERY_WINDOW, type_password, violations
from tests.support.client import Client
from tests.support.people import Account
from tests.support.server import ServerProcess, server_fixture

pytestmark = pytest.mark.needs("chromium")

TURTLE = "text/turtle"
WEB_ID = "Your address there, or where you sign in"
NOTHING_HERE = "There is no provider at this address"


pods = server_fixture()
"""A server without accounts, where Alice has a pod."""


@pytest.fixture(scope="module")
def alice(pods: ServerProcess) -> str:
    """The token of Alice's pod."""
    with Client(pods) as public:
        sent = json.dumps({"name": "alice"})
        headers = {"Content-Type": "application/json"}
        made = json.loads(public.request("POST", "/.pods", sent, headers).body)
    return str(made["token"])


def share(pods: ServerProcess, token: str, web_id: str) -> None:
    """Give somebody access to Alice's photos."""
    rules = f"""@prefix acl: <http://www.w3.org/ns/auth/acl#>.
<#owner> a acl:Authorization; acl:agent <{pods.base_url}/alice/#me>; acl:accessTo <./>;
  acl:default <./>; acl:mode acl:Read, acl:Write, acl:Control.
<#visitor> a acl:Authorization; acl:agent <{web_id}>; acl:accessTo <./>; acl:default <./>;
  acl:mode acl:Read."""
    with Client(pods, token=token) as alice:
        alice.put("/alice/photos/sea.txt", "the sea", "text/plain")
        assert alice.put("/alice/photos/.acl", rules, TURTLE).status < 300


def begin(page: Page, pods: ServerProcess, typed: str) -> None:
    page.goto(f"{pods.base_url}/.pages/sign-in")
    page.get_by_label(WEB_ID).fill(typed)
    page.get_by_role("button", name="Continue").click()


def see_the_photo(page: Page, pods: ServerProcess) -> None:
    """What every visitor is here for."""
    page.wait_for_url(f"{pods.base_url}/.pages/shared")
    page.get_by_role("link", name="photos", exact=True).click()
    page.get_by_role("link", name="sea.txt").click()
    expect(page.get_by_role("heading", name="sea.txt")).to_be_visible()
    page.goto(f"{pods.base_url}/.pages/files/alice/settings/")
    expect(page.get_by_role("heading", name="You have no access")).to_be_visible()


@IN_EVERY_WINDOW
def test_a_person_of_another_server_sees_what_was_shared(
    page: Page, pods: ServerProcess, alice: str, provider: ServerProcess, person: Account
) -> None:
    share(pods, alice, person.web_id)
    begin(page, pods, person.web_id)
    page.wait_for_url(f"{provider.base_url}/**")
    type_password(page, person.name)
    page.get_by_role("button", name="Allow", exact=True).click()
    see_the_photo(page, pods)


def test_who_declines_at_the_provider_is_told_what_to_do(
    page: Page, pods: ServerProcess, provider: ServerProcess, person: Account
) -> None:
    begin(page, pods, person.web_id)
    page.wait_for_url(f"{provider.base_url}/**")
    type_password(page, person.name)
    page.get_by_role("button", name="Do not allow").click()
    expect(page.get_by_text("The provider did not sign you in")).to_be_visible()
    expect(page.get_by_label(WEB_ID)).to_be_visible()


def tour(page: Page, pods: ServerProcess, person: Account, token: str) -> Iterator[str]:
    """The pages on which visitors sign in, and the lists of what is shared."""
    page.goto(f"{pods.base_url}/.pages/sign-in")
    yield "sign-in"
    begin(page, pods, pods.base_url)
    page.get_by_text(NOTHING_HERE).wait_for()
    yield "no provider"
    answered = page.request.post(
        f"{pods.base_url}/.pages/sign-in/elsewhere", form={"identity": person.web_id}
    )
    shown = answered.text().replace("http-equiv", "data-http-equiv")  # it would lead on at once
    page.route("**/leaving", lambda route: route.fulfill(body=shown, content_type="text/html"))
    page.goto(f"{pods.base_url}/leaving")
    page.get_by_role("link", name="Continue to").wait_for()
    yield "leaving"
    page.goto(f"{pods.base_url}/.pages/sign-in")
    page.get_by_label("Token").fill(token)
    page.get_by_role("main").get_by_role("button", name="Sign in").click()
    page.wait_for_url("**/.pages/")
    page.goto(f"{pods.base_url}/.pages/shared")
    yield "shared with nobody"
    page.get_by_role("link", name="Shared by me").click()
    page.get_by_role("link", name="Change access").first.wait_for()
    yield "shared by Alice"


def test_axe_finds_nothing_and_every_page_fits(
    page: Page, pods: ServerProcess, alice: str, person: Account, axe: str
) -> None:
    share(pods, alice, person.web_id)
    found = {name: violations(page, axe) for name in tour(page, pods, person, alice)}
    assert {name: each for name, each in found.items() if each} == {}
    assert len(found) == 5
