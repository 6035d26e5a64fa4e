"""The first page of a person: the folders in the order of their use, and what changed last."""

from __future__ import annotations

import re

from tests.support.application import Server
from tests.support.browser import Browser, Page

HOME = "/.pages/"
TEXT = "text/plain"


def region(page: Page, title: str) -> str:
    """The section of the page with this title."""
    assert page.status == 200
    return page.text.partition(f">{title}</h2>")[2].partition("</section>")[0]


def links(html: str) -> list[str]:
    return re.findall(r'<p><a href="/\.pages/files/alice/([^"]*)"', html)


async def test_folders_stand_in_the_order_of_their_use(server: Server, alice: Browser) -> None:
    for name in ("Accounts", "Books", "Recipes"):
        await server.alice.put(f"/alice/{name}/x.txt", "x", TEXT)
    await server.alice.put("/alice/groups/x.txt", "x", TEXT)
    await server.alice.put("/alice/Books/x.txt", "y", TEXT)
    shown = links(region(await alice.get(HOME), "Your folders"))
    assert shown[:3] == ["Books/", "Recipes/", "Accounts/"]
    assert not {"private/", "public/", "groups/"} & set(shown), "nobody has used them"
    await server.alice.put("/alice/public/x.txt", "x", TEXT)
    shown = links(region(await alice.get(HOME), "Your folders"))
    assert shown[:2] == ["public/", "Books/"]


async def test_files_that_come_together_are_one_line(server: Server, alice: Browser) -> None:
    await server.alice.put("/alice/Letters/one.txt", "x", TEXT)
    for number in range(12):
        await server.alice.put(f"/alice/Trip/{number}.jpg", "x", "image/jpeg")
    await server.alice.put("/alice/Letters/two.txt", "x", TEXT)
    recent = region(await alice.get(HOME), "Recent files")
    assert links(recent) == ["Letters/two.txt", "Trip/", "Letters/one.txt"]
    assert "12 files</a>" in recent


async def test_files_of_others_are_shown_to_those_who_may_read_them(
    server: Server, alice: Browser, bob: Browser
) -> None:
    for path in ("Trip/map.txt", "Trip/days/one.txt", "Trip/secret.txt", "Diary/today.txt"):
        await server.alice.put(f"/alice/{path}", "x", TEXT)
    bob_reads = (f"acl:agent <{server.bob_web_id}>", "+Read")
    await server.put_acl("/alice/Trip/", bob_reads)
    await server.put_acl("/alice/Trip/secret.txt")
    recent = region(await bob.get(HOME), "Recent files")
    assert links(recent)[:2] == ["Trip/days/one.txt", "Trip/map.txt"]
    assert "from alice" in recent
    assert "secret" not in recent
    assert "Diary" not in recent
    await server.put_acl("/alice/Trip/")
    assert "map.txt" not in (await bob.get(HOME)).text
    assert "from alice" not in region(await alice.get(HOME), "Recent files")
