"""The pages about containers and documents, and the bytes that they show."""

from __future__ import annotations

import pytest

from tests.support.application import Server
from tests.support.browser import Browser

FILES = "/.pages/files"
RAW = "/.pages/raw"


async def test_a_container_lists_its_members(server: Server, alice: Browser) -> None:
    await server.alice.put("/alice/private/caf%C3%A9%2F.txt", "12345", "text/plain")
    await server.alice.put("/alice/private/photos/", None, "text/turtle")
    page = await alice.get(f"{FILES}/alice/private/")
    assert page.status == 200
    assert f'href="{FILES}/alice/private/caf%C3%A9%2F.txt"' in page.text
    assert "café/.txt" in page.text
    assert f'href="{FILES}/alice/private/photos/"' in page.text
    assert "5 B" in page.text
    assert page.text.index("photos") < page.text.index("café")


async def test_a_name_is_text_on_the_page(server: Server, alice: Browser) -> None:
    name = "%3Cscript%3Ealert(1)%3C%2Fscript%3E"
    await server.alice.put(f"/alice/private/{name}", "x", "text/plain")
    for path in ("/alice/private/", f"/alice/private/{name}"):
        page = await alice.get(FILES + path)
        assert page.status == 200
        assert "&lt;script&gt;alert(1)" in page.text
        assert "<script>alert" not in page.text


async def test_everybody_sees_what_the_gate_lets_them_see(
    server: Server, alice: Browser, bob: Browser, browser: Browser
) -> None:
    await server.alice.put("/alice/private/x.txt", "x", "text/plain")
    await server.alice.put("/alice/public/x.txt", "x", "text/plain")
    for path, status in (("/alice/private/", 403), ("/alice/private/x.txt", 403)):
        assert (await bob.get(FILES + path)).status == status
        assert (await bob.get(FILES + path + "-absent")).status == status
        assert (await browser.get(FILES + path)).path == "/.pages/sign-in"
    for person in (alice, bob, browser):
        assert (await person.get(f"{FILES}/alice/public/x.txt")).status == 200
        assert (await person.get(f"{FILES}/alice/public/absent")).status == 404
    assert (await bob.get(f"{RAW}/alice/private/x.txt")).status == 403
    assert (await browser.get(f"{RAW}/alice/private/x.txt")).path == "/.pages/sign-in"


@pytest.mark.parametrize("path", ["/.pods", "/.pages/files/alice/", "/idp/login", "/alice//x"])
async def test_there_are_no_pages_about_what_is_no_resource(alice: Browser, path: str) -> None:
    assert (await alice.get(FILES + path)).status in {400, 404}
    assert (await alice.get(RAW + path)).status in {400, 404}


async def test_a_long_container_is_listed_in_parts(server: Server, alice: Browser) -> None:
    for number in range(201):
        await server.alice.put(f"/alice/private/{number:03}.txt", "x", "text/plain")
    page = await alice.get(f"{FILES}/alice/private/")
    assert "199.txt" in page.text
    assert "200.txt</span>" not in page.text
    page = await alice.get(f"{FILES}/alice/private/?from=200")
    assert "200.txt" in page.text
    assert "199.txt</span>" not in page.text


async def test_raw_content_is_sent_in_ranges_and_once(server: Server, alice: Browser) -> None:
    await server.alice.put("/alice/private/x.png", b"0123456789", "image/png")
    whole = await alice.ask("GET", f"{RAW}/alice/private/x.png")
    assert (whole.status, whole.body) == (200, b"0123456789")
    part = await alice.ask("GET", f"{RAW}/alice/private/x.png", headers={"Range": "bytes=2-4"})
    assert (part.status, part.body) == (206, b"234")
    again = {"If-None-Match": whole.header("etag") or ""}
    assert (await alice.ask("GET", f"{RAW}/alice/private/x.png", headers=again)).status == 304


@pytest.mark.parametrize(
    ("media_type", "disposition"),
    [
        ("image/png", "inline"),
        ("video/mp4", "inline"),
        ("text/plain", "inline"),
        ("application/pdf", "inline"),
        ("image/svg+xml", "attachment"),
        ("text/html", "attachment"),
        ("application/xhtml+xml", "attachment"),
        ("text/xml", "attachment"),
        ("text/javascript", "attachment"),
        ("application/octet-stream", "attachment"),
    ],
)
async def test_raw_content_never_runs_with_the_rights_of_the_origin(
    server: Server, alice: Browser, media_type: str, disposition: str
) -> None:
    await server.alice.put("/alice/private/x%22y", "<script>1</script>", media_type)
    answer = await alice.ask("GET", f"{RAW}/alice/private/x%22y")
    policy = answer.header("content-security-policy") or ""
    assert "script" not in policy
    assert "default-src 'none'" in policy
    assert policy.startswith("sandbox;") == (media_type != "application/pdf")
    assert answer.header("x-content-type-options") == "nosniff"
    assert answer.header("content-disposition") == f"{disposition}; filename*=UTF-8''x%22y"
    assert answer.header("access-control-allow-origin") is None
    assert answer.header("cross-origin-resource-policy") == "same-origin"
    asked = await alice.ask("GET", f"{RAW}/alice/private/x%22y?download=yes")
    assert (asked.header("content-disposition") or "").startswith("attachment")


async def test_pages_have_a_strict_policy_and_are_kept_nowhere(alice: Browser) -> None:
    for path in (f"{FILES}/alice/", f"{FILES}/alice/nothing", "/.pages/components"):
        answer = (await alice.get(path)).answer
        policy = answer.header("content-security-policy") or ""
        assert "script-src 'self'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert answer.header("cache-control") == "no-store"
        assert "<style" not in answer.text
        assert " style=" not in answer.text
        assert " onclick=" not in answer.text
