"""A browser that opens a container or an RDF document gets to the page about it."""

from __future__ import annotations

import pytest

from tests.support.application import Server
from tests.support.browser import Browser

BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
NAVIGATION = {"Accept": BROWSER, "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
TURTLE = "text/turtle"


@pytest.fixture(autouse=True)
async def _stored(server: Server) -> None:
    await server.alice.put("/alice/public/card.ttl", "<#a> <#b> <#c>.", TURTLE)
    await server.alice.put("/alice/public/note.txt", "a note", "text/plain")
    await server.alice.put("/alice/private/card.ttl", "<#a> <#b> <#c>.", TURTLE)
    await server.alice.put("/alice/private/note.txt", "a note", "text/plain")


@pytest.mark.parametrize("headers", [NAVIGATION, {"Accept": BROWSER}, {"Accept": "text/html"}])
@pytest.mark.parametrize(
    "path",
    [
        "/alice/",
        "/alice/public/",
        "/alice/public/card.ttl",
        "/alice/public/note.txt.meta",
        "/alice/private/",
        "/alice/private/card.ttl",
        "/alice/private/note.txt",
        "/alice/private/there/is/nothing",
        "/alice/private/caf%C3%A9%2F%252E.txt",
        "/nobody/",
        "/nobody/x",
    ],
)
async def test_a_navigation_leads_to_the_page(
    server: Server, path: str, headers: dict[str, str]
) -> None:
    """What is private has the same answer, whether it exists or not."""
    answer = await server.public.request("GET", path, headers=headers)
    assert (answer.status, answer.header("location")) == (303, f"/.pages/files{path}")
    assert answer.header("cache-control") == "no-store"
    assert f'href="/.pages/files{path}"' in answer.text


async def test_what_a_browser_can_show_is_served(server: Server) -> None:
    answer = await server.public.request("GET", "/alice/public/note.txt", headers=NAVIGATION)
    assert (answer.status, answer.body) == (200, b"a note")


async def test_what_the_public_may_know_to_be_absent_is_absent(server: Server) -> None:
    answer = await server.public.request("GET", "/alice/public/nothing", headers=NAVIGATION)
    assert answer.status == 404


async def test_a_container_with_an_index_page_shows_it(server: Server) -> None:
    page = "<h1>Welcome</h1>"
    await server.alice.put("/alice/public/index.html", page, "text/html")
    await server.alice.put("/alice/private/index.html", page, "text/html")
    answer = await server.public.request("GET", "/alice/public/", headers=NAVIGATION)
    assert (answer.status, answer.text) == (200, page)
    assert (answer.header("content-security-policy") or "").startswith("sandbox")
    answer = await server.public.request("GET", "/alice/private/", headers=NAVIGATION)
    assert answer.status == 303
    answer = await server.public.get("/alice/public/", accept=TURTLE)
    assert answer.header("content-type") == TURTLE


@pytest.mark.parametrize(
    "headers",
    [
        {"Accept": "*/*"},
        {"Accept": TURTLE},
        {"Accept": f"{TURTLE}, text/html"},
        {"Accept": "application/ld+json, text/html"},
        {"Accept": BROWSER, "Sec-Fetch-Mode": "cors", "Sec-Fetch-Dest": "empty"},
        {"Accept": BROWSER, "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"},
        {"Accept": BROWSER, "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"},
    ],
)
@pytest.mark.parametrize("path", ["/alice/public/", "/alice/public/card.ttl", "/alice/private/"])
async def test_programs_are_never_redirected(
    server: Server, path: str, headers: dict[str, str]
) -> None:
    for client in (server.public, server.alice):
        answer = await client.request("GET", path, headers=headers)
        assert answer.status != 303
        assert answer.status == (401 if "private" in path and client is server.public else 200)


async def test_credentials_make_it_a_request_of_a_program(server: Server) -> None:
    answer = await server.alice.request("GET", "/alice/private/", headers=NAVIGATION)
    assert answer.header("content-type") == TURTLE


@pytest.mark.parametrize("method", ["PUT", "POST", "PATCH", "DELETE"])
async def test_only_reading_is_redirected(server: Server, method: str) -> None:
    headers = {**NAVIGATION, "Content-Type": TURTLE}
    answer = await server.public.request(method, "/alice/private/", headers=headers)
    assert answer.status == (415 if method == "PATCH" else 401)


async def test_the_page_is_that_of_the_person_who_is_signed_in(alice: Browser) -> None:
    for path in ("/alice/private/", "/alice/private/note.txt", "/alice/private/card.ttl"):
        page = await alice.get(path)
        assert (page.status, page.path) == (200, f"/.pages/files{path}")
