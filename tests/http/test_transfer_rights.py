"""Who may copy and move, and who may do what afterwards?"""

from __future__ import annotations

from itertools import product

import pytest

from podstead.core.identifiers import ResourcePath
from podstead.storage.records import Committed, Version, Write
from podstead.storage.sqlite import SqliteStore
from tests.http.identity import IDENTITY, PREFIXES
from tests.support.application import BASE, Server, acl_turtle
from tests.support.rdf import JSON_LD, TURTLE
from tests.support.transfers import copy, move, put, transfer, tree_at

ROOT = "/alice/private/"
NAMES = {"R": "Read", "W": "Write", "A": "Append", "C": "Control"}
PUBLIC = "acl:agentClass foaf:Agent"


async def give(server: Server, container: str, own: str, members: str, who: str) -> None:
    """Give somebody these modes on a container and on its members, in their first letters."""
    lines = [acl_turtle(container)]
    for letters, predicate in ((own, "acl:accessTo"), (members, "acl:default")):
        modes = ", ".join(f"acl:{NAMES[letter]}" for letter in letters)
        if modes:
            lines.append(
                f"[] a acl:Authorization; {who}; {predicate} <{BASE}{container}>; acl:mode {modes}."
            )
    await put(server.alice, f"{container}.acl", "\n".join(lines), TURTLE)


# --- the modes that are needed -----------------------------------------------------------------


@pytest.mark.parametrize("kind", ["document", "container"])
@pytest.mark.parametrize("method", ["COPY", "MOVE"])
async def test_every_combination_of_modes(server: Server, method: str, kind: str) -> None:
    """A copy needs Read, and at the destination what PUT needs; a move what DELETE needs, too."""
    bob = f"acl:agent <{server.bob_web_id}>"
    source = f"{ROOT}from/{'x' if kind == 'document' else 'x/'}"
    destination = f"{ROOT}to/{'y' if kind == 'document' else 'y/'}"
    await put(server.alice, source + ("inside" if kind == "container" else ""))
    await put(server.alice, f"{ROOT}to/", "", TURTLE)
    for above, members, onto, new in product(
        ("", "W", "A"), ("", "R", "W", "RW"), ("", "A", "W"), ("", "R", "A", "W")
    ):
        await give(server, f"{ROOT}from/", above, members, bob)
        await give(server, f"{ROOT}to/", onto, new, bob)
        allowed = "R" in members and onto in ("A", "W") and new == "W"
        if method == "MOVE":
            allowed = allowed and above == "W" and "W" in members
        answer = await transfer(server.bob, method, source, destination)
        case = (above, members, onto, new)
        assert answer.status == (201 if allowed else 403), case
        if allowed and method == "MOVE":
            assert (await move(server.alice, destination, source)).status == 201
        elif allowed:
            if kind == "container":
                assert (await server.alice.delete(f"{destination}inside")).status == 204
            assert (await server.alice.delete(destination)).status == 204
        assert (await server.alice.get(destination)).status == 404


@pytest.mark.parametrize("method", ["COPY", "MOVE"])
async def test_to_replace_a_document_needs_what_deleting_it_needs(
    server: Server, method: str
) -> None:
    bob = f"acl:agent <{server.bob_web_id}>"
    await give(server, f"{ROOT}from/", "W", "RW", bob) if await _made(server, "from/x") else None
    await put(server.alice, f"{ROOT}to/y", "old")
    for onto, new in product(("", "A", "W"), ("", "A", "W")):
        await put(server.alice, f"{ROOT}from/x", "new")
        await give(server, f"{ROOT}to/", onto, new, bob)
        answer = await transfer(server.bob, method, f"{ROOT}from/x", f"{ROOT}to/y")
        assert answer.status == (204 if (onto, new) == ("W", "W") else 403), (onto, new)


async def _made(server: Server, name: str) -> bool:
    await put(server.alice, ROOT + name)
    return True


@pytest.mark.parametrize("method", ["COPY", "MOVE"])
async def test_one_resource_without_access_is_enough_for_a_refusal(
    server: Server, store: SqliteStore, method: str
) -> None:
    bob = f"acl:agent <{server.bob_web_id}>"
    for name in ("a", "b/secret", "c"):
        await put(server.alice, f"{ROOT}tree/{name}")
    await give(server, ROOT, "RW", "RW", bob)
    assert (await transfer(server.bob, method, f"{ROOT}tree/", f"{ROOT}t1/")).status == 201
    tree = f"{ROOT}t1/"
    await give(server, f"{tree}b/", "", "", bob)
    before = await tree_at(store, "/alice/")
    answer = await transfer(server.bob, method, tree, f"{ROOT}t2/")
    assert answer.status == 403
    assert answer.json()["message"] == "Access denied"
    assert await tree_at(store, "/alice/") == before


async def test_a_tree_is_deleted_only_by_those_who_could_delete_each_resource(
    server: Server, store: SqliteStore
) -> None:
    bob = f"acl:agent <{server.bob_web_id}>"
    for above, members, inner in product(("", "W"), ("R", "W", "RW"), ("", "R", "W", "RW")):
        await put(server.alice, f"{ROOT}tree/inner/x")
        await give(server, ROOT, above, members, bob)
        await give(server, f"{ROOT}tree/inner/", inner, inner, bob)
        before = await tree_at(store, ROOT)
        headers = {"Depth": "infinity"}
        answer = await server.bob.request("DELETE", f"{ROOT}tree/", headers=headers)
        allowed = (above, members, inner) == ("W", "RW", "RW")
        assert answer.status == (204 if allowed else 403)
        if not allowed:
            assert await tree_at(store, ROOT) == before
    assert (await tree_at(store, ROOT)).keys() >= {""}
    assert f"{ROOT}tree/" not in await store.read_tree(ResourcePath(ROOT), limit=100)


@pytest.mark.parametrize("method", ["COPY", "MOVE"])
async def test_a_refusal_tells_nobody_what_exists(server: Server, method: str) -> None:
    await put(server.alice, f"{ROOT}a")
    await put(server.alice, f"{ROOT}b")
    for client, status in ((server.bob, 403), (server.public, 401)):
        answers = [
            await transfer(client, method, f"{ROOT}{source}", f"{ROOT}{destination}")
            for source, destination in product(("a", "none"), ("b", "other", "no/where"))
        ]
        assert {answer.status for answer in answers} == {status}
        assert len({answer.body for answer in answers}) == 1


async def test_a_container_is_not_revealed_by_its_name_without_a_slash(server: Server) -> None:
    bob = f"acl:agent <{server.bob_web_id}>"
    await put(server.alice, f"{ROOT}hidden/x")
    await give(server, ROOT, "RW", "RW", bob)
    await give(server, f"{ROOT}hidden/", "", "", bob)
    for method in ("COPY", "MOVE"):
        answers = [
            await transfer(server.bob, method, ROOT + name, f"{ROOT}new")
            for name in ("hidden", "none")
        ]
        assert [answer.status for answer in answers] == [404, 404]
        assert len({answer.body for answer in answers}) == 1


# --- rules -------------------------------------------------------------------------------------

_ACL = "@prefix acl: <http://www.w3.org/ns/auth/acl#>. @prefix foaf: <http://xmlns.com/foaf/0.1/>."
_OWNER = (
    "[] a acl:Authorization; acl:agent </alice/#me>; {about};"
    " acl:mode acl:Read, acl:Control, acl:Write."
)
RULES = {
    "absolute": (
        TURTLE,
        (
            "[] a acl:Authorization; acl:agent <{bob}>; acl:accessTo <{base}{tree}>;"
            " acl:default <{base}{tree}>; acl:mode acl:Read."
        ),
    ),
    "relative": (
        TURTLE,
        (
            "<#r> a acl:Authorization; acl:agent <{bob}>; acl:accessTo <./>; acl:default <./>;"
            " acl:mode acl:Read."
        ),
    ),
    "relative to the parent": (
        TURTLE,
        (
            "<#r> a acl:Authorization; acl:agentClass foaf:Agent; acl:accessTo <../tree/>;"
            " acl:default <../tree/>; acl:mode acl:Read."
        ),
    ),
    "of a group in the tree": (
        TURTLE,
        (
            "<#r> a acl:Authorization; acl:agentGroup <people#friends>; acl:accessTo <./>;"
            " acl:default <./>; acl:mode acl:Read."
        ),
    ),
    "of a group in the ACL": (
        TURTLE,
        (
            "<#r> a acl:Authorization; acl:agentGroup <#g>; acl:accessTo <./>; acl:default <./>;"
            " acl:mode acl:Read. <#g> a <http://www.w3.org/2006/vcard/ns#Group>;"
            " <http://www.w3.org/2006/vcard/ns#hasMember> <{bob}>."
        ),
    ),
    "of a relative agent": (
        TURTLE,
        (
            "<#r> a acl:Authorization; acl:agent <../../../bob/#me>; acl:accessTo <.>;"
            " acl:default <./>; acl:mode acl:Append."
        ),
    ),
    "only for the container": (
        TURTLE,
        "<#r> a acl:Authorization; acl:agent <{bob}>; acl:accessTo <./>; acl:mode acl:Read.",
    ),
    "JSON-LD": (
        JSON_LD,
        (
            '{{"@context": {{"acl": "http://www.w3.org/ns/auth/acl#"}}, "@graph": ['
            '{{"@id": "#r", "@type": "acl:Authorization", "acl:agent": {{"@id": "{bob}"}},'
            ' "acl:accessTo": {{"@id": "./"}}, "acl:default": {{"@id": "{base}{tree}"}},'
            ' "acl:mode": {{"@id": "acl:Read"}}}},'
            '{{"@id": "#o", "@type": "acl:Authorization", "acl:agent": {{"@id": "/alice/#me"}},'
            ' "acl:accessTo": {{"@id": "./"}}, "acl:default": {{"@id": "./"}},'
            ' "acl:mode": [{{"@id": "acl:Control"}}, {{"@id": "acl:Read"}},'
            ' {{"@id": "acl:Write"}}]}}]}}'
        ),
    ),
}


@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("method", ["COPY", "MOVE"])
async def test_everybody_may_do_afterwards_what_they_could_before(
    server: Server, method: str, rules: str
) -> None:
    """The server's own answers before the transfer are the oracle."""
    tree, other = f"{ROOT}tree/", f"{ROOT}deeper/other/"
    await put(server.alice, f"{ROOT}deeper/", "", TURTLE)
    for name in ("doc", "inner/doc"):
        await put(server.alice, tree + name)
    vcard = "http://www.w3.org/2006/vcard/ns"
    friends = f"<#friends> a <{vcard}#Group>; <{vcard}#hasMember> <{server.bob_web_id}>."
    await put(server.alice, f"{tree}people", friends, TURTLE)
    content_type, text = RULES[rules]
    text = text.format(bob=server.bob_web_id, base=BASE, tree=tree)
    if content_type == TURTLE:
        owner = _OWNER.format(about="acl:accessTo <./>; acl:default <./>")
        text = f"{_ACL} {owner} {text}"
    await put(server.alice, f"{tree}.acl", text, content_type)
    own = _OWNER.format(about="acl:accessTo <doc>")
    await put(
        server.alice,
        f"{tree}inner/doc.acl",
        f"{_ACL} {own} <#p> a acl:Authorization; acl:agentClass foaf:Agent;"
        f" acl:accessTo <{BASE}{tree}inner/doc>; acl:mode acl:Read.",
        TURTLE,
    )
    before = await _accesses(server, tree)
    assert before["", "alice"].startswith("200")
    assert len(set(before.values())) > 1
    assert (await transfer(server.alice, method, tree, other)).status == 201
    assert await _accesses(server, other) == before
    if method == "COPY":
        assert await _accesses(server, tree) == before


async def _accesses(server: Server, root: str) -> dict[tuple[str, str], str]:
    """What each agent may do with each resource of the tree."""
    found = {}
    for name in ("", "doc", "inner/", "inner/doc", "new"):
        for agent in ("alice", "bob", "public"):
            answer = await getattr(server, agent).head(root + name)
            found[name, agent] = f"{answer.status} {answer.header('wac-allow')}"
    return found


async def test_rules_are_copied_only_by_those_who_control_both_sides(
    server: Server, store: SqliteStore
) -> None:
    """Everybody else gets a copy that inherits the rules of its new container."""
    bob = f"acl:agent <{server.bob_web_id}>"
    await put(server.alice, f"{ROOT}tree/doc")
    await put(server.alice, f"{ROOT}to/", "", TURTLE)
    for number, (here, there) in enumerate(product(("RW", "RWC"), ("RWA", "RWC"))):
        await give(server, f"{ROOT}tree/", here, here, bob)
        await give(server, f"{ROOT}to/", there, there, bob)
        new = f"{ROOT}to/{number}/"
        assert (await copy(server.bob, f"{ROOT}tree/", new)).status == 201
        taken = ".acl" in await tree_at(store, new)
        assert taken is ("C" in here and "C" in there)
        if taken:
            assert (await server.bob.get(f"{new}.acl")).status == 200


async def test_rules_are_never_lost_by_a_move(server: Server, store: SqliteStore) -> None:
    """What was private would become what the new container says."""
    bob = f"acl:agent <{server.bob_web_id}>"
    await put(server.alice, f"{ROOT}tree/secret")
    await put(server.alice, f"{ROOT}to/", "", TURTLE)
    await give(server, ROOT, "RW", "RW", bob)
    await give(server, f"{ROOT}tree/", "RW", "RW", bob)
    before = await tree_at(store, "/alice/")
    for here, there in product(("RW", "RWC"), ("RW", "RWC")):
        await give(server, f"{ROOT}tree/", here, here, bob)
        await give(server, f"{ROOT}to/", there, there, bob)
        allowed = "C" in here and "C" in there
        answer = await move(server.bob, f"{ROOT}tree/", f"{ROOT}to/tree/")
        assert answer.status == (201 if allowed else 403)
    assert (await tree_at(store, f"{ROOT}to/tree/")).keys() == {"", ".acl", "secret"}
    assert before


async def test_the_rules_of_a_container_can_be_in_any_format_or_none(
    server: Server, store: SqliteStore
) -> None:
    """Rules that cannot be read grant nothing, there as here."""
    await put(server.alice, f"{ROOT}tree/doc")
    await put(server.alice, f"{ROOT}tree/.acl", acl_turtle(f"{ROOT}tree/"), TURTLE)
    await _break(store, f"{ROOT}tree/.acl")
    assert (await move(server.alice, f"{ROOT}tree/", f"{ROOT}other/")).status == 403
    assert (await server.alice.get(f"{ROOT}tree/doc")).status == 403


async def _break(store: SqliteStore, path: str) -> None:
    from podstead.storage.records import InlineBody, Put, ResourceKind  # noqa: PLC0415

    broken = Put(ResourcePath(path), ResourceKind.ACL, TURTLE, InlineBody(b"<<<"), creates=False)
    outcome = await store.commit(Write(Version("00000000000000ff"), 1, puts=(broken,)))
    assert isinstance(outcome, Committed)


# --- identity ----------------------------------------------------------------------------------


@pytest.mark.parametrize("statement", IDENTITY.values(), ids=IDENTITY)
@pytest.mark.parametrize("method", ["COPY", "MOVE"])
async def test_a_writer_cannot_carry_an_identity(
    server: Server, store: SqliteStore, method: str, statement: str
) -> None:
    """Neither to a new URL, nor over an existing profile, nor away from one."""
    bob = f"acl:agent <{server.bob_web_id}>"
    await put(server.alice, f"{ROOT}people/card", PREFIXES + statement, TURTLE)
    await put(server.alice, f"{ROOT}plain", "<#it> <#p> 1.", TURTLE)
    await give(server, ROOT, "RW", "RW", bob)
    before = await tree_at(store, "/alice/")
    for source, destination in (
        ("people/card", "card"),
        ("people/", "others/"),
        ("plain", "people/card"),
    ):
        answer = await transfer(server.bob, method, ROOT + source, ROOT + destination)
        assert answer.status == 403, (source, destination)
    assert await tree_at(store, "/alice/") == before
    assert (await transfer(server.bob, method, f"{ROOT}plain", f"{ROOT}plain2")).status == 201
    answer = await transfer(server.alice, method, f"{ROOT}people/card", f"{ROOT}card")
    assert answer.status == 201


async def test_a_writer_cannot_move_a_description_of_identity(server: Server) -> None:
    bob = f"acl:agent <{server.bob_web_id}>"
    await put(server.alice, f"{ROOT}a")
    await put(server.alice, f"{ROOT}a.meta", PREFIXES + IDENTITY["issuer"], TURTLE)
    await give(server, ROOT, "RW", "RW", bob)
    assert (await move(server.bob, f"{ROOT}a", f"{ROOT}b")).status == 403
    assert (await copy(server.bob, f"{ROOT}a", f"{ROOT}b")).status == 403


# --- repositories ------------------------------------------------------------------------------


@pytest.mark.feature("git")
async def test_a_container_that_is_a_repository_stays(server: Server, store: SqliteStore) -> None:
    await put(server.alice, f"{ROOT}tree/code/x")
    git = pytest.importorskip("podstead.features.git.entries")
    record = git.put_repository(ResourcePath(f"{ROOT}tree/code/"), "0" * 32)
    outcome = await store.commit(Write(Version("00000000000000fe"), 1, records=(record,)))
    assert isinstance(outcome, Committed)
    for path in ("tree/", "tree/code/"):
        answer = await move(server.alice, ROOT + path, f"{ROOT}other/")
        assert answer.status == 409
        assert "git repository" in answer.json()["message"]
    assert (await copy(server.alice, f"{ROOT}tree/", f"{ROOT}other/")).status == 201
    assert (await move(server.alice, f"{ROOT}tree/code/x", f"{ROOT}x")).status == 201
