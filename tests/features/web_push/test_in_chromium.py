"""Notices on a device in Chromium, whose push service is replaced: what the page asks for, what the
server sends, and what the service worker shows."""

from __future__ import annotations

import json
import queue
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.browser_fixtures import axe, chromium  # noqa: F401 - fixtures
from tests.support.browser_people import PHONE_WIDTH, Window, sign_in, sign_out, violations
from tests.support.chromium import with_notifications
from tests.support.http_servers import Handler, serving
from tests.support.people import create_account
from tests.support.push_subscription import Subscription
from tests.support.server import ServerProcess, server_fixture
from tests.support.waiting import wait_until

pytestmark = pytest.mark.needs("chromium")
provider = server_fixture(["--idp"])

DEADLINE_S = 60
SUBSCRIBE = """sent => {
    const bytes = text => Uint8Array.from(
        atob(text.replaceAll("-", "+").replaceAll("_", "/")), each => each.charCodeAt(0)).buffer;
    const made = {endpoint: sent.endpoint, getKey: name => bytes(sent[name])};
    const isOn = () => sessionStorage.getItem("subscribed") !== null;
    PushManager.prototype.getSubscription = async () => isOn() ? made : null;
    PushManager.prototype.subscribe = async options => {
        const isRight = options.userVisibleOnly && options.applicationServerKey.length === 65;
        if (!isRight) throw new Error();
        sessionStorage.setItem("subscribed", "yes");
        return made;
    };
}"""
SHOWN = """() => navigator.serviceWorker.ready.then(found => found.getNotifications()).then(
    all => all.map(({title, body, data}) => ({title, body, address: data.address})))"""


@contextmanager
def running_push_service() -> Iterator[tuple[str, queue.Queue[bytes]]]:
    """Its address, and the bodies that it has taken."""
    taken: queue.Queue[bytes] = queue.Queue()

    class Taking(Handler):
        def respond(self) -> None:
            taken.put(self.body())
            self.answer(201)

    with serving(Taking) as port:
        yield f"http://localhost:{port}/", taken


@pytest.fixture
def page(chromium: Browser, provider: ServerProcess, tmp_path: Path) -> Iterator[Page]:  # noqa: F811
    with with_notifications(chromium, tmp_path, provider.base_url) as context:
        yield context.new_page()


def test_a_notice_is_shown_where_the_person_has_switched_them_on(
    page: Page,
    provider: ServerProcess,
    axe: str,  # noqa: F811
) -> None:
    with running_push_service() as (address, taken):
        subscription = Subscription(f"{address}device")
        page.add_init_script(f"({SUBSCRIBE})({json.dumps(subscription.sent)})")
        sign_in(page, provider, create_account(provider))
        page.goto(f"{provider.base_url}/.pages/notices")
        assert violations(page, axe) == {}
        with page.expect_navigation():
            page.get_by_role("button", name="Turn on in this browser").click()
        expect(page.locator("[data-push-status]")).to_have_text("This browser shows notices.")
        expect(page.get_by_role("button", name="Turn on in this browser")).to_be_hidden()
        assert violations(page, axe) == {}
        page.get_by_role("button", name="Send me one now").click()
        expect(page.get_by_text("A notice is on its way.")).to_be_visible()
        content = subscription.decrypted(taken.get(timeout=DEADLINE_S)).decode()
    session = page.context.new_cdp_session(page)
    registrations: list[str] = []
    session.on(
        "ServiceWorker.workerRegistrationUpdated",
        lambda found: registrations.extend(
            each["registrationId"] for each in found["registrations"]
        ),
    )
    session.send("ServiceWorker.enable")

    def is_known() -> bool:
        page.title()  # events come while something is asked
        return bool(registrations)

    wait_until(is_known, "the worker is known")
    session.send(
        "ServiceWorker.deliverPushMessage",
        {"origin": provider.base_url, "registrationId": registrations[0], "data": content},
    )
    wait_until(lambda: bool(page.evaluate(SHOWN)), "the notice is shown")
    assert page.evaluate(SHOWN) == [
        {
            "title": provider.base_url.partition("://")[2],
            "body": "Notices arrive here.",
            "address": "/.pages/notices",
        }
    ]


def test_whoever_signs_out_gets_no_more_notices_in_that_browser(
    page: Page, provider: ServerProcess
) -> None:
    """Without its service worker, a browser has no subscription either (Push API, section 3)."""
    registered = "() => navigator.serviceWorker.getRegistrations().then(found => found.length)"
    sign_in(page, provider, create_account(provider))
    page.goto(f"{provider.base_url}/.pages/security")
    wait_until(lambda: page.evaluate(registered) == 1, "the service worker is there")
    sign_out(page)
    wait_until(lambda: page.evaluate(registered) == 0, "the service worker is gone")


def test_who_refuses_is_told_where_to_change_that(
    chromium: Browser,  # noqa: F811
    provider: ServerProcess,
) -> None:
    with Window(PHONE_WIDTH).new_context(chromium, service_workers="allow") as context:
        page = context.new_page()
        page.add_init_script("Object.defineProperty(Notification, 'permission', {value: 'denied'})")
        sign_in(page, provider, create_account(provider))
        page.goto(f"{provider.base_url}/.pages/notices")
        expect(page.get_by_text("Change that in its settings")).to_be_visible()
        expect(page.get_by_role("button", name="Turn on in this browser")).to_be_hidden()
