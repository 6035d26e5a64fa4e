"""The versions of documents: by Memento (RFC 7089), and on the pages."""

from __future__ import annotations

import re
from email.utils import formatdate

import pytest

from tests.support.application import BASE, Server, Start
from tests.support.asgi import Answer, Client
from tests.support.clock import FakeClock
from tests.support.pod_pages import sign_in_by_token
from tests.support.rdf import TURTLE

DOCUMENT = "/alice/private/a.txt"
GATE, MAP = f"/.history/timegate{DOCUMENT}", f"/.history/timemap{DOCUMENT}"
LARGE = "y" * 200_000
_MEMENTO = re.compile(r'<([^>]*)>; rel="([^"]*memento)"; datetime="([^"]*)"')


@pytest.fixture
async def server(start: Start, clock: FakeClock) -> Server:
    return await start(clock=clock)


async def write(
    client: Client, *contents: str, clock: FakeClock, path: str = DOCUMENT
) -> list[int]:
    """Write one version after the other; their times in Unix seconds."""
    times = []
    for content in contents:
        clock.advance(60)
        times.append(clock.now_ms() // 1000)
        answer = await client.put(DOCUMENT, content, "text/plain")
        assert answer.status in {201, 204, 205}, answer.text
    return times


def at(unix_s: int) -> dict[str, str]:
    return {"Accept-Datetime": formatdate(unix_s, usegmt=True)}


async def mementos(client: Client, target: str = MAP) -> list[tuple[str, str, str]]:
    """The addresses, relations and times of a timemap."""
    answer = await client.get(target)
    assert answer.status == 200, answer.text
    assert answer.header("content-type") == "application/link-format"
    return [(url.removeprefix(BASE), *rest) for url, *rest in _MEMENTO.findall(answer.text)]


async def through_gate(client: Client, unix_s: int | None = None) -> Answer:
    answer = await client.request("GET", GATE, headers={} if unix_s is None else at(unix_s))
    assert answer.status == 302, answer.text
    assert "accept-datetime" in (answer.header("vary") or "").lower()
    assert f'<{BASE}{DOCUMENT}>; rel="original"' in (answer.header("link") or "")
    location = answer.header("location")
    assert location is not None
    return await client.get(location.removeprefix(BASE))


async def test_the_original_leads_to_its_timegate_and_timemap(
    server: Server, clock: FakeClock
) -> None:
    await write(server.alice, "one", clock=clock)
    for method in ("GET", "HEAD"):
        link = (await server.alice.request(method, DOCUMENT)).header("link") or ""
        assert f'<{BASE}{GATE}>; rel="timegate"' in link
        assert f'<{BASE}{MAP}>; rel="timemap"' in link
    link = (await server.alice.get("/alice/private/")).header("link") or ""
    assert "timegate" not in link


@pytest.mark.parametrize("last", ["four", LARGE])
async def test_the_timegate_leads_to_the_version_of_a_time(
    server: Server, clock: FakeClock, last: str
) -> None:
    contents = ["one", LARGE, "three", last]
    times = await write(server.alice, *contents, clock=clock)
    for time, content in zip(times, contents, strict=True):
        for later in (0, 59):
            memento = await through_gate(server.alice, time + later)
            assert memento.text == content
            assert memento.header("memento-datetime") == formatdate(time, usegmt=True)
            link = memento.header("link") or ""
            assert f'<{BASE}{DOCUMENT}>; rel="original"' in link
            assert f'<{BASE}{GATE}>; rel="timegate"' in link
            assert f'<{BASE}{MAP}>; rel="timemap"; type="application/link-format"' in link
    assert (await through_gate(server.alice, times[0] - 1)).text == "one"
    assert (await through_gate(server.alice)).text == last
    wrong = await server.alice.request("GET", GATE, headers={"Accept-Datetime": "yesterday"})
    assert wrong.status == 400


async def test_a_version_keeps_its_address_when_it_becomes_a_former_one(
    server: Server, clock: FakeClock
) -> None:
    await write(server.alice, "one", clock=clock)
    [(address, relation, _)] = await mementos(server.alice)
    assert relation == "first last memento"
    await write(server.alice, "two", clock=clock)
    assert (await mementos(server.alice))[0][0] == address
    answer = await server.alice.get(address)
    assert (answer.status, answer.text) == (200, "one")
    assert "sandbox" in (answer.header("content-security-policy") or "")
    head = await server.alice.request("HEAD", address)
    assert (head.status, head.body, head.header("content-length")) == (200, b"", "3")
    assert (await server.alice.get(f"{address}0")).status == 404


async def test_the_timemap_as_links_and_as_linked_data(server: Server, clock: FakeClock) -> None:
    times = await write(server.alice, "one", "two", "three", clock=clock)
    answer = await server.alice.get(MAP)
    lines = answer.text.strip().split(",\n")
    assert lines[0] == f'<{BASE}{DOCUMENT}>; rel="original"'
    first, last = (formatdate(time, usegmt=True) for time in (times[0], times[-1]))
    assert f'rel="self"; type="application/link-format"; from="{first}"; until="{last}"' in lines[1]
    assert lines[2] == f'<{BASE}{GATE}>; rel="timegate"'
    relations = [relation for _, relation, _ in await mementos(server.alice)]
    assert relations == ["first memento", "memento", "last memento"]
    answer = await server.alice.request("GET", MAP, headers={"Accept": "application/ld+json"})
    assert answer.header("content-type") == "application/ld+json"
    found = answer.json()
    assert found["original"] == BASE + DOCUMENT
    assert [each["@id"].removeprefix(BASE) for each in found["memento"]] == [
        address for address, _, _ in await mementos(server.alice)
    ]


async def test_the_past_is_open_to_those_who_may_read_now_and_could_then(
    server: Server, clock: FakeClock
) -> None:
    bob = f"acl:agent <{server.bob_web_id}>"
    await write(server.alice, "private", clock=clock)
    await write(server.alice, "shared", clock=clock)
    assert (await server.put_acl(DOCUMENT, (bob, "Read"))).status == 201
    await write(server.alice, "newest", clock=clock)
    assert [(await server.bob.get(url)).text for url, *_ in await mementos(server.bob)] == [
        "shared",
        "newest",
    ]
    hidden = (await mementos(server.alice))[0][0]
    assert (await server.bob.get(hidden)).status == 404
    assert (await server.public.get(MAP)).status == 401
    assert (await server.public.get(hidden)).status == 401
    assert (await server.put_acl(DOCUMENT)).status in {200, 204, 205}
    assert (await server.bob.get(MAP)).status == 403
    assert (await server.bob.get(hidden)).status == 403
    # Bob gets it back, and with it no more than he could read then.
    await write(server.alice, "not for Bob", "again", clock=clock)
    assert (await server.put_acl(DOCUMENT, (bob, "Read"))).status in {200, 204, 205}
    assert [(await server.bob.get(url)).text for url, *_ in await mementos(server.bob)] == [
        "shared",
        "again",
    ]


async def test_what_has_no_versions_answers_as_the_resource_does(
    server: Server, clock: FakeClock
) -> None:
    await write(server.alice, "one", "two", clock=clock)
    for path in ("/alice/private/", "/alice/private/none", f"{DOCUMENT}.acl", "/.pages/files"):
        for place in ("timegate", "timemap", "version"):
            assert (await server.alice.get(f"/.history/{place}{path}")).status == 404
    [address, *_] = [url for url, *_ in await mementos(server.alice)]
    assert (await server.alice.delete(DOCUMENT)).status in {200, 204, 205}
    assert (await server.alice.get(MAP)).status == 404
    assert (await server.alice.get(address)).status == 404
    # What is created there later has no versions from before.
    await write(server.alice, "another", clock=clock)
    assert len(await mementos(server.alice)) == 1


async def test_versions_follow_a_move_and_a_restoration(server: Server, clock: FakeClock) -> None:
    await write(server.alice, "one", "two", clock=clock)
    moved = "/alice/private/b.txt"
    headers = {"Destination": BASE + moved}
    assert (await server.alice.request("MOVE", DOCUMENT, headers=headers)).status == 201
    found = await mementos(server.alice, f"/.history/timemap{moved}")
    assert [(await server.alice.get(url)).text for url, *_ in found] == ["one", "two"]
    assert (await server.alice.delete(moved)).status in {200, 204, 205}
    [item] = (await server.alice.get("/.history/trash/alice/")).json()["items"]
    assert (await server.alice.request("POST", item["id"].removeprefix(BASE))).status == 201
    found = await mementos(server.alice, f"/.history/timemap{moved}")
    assert [(await server.alice.get(url)).text for url, *_ in found] == ["one", "two"]


@pytest.mark.parametrize("keep_deleted", [30, 0])
async def test_a_document_has_no_versions_of_another_that_was_there(
    start: Start, clock: FakeClock, keep_deleted: int
) -> None:
    server = await start(clock=clock, keep_deleted=keep_deleted)
    await write(server.alice, "one", "two", clock=clock)
    assert (await server.alice.delete(DOCUMENT)).status in {200, 204, 205}
    await write(server.alice, "another", clock=clock)
    for item in (await server.alice.get("/.history/trash/alice/")).json()["items"]:
        answer = await server.alice.request("POST", item["id"].removeprefix(BASE))
        assert answer.header("location") == f"{BASE}/alice/private/a-2.txt"
    assert len(await mementos(server.alice)) == 1


async def test_the_pages_list_show_compare_and_restore(server: Server, clock: FakeClock) -> None:
    await write(server.alice, "same\nold line", "same\nnew <line>", clock=clock)
    browser = await sign_in_by_token(server, server.alice)
    page = await browser.get(f"/.pages/files{DOCUMENT}")
    assert f"/.pages/versions{DOCUMENT}" in page.text
    page = await browser.get(f"/.pages/versions{DOCUMENT}")
    assert page.status == 200
    [version] = set(re.findall(r"compare[^?]*\?version=([0-9a-f]{16})", page.text))
    shown = await browser.get(f"/.pages/version{DOCUMENT}?version={version}")
    assert shown.text == "same\nold line"
    compared = await browser.get(f"/.pages/compare{DOCUMENT}?version={version}")
    assert "<del>old line</del>" in compared.text
    assert "<ins>new &lt;line&gt;</ins>" in compared.text
    assert "<td>same</td><td>same</td>" in compared.text
    await write(server.alice, "meanwhile", clock=clock)
    later = await browser.send(page, f"/.pages/versions{DOCUMENT}")
    assert "in the meantime" in later.text
    assert (await server.alice.get(DOCUMENT)).text == "meanwhile"
    page = await browser.send(later, f"/.pages/versions{DOCUMENT}")
    assert page.path == f"/.pages/files{DOCUMENT}"
    assert (await server.alice.get(DOCUMENT)).text != "meanwhile"


async def test_linked_data_is_compared_by_statements(server: Server, clock: FakeClock) -> None:
    path = "/alice/private/d.ttl"
    for content in ("<#a> <#p> 1 . <#b> <#p> 2 .", "<#b> <#p> 2 . <#c> <#p> 3 ."):
        clock.advance(5)
        assert (await server.alice.put(path, content, TURTLE)).status in {201, 204, 205}
    browser = await sign_in_by_token(server, server.alice)
    page = await browser.get(f"/.pages/versions{path}")
    [version] = set(re.findall(r"compare[^?]*\?version=([0-9a-f]{16})", page.text))
    compared = await browser.get(f"/.pages/compare{path}?version={version}")
    assert f"{path}#a&gt;" in compared.text
    assert f"{path}#c&gt;" in compared.text
    assert f"{path}#b&gt;" not in compared.text


async def test_without_versions_there_are_no_links_and_no_addresses(start: Start) -> None:
    server = await start(keep_versions=0)
    assert (await server.alice.put(DOCUMENT, "one", "text/plain")).status == 201
    assert "timegate" not in ((await server.alice.get(DOCUMENT)).header("link") or "")
    assert (await server.alice.get(MAP)).status == 404
