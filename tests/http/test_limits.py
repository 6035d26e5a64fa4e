"""Every limit on what is sent: what is just within passes, one more is refused, nothing stays."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from podstead.config import Settings
from podstead.core.identifiers import MAX_TARGET_BYTES
from podstead.core.media_types import SPARQL_UPDATE
from podstead.rdf.limits import MAX_TRIPLES
from podstead.resources.content import MAX_PATCH_BYTES
from podstead.storage.blobs.staging import DEFAULT_INLINE_BODY_BYTES
from podstead.wac.acl import MAX_ACL_BYTES
from tests.support.application import Server, Start
from tests.support.asgi import Answer, Client
from tests.support.rdf import JSON_LD, N3, N_TRIPLES, RDF_XML, TURTLE

PATH = "/alice/private/limited"
BYTES = 1024


async def statuses(client: Client, content_type: str, *contents: bytes) -> list[int]:
    """PUT each content to a place of its own; a refused one must have left nothing."""
    found = []
    for number, content in enumerate(contents):
        path = f"{PATH}{number}"
        status = (await client.put(path, content, content_type)).status
        assert (await client.get(path)).status == (200 if status == 201 else 404)
        found.append(status)
    return found


def turtle(size_bytes: int) -> bytes:
    return b"<#a> <#b> <#c>. #".ljust(size_bytes, b"#")


@pytest.mark.parametrize("content_type", [TURTLE, N_TRIPLES, JSON_LD, RDF_XML])
async def test_an_rdf_document_has_so_many_bytes(start: Start, content_type: str) -> None:
    server = await start(max_rdf_bytes=BYTES)
    small = {
        TURTLE: b"<#a> <#b> <#c>.",
        N_TRIPLES: b"<http://e/a> <http://e/b> <http://e/c> .",
        JSON_LD: b"{}",
        RDF_XML: b"<r:RDF xmlns:r='http://www.w3.org/1999/02/22-rdf-syntax-ns#'/>",
    }[content_type]
    found = await statuses(server.alice, content_type, small.ljust(BYTES), small.ljust(BYTES + 1))
    assert found == [201, 413]


@pytest.mark.parametrize("target", ["/alice/private/c/", "/alice/private/c/.acl"])
async def test_containers_and_acls_have_the_limit_of_rdf(start: Start, target: str) -> None:
    server = await start(max_rdf_bytes=BYTES)
    await server.alice.put("/alice/private/c/", None, TURTLE)
    assert (await server.alice.put(target, turtle(BYTES + 1), TURTLE)).status == 413
    assert (await server.alice.put(target, turtle(BYTES), TURTLE)).status in (201, 204)


async def test_an_acl_has_so_many_bytes(server: Server) -> None:
    """Its rules are read in one step, for which others wait."""
    await server.alice.put("/alice/limited/", None, TURTLE)
    acl = "/alice/limited/.acl"
    assert (await server.alice.put(acl, turtle(MAX_ACL_BYTES), TURTLE)).status == 201
    assert (await server.alice.delete(acl)).status == 204
    assert (await server.alice.put(acl, turtle(MAX_ACL_BYTES + 1), TURTLE)).status == 413
    assert (await server.alice.get(acl)).status == 404
    values = ", ".join(f"<#{number}>" for number in range(60_000))
    patch = f"INSERT DATA {{ <#a> <#b> {values} }}".encode()
    answer = await server.alice.request(
        "PATCH", acl, headers={"Content-Type": SPARQL_UPDATE}, body=patch
    )
    assert answer.status == 413
    assert (await server.alice.get(acl)).status == 404


@pytest.mark.parametrize(
    ("content_type", "patch"),
    [
        (N3, b"[] a <http://www.w3.org/ns/solid/terms#InsertDeletePatch> . #"),
        (SPARQL_UPDATE, b"INSERT DATA { <#a> <#b> <#c> } #"),
    ],
)
async def test_a_patch_has_so_many_bytes(server: Server, content_type: str, patch: bytes) -> None:
    """X-34: whatever an RDF document may have, announced or not."""
    for length, status in ((MAX_PATCH_BYTES + 1, 413), (MAX_PATCH_BYTES, 201)):
        body = patch.ljust(length, b"#")
        for pieces in ([body], [body[:100], body[100:]]):
            path = f"{PATH}{length}-{len(pieces)}"
            headers = {"Content-Type": content_type}
            if len(pieces) > 1:
                headers["Transfer-Encoding"] = "chunked"
            answer = await server.alice.request("PATCH", path, headers=headers, body=pieces)
            assert answer.status == status
            found = await server.alice.get(path)
            assert found.status == (200 if status == 201 else 404)


async def test_a_body_has_so_many_bytes_whether_or_not_they_are_announced(start: Start) -> None:
    """P-54."""
    server = await start(max_body_bytes=BYTES)
    found = await statuses(server.alice, "text/plain", b"x" * BYTES, b"x" * (BYTES + 1))
    assert found == [201, 413]
    chunked = {"Content-Type": "text/plain", "Transfer-Encoding": "chunked"}
    for pieces, status in (([b"x" * BYTES], 201), ([b"x" * BYTES, b"x"], 413)):
        answer = await server.alice.request("PUT", f"{PATH}-{status}", headers=chunked, body=pieces)
        assert answer.status == status
    assert (await server.alice.get(f"{PATH}-413")).status == 404
    posted = await server.alice.post("/alice/private/", b"x" * (BYTES + 1), "text/plain")
    assert posted.status == 413


def nested_json(depth: int) -> bytes:
    return b'{"http://e/p":' * (depth - 1) + b"{}" + b"}" * (depth - 1)


def nested_lists(depth: int) -> bytes:
    return b'{"http://e/p":' + b"[" * (depth - 1) + b"]" * (depth - 1) + b"}"


def nested_xml(depth: int) -> bytes:
    """Node and property elements take turns; the outermost is the document's."""
    start = b"<r:RDF xmlns:r='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns:e='http://e/'>"
    names = [b"r:Description" if level % 2 else b"e:p" for level in range(1, depth)]
    opened = b"".join(b"<" + name + b">" for name in names)
    closed = b"".join(b"</" + name + b">" for name in reversed(names))
    return start + opened + closed + b"</r:RDF>"


@pytest.mark.parametrize(
    ("content_type", "nested"),
    [(JSON_LD, nested_json), (JSON_LD, nested_lists), (RDF_XML, nested_xml)],
)
async def test_rdf_is_nested_so_deep(
    server: Server, content_type: str, nested: Callable[[int], bytes]
) -> None:
    found = await statuses(server.alice, content_type, nested(100), nested(101))
    assert found == [201, 400]
    refused = await server.alice.put(PATH, nested(101), content_type)
    assert "100" in refused.json()["message"]


@pytest.mark.parametrize("content_type", [JSON_LD, N_TRIPLES])
async def test_rdf_has_so_many_triples(server: Server, content_type: str) -> None:
    def content(count: int) -> bytes:
        if content_type == JSON_LD:
            return b'{"@id":"http://e/","http://e/p":[%s]}' % b",".join(
                b"%d" % n for n in range(count)
            )
        return b"".join(b'<http://e/> <http://e/p> "%d" .\n' % n for n in range(count))

    found = await statuses(
        server.alice, content_type, content(MAX_TRIPLES), content(MAX_TRIPLES + 1)
    )
    assert found == [201, 413]


@pytest.mark.parametrize(
    ("content_type", "content"),
    [
        (JSON_LD, b"[" * 200_000),
        (JSON_LD, b'{"@graph":[' * 50_000),
        (TURTLE, b"<> <#p> " + b"[ <#p> " * 50_000),
        (TURTLE, b"<> <#p> " + b"(" * 50_000),
        (RDF_XML, b"<a>" * 50_000),
        (RDF_XML, b"<!DOCTYPE a [<!ENTITY x 'xx'><!ENTITY y '&x;&x;'>]><a>&y;</a>"),
    ],
)
async def test_hostile_nesting_is_refused_and_the_server_keeps_running(
    server: Server, content_type: str, content: bytes
) -> None:
    """Never a 5xx."""
    assert (await server.alice.put(PATH, content, content_type)).status == 400
    assert (await server.alice.get("/alice/private/")).status == 200


@pytest.mark.parametrize("opened", ["[ <#p> ", "("])
async def test_deeply_nested_turtle_is_available_in_every_format(
    server: Server, opened: str
) -> None:
    """Turtle may be deep, since reading it takes no recursion; nor may writing it."""
    closed = {"[ <#p> ": "]", "(": ")"}[opened]
    content = f"<> <#p> {opened * 2000}1{closed * 2000}."
    assert (await server.alice.put(PATH, content, TURTLE)).status == 201
    for accept in (TURTLE, JSON_LD, N_TRIPLES, RDF_XML):
        assert (await server.alice.get(PATH, accept=accept)).status == 200


async def test_a_target_has_so_many_bytes(server: Server) -> None:
    """P-54: path, question mark and query together."""
    longest = "/alice/private/".ljust(MAX_TARGET_BYTES, "x")
    longest_query = "/alice/private/?".ljust(MAX_TARGET_BYTES, "x")
    assert (await server.alice.get(longest)).status == 404
    assert (await server.alice.get(f"{longest}x")).status == 414
    assert (await server.alice.get(f"{longest_query}")).status == 200
    assert (await server.alice.get(f"{longest_query}x")).status == 414


async def test_a_resource_lies_so_deep(server: Server) -> None:
    deepest = "/alice/private/" + "d/" * 97
    assert deepest.count("/") == 100
    assert (await server.alice.put(f"{deepest}", None, TURTLE)).status == 201
    assert (await server.alice.put(f"{deepest}x", "x", "text/plain")).status == 201
    for method in ("GET", "PUT", "DELETE"):
        deeper = await server.alice.request(
            method, f"{deepest}d/", headers={"Content-Type": TURTLE}
        )
        assert deeper.status == 414


async def test_a_slug_has_so_many_bytes(server: Server) -> None:
    """C-5."""
    longest = "n" * 255
    taken = await server.alice.post("/alice/private/", "x", "text/plain", slug=longest)
    assert (taken.header("location") or "").endswith(f"/{longest}")
    refused = await server.alice.post("/alice/private/", "x", "text/plain", slug=f"{longest}n")
    assert refused.status == 400


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
@pytest.mark.parametrize("ending", ["", "/"])
async def test_a_path_is_created_only_if_its_auxiliaries_can_be_requested(
    server: Server, method: str, ending: str
) -> None:
    """A resource whose ACL or description has a longer URL than the server takes could not be
    managed afterwards."""
    headers = {"Content-Type": TURTLE if method == "PUT" else SPARQL_UPDATE}
    body = b"<#a> <#b> <#c>." if method == "PUT" else b"INSERT DATA { <#a> <#b> <#c> }"
    longest = "/alice/private/".ljust(MAX_TARGET_BYTES - 5 - len(ending), "x") + ending
    too_long = longest.replace("private/", "private/x")
    refused = await server.alice.request(method, too_long, headers=headers, body=body)
    assert refused.status == 414
    assert str(MAX_TARGET_BYTES - 5) in refused.json()["message"]
    assert (await server.alice.get(too_long)).status == 404
    created = await server.alice.request(method, longest, headers=headers, body=body)
    assert created.status == 201
    for auxiliary in (".acl", ".meta"):
        assert (await server.alice.get(longest + auxiliary)).status != 414
    assert (await server.alice.delete(longest)).status == 204


async def test_a_path_sent_without_escapes_is_measured_as_it_is_stored(server: Server) -> None:
    unescaped = (
        ("\N{LATIN SMALL LETTER E WITH ACUTE}" * (MAX_TARGET_BYTES // 3)).encode().decode("latin-1")
    )
    path = f"/alice/private/{unescaped}"
    refused = await server.alice.request(
        "PUT", path, headers={"Content-Type": "text/plain"}, body=b"x"
    )
    assert refused.status == 414
    listing = await server.alice.get("/alice/private/")
    assert "contains" not in listing.text


@pytest.mark.parametrize("link", [None, '<http://www.w3.org/ns/ldp#BasicContainer>; rel="type"'])
async def test_a_slug_creates_no_path_that_cannot_be_requested(
    server: Server, link: str | None
) -> None:
    """What POST creates can be read, described and deleted; a name is never cut."""
    container = "/alice/private/".ljust(MAX_TARGET_BYTES - 113, "c") + "/"
    assert (await server.alice.put(container, None, TURTLE)).status == 201
    headers = {"Content-Type": TURTLE} | ({"Link": link} if link else {})

    async def post(slug: str) -> Answer:
        named = {**headers, "Slug": slug}
        return await server.alice.request("POST", container, headers=named, body=b"")

    longest = "s" * (107 - (1 if link else 0))
    for slug in (longest + "s", "%C3%A9" * 60):
        assert (await post(slug)).status == 414
    created = await post(longest)
    assert created.status == 201
    location = created.header("location") or ""
    path = location.removeprefix("http://localhost:3000")
    assert (await server.alice.get(path + ".acl")).status == 404
    # The name is taken now, and one with a prefix does not fit.
    assert (await post(longest)).status == 414
    assert (await server.alice.delete(path)).status == 204
    listing = await server.alice.get(container)
    assert "contains" not in listing.text


async def test_a_container_too_long_for_any_member_refuses_post(server: Server) -> None:
    container = "/alice/private/".ljust(MAX_TARGET_BYTES - 6, "c") + "/"
    assert (await server.alice.put(container, None, TURTLE)).status == 201
    refused = await server.alice.post(container, "x", "text/plain")
    assert refused.status == 414
    assert (await server.alice.delete(container)).status == 204


async def test_a_credential_has_so_many_bytes(server: Server) -> None:
    """A-3."""
    largest = "Bearer ".ljust(16 * 1024, "x")
    assert (await server.public.get("/alice/", authorization=largest)).status == 401
    assert (await server.public.get("/alice/", authorization=f"{largest}x")).status == 431


async def test_a_pod_has_so_many_bytes(start: Start) -> None:
    """P-54: what does not fit changes nothing, and deleting makes room."""
    server = await start(quota_bytes=100_000)
    assert (await server.alice.put(PATH, b"x" * 60_000, "text/plain")).status == 201
    full = await server.alice.put(f"{PATH}2", b"x" * 60_000, "text/plain")
    assert full.status == 507
    assert (await server.alice.get(f"{PATH}2")).status == 404
    assert (await server.bob.put("/bob/private/x", b"x" * 60_000, "text/plain")).status == 201
    assert (await server.alice.delete(PATH)).status == 204
    assert (await server.alice.put(f"{PATH}2", b"x" * 60_000, "text/plain")).status == 201


@pytest.mark.parametrize("method", ["PUT", "POST"])
async def test_a_body_of_another_length_than_announced_leaves_nothing(
    server: Server, method: str
) -> None:
    """P-54."""
    target = PATH if method == "PUT" else "/alice/private/"
    headers = {"Content-Type": "text/plain", "Slug": "limited"}
    for pieces, length, disconnect, status in (
        ([b"x" * 100_000], 200_000, True, 400),
        ([b"12345"], 4, False, 400),
        ([b"123"], 4, False, 400),
    ):
        answer = await server.alice.request(
            method, target, headers=headers, body=pieces, content_length=length,
            disconnect=disconnect,
        )  # fmt: skip
        assert answer.status == status
        assert (await server.alice.get(PATH)).status == 404
    listing = await server.alice.get("/alice/private/")
    assert "contains" not in listing.text


async def test_a_patched_document_stays_within_the_limits_of_one_that_is_sent(
    server: Server,
) -> None:
    """Else it could be neither read in another form nor patched again."""

    async def insert(number: int) -> int:
        body = f"INSERT DATA {{ <#a> <#b> {number} }}".encode()
        headers = {"Content-Type": "application/sparql-update"}
        return (await server.alice.request("PATCH", PATH, headers=headers, body=body)).status

    lines = (b"<http://e/> <http://e/p> %d .\n" % n for n in range(MAX_TRIPLES - 1))
    assert (await server.alice.put(PATH, b"".join(lines), TURTLE)).status == 201
    assert await insert(1) == 204
    assert await insert(2) == 413
    read = await server.alice.get(PATH, accept=N_TRIPLES)
    assert read.status == 200
    assert len(read.body.splitlines()) == MAX_TRIPLES


async def test_a_body_that_is_stored_in_another_form_leaves_nothing_on_the_disk(
    server: Server, settings: Settings
) -> None:
    """R-12, C-12: what is sent is staged, and given back where something else is stored."""
    large = DEFAULT_INLINE_BODY_BYTES + 1
    container = "<> a <http://www.w3.org/ns/ldp#Container>."
    for _ in range(2):
        answer = await server.alice.put(
            f"{PATH}/", turtle(large) + b"\n" + container.encode(), TURTLE
        )
        assert answer.status in (201, 204)
    unfinished = b"#".ljust(large, b"#") + b"\n<#a> <#b> <#c>"
    assert (await server.alice.post(f"{PATH}/", unfinished, TURTLE)).status == 201
    blobs = [path for path in (settings.root / "blobs").rglob("*") if path.is_file()]
    assert blobs == []
    assert (await server.alice.put(f"{PATH}.bin", bytes(large), "image/png")).status == 201
    assert any(path.is_file() for path in (settings.root / "blobs").rglob("*"))
