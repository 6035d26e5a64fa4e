"""What somebody has changed is undone, unless somebody else has changed it since."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from podstead.features.history.undo import Actor
from podstead.storage.former_states import FormerState
from tests.features.history.test_keeping import state
from tests.support.application import Server, Start
from tests.support.asgi import Client
from tests.support.browser import Browser
from tests.support.clock import FakeClock
from tests.support.pod_pages import sign_in_by_token

FOLDER = "/alice/private/"
SINCE = "2000-01-01"


@pytest.fixture
async def server(start: Start, clock: FakeClock) -> Server:
    server = await start(clock=clock)
    for name in ("a", "b", "c", "d", "e"):
        await put(server.alice, name, "good")
    bob = f"acl:agent <{server.bob_web_id}>"
    assert (await server.put_acl(FOLDER, (bob, "+Read +Write"))).status in {201, 204}
    return server


async def put(client: Client, name: str, content: str) -> None:
    answer = await client.put(FOLDER + name, content, "text/plain")
    assert answer.status in {201, 204, 205}, answer.text


async def contents(server: Server) -> dict[str, str]:
    found = {}
    for name in ("a", "b", "c", "d", "e", "new"):
        answer = await server.alice.get(FOLDER + name)
        found[name] = answer.text if answer.status == 200 else ""
    return found


async def choose(server: Server, browser: Browser) -> str:
    """The value by which the form names Bob."""
    page = await browser.get("/.pages/undo?pod=alice")
    assert page.status == 200
    assert f"{server.bob_web_id} " in page.text
    return f"{server.bob_web_id} "


async def test_the_changes_of_a_person_are_shown_and_undone(
    server: Server, clock: FakeClock
) -> None:
    for content in ("bad", "worse"):
        clock.advance(5)
        await put(server.bob, "a", content)
    await put(server.bob, "b", "bad")
    await put(server.alice, "b", "mended by Alice")
    await put(server.bob, "c", "bad")
    for name in ("c", "d"):
        assert (await server.bob.delete(FOLDER + name)).status in {200, 204, 205}
    await put(server.bob, "new", "by Bob")
    browser = await sign_in_by_token(server, server.alice)
    who = await choose(server, browser)
    query = f"pod=alice&who={who.replace('#', '%23')}&since={SINCE}"
    page = await browser.get(f"/.pages/undo?{query}")
    assert page.text.count("The version before is restored") == 1
    assert page.text.count("Restored from the trash") == 2
    assert page.text.count("Left: somebody has changed it since") == 1
    assert (await contents(server))["a"] == "worse"
    page = await browser.send(page, "/.pages/undo/changes")
    assert "could not be undone" in page.text
    assert await contents(server) == {
        "a": "good",
        "b": "mended by Alice",
        "c": "good",
        "d": "good",
        "e": "good",
        "new": "by Bob",
    }
    # Undoing is an ordinary write: once more, there is nothing left to undo but the conflict.
    page = await browser.get(f"/.pages/undo?{query}")
    assert "Undo these changes" not in page.text


async def test_only_those_with_control_undo_in_a_pod(server: Server) -> None:
    await put(server.bob, "a", "bad")
    browser = await sign_in_by_token(server, server.bob)
    assert (await browser.get("/.pages/undo?pod=alice")).status == 404
    page = await browser.get("/.pages/undo?pod=bob")
    assert page.status == 200
    assert "alice" not in page.text.partition("<main")[2].partition("</main")[0]


def test_an_application_is_the_same_for_everybody_and_a_person_acts_without_one() -> None:
    app, alice = "https://app.example/id", "https://alice.example/#me"

    by_app = _ended_by(alice, app)
    assert Actor(None, app).ended(by_app)
    assert not Actor(alice, None).ended(by_app)
    assert Actor(alice, None).ended(_ended_by(alice, None))
    assert not Actor(alice, "https://other.example/id").ended(by_app)


def _ended_by(agent: str, client: str | None) -> FormerState:
    return replace(state("/alice/a", 5), agent=agent, client=client)
