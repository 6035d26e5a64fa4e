"""The pages about containers and documents, and the bytes that they show."""

from __future__ import annotations

import threading

import pytest

from podstead.web.files.editing import ComparedLine, compared
from tests.support.application import Server
from tests.support.browser import Browser
from tests.support.pod_pages import csrf_token_of

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
    for number in range(101):
        await server.alice.put(f"/alice/private/{number:03}.txt", "x", "text/plain")
    page = await alice.get(f"{FILES}/alice/private/")
    assert "099.txt" in page.text
    assert "100.txt</span>" not in page.text
    page = await alice.get(f"{FILES}/alice/private/?from=100")
    assert "100.txt" in page.text
    assert "099.txt</span>" not in page.text


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


# --- files editing -----------------------------------------------------------------------------
#
# Creating and editing on the pages: with the checks of every write, and without losing a word.


EDITED_FILES = "/.pages/files/alice/private/"
NEW = "/.pages/new/alice/private/"
SAVE = "/.pages/save/alice/private/"


async def stored(server: Server, name: str) -> tuple[str, str | None]:
    answer = await server.alice.get(f"/alice/private/{name}")
    assert answer.status == 200, answer.text
    return answer.text, answer.header("content-type")


async def test_an_edited_text_keeps_its_type(server: Server, alice: Browser) -> None:
    kind = "text/markdown; charset=utf-8; variant=CommonMark"
    await server.alice.put("/alice/private/x.md", "\n\nold\n", kind)
    page = await alice.get(f"{EDITED_FILES}x.md?view=edit")
    assert "\n\n\nold\n</textarea>" in page.text  # HTML ignores the first line end
    page = await alice.send(page, f"{SAVE}x.md", text="new\r\nlines\r\n")
    assert page.path == f"{EDITED_FILES}x.md"
    assert "x.md was saved." in page.text
    assert await stored(server, "x.md") == ("new\nlines\n", kind)


async def test_lines_end_as_they_did_before(server: Server, alice: Browser) -> None:
    await server.alice.put("/alice/private/x.txt", "a\r\nb\r\n", "text/plain")
    page = await alice.get(f"{EDITED_FILES}x.txt?view=edit")
    await alice.send(page, f"{SAVE}x.txt", text="a\r\nc\r\n")
    assert (await stored(server, "x.txt"))[0] == "a\r\nc\r\n"


@pytest.mark.parametrize(
    ("name", "kind", "good", "bad", "place"),
    [
        ("x.ttl", "text/turtle", "<#a> <#b> 1 .", "<#a> <#b> 1 .\n<#a> <#b> oops .", (2, 11)),
        ("x.jsonld", "application/ld+json", "{}", '{\n  "@id": oops}', (2, 10)),
    ],
)
async def test_a_mistake_in_linked_data_is_marked_at_its_place(
    server: Server,
    alice: Browser,
    name: str,
    kind: str,
    good: str,
    bad: str,
    place: tuple[int, int],
) -> None:
    await server.alice.put(f"/alice/private/{name}", good, kind)
    page = await alice.get(f"{EDITED_FILES}{name}?view=edit")
    page = await alice.send(page, f"{SAVE}{name}", text=bad.replace("\n", "\r\n"))
    assert page.status == 422
    assert f"Line {place[0]}, column" in page.text
    assert "<mark>oops" in page.text
    assert "oops" in page.form(f"{SAVE}{name}").fields["text"]
    assert (await stored(server, name))[0] == good
    page = await alice.send(page, f"{SAVE}{name}", text=good)
    assert page.status == 200


async def test_when_somebody_saved_first_both_versions_are_shown(
    server: Server, alice: Browser
) -> None:
    await server.alice.put("/alice/private/x.txt", "one\ntwo\n", "text/plain")
    page = await alice.get(f"{EDITED_FILES}x.txt?view=edit")
    await server.alice.put("/alice/private/x.txt", "one\ntheirs <b>\n", "text/plain")
    page = await alice.send(page, f"{SAVE}x.txt", text="one\r\nmine\r\n")
    assert page.status == 409
    assert "<del>theirs &lt;b&gt;</del>" in page.text
    assert "<ins>mine</ins>" in page.text
    assert (await stored(server, "x.txt"))[0] == "one\ntheirs <b>\n"
    page = await alice.send(page, f"{SAVE}x.txt")
    assert page.status == 200
    assert (await stored(server, "x.txt"))[0] == "one\nmine\n"


async def test_versions_are_compared_beside_the_requests_of_others(
    server: Server, alice: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[threading.Thread] = []

    def recorded(theirs: str, mine: str) -> list[ComparedLine] | None:
        threads.append(threading.current_thread())
        return compared(theirs, mine)

    monkeypatch.setattr("podstead.web.files.editing.compared", recorded)
    await server.alice.put("/alice/private/x.txt", "one\n", "text/plain")
    page = await alice.get(f"{EDITED_FILES}x.txt?view=edit")
    await server.alice.put("/alice/private/x.txt", "theirs\n", "text/plain")
    assert (await alice.send(page, f"{SAVE}x.txt", text="mine")).status == 409
    assert len(threads) == 1
    assert threads[0] is not threading.current_thread()


async def test_a_conflict_that_is_saved_can_conflict_again(server: Server, alice: Browser) -> None:
    await server.alice.put("/alice/private/x.txt", "1", "text/plain")
    page = await alice.get(f"{EDITED_FILES}x.txt?view=edit")
    await server.alice.put("/alice/private/x.txt", "2", "text/plain")
    page = await alice.send(page, f"{SAVE}x.txt", text="mine")
    await server.alice.put("/alice/private/x.txt", "3", "text/plain")
    page = await alice.send(page, f"{SAVE}x.txt")
    assert page.status == 409
    assert (await stored(server, "x.txt"))[0] == "3"


async def test_those_who_may_only_read_cannot_save(
    server: Server, alice: Browser, bob: Browser
) -> None:
    await server.alice.put("/alice/public/x.txt", "x", "text/plain")
    page = await bob.get("/.pages/files/alice/public/x.txt?view=edit")
    assert "<textarea" not in page.text
    sent = {"text": "bob's", "tag": "*", "csrf_token": csrf_token_of(page)}
    answer = await bob.post("/.pages/save/alice/public/x.txt", sent)
    assert answer.status == 403
    assert (await server.alice.get("/alice/public/x.txt")).text == "x"


@pytest.mark.parametrize("address", [f"{SAVE}x.txt", NEW])
async def test_forms_of_other_sites_change_nothing(
    server: Server, alice: Browser, address: str
) -> None:
    await server.alice.put("/alice/private/x.txt", "x", "text/plain")
    page = await alice.get(f"{EDITED_FILES}x.txt?view=edit")
    fields = {"text": "evil", "tag": "", "kind": "folder", "name": "evil"}
    answer = await alice.post(address, fields)
    assert answer.status == 403
    stolen = {**fields, "csrf_token": csrf_token_of(page)}
    answer = await alice.post(address, stolen, Sec_Fetch_Site="cross-site")
    assert answer.status == 403
    assert (await stored(server, "x.txt"))[0] == "x"
    assert (await server.alice.get("/alice/private/evil/")).status == 404


async def test_a_text_that_is_not_utf_8_is_not_edited(server: Server, alice: Browser) -> None:
    await server.alice.put("/alice/private/x.txt", b"caf\xe9", "text/plain; charset=iso-8859-1")
    page = await alice.get(f"{EDITED_FILES}x.txt?view=edit")
    assert "<textarea" not in page.text
    assert "cannot be edited here" in page.text


@pytest.mark.parametrize(
    ("kind", "name", "path", "content_type"),
    [
        ("text", "My notes", "My%20notes.txt", "text/plain"),
        ("text", "x.TXT", "x.TXT", "text/plain"),
        ("markdown", "résumé", "r%C3%A9sum%C3%A9.md", "text/markdown"),
        ("linked-data", "data", "data.ttl", "text/turtle"),
    ],
)
async def test_a_new_document_opens_for_writing(
    server: Server, alice: Browser, kind: str, name: str, path: str, content_type: str
) -> None:
    page = await alice.get(f"{NEW}?kind={kind}")
    page = await alice.send(page, NEW, name=name)
    assert page.url.endswith(f"{EDITED_FILES}{path}?view=edit")
    assert "<textarea" in page.text
    assert (await stored(server, path))[1] == content_type


async def test_a_new_folder(server: Server, alice: Browser) -> None:
    page = await alice.get(f"{NEW}?kind=folder")
    page = await alice.send(page, NEW, name="Holidays 2026")
    assert page.path == EDITED_FILES
    assert "The folder Holidays 2026 was created." in page.text
    assert (await server.alice.get("/alice/private/Holidays%202026/")).status == 200


@pytest.mark.feature("previews")
async def test_a_new_contact_and_a_new_bookmark(server: Server, alice: Browser) -> None:
    page = await alice.get(f"{NEW}?kind=contact")
    page = await alice.send(
        page,
        NEW,
        name='Bob "the" <b>',
        email="bob@example.org",
        telephone="+49 (30) 123-45",
        note="met at </script>",
    )
    assert page.status == 200, page.text
    assert "bob@example.org" in page.text
    assert 'href="tel:+4930123-45"' in page.text
    assert "met at &lt;/script&gt;" in page.text
    page = await alice.get(f"{NEW}?kind=bookmark")
    page = await alice.send(page, NEW, name="Solid", address="https://solidproject.org/a?b=c#d")
    assert 'href="https://solidproject.org/a?b=c#d"' in page.text
    assert "Bookmark" in page.text


@pytest.mark.parametrize(
    ("kind", "fields", "mistake"),
    [
        ("folder", {"name": ""}, "A name is needed."),
        ("folder", {"name": "a/b"}, "no slash"),
        ("folder", {"name": ".."}, "does not begin with a dot"),
        ("folder", {"name": ".acl"}, "does not begin with a dot"),
        ("folder", {"name": "a\x07"}, "This name cannot be used."),
        ("folder", {"name": "taken"}, "here already"),
        ("bookmark", {"name": "x", "address": "javascript:alert(1)"}, "not the address"),
        (
            "bookmark",
            {"name": "x", "address": "https://x.example/> <#p> <#o> ."},
            "not the address",
        ),
        ("bookmark", {"name": "x", "address": "https://x.example/[a]"}, "not the address"),
        ("contact", {"name": "x", "email": "a@b> <c"}, "not an e-mail address"),
        ("contact", {"name": "x", "email": "a[@b"}, "not an e-mail address"),
        ("contact", {"name": "x", "telephone": "1;phone-context=x"}, "not a telephone number"),
    ],
)
async def test_mistakes_are_shown_at_their_field(
    server: Server, alice: Browser, kind: str, fields: dict[str, str], mistake: str
) -> None:
    await server.alice.put("/alice/private/taken/", None, "text/turtle")
    page = await alice.get(f"{NEW}?kind={kind}")
    page = await alice.send(page, NEW, **fields)
    assert page.status == 422
    assert mistake in page.text
    assert 'aria-invalid="true"' in page.text


async def test_nothing_is_created_where_the_person_may_not(
    server: Server, alice: Browser, bob: Browser
) -> None:
    page = await bob.get("/.pages/files/bob/")
    sent = {"kind": "folder", "name": "x", "csrf_token": csrf_token_of(page)}
    assert (await bob.post(NEW, sent)).status == 403
    assert (await server.alice.get("/alice/private/x/")).status == 404
    assert (await alice.get(f"{NEW}?kind=nonsense")).status == 404
    assert (await alice.get("/.pages/new/alice/private/x.txt?kind=text")).status == 404
