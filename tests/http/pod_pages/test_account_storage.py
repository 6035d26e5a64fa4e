"""What takes the space of a pod, and the overview of the person's pods."""

from __future__ import annotations

import re

from tests.support.application import Server, Start, acl_turtle
from tests.support.browser import Browser, Page
from tests.support.pod_pages import sign_in_by_token, sign_in_to_account

STORAGE = "/.pages/storage"
HOME = "/.pages/"


def table(page: Page, caption: str) -> dict[str, str]:
    """The sizes in a table by the name of the row."""
    whole = re.search(rf"<caption>{caption}</caption>(.*?)</table>", page.text, re.DOTALL)
    assert whole is not None, page.text
    rows = re.findall(r"<tr>(.*?)</tr>", whole[1].partition("<tbody>")[2], re.DOTALL)
    found = {}
    for row in rows:
        cells = [re.sub(r"<[^>]+>", "", each).strip() for each in re.split(r"</t[hd]>", row)]
        found[cells[0]] = next(each for each in cells[1:] if each.endswith("B"))
    return found


async def test_space_is_shown_by_folder_and_by_kind(server: Server, alice: Browser) -> None:
    await server.alice.put("/alice/photos/a.jpg", "x" * 3000, "image/jpeg")
    await server.alice.put("/alice/photos/2026/b.jpg", "x" * 1000, "image/jpeg")
    await server.alice.put("/alice/film.mp4", "x" * 9000, "video/mp4")
    page = await alice.get(STORAGE)
    assert page.status == 200
    folders, kinds = table(page, "By folder"), table(page, "By kind of content")
    assert folders["photos"] == "4 kB"
    assert kinds["Pictures"] == "4 kB"
    assert kinds["Videos"] == "9 kB"
    assert list(table(page, "Largest files"))[:2] == ["film.mp4", "a.jpg"]
    assert "/.acl" not in page.text
    await server.alice.delete("/alice/film.mp4")
    assert "Videos" not in table(await alice.get(STORAGE), "By kind of content")


async def test_the_quota_is_shown_as_a_bar_and_in_words(start: Start) -> None:
    server = await start(quota_bytes=100_000)
    alice = await sign_in_by_token(server, server.alice)
    await server.alice.put("/alice/a.bin", "x" * 50_000, "application/octet-stream")
    for address in (STORAGE, HOME):
        page = await alice.get(address)
        used = re.search(r"of 100 kB used \((\d+) %\)", page.text)
        assert used is not None
        assert 50 <= int(used[1]) <= 80
        assert f'max="100" value="{used[1]}"' in page.text


async def test_only_owners_see_what_takes_the_space(
    server: Server, bob: Browser, browser: Browser
) -> None:
    await server.alice.put("/alice/secret.bin", "x" * 5000, "application/octet-stream")
    assert (await browser.get(STORAGE)).path == "/.pages/sign-in"
    assert (await bob.get(f"{STORAGE}?pod=alice")).status == 404
    assert "secret.bin" not in (await bob.get(STORAGE)).text


async def test_the_overview_has_the_addresses_that_people_need(start: Start) -> None:
    server = await start(idp=True)
    alice = await sign_in_to_account(server)
    page = await alice.get(HOME)
    assert page.status == 200
    for value in ("http://localhost:3000/alice/#me", "http://localhost:3000/alice/"):
        assert f'data-copy="{value}"' in page.text
    assert 'data-copy="http://localhost:3000"' in page.text  # the provider
    assert 'href="/.pages/activity"' in page.text


async def test_the_overview_names_no_provider_where_there_is_none(
    server: Server, alice: Browser, browser: Browser
) -> None:
    page = await alice.get(HOME)
    assert page.status == 200
    assert "Identity provider" not in page.text
    assert (await browser.get(HOME)).path == "/.pages/sign-in"


async def test_the_overview_shows_what_others_share_with_the_person(
    server: Server, alice: Browser, bob: Browser
) -> None:
    await server.alice.put("/alice/photos/sea.txt", "x", "text/plain")
    assert "Shared with you" not in (await bob.get(HOME)).text
    rules = acl_turtle("/alice/photos/", (f"acl:agent <{server.bob_web_id}>", "+Read"))
    put = await server.alice.put("/alice/photos/.acl", rules, "text/turtle")
    assert put.status == 201, put.text
    page = await bob.get(HOME)
    assert "Shared with you" in page.text
    assert 'href="/.pages/files/alice/photos/"' in page.text
    assert "Shared with you" not in (await alice.get(HOME)).text
