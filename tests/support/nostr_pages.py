"""A browser of somebody who holds a Nostr key, without its script: that is done here."""

from __future__ import annotations

import json
from typing import Any

from podstead.core.clock import Clock
from tests.support.asgi import Answer
from tests.support.browser import Browser
from tests.support.nostr import Change, Json, NostrKey, nostr, with_tag

KEYS = "/idp/account/nostr"
LOGIN = "/idp/nostr/login"
SCRIPT = {
    "Accept": "application/json",
    "Content-Type": "application/json",
    "Sec-Fetch-Site": "same-origin",
}


async def challenge(browser: Browser, purpose: str = "link") -> Answer:
    """Ask for a challenge."""
    body = json.dumps({"purpose": purpose}).encode()
    return await browser.ask("POST", "/idp/nostr/challenge", headers=SCRIPT, body=body)


async def asked(browser: Browser, purpose: str = "link") -> dict[str, Any]:
    """What an event is to say."""
    answer = await challenge(browser, purpose)
    assert answer.status == 200, answer.text
    members: dict[str, Any] = answer.json()
    return members


async def signed(
    browser: Browser, clock: Clock, key: NostrKey, *changes: Change, purpose: str = "link"
) -> Json:
    """An event for a fresh challenge."""
    members = await asked(browser, purpose)
    tag = with_tag("challenge", members["challenge"])
    return key.event(members["method"], members["u"], clock.now_ms() // 1000, tag, *changes)


async def send(browser: Browser, event: Json, sent: object = None) -> Answer:
    """Send the event that links its key."""
    body = None if sent is None else json.dumps(sent).encode()
    return await browser.ask("POST", KEYS, headers=SCRIPT | nostr(event), body=body)


async def link(
    browser: Browser, clock: Clock, key: NostrKey, *changes: Change, sent: object = None
) -> Answer:
    """Link a key to the account that the browser is signed in to."""
    return await send(browser, await signed(browser, clock, key, *changes), sent)


async def keys(browser: Browser) -> list[dict[str, Any]]:
    """The keys that are linked."""
    answer = await browser.ask("GET", KEYS, headers=SCRIPT)
    assert answer.status == 200, answer.text
    listed: list[dict[str, Any]] = answer.json()["keys"]
    return listed


async def log_in(
    browser: Browser, clock: Clock, key: NostrKey, *changes: Change, sent: object = None
) -> Answer:
    """Sign in without an application."""
    event = await signed(browser, clock, key, *changes, purpose="sign-in")
    body = None if sent is None else json.dumps(sent).encode()
    return await browser.ask("POST", LOGIN, headers=SCRIPT | nostr(event), body=body)
