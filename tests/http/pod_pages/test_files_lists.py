"""Lists of members: sorted, filtered, in parts, with who can see each one."""

from __future__ import annotations

import asyncio
import io
import re
from collections import Counter

import pytest
from PIL import Image

from podstead.core.identifiers import ResourcePath
from podstead.core.request_context import requester
from podstead.resources.outcome import ListedMembers, ResourceRequest
from podstead.resources.service import ResourceService
from tests.support.application import Server, Start
from tests.support.browser import Browser, Page
from tests.support.features import ONLY_NAMES
from tests.support.pod_pages import csrf_token_of, sign_in_by_token

LIST = "/.pages/files/alice/private/"
RULES = """
    @prefix acl: <http://www.w3.org/ns/auth/acl#> . @prefix foaf: <http://xmlns.com/foaf/0.1/> .
    <#o> a acl:Authorization ; acl:agent </alice/#me> ; acl:accessTo <{name}> ;
        acl:mode acl:Read, acl:Write, acl:Control .
    <#r> a acl:Authorization ; {who} ; acl:accessTo <{name}> ; acl:mode acl:Read .
"""


async def put(server: Server, name: str, content: str = "x", kind: str = "text/plain") -> None:
    answer = await server.alice.put(f"/alice/private/{name}", content, kind)
    assert answer.status in {201, 204}


def names(page: Page) -> list[str]:
    return re.findall(r'data-name="([^"]*)"', page.text)


async def test_folders_come_first_and_numbers_are_in_their_order(
    server: Server, alice: Browser
) -> None:
    for name in ("page%2010.txt", "page%209.txt", "Apple.txt", "banana.txt"):
        await put(server, name)
    await server.alice.put("/alice/private/zoo/", None, "text/turtle")
    page = await alice.get(LIST)
    assert names(page) == ["zoo", "Apple.txt", "banana.txt", "page 9.txt", "page 10.txt"]
    page = await alice.get(f"{LIST}?sort=-name")
    assert names(page) == ["zoo", "page 10.txt", "page 9.txt", "banana.txt", "Apple.txt"]


async def test_the_folders_of_applications_are_listed_last_and_when_asked_for(
    server: Server, alice: Browser
) -> None:
    await put(server, "settings/x.txt")
    root = "/.pages/files/alice/"
    page = await alice.get(root)
    assert names(page) == ["private"], "the other one is empty"
    assert "Used by apps (4)" in page.text
    page = await alice.get(f"{root}?apps=yes")
    assert names(page) == ["private", "inbox", "profile", "public", "settings"]
    assert names(await alice.get(f"{root}?filter=set")) == ["settings"]
    assert names(await alice.get(LIST)) == ["settings"]


async def test_a_list_can_be_sorted_by_each_column(server: Server, alice: Browser) -> None:
    await put(server, "small.txt", "x")
    await put(server, "large.md", "x" * 50, "text/markdown")
    assert names(await alice.get(f"{LIST}?sort=-size")) == ["large.md", "small.txt"]
    assert names(await alice.get(f"{LIST}?sort=size")) == ["small.txt", "large.md"]
    assert names(await alice.get(f"{LIST}?sort=type")) == ["large.md", "small.txt"]
    page = await alice.get(f"{LIST}?sort=nonsense&from=x&view=?")
    assert names(page) == ["large.md", "small.txt"]
    assert 'aria-sort="ascending"' in page.text


async def test_a_list_can_be_filtered(server: Server, alice: Browser) -> None:
    await put(server, "caf%C3%A9.txt")
    await put(server, "tea.txt")
    assert names(await alice.get(f"{LIST}?filter=CAF%C3%89")) == ["café.txt"]
    page = await alice.get(f"{LIST}?filter=%22%3E%3Cscript%3E")
    assert names(page) == []
    assert "<script>" not in page.text


async def test_the_list_changes_with_what_is_in_it(server: Server, alice: Browser) -> None:
    await put(server, "a.txt")
    assert names(await alice.get(LIST)) == ["a.txt"]
    await put(server, "b.txt", "xx")
    assert names(await alice.get(LIST)) == ["a.txt", "b.txt"]
    await put(server, "b.txt", "xxx")
    assert "3 B" in (await alice.get(LIST)).text
    await server.alice.delete("/alice/private/a.txt")
    assert names(await alice.get(LIST)) == ["b.txt"]


async def test_what_is_remembered_for_one_person_is_not_shown_to_another(
    server: Server, alice: Browser, bob: Browser, browser: Browser
) -> None:
    await put(server, "secret.txt")
    assert names(await alice.get(LIST)) == ["secret.txt"]
    assert (await bob.get(LIST)).status == 403
    assert "secret.txt" not in (await bob.get(f"{LIST}?part=rows")).text
    assert "secret.txt" not in (await browser.get(LIST)).text


async def test_rows_follow_without_the_rest_of_the_page(server: Server, alice: Browser) -> None:
    for number in range(130):
        await put(server, f"{number}.txt")
    page = await alice.get(LIST)
    assert len(names(page)) == 100
    assert 'href="?from=100"' in page.text
    rows = await alice.get(f"{LIST}?from=100&part=rows")
    assert names(rows) == [f"{number}.txt" for number in range(100, 130)]
    assert "<html" not in rows.text
    assert "Show more" not in rows.text


async def test_the_owner_sees_who_can_see_each_member(server: Server, alice: Browser) -> None:
    for name in ("mine.txt", "bobs.txt", "all.txt"):
        await put(server, name)
    who = {"bobs.txt": "acl:agent </bob/#me>", "all.txt": "acl:agentClass foaf:Agent"}
    for name, agent in who.items():
        await put(server, f"{name}.acl", RULES.format(name=name, who=agent), "text/turtle")
    text = (await alice.get(LIST)).text
    row = r'data-name="([^"]*)".*?<td class="reach"><span title="([^"]*)"'
    shown = re.findall(row, text, re.DOTALL)
    assert shown == [
        ("all.txt", "Everyone"),
        ("bobs.txt", "Certain people"),
        ("mine.txt", "Only you"),
    ]


async def test_visitors_do_not_see_who_else_may(server: Server, browser: Browser) -> None:
    await server.alice.put("/alice/public/x.txt", "x", "text/plain")
    text = (await browser.get("/.pages/files/alice/public/")).text
    assert 'title="Everyone"' in text
    assert "Only" not in text
    assert 'class="quiet author"' not in text


async def test_the_list_says_that_everyone_sees_what_is_in_it(
    server: Server, alice: Browser, browser: Browser
) -> None:
    """Also of what only the owner can open; not where only the owner can list."""
    await server.alice.put("/alice/public/x.txt", "x", "text/plain")
    rules = RULES.format(name="x.txt", who="acl:agent </alice/#me>")
    assert (await server.alice.put("/alice/public/x.txt.acl", rules, "text/turtle")).status == 201
    said = "Everyone can see that these exist"
    public = (await alice.get("/.pages/files/alice/public/")).text
    assert said in public
    assert 'title="Only you. Everyone can see that it exists."' in public
    for hidden in ("/.pages/files/alice/", LIST):
        text = (await alice.get(hidden)).text
        assert said not in text
        assert "that it exists" not in text
    shared = (await alice.get("/.pages/share/alice/public/")).text
    assert "Everyone can see that the files and folders in here exist" in shared
    root = (await alice.get("/.pages/share/alice/")).text
    assert "in here exist" not in root
    assert "lets people read the profile, but not the list of what is here" in root
    assert said not in (await browser.get("/.pages/files/alice/public/")).text


async def test_a_friend_sees_whose_pod_it_is_and_what_is_shared_there(server: Server) -> None:
    await server.alice.put("/alice/trip/a.txt", "x", "text/plain")
    await server.alice.put("/alice/closed/b.txt", "x", "text/plain")
    bob = await sign_in_by_token(server, server.bob)
    page = await bob.get("/.pages/files/alice/")
    assert "alice shares nothing with you yet." in page.text
    assert 'href="/.pages/ask/alice/"' in page.text
    await server.put_acl("/alice/trip/", (f"acl:agent <{server.bob_web_id}>", "Read"))
    page = await bob.get("/.pages/files/alice/")
    assert 'href="/.pages/files/alice/trip/"' in page.text
    assert "closed" not in page.text
    await server.put_acl("/alice/")
    for browser in (bob, Browser(server.application)):
        assert "alice shares" not in (await browser.get("/.pages/files/alice/")).text


@pytest.mark.feature("previews")
async def test_a_visitor_of_a_pod_sees_the_profile_and_not_the_list(
    server: Server, browser: Browser
) -> None:
    await server.alice.put("/alice/a-secret.txt", "x", "text/plain")
    front = await browser.get("/.pages/files/alice/")
    assert front.status == 200
    assert "Sign in to see what alice shares with you." in front.text
    for hidden in ("a-secret", "/alice/private/", "#me&gt;", "WebID"):
        assert hidden not in front.text, hidden
    page = await browser.get("/.pages/files/alice/?view=preview")
    assert "This is the public profile of the pod." in page.text
    assert "<h1" in page.text
    assert "/alice/#me" in page.text
    for hidden in ("a-secret", "/alice/private/", "/.pages/new/", "data-events", "members"):
        assert hidden not in page.text, hidden
    closed = await browser.get("/.pages/files/alice/private/")
    assert closed.path == "/.pages/sign-in"


async def test_the_owner_sees_who_changed_what(server: Server, alice: Browser) -> None:
    await put(server, "shared.txt")
    rules = RULES.format(name="shared.txt", who="acl:agent </bob/#me>").replace(
        "acl:mode acl:Read .", "acl:mode acl:Read, acl:Write ."
    )
    await put(server, "shared.txt.acl", rules, "text/turtle")
    assert 'author">You<' in (await alice.get(LIST)).text
    answer = await server.bob.put("/alice/private/shared.txt", "bob's", "text/plain")
    assert answer.status == 204
    assert 'author">bob<' in (await alice.get(LIST)).text


async def test_only_those_who_may_create_are_offered_to(
    server: Server, alice: Browser, browser: Browser
) -> None:
    await server.alice.put("/alice/public/x.txt", "x", "text/plain")
    address = "/.pages/files/alice/public/"
    assert "/.pages/new/alice/public/" in (await alice.get(address)).text
    assert "/.pages/new/" not in (await browser.get(address)).text


async def test_the_grid_has_tiles(server: Server, alice: Browser) -> None:
    await put(server, "a.txt")
    page = await alice.get(f"{LIST}?view=grid")
    assert names(page) == ["a.txt"]
    assert '<ul class="tiles"' in page.text


async def test_search_finds_names_below_and_nothing_that_is_hidden(start: Start) -> None:
    server = await start(**ONLY_NAMES)
    alice = await sign_in_by_token(server, server.alice)
    bob = await sign_in_by_token(server, server.bob)
    await put(server, "deep/deeper/needle%201.txt")
    await server.alice.put("/alice/public/open/needle%202.txt", "x", "text/plain")
    page = await alice.get("/.pages/search?q=NEEDLE")
    assert "needle 1.txt" in page.text
    assert "needle 2.txt" in page.text
    assert "alice / private / deep / deeper" in page.text
    page = await bob.get("/.pages/search?q=needle&in=/alice/public/")
    assert "needle 2.txt" in page.text
    page = await bob.get("/.pages/search?q=needle&in=/alice/")
    assert "needle 1.txt" not in page.text
    assert (await bob.get("/.pages/search?q=x&in=/alice/private/")).status == 403
    for place in ("/.pages/", "alice", "/alice/private/x", "%2F..%2F", "/alice//"):
        assert (await bob.get(f"/.pages/search?q=x&in={place}")).status in {400, 404}


async def test_searches_of_one_network_wait_for_each_other_only(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = await start(**ONLY_NAMES)
    running, most = Counter[str](), Counter[str]()
    members = ResourceService.members

    async def counted(
        self: ResourceService,
        request: ResourceRequest,
        *,
        after: ResourcePath | None = None,
        limit: int,
    ) -> ListedMembers:
        running[requester()] += 1
        most.update({requester(): 0})
        most[requester()] = max(most[requester()], running[requester()])
        most["in all"] = max(most["in all"], running.total())
        await asyncio.sleep(0)
        try:
            return await members(self, request, after=after, limit=limit)
        finally:
            running[requester()] -= 1

    monkeypatch.setattr(ResourceService, "members", counted)
    await server.alice.put("/alice/public/needle.txt", "x", "text/plain")
    peers = ["2001:db8::1", "2001:db8::2", "2001:db8::3", "10.1.2.3"]
    pages = await asyncio.gather(
        *(
            Browser(server.application, peer=peer).get("/.pages/search?q=needle&in=/alice/public/")
            for peer in peers
        )
    )
    assert all("needle.txt" in page.text for page in pages)
    assert most["2001:db8::/64"] == 1
    assert most["in all"] == 2


async def test_a_kept_page_is_not_shown_after_access_is_taken_away(
    server: Server, alice: Browser, bob: Browser
) -> None:
    rules = RULES.format(name="./", who="acl:agent </bob/#me>")
    await put(server, "x.txt")
    await put(server, ".acl", rules, "text/turtle")
    for _ in range(2):
        assert names(await bob.get(LIST)) == ["x.txt"]
    await put(server, ".acl", rules.replace("/bob/#me", "/nobody/#me"), "text/turtle")
    assert (await bob.get(LIST)).status == 403
    assert names(await alice.get(LIST)) == ["x.txt"]


async def test_a_kept_page_is_that_of_one_session(server: Server, alice: Browser) -> None:
    await put(server, "x.txt")
    first = await alice.get(LIST)
    assert (await alice.get(LIST)).text == first.text
    other = await sign_in_by_token(server, server.alice)
    assert csrf_token_of(await other.get(LIST)) != csrf_token_of(first)
    await alice.send(first, "/.pages/sign-out")
    assert (await alice.get(LIST)).path == "/.pages/sign-in"


async def test_a_notice_is_shown_once_although_pages_are_kept(
    server: Server, alice: Browser
) -> None:
    await alice.get(LIST)
    page = await alice.get("/.pages/new/alice/private/?kind=folder")
    page = await alice.send(page, "/.pages/new/alice/private/", name="made")
    assert "The folder made was created." in page.text
    assert "was created" not in (await alice.get(LIST)).text
    assert "was created" not in (await alice.get(LIST)).text


# --- What people see of a document, and that no document can do more than be seen --------------


FILES = "/.pages/files/alice/private/"
THUMBNAILS = "/.pages/thumbnail/alice/private/"
EVIL = "<script>alert(1)</script><img src=x onerror=alert(1)>"


async def put_previewed(server: Server, name: str, content: str | bytes, kind: str) -> None:
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
    await put_previewed(server, name, "x", "text/plain")
    for address in (FILES, f"{FILES}?view=grid", FILES + name, "/.pages/search?q=b"):
        assert "<img src=x" not in (await alice.get(address)).text
        assert "<b>" not in (await alice.get(address)).text


@pytest.mark.feature("previews")
async def test_a_profile_is_shown_as_a_card_in_the_readers_language(
    server: Server, alice: Browser
) -> None:
    await put_previewed(
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


@pytest.mark.feature("previews")
async def test_linked_data_has_its_other_views(server: Server, alice: Browser) -> None:
    await put_previewed(server, "x.ttl", "<#a> <#p> <#b>, 'text'@en .", "text/turtle")
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
    await put_previewed(server, "x.txt", "x", "text/plain")
    assert (await alice.get("/.pages/files/alice/.acl")).status == 200
    assert (await bob.get("/.pages/files/alice/.acl")).status == 403
    assert (await alice.get(f"{FILES}x.txt.meta")).status == 200


@pytest.mark.feature("previews")
async def test_markdown_tables_and_source_are_shown_as_what_they_are(
    server: Server, alice: Browser
) -> None:
    await put_previewed(server, "x.md", "# Title\n\n[next](y.md)", "text/markdown")
    page = await alice.get(f"{FILES}x.md")
    assert "<h2>Title</h2>" in page.text
    assert 'href="/.pages/files/alice/private/y.md"' in page.text
    await put_previewed(server, "x.csv", "a;b\n1;2\n", "text/csv")
    assert "<td>1</td><td>2</td>" in (await alice.get(f"{FILES}x.csv")).text
    await put_previewed(server, "x.py", "import os\n", "text/x-python")
    assert '<span class="hl-' in (await alice.get(f"{FILES}x.py")).text


@pytest.mark.feature("previews")
async def test_binary_content_that_claims_to_be_text_is_not_shown(
    server: Server, alice: Browser
) -> None:
    await put_previewed(server, "x.txt", b"\x7fELF\x00\x01", "text/plain")
    page = await alice.get(f"{FILES}x.txt")
    assert "This is not text" in page.text


@pytest.mark.feature("previews")
async def test_a_long_text_is_cut(server: Server, alice: Browser) -> None:
    await put_previewed(server, "x.txt", "long " * 200_000, "text/plain")
    page = await alice.get(f"{FILES}x.txt")
    assert len(page.text) < 700_000
    assert "longer than what is shown" in page.text


@pytest.mark.feature("previews")
async def test_pictures_players_and_documents_use_the_raw_address(
    server: Server, alice: Browser
) -> None:
    for name, kind, element in (
        ("x.png", "image/png", "<img"),
        ("x.mp4", "video/mp4", "<video"),
        ("x.mp3", "audio/mpeg", "<audio"),
        ("x.pdf", "application/pdf", "<iframe"),
    ):
        await put_previewed(server, name, b"x", kind)
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
    await put_previewed(
        server, "x.bin", "<script xmlns='http://www.w3.org/1999/xhtml'>1</script>", kind
    )
    answer = await alice.ask("GET", "/.pages/raw/alice/private/x.bin")
    assert (answer.header("content-disposition") or "").startswith("attachment;")
    assert (answer.header("content-security-policy") or "").startswith("sandbox;")


@pytest.mark.feature("previews")
async def test_a_thumbnail_is_made_for_each_version(server: Server, alice: Browser) -> None:
    await put_previewed(server, "p.png", picture("red"), "image/png")
    listed = await alice.get(FILES)
    address = THUMBNAILS + listed.text.partition(f'<img src="{THUMBNAILS}')[2].partition('"')[0]
    assert address.startswith(f"{THUMBNAILS}p.png?v=")
    first = await alice.ask("GET", address)
    assert (first.status, first.header("content-type")) == (200, "image/webp")
    with Image.open(io.BytesIO(first.body)) as small:
        assert small.size == (320, 160)
    again = await alice.ask("GET", address)
    assert again.body == first.body
    await put_previewed(server, "p.png", picture("blue"), "image/png")
    assert (await alice.ask("GET", f"{THUMBNAILS}p.png")).body != first.body


@pytest.mark.feature("previews")
async def test_a_thumbnail_needs_the_right_to_read_also_when_it_is_made(
    server: Server, alice: Browser, bob: Browser
) -> None:
    await put_previewed(server, "p.png", picture("red"), "image/png")
    assert (await alice.ask("GET", f"{THUMBNAILS}p.png")).status == 200
    assert (await bob.ask("GET", f"{THUMBNAILS}p.png")).status == 403


@pytest.mark.feature("previews")
async def test_a_damaged_picture_has_an_icon(server: Server, alice: Browser) -> None:
    await put_previewed(server, "p.png", b"\x89PNG nonsense", "image/png")
    for _ in range(2):
        answer = await alice.ask("GET", f"{THUMBNAILS}p.png")
        assert (answer.status, answer.header("content-type")) == (200, "image/svg+xml")


async def test_other_content_has_no_thumbnail(server: Server, alice: Browser) -> None:
    await put_previewed(
        server, "p.svg", "<svg xmlns='http://www.w3.org/2000/svg'/>", "image/svg+xml"
    )
    await put_previewed(server, "p.txt", "x", "text/plain")
    for name in ("p.svg", "p.txt", "", "absent.png"):
        assert (await alice.ask("GET", f"{THUMBNAILS}{name}")).status == 404
