"""What people see of a document, and that no document can do more than be seen."""

from __future__ import annotations

import io

import pytest
from PIL import Image

from tests.support.application import Server
from tests.support.browser import Browser

FILES = "/.pages/files/alice/private/"
THUMBNAILS = "/.pages/thumbnail/alice/private/"
EVIL = "<script>alert(1)</script><img src=x onerror=alert(1)>"


async def put(server: Server, name: str, content: str | bytes, kind: str) -> None:
    answer = await server.alice.put(f"/alice/private/{name}", content, kind)
    assert answer.status in {201, 204}, answer.text


@pytest.mark.parametrize(
    ("name", "kind", "content"),
    [
        ("x.txt", "text/plain", EVIL),
        ("x.md", "text/markdown", EVIL),
        ("x.md", "text/markdown", "[a](javascript:alert(1))\n\n![b](javascript:alert(1))"),
        ("x.csv", "text/csv", f"a,b\n{EVIL},=1"),
        ("x.html", "text/html", EVIL),
        ("x.svg", "image/svg+xml", f"<svg onload='alert(1)'>{EVIL}</svg>"),
        ("x.py", "text/x-python", f"'''{EVIL}'''"),
        ("x.json", "application/json", f'["{EVIL}"]'),
        ("x.ttl", "text/turtle", f'<#me> <#p> "{EVIL}", <javascript:alert(1)> .'),
        ("x.ttl", "text/turtle", '<#me> a <https://x.example/"onmouseover="alert(1)> .'),
        ("x.jsonld", "application/ld+json", '{"@id": "javascript:alert(1)", "urn:p": "<b>"}'),
    ],
)
async def test_nothing_in_a_document_runs_on_its_page(
    server: Server, alice: Browser, name: str, kind: str, content: str
) -> None:
    answer = await server.alice.put(f"/alice/private/{name}", content, kind)
    if answer.status == 400:
        return  # not an IRI, so it is not stored at all
    for view in ("", "?view=statements", "?view=text", "?view=graph", "?view=edit"):
        page = await alice.get(f"{FILES}{name}{view}")
        assert page.status == 200
        shown = page.text.partition("<main")[2]
        assert "<script" not in shown
        assert "onerror=alert(1)>" not in shown.replace("onerror=alert(1)&gt;", "")
        assert 'href="javascript:' not in shown.lower()
        assert 'src="javascript:' not in shown.lower()
        assert "onload='" not in shown
        assert '"onmouseover="' not in shown


@pytest.mark.parametrize(
    "name", ["%22%3E%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E", "'%26lt;b%26gt;"]
)
async def test_nothing_in_a_name_runs_on_a_page(server: Server, alice: Browser, name: str) -> None:
    await put(server, name, "x", "text/plain")
    for address in (FILES, f"{FILES}?view=grid", FILES + name, "/.pages/search?q=b"):
        assert "<img src=x" not in (await alice.get(address)).text
        assert "<b>" not in (await alice.get(address)).text


async def test_a_profile_is_shown_as_a_card_in_the_readers_language(
    server: Server, alice: Browser
) -> None:
    await put(
        server,
        "me.ttl",
        """@prefix foaf: <http://xmlns.com/foaf/0.1/> .
        <#me> a foaf:Person ; foaf:name "Alice" ; foaf:knows </bob/#me> ; foaf:img <p.png> ;
            foaf:homepage <https://alice.example/> .""",
        "text/turtle",
    )
    page = await alice.get(f"{FILES}me.ttl", accept_language="de")
    assert "<bdi>Alice</bdi>" in page.text
    assert "Kennt" in page.text
    assert 'href="/.pages/files/bob/#me"' in page.text
    assert 'src="/.pages/raw/alice/private/p.png"' in page.text
    assert 'href="https://alice.example/"' in page.text
    assert 'rel="noopener noreferrer external"' in page.text


async def test_linked_data_has_its_other_views(server: Server, alice: Browser) -> None:
    await put(server, "x.ttl", "<#a> <#p> <#b>, 'text'@en .", "text/turtle")
    page = await alice.get(f"{FILES}x.ttl?view=statements")
    assert "2 statements" in page.text
    assert "&lt;#a&gt;" in page.text
    page = await alice.get(f"{FILES}x.ttl?view=graph")
    assert "<ellipse" in page.text
    page = await alice.get(f"{FILES}x.ttl?view=text&format=json-ld")
    assert "@id" in page.text
    page = await alice.get(f"{FILES}x.ttl?view=text&format=n-triples")
    assert "private/x.ttl#a&gt;" in page.text


async def test_access_rules_and_descriptions_can_be_looked_at_by_their_owner(
    server: Server, alice: Browser, bob: Browser
) -> None:
    await put(server, "x.txt", "x", "text/plain")
    assert (await alice.get("/.pages/files/alice/.acl")).status == 200
    assert (await bob.get("/.pages/files/alice/.acl")).status == 403
    assert (await alice.get(f"{FILES}x.txt.meta")).status == 200


async def test_markdown_tables_and_source_are_shown_as_what_they_are(
    server: Server, alice: Browser
) -> None:
    await put(server, "x.md", "# Title\n\n[next](y.md)", "text/markdown")
    page = await alice.get(f"{FILES}x.md")
    assert "<h2>Title</h2>" in page.text
    assert 'href="/.pages/files/alice/private/y.md"' in page.text
    await put(server, "x.csv", "a;b\n1;2\n", "text/csv")
    assert "<td>1</td><td>2</td>" in (await alice.get(f"{FILES}x.csv")).text
    await put(server, "x.py", "import os\n", "text/x-python")
    assert '<span class="hl-' in (await alice.get(f"{FILES}x.py")).text


async def test_binary_content_that_claims_to_be_text_is_not_shown(
    server: Server, alice: Browser
) -> None:
    await put(server, "x.txt", b"\x7fELF\x00\x01", "text/plain")
    page = await alice.get(f"{FILES}x.txt")
    assert "This is not text" in page.text


async def test_a_long_text_is_cut(server: Server, alice: Browser) -> None:
    await put(server, "x.txt", "long " * 200_000, "text/plain")
    page = await alice.get(f"{FILES}x.txt")
    assert len(page.text) < 700_000
    assert "longer than what is shown" in page.text


async def test_pictures_players_and_documents_use_the_raw_address(
    server: Server, alice: Browser
) -> None:
    for name, kind, element in (
        ("x.png", "image/png", "<img"),
        ("x.mp4", "video/mp4", "<video"),
        ("x.mp3", "audio/mpeg", "<audio"),
        ("x.pdf", "application/pdf", "<iframe"),
    ):
        await put(server, name, b"x", kind)
        text = (await alice.get(f"{FILES}{name}")).text
        assert element in text
        assert f'src="/.pages/raw/alice/private/{name}"' in text


def picture(colour: str) -> bytes:
    written = io.BytesIO()
    Image.new("RGB", (800, 400), colour).save(written, "PNG")
    return written.getvalue()


@pytest.mark.parametrize("kind", ["image/svg+xml", "image/x+xml", "video/x+xml; charset=utf-8"])
async def test_xml_is_downloaded_whatever_it_claims_to_be(
    server: Server, alice: Browser, kind: str
) -> None:
    await put(server, "x.bin", "<script xmlns='http://www.w3.org/1999/xhtml'>1</script>", kind)
    answer = await alice.ask("GET", "/.pages/raw/alice/private/x.bin")
    assert (answer.header("content-disposition") or "").startswith("attachment;")
    assert (answer.header("content-security-policy") or "").startswith("sandbox;")


async def test_a_thumbnail_is_made_for_each_version(server: Server, alice: Browser) -> None:
    await put(server, "p.png", picture("red"), "image/png")
    listed = await alice.get(FILES)
    address = listed.text.partition('<img src="')[2].partition('"')[0]
    assert address.startswith(f"{THUMBNAILS}p.png?v=")
    first = await alice.ask("GET", address)
    assert (first.status, first.header("content-type")) == (200, "image/webp")
    with Image.open(io.BytesIO(first.body)) as small:
        assert small.size == (320, 160)
    again = await alice.ask("GET", address)
    assert again.body == first.body
    await put(server, "p.png", picture("blue"), "image/png")
    assert (await alice.ask("GET", f"{THUMBNAILS}p.png")).body != first.body


async def test_a_thumbnail_needs_the_right_to_read_also_when_it_is_made(
    server: Server, alice: Browser, bob: Browser
) -> None:
    await put(server, "p.png", picture("red"), "image/png")
    assert (await alice.ask("GET", f"{THUMBNAILS}p.png")).status == 200
    assert (await bob.ask("GET", f"{THUMBNAILS}p.png")).status == 403


async def test_a_damaged_picture_has_an_icon(server: Server, alice: Browser) -> None:
    await put(server, "p.png", b"\x89PNG nonsense", "image/png")
    for _ in range(2):
        answer = await alice.ask("GET", f"{THUMBNAILS}p.png")
        assert (answer.status, answer.header("content-type")) == (200, "image/svg+xml")


async def test_other_content_has_no_thumbnail(server: Server, alice: Browser) -> None:
    await put(server, "p.svg", "<svg xmlns='http://www.w3.org/2000/svg'/>", "image/svg+xml")
    await put(server, "p.txt", "x", "text/plain")
    for name in ("p.svg", "p.txt", "", "absent.png"):
        assert (await alice.ask("GET", f"{THUMBNAILS}{name}")).status == 404
