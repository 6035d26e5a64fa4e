"""Prefer on containers and writes (RFC 7240; LDP 1.0 sections 4.2.2 and 7.2)."""

from __future__ import annotations

import pytest
import rdflib

from podstead.storage.sqlite.reads import ReadConnection
from tests.support.application import BASE, Server, Start
from tests.support.asgi import Answer
from tests.support.rdf import FORMATS, JSON_LD, RDF_XML, TURTLE, Triples, said

LDP = rdflib.Namespace("http://www.w3.org/ns/ldp#")
CONTAINER = "/alice/private/c/"
OWN = '<> <http://purl.org/dc/terms/title> "Mine"; <http://example.org/about> <a> .'

MINIMAL = f'return=representation; include="{LDP.PreferMinimalContainer}"'
OMIT = f'return=representation; omit="{LDP.PreferContainment}"'
WITHOUT_MEMBERS = [
    MINIMAL,
    OMIT,
    f'{MINIMAL}; omit="{LDP.PreferContainment}"',
    f'return=representation; omit="{LDP.PreferMembership} {LDP.PreferContainment}"',
    f'return=representation; include="{LDP.PreferMinimalContainer} {LDP.PreferMembership}"',
    f'handling=lenient, {MINIMAL}, wait="10"',
]
WITH_MEMBERS = [
    f'return=representation; include="{LDP.PreferContainment}"',
    f'return=representation; include="{LDP.PreferContainment} {LDP.PreferMinimalContainer}"',
    f'return=representation; omit="{LDP.PreferMembership}"',
]
NOT_APPLIED = [
    "return=minimal",
    "return=representation",
    "handling=strict",
    f'return=representation; omit="{LDP.PreferMinimalContainer}"',
    'return=representation; include="http://example.org/other"',
    f'return=representation; include="{LDP.PreferMinimalContainer}',
    f'include="{LDP.PreferMinimalContainer}"',
]


@pytest.fixture
async def container(server: Server) -> str:
    """A container with own triples, a document and a container in it."""
    for path, body in (
        (CONTAINER, OWN),
        (f"{CONTAINER}a", "<> <#b> 1 ."),
        (f"{CONTAINER}d/", None),
    ):
        assert (await server.alice.put(path, body, TURTLE)).status == 201
    return CONTAINER


def members(answer: Answer) -> set[str]:
    return {str(o) for _, p, o in said(answer, BASE + CONTAINER) if p == LDP.contains}


def without_members(listing: Triples) -> Triples:
    """What a listing says beside its members: LDP's minimal container, computed by rdflib."""
    contained = {o for _, p, o in listing if p == LDP.contains}
    return {(s, p, o) for s, p, o in listing if p != LDP.contains and s not in contained}


def names(answer: Answer, header: str) -> list[str]:
    return (answer.header(header) or "").split(", ")


# --- what is sent ------------------------------------------------------------------------------


@pytest.mark.parametrize("prefer", WITHOUT_MEMBERS)
@pytest.mark.parametrize("accept", FORMATS)
async def test_a_minimal_container_is_what_it_would_be_if_it_were_empty(
    server: Server, container: str, accept: str, prefer: str
) -> None:
    """LDP 7.2.2: with its owner's triples and what the server says of the container itself."""
    whole = await server.alice.get(container, accept=accept)
    minimal = await server.alice.get(container, accept=accept, prefer=prefer)
    assert minimal.status == 200
    assert minimal.header("preference-applied") == "return=representation"
    assert len(members(whole)) == 2
    assert said(minimal, BASE + container) == without_members(said(whole, BASE + container))


async def test_a_storage_is_one_without_its_members(server: Server) -> None:
    """C-25."""
    minimal = await server.alice.get("/alice/", prefer=MINIMAL)
    storage = rdflib.URIRef("http://www.w3.org/ns/pim/space#Storage")
    assert (rdflib.URIRef(f"{BASE}/alice/"), rdflib.RDF.type, storage) in said(
        minimal, f"{BASE}/alice/"
    )
    assert str(LDP.contains) not in minimal.text


@pytest.mark.parametrize(
    ("prefer", "applied"),
    [*((p, "return=representation") for p in WITH_MEMBERS), *((p, None) for p in NOT_APPLIED)],
)
async def test_the_members_are_included_unless_omitted(
    server: Server, container: str, prefer: str, applied: str | None
) -> None:
    """RFC 7240: what is not known or not understood is ignored, and not said to be applied."""
    whole = await server.alice.get(container)
    preferred = await server.alice.get(container, prefer=prefer)
    assert preferred.body == whole.body
    assert preferred.header("etag") == whole.header("etag")
    assert preferred.header("preference-applied") == applied
    assert whole.header("preference-applied") is None


async def test_several_fields_are_one_list(server: Server, container: str) -> None:
    """RFC 7240 section 2, RFC 9110 section 5.3."""
    fields = [("Prefer", "handling=lenient"), ("Prefer", "broken="), ("Prefer", MINIMAL)]
    answer = await server.alice.request("GET", container, headers=fields)
    assert (answer.status, members(answer)) == (200, set())
    # Of one preference in two fields, the first counts.
    fields = [("Prefer", WITH_MEMBERS[0]), ("Prefer", OMIT)]
    answer = await server.alice.request("GET", container, headers=fields)
    assert len(members(answer)) == 2


@pytest.mark.parametrize("prefer", [MINIMAL, "return=minimal"])
async def test_other_resources_are_not_changed_by_it(
    server: Server, container: str, prefer: str
) -> None:
    for path in (f"{container}a", f"{container}.meta", f"{container}a.meta", "/alice/.acl"):
        plain = await server.alice.get(path)
        preferred = await server.alice.get(path, prefer=prefer)
        assert (preferred.status, preferred.headers) == (plain.status, plain.headers)
        assert preferred.body == plain.body
        assert "Prefer" not in names(plain, "vary")


# --- headers -----------------------------------------------------------------------------------


@pytest.mark.parametrize("prefer", [None, MINIMAL, "return=minimal"])
async def test_every_read_of_a_container_varies_with_prefer(
    server: Server, container: str, prefer: str | None
) -> None:
    """P-28, RFC 7240 section 2: still on one line, and spelled as the test suites look for it."""
    wish = {"prefer": prefer} if prefer else {}
    read = await server.alice.get(container, **wish)
    head = await server.alice.head(container, **wish)
    same = await server.alice.get(container, if_none_match=read.header("etag") or "", **wish)
    assert (read.status, head.status, same.status) == (200, 200, 304)
    for answer in (read, head, same):
        assert answer.header("vary") == "Accept, Accept-Encoding, Authorization, Origin, Prefer"
        assert answer.header("preference-applied") == read.header("preference-applied")


@pytest.mark.parametrize("accept", FORMATS)
async def test_head_says_what_get_does(server: Server, container: str, accept: str) -> None:
    """P-15."""
    read = await server.alice.get(container, prefer=MINIMAL, accept=accept)
    head = await server.alice.head(container, prefer=MINIMAL, accept=accept)
    told = [(name, value) for name, value in read.headers if name != "content-length"]
    assert [(n, v) for n, v in head.headers if n != "content-length"] == told
    assert head.body == b""


async def test_own_triples_that_xml_cannot_say_are_406_with_and_without_members(
    server: Server,
) -> None:
    """R-5: the answer to HEAD tells so too, though nothing is sent."""
    own = "<> <http://example.org/1> 1 ."
    assert (await server.alice.put(CONTAINER, own, TURTLE)).status == 201
    for wish in ({}, {"prefer": MINIMAL}):
        for method in (server.alice.get, server.alice.head):
            assert (await method(CONTAINER, accept=RDF_XML, **wish)).status == 406


async def test_a_browser_application_may_send_prefer_and_read_preference_applied(
    server: Server, container: str
) -> None:
    """P-40, P-44."""
    answer = await server.alice.get(container, prefer=MINIMAL, origin="https://app.example")
    assert "Preference-Applied" in names(answer, "access-control-expose-headers")
    assert "Prefer" in names(answer, "access-control-allow-headers")


# --- entity tags -------------------------------------------------------------------------------


async def test_each_form_with_and_without_members_has_its_own_tag(
    server: Server, container: str
) -> None:
    """P-24: else a cache takes one for the other."""
    tags = {
        (accept, wish): (await server.alice.get(container, accept=accept, **dict(wish))).header(
            "etag"
        )
        for accept in FORMATS
        for wish in ((), (("prefer", MINIMAL),))
    }
    assert len(set(tags.values())) == 2 * len(FORMATS)
    same_variant = await server.alice.get(container, prefer=OMIT)
    assert same_variant.header("etag") == tags[TURTLE, (("prefer", MINIMAL),)]


async def test_304_is_for_the_same_variant_only(server: Server, container: str) -> None:
    """P-23."""
    whole = (await server.alice.get(container)).header("etag") or ""
    minimal = (await server.alice.get(container, prefer=MINIMAL)).header("etag") or ""

    async def status(tag: str, **wish: str) -> int:
        return (await server.alice.get(container, if_none_match=tag, **wish)).status

    assert await status(whole) == 304
    assert await status(minimal, prefer=MINIMAL) == 304
    assert await status(minimal) == 200
    assert await status(whole, prefer=MINIMAL) == 200
    assert (await server.alice.get(container, prefer=MINIMAL, if_match=whole)).status == 412
    assert (await server.alice.get(container, prefer=MINIMAL, if_match=minimal)).status == 200


async def test_a_write_may_name_the_state_by_the_tag_of_either_variant(
    server: Server, container: str
) -> None:
    """P-24: a client that needs no members reads the minimal container, and changes it."""
    for accept in (TURTLE, JSON_LD):
        read = await server.alice.get(container, prefer=MINIMAL, accept=accept)
        tag = read.header("etag") or ""
        changed = await server.alice.put(container, f"{OWN} <> <#n> 1 .", TURTLE, if_match=tag)
        assert changed.status == 204
        late = await server.alice.put(container, OWN, TURTLE, if_match=tag)
        assert late.status == 412


async def test_the_minimal_container_changes_with_the_container(
    server: Server, container: str
) -> None:
    """C-25: its modification time tells of members that came or went."""
    before = await server.alice.get(container, prefer=MINIMAL)
    assert (await server.alice.put(container, "<> <#new> 1 .", TURTLE)).status == 204
    after = await server.alice.get(
        container, prefer=MINIMAL, if_none_match=before.header("etag") or ""
    )
    assert after.status == 200
    assert "new" in after.text
    assert "Mine" not in after.text


# --- what is kept and what is read -------------------------------------------------------------


@pytest.mark.parametrize("cache_bytes", [0, 1 << 20])
async def test_no_variant_is_ever_given_for_another(start: Start, cache_bytes: int) -> None:
    """However often and in whatever order they are asked for, kept or not."""
    server = await start(rendering_cache_bytes=cache_bytes)
    await server.alice.put(CONTAINER, OWN, TURTLE)
    await server.alice.put(f"{CONTAINER}a", "x", "text/plain")
    for _ in range(2):
        for accept in (TURTLE, JSON_LD):
            for prefer, expected in ((MINIMAL, 0), ("return=representation", 1), (OMIT, 0)):
                for _ in range(2):
                    answer = await server.alice.get(CONTAINER, accept=accept, prefer=prefer)
                    assert len(members(answer)) == expected
            assert len(members(await server.alice.get(CONTAINER, accept=accept))) == 1
        await server.alice.put(f"{CONTAINER}a", "y", "text/plain")


async def test_neither_a_minimal_container_nor_a_head_reads_members(
    server: Server, container: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C-29: whatever there is in it."""
    read: list[str] = []
    list_members = ReadConnection.list_members

    def noting(self: ReadConnection, path: str, *rest: object) -> object:
        read.append(path)
        return list_members(self, path, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(ReadConnection, "list_members", noting)
    for accept in FORMATS:
        for prefer in WITHOUT_MEMBERS:
            assert (await server.alice.get(container, accept=accept, prefer=prefer)).status == 200
        for wish in ({}, {"prefer": MINIMAL}):
            assert (await server.alice.head(container, accept=accept, **wish)).status == 200
    assert read == []
    assert (await server.alice.get(container)).status == 200
    assert read == [container]


# --- writes ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("prefer", "applied"),
    [
        ("return=minimal", "return=minimal"),
        ("handling=lenient, return=minimal", "return=minimal"),
        ("return=representation", None),
        ("handling=strict", None),
        ("return=minimal, return=representation", None),
        ("return=", None),
    ],
)
async def test_responses_to_writes_are_minimal_and_say_so_on_request(
    server: Server, prefer: str, applied: str | None
) -> None:
    """RFC 7240 section 4.2: asking for the representation is a preference that may be ignored."""
    alice, path = server.alice, "/alice/private/doc"
    patch = "INSERT DATA { <#a> <#b> 2 }"
    sparql = "application/sparql-update"
    fields = {"Prefer": prefer, "Content-Type": sparql}
    answers = [
        await alice.put(path, "<#a> <#b> 1 .", TURTLE, prefer=prefer),
        await alice.put(path, "<#a> <#b> 1 .", TURTLE, prefer=prefer),
        await alice.request("PATCH", path, headers=fields, body=patch.encode()),
        await alice.post("/alice/private/", "x", "text/plain", prefer=prefer),
        await alice.delete(path, prefer=prefer),
    ]
    assert [answer.status for answer in answers] == [201, 204, 204, 201, 204]
    for answer in answers:
        assert (answer.body, answer.header("preference-applied")) == (b"", applied)


async def test_a_refusal_applies_no_preference(server: Server) -> None:
    refused = await server.alice.put("/alice/private/x", "<", TURTLE, prefer="return=minimal")
    assert (refused.status, refused.header("preference-applied")) == (400, None)
    assert refused.json()["message"]
