"""A visitor from another server asks for access, and is told what the owner has answered."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator, Mapping

import pytest

from podstead.resources.sharing.offers import TASK
from tests.http.pod_pages.test_elsewhere import Elsewhere
from tests.http.pod_pages.test_sharing import words
from tests.support.application import BASE, Server
from tests.support.browser import Browser, Page
from tests.support.pod_pages import sign_in_by_token
from tests.support.provider import Page as Answer
from tests.support.provider import running_provider

PHOTO = "/alice/private/photo.txt"
ASK = f"/.pages/ask{PHOTO}"
REQUESTS = "/.pages/requests"
SHARED = "/.pages/shared"


@pytest.fixture
def elsewhere() -> Iterator[Elsewhere]:
    with running_provider() as provider:
        yield Elsewhere(provider)


class Inbox:
    """The inbox of Carol on her own server."""

    def __init__(self, elsewhere: Elsewhere, *, status: int = 201, url: str = "") -> None:
        self.received: list[tuple[bytes, Mapping[str, str]]] = []
        self._status = status
        provider = elsewhere.provider
        profile = provider.pages["/carol"]
        assert isinstance(profile, Answer)
        url = url or f"{provider.issuer}/carol/inbox/"
        stated = f"<#me> <http://www.w3.org/ns/ldp#inbox> <{url}>.\n".encode()
        provider.pages["/carol"] = Answer(profile.body + stated, "text/turtle")
        provider.posts["/carol/inbox/"] = self._receive

    def _receive(self, content: bytes, fields: Mapping[str, str]) -> Answer:
        self.received.append((content, fields))
        return Answer(b"", status=self._status)


async def sent() -> None:
    """Wait until no answer is on its way."""
    tasks = [task for task in asyncio.all_tasks() if task.get_name() == TASK]
    await asyncio.gather(*tasks)


async def ask(server: Server, browser: Browser, elsewhere: Elsewhere) -> Browser:
    """Carol asks for access; the browser of Alice."""
    await server.alice.put(PHOTO, "x", "text/plain")
    page = await browser.get(ASK)
    if page.path != ASK:
        page = await elsewhere.sign_in(browser, after=ASK)
    page = await browser.send(page, ASK, role="view", message="Please")
    assert "Your request was sent to the owner." in words(page)
    return await sign_in_by_token(server, server.alice)


async def refuse(alice: Browser) -> None:
    page = await alice.send(await alice.get(REQUESTS), REQUESTS)
    assert "The request was removed." in words(page)
    await sent()


async def allow(alice: Browser) -> None:
    at = f"/.pages/share{PHOTO}"
    page = await alice.get(at)
    form = next(form for form in page.forms if form.fields.get("request"))
    preview = await alice.post(at, form.fields)
    saving = next(
        form for form in preview.forms if form.fields.get("confirmed") or "request" in form.fields
    )
    saved = await alice.post(at, saving.fields)
    assert saved.status == 200
    await sent()


def answers(page: Page) -> list[str]:
    return re.findall(r"<strong>(Allowed|Refused):", page.text)


@pytest.mark.parametrize("allowed", [True, False])
async def test_the_answer_is_sent_to_the_inbox_that_the_web_id_states(
    server: Server,
    browser: Browser,
    elsewhere: Elsewhere,
    allowed: bool,
) -> None:
    inbox = Inbox(elsewhere)
    alice = await ask(server, browser, elsewhere)
    await (allow(alice) if allowed else refuse(alice))
    [(content, fields)] = inbox.received
    assert fields["Content-Type"] == "application/ld+json"
    assert {"Authorization", "Cookie"}.isdisjoint(fields)
    notification = json.loads(content)
    assert notification["type"] == ("Accept" if allowed else "Reject")
    assert notification["actor"] == server.alice_web_id
    offer = notification["object"]
    assert (offer["type"], offer["actor"]) == ("Offer", elsewhere.web_id)
    assert offer["object"]["acl:accessTo"] == {"id": f"{BASE}{PHOTO}"}
    assert answers(await browser.get(SHARED)) == []


@pytest.mark.parametrize("status", [None, 403, 500])
async def test_without_an_inbox_the_page_here_says_it(
    server: Server, browser: Browser, elsewhere: Elsewhere, status: int | None
) -> None:
    inbox = None if status is None else Inbox(elsewhere, status=status)
    alice = await ask(server, browser, elsewhere)
    await refuse(alice)
    assert inbox is None or len(inbox.received) == 1
    page = await browser.get(SHARED)
    assert answers(page) == ["Refused"]
    assert "photo.txt" in words(page)
    page = await browser.send(page, REQUESTS)
    assert page.path == SHARED
    assert "The answer was removed." in words(page)
    assert answers(page) == []


async def test_a_newer_answer_replaces_the_older_one(
    server: Server, browser: Browser, elsewhere: Elsewhere
) -> None:
    await refuse(await ask(server, browser, elsewhere))
    await allow(await ask(server, browser, elsewhere))
    page = await browser.get(SHARED)
    assert answers(page) == ["Allowed"]
    assert f'href="/.pages/files{PHOTO}"' in page.text


async def test_only_the_person_sees_and_removes_the_answer(
    server: Server, browser: Browser, elsewhere: Elsewhere
) -> None:
    await refuse(await ask(server, browser, elsewhere))
    [key] = re.findall(r'name="kept" value="([^"]+)"', (await browser.get(SHARED)).text)
    bob = await sign_in_by_token(server, server.bob)
    page = await bob.get(REQUESTS)
    assert answers(page) == []
    token = re.search(r'data-csrf-token="([0-9a-f]{64})"', page.text)
    assert token is not None
    refused = await bob.post(REQUESTS, {"csrf_token": token[1], "kept": key})
    assert refused.status == 404
    assert answers(await browser.get(SHARED)) == ["Refused"]


@pytest.mark.parametrize("url", ["http://169.254.1.1/inbox/", f"{BASE}/bob/inbox/", "mailto:x@y"])
async def test_nothing_is_sent_to_addresses_that_are_not_public_or_our_own(
    server: Server, browser: Browser, elsewhere: Elsewhere, url: str
) -> None:
    Inbox(elsewhere, url=url)
    await refuse(await ask(server, browser, elsewhere))
    assert answers(await browser.get(SHARED)) == ["Refused"]
    listed = await server.bob.get("/bob/inbox/", accept="text/turtle")
    assert "contains" not in listed.text


async def test_the_owner_does_not_wait_for_the_other_server(
    server: Server, browser: Browser, elsewhere: Elsewhere
) -> None:
    alice = await ask(server, browser, elsewhere)
    elsewhere.provider.pages["/carol"] = elsewhere.provider.stalled
    page = await alice.send(await alice.get(REQUESTS), REQUESTS)
    assert "The request was removed." in words(page)
    assert not elsewhere.provider.released.is_set()
    elsewhere.provider.released.set()
