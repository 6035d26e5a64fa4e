"""Which rules apply, and to whom: Web Access Control over HTTP."""

from __future__ import annotations

from dataclasses import replace

import pytest

from podstead.config import Settings
from podstead.core.identifiers import ResourcePath
from podstead.storage.records import Committed, InlineBody, Put, ResourceKind, Version, Write
from podstead.storage.sqlite import SqliteStore
from tests.support.application import BASE, Server, Start, acl_turtle, running
from tests.support.asgi import Answer, Client
from tests.support.clock import FakeClock
from tests.support.peer import Peer
from tests.support.peer import answer as reply
from tests.support.rdf import JSON_LD, TURTLE

PUBLIC = "acl:agentClass foaf:Agent"
AUTHENTICATED = "acl:agentClass acl:AuthenticatedAgent"
DOC = "/alice/private/doc"
APP = "https://app.example"


def bob(server: Server) -> str:
    return f"acl:agent <{server.bob_web_id}>"


async def make_document(server: Server, path: str = DOC) -> None:
    assert (await server.alice.put(path, "hello", "text/plain")).status in (201, 204)


async def put_rules(server: Server, subject: str, turtle: str) -> Answer:
    """PUT an ACL that holds the owner's rule and further Turtle."""
    return await server.alice.put(f"{subject}.acl", acl_turtle(subject) + "\n" + turtle, TURTLE)


# --- which ACL ---------------------------------------------------------------------------------


@pytest.mark.parametrize("path", [DOC, "/alice/private/c/", "/alice/public/c/"])
async def test_an_acl_that_nobody_made_is_404_and_never_the_inherited_one(
    server: Server, path: str
) -> None:
    """W-3."""
    content_type = TURTLE if path.endswith("/") else "text/plain"
    await server.alice.put(path, None if path.endswith("/") else "x", content_type)
    for client, status in ((server.alice, 404), (server.bob, 403), (server.public, 401)):
        assert (await client.get(f"{path}.acl")).status == status
        assert (await client.head(f"{path}.acl")).status == status
        assert (await client.delete(f"{path}.acl")).status == status
    link = (await server.alice.get(path)).header("link") or ""
    assert f'<{BASE}{path}.acl>; rel="acl"' in link


@pytest.mark.parametrize(
    "rules",
    [
        "",
        "[] a acl:Authorization; acl:agent <#me>; acl:accessTo </alice/>; acl:mode acl:Write.",
        "[] a acl:Authorization; acl:agent <#me>; acl:default </alice/>; acl:mode acl:Control.",
        "[] a acl:Authorization; acl:agent <#me>; acl:accessTo </bob/>; acl:mode acl:Control.",
        "[] acl:agent <#me>; acl:accessTo </alice/>; acl:mode acl:Control.",
        "[] a acl:Authorization; acl:origin <#x>; acl:accessTo </alice/>; acl:mode acl:Control.",
    ],
)
async def test_the_acl_of_a_storage_must_leave_control_to_somebody(
    server: Server, rules: str
) -> None:
    """W-4: what would not is refused and changes nothing."""
    before = await server.alice.get("/alice/.acl")
    content = f"@prefix acl: <http://www.w3.org/ns/auth/acl#>.\n{rules}"
    assert (await server.alice.put("/alice/.acl", content, TURTLE)).status == 409
    after = await server.alice.get("/alice/.acl")
    assert (after.body, after.header("etag")) == (before.body, before.header("etag"))


async def test_control_of_a_storage_can_be_given_to_another(server: Server) -> None:
    """W-4, W-18: and the owner keeps it beside."""
    rules = acl_turtle("/alice/", (bob(server), "+Read +Write +Control"), owner=False)
    assert (await server.alice.put("/alice/.acl", rules, TURTLE)).status == 204
    assert (await server.bob.get("/alice/.acl")).status == 200
    assert (await server.alice.get("/alice/.acl")).status == 200
    assert (await server.alice.get("/alice/")).status == 403


@pytest.mark.parametrize(
    ("modes", "expected"),
    [
        ("+Read", (200, 200, 200)),
        ("~Read", (403, 200, 200)),
        ("Read", (200, 403, 403)),
        ("", (403, 403, 403)),
    ],
    ids=["accessTo and default", "default only", "accessTo only", "neither"],
)
async def test_rules_of_a_container_reach_it_by_access_to_and_all_below_by_default(
    server: Server, modes: str, expected: tuple[int, int, int]
) -> None:
    """W-10, and the suite's acl-object table: inheritance spans levels."""
    container = "/alice/private/c/"
    await make_document(server, f"{container}mid/doc.txt")
    rules = acl_turtle(container, (bob(server), modes.replace("~", "+")))
    if modes.startswith("~"):
        owner, blocks = rules.rsplit("[]", 1)
        rules = f"{owner}[]{blocks.replace(f'acl:accessTo <{BASE}{container}>; ', '')}"
    assert (await server.alice.put(f"{container}.acl", rules, TURTLE)).status == 201
    found = [
        (await server.bob.get(path)).status
        for path in (container, f"{container}mid/", f"{container}mid/doc.txt")
    ]
    assert tuple(found) == expected
    assert (await server.bob.get(f"{container}missing")).status == (
        404 if expected[1] == 200 else 403
    )


async def test_the_closest_acl_decides_alone(server: Server) -> None:
    """W-8, W-10: levels do not add up, and an ACL that says nothing of its resource denies."""
    path = "/alice/public/c/doc"
    await make_document(server, path)
    assert (await server.public.get(path)).status == 200
    await server.put_acl("/alice/public/c/")
    assert (await server.public.get(path)).status == 401
    await server.put_acl(path, (PUBLIC, "Read"))
    assert (await server.public.get(path)).status == 200
    await server.alice.put(f"{path}.acl", b"", TURTLE)
    assert (await server.public.get(path)).status == 401
    await server.alice.delete(f"{path}.acl")
    assert (await server.public.get(path)).status == 401
    await server.alice.delete("/alice/public/c/.acl")
    assert (await server.public.get(path)).status == 200


@pytest.mark.parametrize(
    ("rule", "status"),
    [
        ("acl:accessTo </alice/private/doc>", 200),
        ("acl:accessTo <doc>", 200),
        ("acl:accessTo <HTTP://LOCALHOST:3000/alice/private/%64oc>", 200),
        ("acl:accessTo <doc/>", 403),
        ("acl:accessTo <do>", 403),
        ("acl:accessTo <doc#this>", 403),
        ("acl:accessTo <doc?query>", 403),
        ("acl:accessTo <https://localhost:3000/alice/private/doc>", 403),
        ("acl:accessTo <http://evil.example/alice/private/doc>", 403),
        ("acl:default <doc>", 403),
        ("acl:accessTo </alice/private/>", 403),
        ("acl:accessToClass <doc>", 403),
        ("acl:accessTo 'doc'", 403),
    ],
)
async def test_a_rule_names_its_resource_exactly(server: Server, rule: str, status: int) -> None:
    """W-11."""
    await make_document(server)
    text = f"[] a acl:Authorization; {bob(server)}; {rule}; acl:mode acl:Read."
    assert (await put_rules(server, DOC, text)).status == 201
    assert (await server.bob.get(DOC)).status == status


@pytest.mark.parametrize("named", ["/alice/", "/alice/priv", "/alice/private", "/bob/"])
async def test_a_default_of_another_container_does_not_apply(server: Server, named: str) -> None:
    """W-11: no prefixes."""
    await make_document(server, "/alice/private/c/doc")
    text = f"[] a acl:Authorization; {bob(server)}; acl:default <{named}>; acl:mode acl:Read."
    assert (await put_rules(server, "/alice/private/c/", text)).status == 201
    assert (await server.bob.get("/alice/private/c/doc")).status == 403


@pytest.mark.parametrize(
    ("rule", "status"),
    [
        ("a acl:Authorization; {bob}; acl:accessTo <doc>; acl:mode acl:Read", 200),
        ("a acl:Authorization, <#x>; {bob}; acl:accessTo <doc>; acl:mode <#z>, acl:Read", 200),
        ("{bob}; acl:accessTo <doc>; acl:mode acl:Read", 403),
        ("a <#Authorization>; {bob}; acl:accessTo <doc>; acl:mode acl:Read", 403),
        ("a acl:Authorization; {bob}; acl:accessTo <doc>", 403),
        ("a acl:Authorization; {bob}; acl:mode acl:Read", 403),
        ("a acl:Authorization; acl:accessTo <doc>; acl:mode acl:Read", 403),
        ("a acl:Authorization; {bob}; acl:accessTo <doc>; acl:mode acl:read, <#Read>", 403),
        ("a acl:Authorization; acl:agentClass <#X>; acl:accessTo <doc>; acl:mode acl:Read", 403),
        ("a acl:Authorization; acl:agent foaf:Agent; acl:accessTo <doc>; acl:mode acl:Read", 403),
        ("a acl:Authorization; acl:agent '{web_id}'; acl:accessTo <doc>; acl:mode acl:Read", 403),
    ],
)  # fmt: skip
async def test_only_a_complete_authorization_applies(
    server: Server, rule: str, status: int
) -> None:
    """W-12, W-16: what is unknown is ignored and widens nothing."""
    await make_document(server)
    text = rule.format(bob=bob(server), web_id=server.bob_web_id)
    assert (await put_rules(server, DOC, f"[] {text}.")).status == 201
    assert (await server.bob.get(DOC)).status == status
    assert (await server.public.get(DOC)).status == 401


# --- subjects ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("subject", "of_bob", "of_public"),
    [
        (PUBLIC, 200, 200),
        (AUTHENTICATED, 200, 401),
        ("acl:agent </bob/#me>", 200, 401),
        ("acl:agent </bob/>", 403, 401),
        ("acl:agent </bob/#Me>", 403, 401),
        ("acl:agent </alice/#me>", 403, 401),
    ],
)
async def test_subjects_are_everyone_all_that_are_known_and_single_agents(
    server: Server, subject: str, of_bob: int, of_public: int
) -> None:
    """W-13."""
    await make_document(server)
    await server.put_acl(DOC, (subject, "Read"))
    assert (await server.bob.get(DOC)).status == of_bob
    assert (await server.public.get(DOC)).status == of_public


GROUP = "@prefix vcard: <http://www.w3.org/2006/vcard/ns#>. <#g> vcard:hasMember <{}>."


async def test_members_of_a_group_of_this_server(server: Server) -> None:
    """W-13, W-14, W-5: whoever may or may not read the group, and from the next request on."""
    await make_document(server)
    groups = "/alice/private/groups.ttl"
    await server.put_acl(DOC, (f"acl:agentGroup <{BASE}{groups}#g>", "Read"))
    assert (await server.bob.get(DOC)).status == 403
    await server.alice.put(groups, GROUP.format(server.bob_web_id), TURTLE)
    assert (await server.bob.get(DOC)).status == 200
    assert (await server.bob.get(groups)).status == 403
    assert (await server.public.get(DOC)).status == 401
    for content in (GROUP.format("/carol/#me"), GROUP.replace("#g", "#h").format("/bob/#me"), ""):
        await server.alice.put(groups, content, TURTLE)
        assert (await server.bob.get(DOC)).status == 403
        await server.alice.put(groups, GROUP.format("/bob/#me"), TURTLE)
        assert (await server.bob.get(DOC)).status == 200
    await server.alice.delete(groups)
    assert (await server.bob.get(DOC)).status == 403


async def test_a_group_in_json_ld_has_members_too(server: Server) -> None:
    """W-14."""
    await make_document(server)
    await server.put_acl(DOC, (f"acl:agentGroup <{BASE}/alice/private/g#g>", "Read"))
    member = "http://www.w3.org/2006/vcard/ns#hasMember"
    content = f'{{"@id": "#g", "{member}": {{"@id": "/bob/#me"}}}}'
    await server.alice.put("/alice/private/g", content, JSON_LD)
    assert (await server.bob.get(DOC)).status == 200
    await server.alice.put("/alice/private/g", content, "application/json")
    assert (await server.bob.get(DOC)).status == 403


async def test_members_of_a_foreign_group(start: Start, peer: Peer) -> None:
    """W-13, W-14, A-190: fetched, kept for a while, and what cannot be had has no members."""
    clock = FakeClock()
    server = await start(clock=clock)
    await make_document(server)
    await server.put_acl(DOC, (f"acl:agentGroup <{peer.url('/groups')}#g>", "Read"))
    assert (await server.bob.get(DOC)).status == 403  # the peer has no such document yet
    peer.replies["/groups"] = reply(body=GROUP.format(server.bob_web_id).encode())
    clock.advance(600)
    assert [(await server.bob.get(DOC)).status for _ in range(3)] == [200, 200, 200]
    assert len(peer.requests) == 2
    assert all("authorization" not in request.headers for request in peer.requests)
    assert (await server.public.get(DOC)).status == 401
    peer.replies["/groups"] = reply(body=GROUP.format("http://e/#x").encode())
    clock.advance(600)
    assert (await server.bob.get(DOC)).status == 403


async def test_a_foreign_group_in_this_machine_is_not_a_group_of_a_public_server(
    start: Start, peer: Peer
) -> None:
    """W-14, A-187: rules must not make the server ask its own network."""
    server = await start(base_url="https://pods.example")
    peer.replies["/groups"] = reply(body=GROUP.format(server.bob_web_id).encode())
    await make_document(server)
    rule = f"""@prefix acl: <http://www.w3.org/ns/auth/acl#>.
        [] a acl:Authorization; acl:accessTo <doc>; acl:mode acl:Read;
           acl:agentGroup <{peer.url("/groups")}#g>."""
    assert (await server.alice.put(f"{DOC}.acl", rule, TURTLE)).status == 201
    assert (await server.bob.get(DOC)).status == 403
    assert peer.connections == 0


@pytest.mark.parametrize(
    ("origins", "origin", "of_bob"),
    [
        ("", None, 200),
        ("", APP, 200),
        ("", "null", 200),
        (f"acl:origin <{APP}>;", None, 200),
        (f"acl:origin <{APP}>;", APP, 200),
        (f"acl:origin <{APP}/>;", APP, 200),
        (f"acl:origin <{APP}:443>;", APP, 200),
        (f"acl:origin <{APP}>;", "https://app.example.evil", 403),
        (f"acl:origin <{APP}>;", "http://app.example", 403),
        (f"acl:origin <{APP}>;", "null", 403),
        (f"acl:origin <{APP}>, <https://other>;", "https://other", 200),
        (f"acl:origin '{APP}';", APP, 403),
    ],
)
async def test_rules_that_name_origins_bind_web_pages_to_them(
    server: Server, origins: str, origin: str | None, of_bob: int
) -> None:
    """W-17: every origin is trusted until the rules name some."""
    await make_document(server)
    text = (
        f"[] a acl:Authorization; {bob(server)}; {origins} acl:accessTo <doc>; acl:mode acl:Read."
    )
    assert (await put_rules(server, DOC, text)).status == 201
    headers = {} if origin is None else {"origin": origin}
    assert (await server.bob.get(DOC, **headers)).status == of_bob
    # An origin alone is nobody.
    assert (await server.public.get(DOC, **headers)).status == 401


async def test_origins_do_not_bind_what_is_open_to_everyone(server: Server) -> None:
    """W-17."""
    await make_document(server)
    rule = f"acl:origin <{APP}>; acl:accessTo <doc>; acl:mode acl:Read"
    text = f"[] a acl:Authorization; {PUBLIC}; {rule}."
    await put_rules(server, DOC, text)
    for client in (server.public, server.bob):
        assert (await client.get(DOC, origin="https://other.example")).status == 200


async def test_the_owner_keeps_control_and_nothing_else(server: Server) -> None:
    """W-18."""
    await make_document(server)
    await server.put_acl(DOC, (bob(server), "Read"), owner=False)
    read = await server.alice.get(DOC)
    assert (read.status, read.header("wac-allow")) == (403, 'user="control",public=""')
    assert (await server.alice.put(DOC, "x", "text/plain")).status == 403
    assert (await server.alice.get(f"{DOC}.acl")).status == 200
    assert (await server.put_acl(DOC)).status == 204
    assert (await server.alice.get(DOC)).status == 200


# --- ACLs that cannot be understood ------------------------------------------------------------

UNREADABLE = [
    (TURTLE, b"this is no Turtle"),
    (TURTLE, b"\xff\xfe"),
    (JSON_LD, b"{"),
    (JSON_LD, b'{"@context": "https://unknown.example/context"}'),
    (JSON_LD, b"[" * 5000),
    ("image/png", b"\x89PNG"),
    ("text/turtle; charset=utf-16", b""),
]


@pytest.mark.parametrize(("content_type", "content"), UNREADABLE)
async def test_an_acl_that_cannot_be_read_denies_all_and_leaves_the_owner_control(
    server: Server, store: SqliteStore, content_type: str, content: bytes
) -> None:
    """W-7: it never falls through to the container's rules, which let everyone read."""
    path = "/alice/public/doc"
    await make_document(server, path)
    await server.put_acl(path, (PUBLIC, "Read"))
    assert (await server.public.get(path)).status == 200
    await corrupt(store, f"{path}.acl", content_type, content)
    for method in ("GET", "HEAD", "PUT", "DELETE"):
        headers = {"Content-Type": "text/plain"} if method == "PUT" else {}
        for client, status in ((server.public, 401), (server.bob, 403), (server.alice, 403)):
            assert (await client.request(method, path, headers=headers)).status == status
    assert (await server.bob.get(f"{path}.acl")).status == 403
    stored = await server.alice.get(f"{path}.acl")
    assert (stored.status, stored.body) == (200, content)
    assert (await server.put_acl(path, (PUBLIC, "Read"))).status == 204
    assert (await server.public.get(path)).status == 200


async def test_an_unreadable_acl_of_a_container_denies_all_below(
    server: Server, store: SqliteStore
) -> None:
    """W-7."""
    await make_document(server, "/alice/public/c/doc")
    await server.put_acl("/alice/public/c/", (PUBLIC, "+Read"))
    await corrupt(store, "/alice/public/c/.acl", TURTLE, b"<")
    for path in ("/alice/public/c/", "/alice/public/c/doc", "/alice/public/c/missing"):
        assert (await server.public.get(path)).status == 401
        assert (await server.bob.get(path)).status == 403
    assert (await server.bob.post("/alice/public/c/", "x", "text/plain")).status == 403


async def corrupt(store: SqliteStore, path: str, content_type: str, content: bytes) -> None:
    """Write what the server would never store."""
    put = Put(
        ResourcePath(path), ResourceKind.ACL, content_type, InlineBody(content), creates=False
    )
    write = Write(version=Version("c0" * 8), at_ms=1, puts=(put,))
    assert isinstance(await store.commit(write), Committed)


# --- changes -----------------------------------------------------------------------------------


async def test_a_changed_acl_applies_to_the_next_request(
    server: Server, settings: Settings
) -> None:
    """W-5, and the suite's acl-propagation: of this worker and of another."""
    async with running(replace(settings)) as other:
        bobs: list[Client] = [server.bob, server.bob.asking(other)]
        await make_document(server, "/alice/private/c/doc")
        for _ in range(3):
            for client in bobs:
                assert (await client.get("/alice/private/c/doc")).status == 403
            await server.put_acl("/alice/private/c/", (bob(server), "+Read +Write"))
            for client in bobs:
                assert (await client.get("/alice/private/c/doc")).status == 200
                made = await client.put("/alice/private/c/new", "x", "text/plain")
                assert made.status in (201, 204)
            await server.alice.delete("/alice/private/c/.acl")
