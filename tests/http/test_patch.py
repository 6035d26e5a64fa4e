"""Patching resources over HTTP: N3 Patch and SPARQL Update, their modes and refusals."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import rdflib

from podstead.app.adapters.rdf_processes import RdfProcesses
from podstead.rdf.tasks import Task
from podstead.resources import content
from tests.support.application import BASE, Server
from tests.support.asgi import Answer, Client

N3 = "text/n3"
SPARQL = "application/sparql-update"
TURTLE = "text/turtle"
EX = rdflib.Namespace("http://example.org/")


def n3(**clauses: str) -> str:
    """An N3 Patch; the type comes last, as rdflib writes it."""
    parts = "; ".join(f"solid:{name} {{ {text} }}" for name, text in clauses.items())
    return (
        "@prefix solid: <http://www.w3.org/ns/solid/terms#>. @prefix ex: <http://example.org/>.\n"
        f"_:patch {parts + '; ' if parts else ''}a solid:InsertDeletePatch."
    )


async def patch(client: Client, path: str, body: str, kind: str = N3, **headers: str) -> Answer:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return await client.request(
        "PATCH", path, headers={"Content-Type": kind, **named}, body=body.encode()
    )


async def graph(client: Client, path: str) -> rdflib.Graph:
    answer = await client.get(path, accept=TURTLE)
    assert answer.status == 200
    return rdflib.Graph().parse(data=answer.body, format="turtle", publicID=BASE + path)


async def test_insert_creates_a_missing_document_as_turtle(server: Server) -> None:
    """X-1, X-16, X-37, C-2: also below missing containers and whatever the URL ends in."""
    for kind, body in ((N3, n3(inserts="<#a> ex:b 1 .")), (SPARQL, "INSERT DATA { <#a> <#b> 1 }")):
        path = f"/alice/private/new/{kind.partition('/')[2]}.txt"
        answer = await patch(server.alice, path, body, kind)
        assert answer.status == 201, answer.text
        assert answer.header("location") == BASE + path
        read = await server.alice.get(path)
        assert read.header("content-type") == TURTLE
        assert len(await graph(server.alice, path)) == 1


async def test_patch_keeps_prefixes_and_relative_iris_readable(server: Server) -> None:
    """R-8: what is rewritten still looks like itself."""
    path = "/alice/private/me.ttl"
    await server.alice.put(path, "@prefix ex: <http://example.org/>.\n<#me> ex:name 'A'.", TURTLE)
    answer = await patch(server.alice, path, n3(inserts="<#me> ex:age 5 ."))
    assert answer.status == 204
    text = (await server.alice.get(path)).text
    assert "<#me> ex:name" in text
    assert "ex:age 5" in text


async def test_where_must_hold_exactly_once_and_deletes_must_be_there(server: Server) -> None:
    """X-11, X-12, X-13: refused patches change nothing."""
    path = "/alice/private/a.ttl"
    await server.alice.put(path, "<#a> <#p> 1, 2. <#b> <#p> 3.", TURTLE)
    before = await server.alice.get(path)
    for refused in (
        n3(where="<#a> <#p> ?x .", deletes="<#a> <#p> ?x ."),
        n3(where="<#c> <#p> ?x .", inserts="<#c> <#q> ?x ."),
        n3(deletes="<#a> <#p> 9 ."),
    ):
        assert (await patch(server.alice, path, refused)).status == 409
    assert (await server.alice.get(path)).header("etag") == before.header("etag")
    moved = n3(where="?s <#p> 3 .", deletes="?s <#p> 3 .", inserts="?s <#p> 4 .")
    assert (await patch(server.alice, path, moved)).status == 204
    assert {int(str(o)) for o in (await graph(server.alice, path)).objects()} == {1, 2, 4}


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        ("<#a> <#b>", N3, 400),
        ("", N3, 400),
        ("<> a <#Nothing> .", N3, 422),
        (n3(inserts="<#a> <#b> ?x ."), N3, 422),
        (n3(deletes="_:a <#b> 1 ."), N3, 422),
        ("INSERT DATA { <#a> <#b> ", SPARQL, 400),
        ("LOAD <http://example.org/>", SPARQL, 422),
        ("DELETE { ?s ?p ?o } WHERE { ?s ?p ?o FILTER(?o > 1) }", SPARQL, 422),
        ("{}", "application/json", 415),
        ("x", "text/plain", 415),
    ],
)
async def test_bad_patches_are_refused_and_change_nothing(
    server: Server, body: str, kind: str, status: int
) -> None:
    """X-2 to X-10, X-34, X-36."""
    path = "/alice/private/a.ttl"
    await server.alice.put(path, "<#a> <#b> 1.", TURTLE)
    before = await server.alice.get(path)
    answer = await patch(server.alice, path, body, kind)
    assert answer.status == status, answer.text
    if status == 415:
        assert "text/n3" in (answer.header("accept-patch") or "")
    assert (await server.alice.get(path)).body == before.body


async def test_patch_without_content_type_is_400(server: Server) -> None:
    """P-6."""
    answer = await server.alice.request("PATCH", "/alice/private/a.ttl", body=b"x")
    assert answer.status == 400


async def test_only_rdf_can_be_patched(server: Server) -> None:
    """X-15."""
    await server.alice.put("/alice/private/a.txt", "hello", "text/plain")
    answer = await patch(server.alice, "/alice/private/a.txt", n3(inserts="<#a> <#b> 1 ."))
    assert answer.status == 409
    assert (await server.alice.get("/alice/private/a.txt")).body == b"hello"


async def test_unknown_context_is_named(server: Server) -> None:
    """R-11."""
    body = '{"@context": "https://unknown.example/c", "name": "x"}'
    await server.alice.put("/alice/private/a.jsonld", body, "application/ld+json")
    answer = await patch(server.alice, "/alice/private/a.jsonld", n3(inserts="<#a> <#b> 1 ."))
    assert answer.status == 409
    assert "https://unknown.example/c" in answer.json()["message"]


async def test_json_ld_stays_json_ld(server: Server) -> None:
    """X-37."""
    path = "/alice/private/a.jsonld"
    body = '{"@context": {"ex": "http://example.org/"}, "@id": "#me", "ex:name": "A"}'
    await server.alice.put(path, body, "application/ld+json")
    answer = await patch(server.alice, path, "INSERT DATA { <#me> <#p> 1 }", SPARQL)
    assert answer.status == 204
    assert (await server.alice.get(path)).header("content-type") == "application/ld+json"
    assert len(await graph(server.alice, path)) == 2


async def test_sparql_changes_of_absent_triples_are_not_errors(server: Server) -> None:
    """X-31, X-35, X-33: several operations, with a trailing semicolon."""
    path = "/alice/private/a.ttl"
    await server.alice.put(path, "<#a> <#b> 1.", TURTLE)
    body = "DELETE DATA { <#a> <#b> 9 } ; INSERT DATA { <#a> <#b> 2 } ;"
    assert (await patch(server.alice, path, body, SPARQL)).status == 204
    nothing = "DELETE { ?s a ?o } INSERT { ?s <#x> ?o } WHERE { ?s a ?o }"
    assert (await patch(server.alice, path, nothing, SPARQL)).status == 204
    assert {int(str(o)) for o in (await graph(server.alice, path)).objects()} == {1, 2}


async def test_containers_take_patches_of_their_owners_triples_only(server: Server) -> None:
    """X-32, C-13."""
    container = "/alice/private/c/"
    await server.alice.put(f"{container}x", "1", "text/plain")
    insert = "INSERT DATA { <> <http://purl.org/dc/terms/title> 'T' }"
    assert (await patch(server.alice, container, insert, SPARQL)).status == 204
    everything = "DELETE { ?s a ?o } INSERT { ?s <#was> ?o } WHERE { ?s a ?o }"
    assert (await patch(server.alice, container, everything, SPARQL)).status == 204
    ldp = "http://www.w3.org/ns/ldp#"
    for refused in (
        f"DELETE DATA {{ <> <{ldp}contains> <x> }}",
        f"INSERT DATA {{ <> <{ldp}contains> <y> }}",
    ):
        assert (await patch(server.alice, container, refused, SPARQL)).status == 409
    strict = n3(where=f"<> <{ldp}contains> ?m .", inserts="<> ex:holds ?m .")
    assert (await patch(server.alice, container, strict)).status == 204
    held = await graph(server.alice, container)
    assert list(held.objects(predicate=EX.holds)) == [rdflib.URIRef(f"{BASE}{container}x")]
    assert "T" in (await server.alice.get(f"{container}.meta", accept=TURTLE)).text


async def test_descriptions_and_access_rules_are_patched_like_documents(server: Server) -> None:
    """C-30, W-6, X-25."""
    path = "/alice/private/a.ttl"
    await server.alice.put(path, "", TURTLE)
    described = await patch(server.alice, f"{path}.meta", n3(inserts="<a.ttl> ex:b 1 ."))
    assert described.status == 201
    await server.put_acl(path)
    rule = (
        "<#bob> a acl:Authorization; acl:agent <http://localhost:3000/bob/#me>; "
        "acl:accessTo <a.ttl>; acl:mode acl:Read ."
    )
    body = f"PREFIX acl: <http://www.w3.org/ns/auth/acl#> INSERT DATA {{ {rule} }}"
    assert (await server.bob.get(path)).status == 403
    assert (await patch(server.alice, f"{path}.acl", body, SPARQL)).status == 204
    assert (await server.bob.get(path)).status == 200
    gone = "DELETE WHERE { ?s ?p ?o }"
    assert (await patch(server.alice, "/alice/.acl", gone, SPARQL)).status == 409  # W-4


@pytest.mark.parametrize(
    ("modes", "body", "kind", "status"),
    [
        ("Append", n3(inserts="<#a> <#b> 2 ."), N3, 204),
        ("Write", n3(inserts="<#a> <#b> 2 ."), N3, 204),
        ("Read", n3(inserts="<#a> <#b> 2 ."), N3, 403),
        ("Control", n3(inserts="<#a> <#b> 2 ."), N3, 403),
        ("Append", n3(deletes="<#a> <#b> 1 ."), N3, 403),
        ("Write", n3(deletes="<#a> <#b> 1 ."), N3, 403),
        ("Read Write", n3(deletes="<#a> <#b> 1 ."), N3, 204),
        ("Append", n3(where="<#a> <#b> ?x .", inserts="<#c> <#b> ?x ."), N3, 403),
        ("Read Append", n3(where="<#a> <#b> ?x .", inserts="<#c> <#b> ?x ."), N3, 204),
        ("Read Append", "DELETE { ?s a ?o } INSERT { ?s a ?o } WHERE { ?s a ?o }", SPARQL, 403),
        ("Append", "INSERT DATA { <#a> <#b> 2 }", SPARQL, 204),
        ("Read Write", "DELETE DATA { <#a> <#b> 1 }", SPARQL, 204),
    ],
)
async def test_modes_follow_from_what_a_patch_would_do(
    server: Server, modes: str, body: str, kind: str, status: int
) -> None:
    """X-20 to X-26."""
    path = "/alice/private/a.ttl"
    await server.alice.put(path, "<#a> <#b> 1.", TURTLE)
    await server.put_acl(path, (f"acl:agent <{server.bob_web_id}>", modes))
    assert (await patch(server.bob, path, body, kind)).status == status
    assert (await patch(server.public, path, body, kind)).status == 401


async def test_append_access_cannot_make_an_owner(server: Server) -> None:
    """Statements of identity need Control, by PATCH as by PUT."""
    acl = ("acl:agentClass acl:AuthenticatedAgent", "Append")
    assert (await server.put_acl("/alice/", acl, ("acl:agentClass foaf:Agent", "Read"))).status
    issuer = "<#me> <http://www.w3.org/ns/solid/terms#oidcIssuer> <https://evil.example>"
    name = '<#me> <http://xmlns.com/foaf/0.1/nick> "al"'
    insert = "INSERT DATA {{ {} }}"
    assert (await patch(server.bob, "/alice/", insert.format(name), SPARQL)).status == 204
    assert (await patch(server.bob, "/alice/", insert.format(issuer), SPARQL)).status == 403
    assert (await patch(server.alice, "/alice/", insert.format(issuer), SPARQL)).status == 204
    assert "evil.example" in (await server.public.get("/alice/")).text


async def test_parallel_patches_are_all_applied(server: Server) -> None:
    """P-26."""
    path = "/alice/private/log.ttl"
    answers = await asyncio.gather(
        *(
            patch(server.alice, path, n3(inserts=f"<#log> ex:entry {number} ."))
            for number in range(50)
        )
    )
    assert sorted(answer.status for answer in answers) == [201] + [204] * 49
    entries = {int(str(o)) for o in (await graph(server.alice, path)).objects()}
    assert entries == set(range(50))


async def test_patches_in_a_row_make_what_they_would_make_of_what_is_stored(
    server: Server,
) -> None:
    """What a patch leaves is remembered for the next one, and is no other than what is read."""
    path = "/alice/private/row.ttl"
    ex = "PREFIX ex: <http://example.org/>\n"
    for number in range(3):
        text = f"{ex}INSERT DATA {{ <#me> ex:has [ ex:number {number} ] }}"
        assert (await patch(server.alice, path, text, SPARQL)).status in (201, 204)
    nodes = set((await graph(server.alice, path)).objects(None, EX.has))
    assert len(nodes) == 3, "each patch has blank nodes of its own"
    text = f"{ex}DELETE {{ ?n ex:number 1 }} INSERT {{ ?n ex:number 7 }} WHERE {{ ?n ex:number 1 }}"
    assert (await patch(server.alice, path, text, SPARQL)).status == 204
    numbers = (await graph(server.alice, path)).objects(None, EX.number)
    assert sorted(map(str, numbers)) == ["0", "2", "7"]


async def test_what_was_put_in_between_is_what_is_patched(server: Server) -> None:
    path = "/alice/private/between.ttl"
    await patch(server.alice, path, n3(inserts="<#a> ex:b 1 ."))
    await server.alice.put(path, "<#a> <http://example.org/b> 2 .", TURTLE)
    refused = await patch(server.alice, path, n3(deletes="<#a> ex:b 1 ."))
    assert refused.status == 409
    await patch(server.alice, path, n3(inserts="<#a> ex:b 3 ."))
    numbers = (await graph(server.alice, path)).objects(None, EX.b)
    assert sorted(map(str, numbers)) == ["2", "3"]


async def test_preconditions_apply_to_patches(server: Server) -> None:
    """X-17, P-21, P-22."""
    path = "/alice/private/a.ttl"
    made = await patch(server.alice, path, n3(inserts="<#a> <#b> 1 ."), if_none_match="*")
    assert made.status == 201
    again = await patch(server.alice, path, n3(inserts="<#a> <#b> 2 ."), if_none_match="*")
    assert again.status == 412
    tag = made.header("etag") or ""
    assert (
        await patch(server.alice, path, n3(inserts="<#a> <#b> 3 ."), if_match=tag)
    ).status == 204
    assert (
        await patch(server.alice, path, n3(inserts="<#a> <#b> 4 ."), if_match=tag)
    ).status == 412


async def test_modes_come_before_preconditions(server: Server) -> None:
    """Who may not make this very patch learns nothing of the document's state."""
    path = "/alice/private/a.ttl"
    await server.alice.put(path, "<#a> <#b> 1.", TURTLE)
    await server.put_acl(path, (f"acl:agent <{server.bob_web_id}>", "Append"))
    deleting = n3(deletes="<#a> <#b> 1 .")
    for conditions in ({}, {"if_match": '"other-ttl"'}, {"if_none_match": "*"}):
        answer = await patch(server.bob, path, deleting, **conditions)
        assert answer.status == 403
        assert answer.header("etag") is None
    inserting = n3(inserts="<#a> <#b> 2 .")
    assert (await patch(server.bob, path, inserting, if_match='"other-ttl"')).status == 412
    assert (await patch(server.bob, path, inserting)).status == 204


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (n3(where="?a <#p> 1 .", inserts="?a <#q> 2 ."), N3),
        ("INSERT { ?a <#q> 2 } WHERE { ?a <#p> 1 }", SPARQL),
    ],
)
@pytest.mark.parametrize("path", ["/alice/private/a.ttl", "/alice/private/c/"])
async def test_conditions_that_take_many_steps_are_evaluated_in_another_process(
    server: Server, monkeypatch: pytest.MonkeyPatch, body: str, kind: str, path: str
) -> None:
    """With the same result; those that take few are evaluated at once."""
    await server.alice.put(path, "<#a> <#p> 1.", TURTLE)
    tasks: list[Task] = []
    in_process = RdfProcesses.in_process

    async def noting(self: RdfProcesses, task: Task, **named: Any) -> bytes:  # noqa: ANN401
        tasks.append(task)
        return await in_process(self, task, **named)

    monkeypatch.setattr(RdfProcesses, "in_process", noting)
    assert (await patch(server.alice, path, body, kind)).status == 204
    assert "2" in (await server.alice.get(path)).text
    assert tasks == []
    await server.alice.put(path, "<#a> <#p> 1.", TURTLE)
    monkeypatch.setattr(content, "_STEPS_AT_ONCE", 0)
    assert (await patch(server.alice, path, body, kind)).status == 204
    assert "2" in (await server.alice.get(path)).text
    assert len(tasks) == 1


async def test_others_are_answered_while_costly_conditions_are_evaluated(server: Server) -> None:
    """Their number of steps is bounded, and they may take a second or two each."""
    statements = "".join(f"<#{number}> <#p> {number} .\n" for number in range(300))
    costly = "DELETE { ?a <#p> ?b } WHERE { ?a <#p> ?b . ?c <#p> ?d . ?e <#p> ?f }"
    for number in range(8):
        await server.alice.put(f"/alice/private/{number}.ttl", statements, TURTLE)
    patches = [
        asyncio.create_task(patch(server.alice, f"/alice/private/{number}.ttl", costly, SPARQL))
        for number in range(8)
    ]
    await asyncio.sleep(0)
    assert (await server.bob.put("/bob/private/a.ttl", "<#a> <#p> 1.", TURTLE)).status == 201
    deleting = "DELETE { ?a <#p> 1 } WHERE { ?a <#p> 1 }"
    assert (await patch(server.bob, "/bob/private/a.ttl", deleting, SPARQL)).status == 204
    assert not any(each.done() for each in patches)
    statuses = [answer.status for answer in await asyncio.gather(*patches)]
    assert set(statuses) <= {422, 429, 503}
    assert 422 in statuses
