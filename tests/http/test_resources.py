"""Creating, reading, replacing and deleting resources, by the requirements of the protocol."""

from __future__ import annotations

import asyncio
import re

import apsw
import pytest
import rdflib

from podstead.config import Settings
from tests.support.application import BASE, Server
from tests.support.asgi import Answer

LDP = rdflib.Namespace("http://www.w3.org/ns/ldp#")
TURTLE = "text/turtle"
BASIC_CONTAINER = '<http://www.w3.org/ns/ldp#BasicContainer>; rel="type"'


def graph(answer: Answer, url: str) -> rdflib.Graph:
    content_type = (answer.header("content-type") or "").partition(";")[0]
    return rdflib.Graph().parse(data=answer.body, format=content_type, publicID=url)


async def members(server: Server, container: str) -> set[str]:
    answer = await server.alice.get(container, accept=TURTLE)
    assert answer.status == 200
    listed = graph(answer, BASE + container)
    return {str(o) for o in listed.objects(rdflib.URIRef(BASE + container), LDP.contains)}


# --- creation ---------------------------------------------------------------------------------


async def test_put_creates_with_201_location_etag_and_links(server: Server) -> None:
    """C-1, P-25, P-30."""
    answer = await server.alice.put("/alice/private/a.ttl", "<#a> <#b> <#c>.", TURTLE)
    assert answer.status == 201
    assert answer.header("location") == f"{BASE}/alice/private/a.ttl"
    assert f'<{BASE}/alice/private/a.ttl.acl>; rel="acl"' in (answer.header("link") or "")
    read = await server.alice.get("/alice/private/a.ttl")
    assert read.status == 200
    assert read.header("etag") == answer.header("etag")
    assert read.header("last-modified") == answer.header("last-modified")


async def test_put_replaces_with_204_and_another_etag(server: Server) -> None:
    """C-1, P-25: versions change on every write, also twice within a second."""
    seen = set()
    for number in range(5):
        answer = await server.alice.put("/alice/private/a.txt", f"{number}", "text/plain")
        assert answer.status == (201 if number == 0 else 204)
        seen.add(answer.header("etag"))
    assert len(seen) == 5


async def test_put_creates_the_containers_above_and_lists_them_at_once(server: Server) -> None:
    """C-2."""
    answer = await server.alice.put("/alice/private/a/b/x.txt", "hello", "text/plain")
    assert answer.status == 201
    assert f"{BASE}/alice/private/a/" in await members(server, "/alice/private/")
    assert await members(server, "/alice/private/a/") == {f"{BASE}/alice/private/a/b/"}
    assert await members(server, "/alice/private/a/b/") == {f"{BASE}/alice/private/a/b/x.txt"}


async def test_post_creates_one_segment_below_the_container(server: Server) -> None:
    """C-3."""
    answer = await server.alice.post("/alice/private/", "hello", "text/plain")
    assert answer.status == 201
    location = answer.header("location") or ""
    assert re.fullmatch(rf"{BASE}/alice/private/[^/]+", location)
    read = await server.alice.get(location.removeprefix(BASE))
    assert (read.status, read.body) == (200, b"hello")


async def test_post_uses_a_free_slug_literally_and_never_overwrites(server: Server) -> None:
    """C-4, C-5."""
    first = await server.alice.post("/alice/private/", "1", "text/plain", slug="foobar.txt")
    second = await server.alice.post("/alice/private/", "2", "text/plain", slug="foobar.txt")
    assert first.header("location") == f"{BASE}/alice/private/foobar.txt"
    assert second.status == 201
    assert second.header("location") != first.header("location")
    assert (await server.alice.get("/alice/private/foobar.txt")).body == b"1"


async def test_post_slug_that_names_an_auxiliary_is_refused(server: Server) -> None:
    """C-5."""
    answer = await server.alice.post("/alice/private/", "x", "text/plain", slug="x.acl")
    assert answer.status == 403


async def test_post_with_container_link_creates_a_container_without_body(server: Server) -> None:
    """C-8, P-48, P-7."""
    answer = await server.alice.post(
        "/alice/private/", None, TURTLE, slug="notes", link=BASIC_CONTAINER
    )
    assert answer.status == 201
    assert answer.header("location") == f"{BASE}/alice/private/notes/"
    assert await members(server, "/alice/private/notes/") == set()


@pytest.mark.parametrize("path", ["missing/", "missing.ttl", "missing/deep/"])
async def test_post_to_nothing_is_404_and_creates_nothing(server: Server, path: str) -> None:
    """C-6."""
    answer = await server.alice.post(f"/alice/private/{path}", "x", "text/plain")
    assert answer.status == 404
    assert (await server.alice.get(f"/alice/private/{path}")).status == 404
    assert await members(server, "/alice/private/") == set()


@pytest.mark.parametrize("method", ["GET", "HEAD", "DELETE"])
@pytest.mark.parametrize("path", ["missing.ttl", "missing/", "missing.ttl.acl"])
async def test_404_says_how_to_create_a_missing_resource(
    server: Server, method: str, path: str
) -> None:
    """P-11, P-12: rdflib and Comunica decide by it whether they can write there. It says what
    OPTIONS says, so it tells nothing of the state; and those who may not read learn nothing."""
    target = f"/alice/private/{path}"
    answer = await server.alice.request(method, target)
    assert answer.status == 404
    assert "PUT" in (answer.header("allow") or "")
    assert "application/sparql-update" in (answer.header("accept-patch") or "")
    offered = await server.alice.request("OPTIONS", target)
    for name in ("allow", "accept-patch", "accept-post", "accept-put"):
        assert answer.header(name) == offered.header(name)
    for other in (server.bob, server.public):
        refused = await other.request(method, target)
        assert refused.status in {401, 403}
        assert refused.header("allow") is None


async def test_post_to_a_document_is_405_with_allow(server: Server) -> None:
    """C-7, P-9."""
    await server.alice.put("/alice/private/a.ttl", "", TURTLE)
    answer = await server.alice.post("/alice/private/a.ttl", "x", "text/plain")
    assert answer.status == 405
    assert "POST" not in (answer.header("allow") or "")


@pytest.mark.parametrize(
    "link",
    [
        None,
        BASIC_CONTAINER,
        '<http://www.w3.org/ns/ldp#RDFSource>; rel="type"',
        "<http://www.w3.org/ns/ldp#Container>; rel=type",
    ],
)
async def test_put_on_a_slash_creates_a_container(server: Server, link: str | None) -> None:
    """C-9."""
    headers = {"link": link} if link else {}
    answer = await server.alice.put("/alice/private/x/", None, TURTLE, **headers)
    assert answer.status == 201
    assert (await server.alice.get("/alice/private/x/")).status == 200


@pytest.mark.parametrize(
    ("path", "link"),
    [
        ("x/", '<http://www.w3.org/ns/ldp#NonRDFSource>; rel="type"'),
        ("x", BASIC_CONTAINER),
    ],
)
async def test_type_link_against_the_url_is_409(server: Server, path: str, link: str) -> None:
    """C-10, C-11."""
    answer = await server.alice.put(f"/alice/private/{path}", None, TURTLE, link=link)
    assert answer.status == 409
    assert await members(server, "/alice/private/") == set()


async def test_container_takes_no_body_that_is_not_rdf(server: Server) -> None:
    """C-11."""
    answer = await server.alice.put("/alice/private/x/", "hello", "text/plain")
    assert answer.status == 415
    assert (await server.alice.get("/alice/private/x/")).status == 404


async def test_write_without_content_type_is_400(server: Server) -> None:
    """P-6, C-9: the one exception is a container created without content."""
    assert (await server.alice.put("/alice/private/a", "x", None)).status == 400
    assert (await server.alice.put("/alice/private/a", None, None)).status == 400
    assert (await server.alice.post("/alice/private/", "x", None)).status == 400
    assert (await server.alice.post("/alice/private/", None, None)).status == 400
    assert (await server.alice.put("/alice/private/x/", "<> <#a> <#b>.", None)).status == 400
    assert (await server.alice.get("/alice/private/x/")).status == 404


@pytest.mark.parametrize("link", [None, BASIC_CONTAINER])
async def test_put_creates_a_container_without_content_and_content_type(
    server: Server, link: str | None
) -> None:
    """C-9: what SolidOS and PodOS send for a new folder."""
    links = {} if link is None else {"link": link}
    created = await server.alice.put("/alice/private/x/", None, None, **links)
    assert created.status == 201
    await server.alice.put("/alice/private/x/a.txt", "x", "text/plain")
    again = await server.alice.put("/alice/private/x/", None, None, **links)
    assert again.status == 204
    assert await members(server, "/alice/private/x/") == {f"{BASE}/alice/private/x/a.txt"}


async def test_put_on_existing_container_replaces_its_triples_and_keeps_members(
    server: Server,
) -> None:
    """C-12, C-13."""
    await server.alice.put("/alice/private/c/a.txt", "x", "text/plain")
    for title in ("one", "two"):
        answer = await server.alice.put(
            "/alice/private/c/", f'<> <http://purl.org/dc/terms/title> "{title}".', TURTLE
        )
        assert answer.status == 204
    listing = await server.alice.get("/alice/private/c/", accept=TURTLE)
    assert "two" in listing.text
    assert "one" not in listing.text
    assert await members(server, "/alice/private/c/") == {f"{BASE}/alice/private/c/a.txt"}


async def test_statements_that_only_the_server_makes_are_409_if_they_were_never_true(
    server: Server,
) -> None:
    """C-13, C-25."""
    container = "/alice/private/c/"
    await server.alice.put(f"{container}a.txt", "x", "text/plain")
    false = "<> <http://www.w3.org/ns/ldp#contains> <nothing>."
    assert (await server.alice.put(container, false, TURTLE)).status == 409
    current = await server.alice.get(container, accept=TURTLE)
    again = await server.alice.put(container, current.body, TURTLE)
    assert again.status == 204
    assert await members(server, container) == {f"{BASE}{container}a.txt"}


async def test_a_member_that_is_long_gone_is_not_said_to_be_there(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C-13: and what is examined of the log is bounded."""
    container = "/alice/private/c/"
    for name in ("a.txt", "b.txt"):
        await server.alice.put(f"{container}{name}", "x", "text/plain")
    before = await server.alice.get(container, accept=TURTLE)
    await server.alice.delete(f"{container}a.txt")
    monkeypatch.setattr("podstead.resources.content._STEP_ROWS", 1)
    assert (await server.alice.put(container, before.body, TURTLE)).status == 204
    monkeypatch.setattr("podstead.resources.content._RECENT_ROWS", 8)
    for _ in range(8):
        await server.bob.put("/bob/private/a.txt", "x", "text/plain")
    assert (await server.alice.put(container, before.body, TURTLE)).status == 409
    assert await members(server, container) == {f"{BASE}{container}b.txt"}


async def test_empty_turtle_is_a_document(server: Server) -> None:
    """C-16."""
    assert (await server.alice.put("/alice/private/e.ttl", b"", TURTLE)).status == 201
    read = await server.alice.get("/alice/private/e.ttl", accept=TURTLE)
    assert (read.status, read.body) == (200, b"")


# --- slash semantics --------------------------------------------------------------------------


async def test_only_one_of_both_slash_forms_exists(server: Server) -> None:
    """P-47, A-102."""
    await server.alice.put("/alice/private/a", "x", "text/plain")
    await server.alice.put("/alice/private/b/", None, TURTLE)
    assert (await server.alice.put("/alice/private/a/", None, TURTLE)).status == 409
    assert (await server.alice.put("/alice/private/b", "x", "text/plain")).status == 409
    moved = await server.alice.get("/alice/private/a/")
    assert moved.status == 301
    assert moved.header("location") == f"{BASE}/alice/private/a"
    posted = await server.alice.post("/alice/private/", "x", "text/plain", slug="b")
    assert posted.status == 201
    assert posted.header("location") not in (f"{BASE}/alice/private/b", None)


async def test_a_document_never_gets_children(server: Server) -> None:
    """P-49."""
    await server.alice.put("/alice/private/doc", "x", "text/plain")
    assert (await server.alice.put("/alice/private/doc/x", "y", "text/plain")).status == 409
    assert (await server.alice.put("/alice/private/doc/x/y/z", "y", "text/plain")).status == 409
    assert (await server.alice.post("/alice/private/doc/foo/", "y", "text/plain")).status == 404


@pytest.mark.parametrize(
    "target",
    [
        "/alice/private/%2e%2e/x",
        "/alice/private/../x",
        "/alice/private//x",
        "/alice/private/%zz",
        "/alice/private/%00",
        "/alice/private/%0a",
        "/alice/private/%ff",
    ],
)
async def test_malformed_targets_are_400(server: Server, target: str) -> None:
    """P-50."""
    assert (await server.alice.put(target, "x", "text/plain")).status == 400
    assert (await server.public.get(target)).status == 400


async def test_spellings_of_one_url_are_one_resource(server: Server) -> None:
    """P-50: escapes are canonical, and an escaped slash stays inside its segment."""
    assert (await server.alice.put("/alice/private/caf%c3%a9", "x", "text/plain")).status == 201
    assert (await server.alice.get("/alice/private/%63af%C3%A9")).body == b"x"
    assert (await server.alice.put("/alice/private/a%2fb", "y", "text/plain")).status == 201
    assert (await server.alice.get("/alice/private/a/b")).status == 404
    assert f"{BASE}/alice/private/a%2Fb" in await members(server, "/alice/private/")


# --- deletion ---------------------------------------------------------------------------------


async def test_delete_removes_from_the_listing_at_once(server: Server) -> None:
    """C-17, C-21."""
    await server.alice.put("/alice/private/a.ttl", "", TURTLE)
    assert (await server.alice.delete("/alice/private/a.ttl")).status == 204
    assert await members(server, "/alice/private/") == set()
    assert (await server.alice.get("/alice/private/a.ttl")).status == 404


async def test_delete_of_a_full_container_is_409_with_a_reason(server: Server) -> None:
    """C-18, P-18."""
    await server.alice.put("/alice/private/c/a.ttl", "", TURTLE)
    answer = await server.alice.delete("/alice/private/c/")
    assert answer.status == 409
    assert "not empty" in answer.json()["message"]
    assert (await server.alice.delete("/alice/private/c/a.ttl")).status == 204
    assert (await server.alice.delete("/alice/private/c/")).status == 204


async def test_storage_root_and_its_acl_cannot_be_deleted(server: Server) -> None:
    """C-19."""
    for path in ("/alice/", "/alice/.acl"):
        answer = await server.alice.delete(path)
        assert answer.status == 405
        assert "DELETE" not in (answer.header("allow") or "")
        assert "DELETE" not in ((await server.alice.get(path)).header("allow") or "DELETE")


async def test_auxiliaries_go_with_their_subject_and_do_not_fill_a_container(
    server: Server,
) -> None:
    """C-20, C-14."""
    await server.alice.put("/alice/private/c/a.ttl", "", TURTLE)
    await server.put_acl("/alice/private/c/a.ttl")
    await server.alice.put("/alice/private/c/a.ttl.meta", "<> <#b> <#c>.", TURTLE)
    await server.put_acl("/alice/private/c/")
    assert await members(server, "/alice/private/c/") == {f"{BASE}/alice/private/c/a.ttl"}
    assert (await server.alice.delete("/alice/private/c/a.ttl")).status == 204
    assert (await server.alice.get("/alice/private/c/a.ttl.acl")).status == 404
    assert (await server.alice.delete("/alice/private/c/")).status == 204
    assert (await server.alice.get("/alice/private/c/.acl")).status == 404


# --- conditions -------------------------------------------------------------------------------


async def test_if_none_match_star_creates_only_what_is_missing(server: Server) -> None:
    """P-21."""
    first = await server.alice.put("/alice/private/a", "1", "text/plain", if_none_match="*")
    second = await server.alice.put("/alice/private/a", "2", "text/plain", if_none_match="*")
    assert (first.status, second.status) == (201, 412)
    assert (await server.alice.get("/alice/private/a")).body == b"1"
    again = await server.alice.put("/alice/private/", None, TURTLE, if_none_match="*")
    assert again.status == 412


async def test_if_match_must_name_the_current_state(server: Server) -> None:
    """P-22, P-24: any representation's tag names the state."""
    missing = await server.alice.put("/alice/private/a.ttl", "", TURTLE, if_match="*")
    assert missing.status == 412
    made = await server.alice.put("/alice/private/a.ttl", "<> <#b> 1.", TURTLE)
    tag = (await server.alice.get("/alice/private/a.ttl", accept="application/ld+json")).header(
        "etag"
    )
    assert tag
    assert tag != made.header("etag")
    ok = await server.alice.put("/alice/private/a.ttl", "<> <#b> 2.", TURTLE, if_match=tag)
    late = await server.alice.put("/alice/private/a.ttl", "<> <#b> 3.", TURTLE, if_match=tag)
    assert (ok.status, late.status) == (204, 412)
    assert (await server.alice.delete("/alice/private/a.ttl", if_match=tag)).status == 412
    weak = f"W/{ok.header('etag')}"
    assert (await server.alice.delete("/alice/private/a.ttl", if_match=weak)).status == 412
    garbled = await server.alice.put("/alice/private/a.ttl", "", TURTLE, if_match="x")
    assert garbled.status == 400


async def test_parallel_writers_with_one_condition_have_one_winner(server: Server) -> None:
    """P-26."""
    made = await asyncio.gather(
        *(
            server.alice.put("/alice/private/n", f"{n}", "text/plain", if_none_match="*")
            for n in range(20)
        )
    )
    assert sorted(answer.status for answer in made) == [201] + [412] * 19
    tag = (await server.alice.get("/alice/private/n")).header("etag") or ""
    changed = await asyncio.gather(
        *(
            server.alice.put("/alice/private/n", f"{n}", "text/plain", if_match=tag)
            for n in range(20)
        )
    )
    assert sorted(answer.status for answer in changed) == [204] + [412] * 19


async def test_unchanged_reads_are_304_with_their_headers(server: Server) -> None:
    """P-23."""
    await server.alice.put("/alice/private/a.ttl", "<> <#b> 1.", TURTLE)
    read = await server.alice.get("/alice/private/a.ttl", origin="https://app.example")
    tag, modified = read.header("etag") or "", read.header("last-modified") or ""
    same = await server.alice.get(
        "/alice/private/a.ttl", if_none_match=f'"x", W/{tag}', origin="https://app.example"
    )
    assert (same.status, same.body) == (304, b"")
    for name in ("etag", "last-modified", "vary", "cache-control", "link", "wac-allow"):
        assert same.header(name) == read.header(name), name
    assert same.header("access-control-allow-origin") == "https://app.example"
    since = await server.alice.get("/alice/private/a.ttl", if_modified_since=modified)
    assert since.status == 304
    other_form = await server.alice.get(
        "/alice/private/a.ttl", if_none_match=tag, accept="application/ld+json"
    )
    assert other_form.status == 200


# --- ranges -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "status", "body", "content_range"),
    [
        ("bytes=0-3", 206, b"0123", "bytes 0-3/10"),
        ("bytes=7-", 206, b"789", "bytes 7-9/10"),
        ("bytes=-2", 206, b"89", "bytes 8-9/10"),
        ("bytes=4-99", 206, b"456789", "bytes 4-9/10"),
        ("bytes=10-", 416, None, "bytes */10"),
        ("bytes=0-1,3-4", 200, b"0123456789", None),
        ("lines=1-2", 200, b"0123456789", None),
    ],
)
async def test_ranges_of_stored_bytes(
    server: Server, asked: str, status: int, body: bytes | None, content_range: str | None
) -> None:
    """P-27."""
    await server.alice.put("/alice/private/n.txt", "0123456789", "text/plain")
    answer = await server.alice.get("/alice/private/n.txt", range=asked)
    assert answer.status == status
    assert body is None or answer.body == body
    assert answer.header("content-range") == content_range


async def test_if_range_with_an_old_tag_gives_the_whole(server: Server) -> None:
    """P-27."""
    await server.alice.put("/alice/private/n.txt", "0123456789", "text/plain")
    tag = (await server.alice.get("/alice/private/n.txt")).header("etag") or ""
    part = await server.alice.get("/alice/private/n.txt", range="bytes=0-1", if_range=tag)
    assert part.status == 206
    whole = await server.alice.get("/alice/private/n.txt", range="bytes=0-1", if_range='"old"')
    assert (whole.status, whole.body) == (200, b"0123456789")


async def test_converted_representations_have_no_ranges(server: Server) -> None:
    """P-27."""
    await server.alice.put("/alice/private/a.ttl", "<> <#b> 1.", TURTLE)
    answer = await server.alice.get(
        "/alice/private/a.ttl", accept="application/ld+json", range="bytes=0-1"
    )
    assert answer.status == 200
    assert answer.header("accept-ranges") == "none"


# --- headers ----------------------------------------------------------------------------------


async def test_head_is_get_without_a_body(server: Server) -> None:
    """P-15."""
    await server.alice.put("/alice/private/c/a.ttl", "<> <#b> 1.", TURTLE)
    for path in ("/alice/private/c/a.ttl", "/alice/private/c/", "/alice/", "/alice/missing"):
        get, head = await server.alice.get(path), await server.alice.head(path)
        assert head.status == get.status
        assert head.body == b""
        without_length = [(n, v) for n, v in get.headers if n != "content-length"]
        assert [(n, v) for n, v in head.headers if n != "content-length"] == without_length


async def test_links_of_documents_containers_and_storages(server: Server) -> None:
    """P-29, P-30, P-31, P-35."""
    await server.alice.put("/alice/private/a.ttl", "", TURTLE)
    await server.alice.put("/alice/private/a.txt", "x", "text/plain")
    ldp = "http://www.w3.org/ns/ldp#"
    expected = {
        "/alice/private/a.ttl": {f"{ldp}Resource", f"{ldp}RDFSource"},
        "/alice/private/a.txt": {f"{ldp}Resource", f"{ldp}NonRDFSource"},
        "/alice/private/": {f"{ldp}Resource", f"{ldp}Container", f"{ldp}BasicContainer"},
        "/alice/": {
            f"{ldp}Resource",
            f"{ldp}Container",
            f"{ldp}BasicContainer",
            "http://www.w3.org/ns/pim/space#Storage",
        },
    }
    for path, types in expected.items():
        link = (await server.alice.get(path)).header("link") or ""
        links = re.findall(r'<([^>]*)>; rel="([^"]*)"', link)
        assert {target for target, rel in links if rel == "type"} == types
        assert [target for target, rel in links if rel == "acl"] == [f"{BASE}{path}.acl"]
        described = [target for target, rel in links if rel == "describedby"]
        assert described == [f"{BASE}{path}.meta"]


async def test_unsupported_methods_are_405_or_501_with_allow(server: Server) -> None:
    """P-9."""
    answer = await server.alice.request("TRACE", "/alice/private/")
    assert answer.status == 405
    assert "GET" in (answer.header("allow") or "")
    assert (await server.alice.request("BREW", "/alice/private/")).status == 501


async def test_options_is_204_for_everybody_and_everything(server: Server) -> None:
    """P-13."""
    await server.alice.put("/alice/private/a.ttl", "", TURTLE)
    present = await server.public.request("OPTIONS", "/alice/private/a.ttl")
    absent = await server.public.request("OPTIONS", "/alice/private/b.ttl")
    assert (present.status, present.body, absent.status) == (204, b"", 204)
    assert present.header("allow") == absent.header("allow")
    assert (await server.public.request("OPTIONS", "/.pods")).header("allow") == "OPTIONS, POST"


async def test_last_modified_of_a_container_is_its_last_change_of_members(
    server: Server,
) -> None:
    """P-8: a member's new content does not move it, yet the entity tag changes."""
    await server.alice.put("/alice/private/c/a.txt", "1", "text/plain")
    before = await server.alice.get("/alice/private/c/")
    await server.alice.put("/alice/private/c/a.txt", "22", "text/plain")
    after = await server.alice.get("/alice/private/c/")
    assert after.header("last-modified") == before.header("last-modified")
    assert after.header("etag") != before.header("etag")


async def test_user_content_gets_an_opaque_origin(server: Server) -> None:
    """R-15, A-61, A-192."""
    await server.alice.put("/alice/private/p.html", "<script>1</script>", "text/html")
    answer = await server.alice.get("/alice/private/p.html", accept="text/html")
    assert (answer.header("content-security-policy") or "").startswith("sandbox")
    assert "allow-same-origin" not in (answer.header("content-security-policy") or "")
    assert answer.header("x-content-type-options") == "nosniff"


async def test_a_condition_on_a_container_holds_until_the_commit(server: Server) -> None:
    """P-22, P-26: of parallel writers with one entity tag of the container, one wins."""
    container = "/alice/private/c/"
    await server.alice.put(container, None, TURTLE)
    tag = (await server.alice.get(container)).header("etag") or ""
    answers = await asyncio.gather(
        *(server.alice.post(container, f"{n}", "text/plain", if_match=tag) for n in range(5))
    )
    assert sorted(answer.status for answer in answers) == [201, 412, 412, 412, 412]
    assert len(await members(server, container)) == 1


@pytest.mark.parametrize("size_bytes", [1000, 200_000])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
async def test_a_stored_body_that_was_damaged_is_an_error_and_never_sent(
    server: Server, settings: Settings, size_bytes: int, method: str
) -> None:
    """Neither whole nor in part; the owner can still replace it."""
    path = "/alice/private/damaged.bin"
    assert (await server.alice.put(path, b"x" * size_bytes, "image/png")).status == 201
    for blob in (settings.root / "blobs").rglob("*"):
        if blob.is_file():
            blob.write_bytes(b"y" * size_bytes)
    connection = apsw.Connection(str(settings.root / "podstead.db"))
    connection.execute("UPDATE bodies SET content = CAST(replace(content, 'xx', 'yy') AS BLOB)")
    connection.close()
    for byte_range in (None, "bytes=0-0"):
        headers = {"Range": byte_range} if byte_range else {}
        answer = await server.alice.request(method, path, headers=headers)
        assert answer.status == 500
        assert b"xx" not in answer.body
        assert b"yy" not in answer.body
        assert answer.file_path is None
    assert (await server.alice.put(path, b"new", "image/png")).status == 204
    assert (await server.alice.get(path)).body == b"new"
