"""Who may say who a WebID is? Only whoever controls its document

Bob may read, write and append everywhere in Alice's pod, and controls nothing. He must not become
her by telling her document who may sign in as her, nor make a WebID of his own in her name.
"""

from __future__ import annotations

import pytest

from podstead.app.adapters.own_resources import PodOwners
from podstead.core.identifiers import ResourcePath
from tests.http.identity import IDENTITY, PREFIXES, at, patch, put
from tests.support.application import BASE, Server, acl_turtle
from tests.support.asgi import Answer
from tests.support.rdf import (
    JSON_LD,
    N_QUADS,
    N_TRIPLES,
    RDF_XML,
    TRIG,
    TURTLE,
    Triples,
    said,
    triples,
    written,
)

HARMLESS = {
    "name": "<#me> foaf:name 'Another'.",
    "about another WebID": "</bob/#me> solid:oidcIssuer <https://bob.example/>.",
    "about a longer URL": "<more#me> solid:oidcIssuer <https://bob.example/>.",
    "as an object": "<#x> <#y> solid:oidcIssuer, owl:sameAs.",
    "a key of nobody": '<#key> cert:modulus "00ff".',
}
ROOT = "/alice/"


@pytest.fixture
async def server(server: Server) -> Server:
    """Bob has all modes but Control, everywhere in Alice's pod."""
    rules = acl_turtle(
        ROOT,
        (f"acl:agent <{server.bob_web_id}>", "+Read +Write +Append"),
        ("acl:agentClass foaf:Agent", "Read"),
    )
    assert (await server.alice.put(f"{ROOT}.acl", rules, TURTLE)).status == 204
    assert (await server.alice.put("/alice/shared/", None, TURTLE)).status == 201
    return server


async def own_triples(server: Server) -> Triples:
    answer = await server.alice.get(f"{ROOT}.meta", accept=TURTLE)
    assert answer.status == 200
    return said(answer, f"{BASE}{ROOT}.meta")


def assert_refused(answer: Answer) -> None:
    """The same words as every other refusal."""
    assert answer.status == 403
    assert answer.json() == {"error": "Forbidden", "message": "Access denied"}
    assert answer.header("www-authenticate") is None


# --- the pod's root, where the owner's WebID is ------------------------------------------------


@pytest.mark.parametrize("statement", IDENTITY.values(), ids=IDENTITY)
@pytest.mark.parametrize("target", [ROOT, f"{ROOT}.meta"])
@pytest.mark.parametrize("content_type", [TURTLE, JSON_LD])
async def test_a_writer_cannot_add_to_or_take_from_the_owners_identity(
    server: Server, statement: str, target: str, content_type: str
) -> None:
    before = await own_triples(server)
    changed = before | at(ROOT, statement)

    assert_refused(await put(server.bob, target, changed, content_type))
    assert await own_triples(server) == before
    assert (await put(server.alice, target, changed, content_type)).status == 204
    assert await own_triples(server) == changed
    assert_refused(await put(server.bob, target, before, content_type))
    assert await own_triples(server) == changed
    assert_refused(await server.bob.delete(f"{ROOT}.meta"))
    assert (await put(server.bob, target, changed, content_type)).status == 204
    assert (await put(server.alice, target, before, content_type)).status == 204
    assert await own_triples(server) == before


@pytest.mark.parametrize("statement", HARMLESS.values(), ids=HARMLESS)
@pytest.mark.parametrize("target", [ROOT, f"{ROOT}.meta"])
@pytest.mark.parametrize("content_type", [TURTLE, JSON_LD])
async def test_a_writer_can_change_everything_else(
    server: Server, statement: str, target: str, content_type: str
) -> None:
    before = await own_triples(server)
    changed = before | at(ROOT, statement)
    for content in (changed, before):
        assert (await put(server.bob, target, content, content_type)).status == 204
        assert await own_triples(server) == content


async def test_a_key_that_is_described_otherwise_is_another_key(server: Server) -> None:
    before = await own_triples(server)
    keys = '<#me> cert:key <#k>, [ cert:modulus "{}" ]. <#k> cert:modulus "{}".'
    stored = before | at(ROOT, keys.format("01", "02"))
    await put(server.alice, ROOT, stored)
    for changed in (("01", "03"), ("03", "02"), ("02", "01")):
        assert_refused(await put(server.bob, ROOT, before | at(ROOT, keys.format(*changed))))
    more = at(ROOT, keys.format("01", "02") + '<#k> cert:exponent "3".')
    assert_refused(await put(server.bob, ROOT, before | more))
    # The same key under another label is the same.
    text = written(before, N_TRIPLES) + written(at(ROOT, keys.format("01", "02")), N_TRIPLES)
    assert (await server.bob.put(ROOT, text, N_TRIPLES)).status == 204


async def test_the_other_url_of_the_roots_triples_names_no_webid_of_a_writers(
    server: Server,
) -> None:
    """C-30: both URLs answer with these triples."""
    before = await own_triples(server)
    changed = before | at(ROOT, "<.meta#me> solid:oidcIssuer <https://evil.example/>.")
    for target in (ROOT, f"{ROOT}.meta"):
        assert_refused(await put(server.bob, target, changed))
        assert (await put(server.alice, target, changed)).status == 204
        assert_refused(await put(server.bob, target, before))
        assert (await put(server.alice, target, before)).status == 204


# --- documents ---------------------------------------------------------------------------------

DOC = "/alice/shared/card"


@pytest.mark.parametrize("statement", IDENTITY.values(), ids=IDENTITY)
@pytest.mark.parametrize("content_type", [TURTLE, JSON_LD])
async def test_a_writer_cannot_make_change_or_delete_a_document_of_identity(
    server: Server, statement: str, content_type: str
) -> None:
    content = at(DOC, statement)
    harmless = at(DOC, "<#me> foaf:name 'Somebody'.")

    assert_refused(await put(server.bob, DOC, content, content_type))
    assert (await server.alice.get(DOC)).status == 404
    assert (await put(server.bob, DOC, harmless, content_type)).status == 201
    assert_refused(await put(server.bob, DOC, content, content_type))
    assert (await put(server.alice, DOC, content, content_type)).status == 204
    stored = await server.alice.get(DOC)
    for other, other_type in ((harmless, content_type), (frozenset(), TURTLE)):
        assert_refused(await put(server.bob, DOC, other, other_type))
    assert_refused(await server.bob.put(DOC, "gone", "text/plain"))
    assert_refused(await server.bob.delete(DOC))
    unchanged = await server.alice.get(DOC)
    assert (unchanged.body, unchanged.header("etag")) == (stored.body, stored.header("etag"))
    assert (await put(server.bob, DOC, content | harmless, content_type)).status == 204
    assert (await server.alice.delete(DOC)).status == 204


@pytest.mark.parametrize("statement", IDENTITY.values(), ids=IDENTITY)
@pytest.mark.parametrize("slug", [None, "card", "profile"])
async def test_append_access_cannot_post_an_identity_document(
    server: Server, statement: str, slug: str | None
) -> None:
    headers = {"slug": slug} if slug else {}
    for content_type in (TURTLE, JSON_LD):
        # Relative, because the URL is not known before; rdflib writes it so for no base.
        content = written(triples(PREFIXES + statement, TURTLE, "relative:"), content_type)
        content = content.replace("relative:", "")
        for container in ("/alice/shared/", "/alice/inbox/"):
            before = await server.alice.get(container)
            assert_refused(
                await server.bob.post("/alice/shared/", content, content_type, **headers)
            )
            anonymous = await server.public.post("/alice/inbox/", content, content_type, **headers)
            assert anonymous.status == 401
            assert anonymous.header_lines("www-authenticate")
            assert (await server.alice.get(container)).header("etag") == before.header("etag")
        harmless = await server.bob.post("/alice/shared/", "", content_type=TURTLE, **headers)
        assert harmless.status == 201
        mine = await server.alice.post("/alice/inbox/", content, content_type, **headers)
        assert mine.status == 201


async def test_a_notification_about_others_may_be_posted(server: Server) -> None:
    """P-38: an inbox is no less of use."""
    note = PREFIXES + "<> foaf:maker <https://carol.example/#me>. <#note> foaf:name 'hi'."
    assert (await server.public.post("/alice/inbox/", note, TURTLE)).status == 201


@pytest.mark.parametrize("path", ["/alice/shared/c/", "/alice/shared/c/.meta"])
async def test_a_writer_cannot_make_or_delete_a_container_of_identity(
    server: Server, path: str
) -> None:
    container = "/alice/shared/c/"
    content = at(container, IDENTITY["issuer"])
    if path == container:
        assert_refused(await put(server.bob, path, content))
        link = '<http://www.w3.org/ns/ldp#BasicContainer>; rel="type"'
        refused = await server.bob.post(
            "/alice/shared/", PREFIXES + IDENTITY["issuer"], TURTLE, slug="c", link=link
        )
        assert_refused(refused)
    await server.alice.put(container, None, TURTLE)
    assert_refused(await put(server.bob, path, content))
    assert (await put(server.alice, path, content)).status == 204
    assert_refused(await server.bob.delete(container))
    assert_refused(await server.bob.delete(f"{container}.meta"))
    assert (await server.alice.delete(f"{container}.meta")).status == 204
    assert (await server.bob.delete(container)).status == 204


async def test_a_writer_cannot_delete_identity_with_the_document_that_it_describes(
    server: Server,
) -> None:
    """C-20: the description goes with its document, so it is asked about as well."""
    path = "/alice/shared/photo.jpg"
    description = f"{path}.meta"
    content = at(description, IDENTITY["issuer"])
    assert (await server.alice.put(path, "x", "image/jpeg")).status == 201
    assert (await put(server.alice, description, content)).status == 201
    assert_refused(await server.bob.delete(description))
    assert_refused(await server.bob.delete(path))
    assert (await server.alice.get(description)).status == 200
    assert (await server.alice.delete(path)).status == 204
    assert (await server.alice.get(description)).status == 404
    assert (await server.alice.put(path, "x", "image/jpeg")).status == 201
    assert (await put(server.alice, description, at(description, HARMLESS["name"]))).status == 201
    assert (await server.bob.delete(path)).status == 204


async def test_the_owner_is_looked_up_once_for_documents_and_never_for_pictures(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only RDF can state who somebody is."""
    looked_up: list[str] = []
    owner_of = PodOwners.owner_of

    async def noting(owners: PodOwners, storage: ResourcePath) -> str | None:
        looked_up.append(storage)
        return await owner_of(owners, storage)

    monkeypatch.setattr(PodOwners, "owner_of", noting)

    async def lookups(method: str, path: str, content_type: str = "", content: str = "") -> int:
        looked_up.clear()
        if method == "PUT":
            answer = await server.alice.put(path, content, content_type)
        else:
            answer = await server.alice.delete(path)
        assert answer.status in (201, 204)
        return len(looked_up)

    picture, document = "/alice/shared/photo.jpg", DOC
    assert await lookups("PUT", picture, "image/jpeg", "x") == 0
    assert await lookups("PUT", picture, "image/jpeg", "y") == 0
    assert await lookups("DELETE", picture) == 0
    assert await lookups("PUT", document, TURTLE, "<#a> <#b> <#c>.") == 1
    assert await lookups("PUT", document, TURTLE, "<#a> <#b> <#d>.") == 1
    assert await lookups("DELETE", document) == 1
    # Becoming a picture, or RDF, may take away or add statements.
    assert await lookups("PUT", document, TURTLE, "<#a> <#b> <#c>.") == 1
    assert await lookups("PUT", document, "image/jpeg", "x") == 1
    assert await lookups("PUT", document, TURTLE, "<#a> <#b> <#c>.") == 1
    # So may the deletion of a picture that is described.
    assert await lookups("PUT", picture, "image/jpeg", "x") == 0
    assert await lookups("PUT", f"{picture}.meta", TURTLE, "<#a> <#b> <#c>.") == 1
    assert await lookups("DELETE", picture) == 1


# --- patches -----------------------------------------------------------------------------------


@pytest.mark.parametrize("statement", IDENTITY.values(), ids=IDENTITY)
@pytest.mark.parametrize("target", [ROOT, f"{ROOT}.meta", DOC])
@pytest.mark.parametrize("kind", ["text/n3", "application/sparql-update"])
async def test_a_patch_is_no_way_around(
    server: Server, statement: str, target: str, kind: str
) -> None:
    """X-20 to X-24 ask for Append, Write and Read, which is not enough."""
    document = DOC if target == DOC else ROOT
    content = at(document, statement)
    before = await server.alice.get(target, accept=N_TRIPLES)
    assert_refused(await patch(server.bob, target, "insert", content, kind))
    after = await server.alice.get(target, accept=N_TRIPLES)
    assert (after.status, after.body) == (before.status, before.body)

    harmless = at(document, "<#me> foaf:nick 'Al'.")
    assert (await patch(server.bob, target, "insert", harmless, kind)).status in (201, 204)
    assert (await patch(server.alice, target, "insert", content, kind)).status == 204
    everything = b"DELETE { ?s ?p ?o } WHERE { ?s ?p ?o }"
    sparql = {"Content-Type": "application/sparql-update"}
    assert_refused(await server.bob.request("PATCH", target, headers=sparql, body=everything))
    assert (await patch(server.bob, target, "delete", harmless, kind)).status == 204
    if "[" not in statement:  # what has no name cannot be named to be deleted
        assert_refused(await patch(server.bob, target, "delete", content, kind))
        assert (await patch(server.alice, target, "delete", content, kind)).status == 204


# --- other ways to say it ----------------------------------------------------------------------

ISSUER = "http://www.w3.org/ns/solid/terms#oidcIssuer"
BUNDLED = """{
  "@context": "https://www.w3.org/ns/did/v1",
  "id": "#me",
  "verificationMethod": {"id": "#vm", "type": "JsonWebKey2020"}
}"""
XML = """\
<r:RDF xmlns:r="http://www.w3.org/1999/02/22-rdf-syntax-ns#"
       xmlns:s="http://www.w3.org/ns/solid/terms#">
  <r:Description r:about="#me"><s:oidcIssuer r:resource="https://evil.example/"/></r:Description>
</r:RDF>
"""
SPELLINGS = {
    "JSON-LD by a term": (
        JSON_LD,
        f'{{"@context": {{"i": {{"@id": "{ISSUER}"}}}}, "@id": "#me", "i": {{"@id": "e:"}}}}',
    ),
    "JSON-LD in reverse": (
        JSON_LD,
        f'{{"@id": "https://evil.example/", "@reverse": {{"{ISSUER}": {{"@id": "#me"}}}}}}',
    ),
    "JSON-LD by a bundled context": (JSON_LD, BUNDLED),
    "a named graph in JSON-LD": (
        JSON_LD,
        f'{{"@id": "#g", "@graph": {{"@id": "#me", "{ISSUER}": {{"@id": "https://evil/"}}}}}}',
    ),
    "a named graph in TriG": (TRIG, f"<#g> {{ <#me> <{ISSUER}> <https://evil.example/> }}"),
    "a named graph in N-Quads": (
        N_QUADS,
        f"<{BASE}{DOC}#me> <{ISSUER}> <https://evil.example/> <http://g/> .",
    ),
    "a literal": (TURTLE, f"<#me> <{ISSUER}> 'https://evil.example/'."),
    "a base of its own": (TURTLE, f"@base <{BASE}{DOC}>. <#me> <{ISSUER}> <https://evil/>."),
    "an absolute IRI": (N_TRIPLES, f"<{BASE}{DOC}#me> <{ISSUER}> <https://evil.example/> ."),
    "RDF/XML": (RDF_XML, XML),
}


@pytest.mark.parametrize(("content_type", "content"), SPELLINGS.values(), ids=SPELLINGS)
async def test_no_way_of_saying_it_goes_unnoticed(
    server: Server, content_type: str, content: str
) -> None:
    assert_refused(await server.bob.put(DOC, content, content_type))
    assert (await server.bob.put(DOC, "", TURTLE)).status == 201
    assert_refused(await server.bob.put(DOC, content, content_type))
    assert (await server.alice.put(DOC, content, content_type)).status == 204
    assert_refused(await server.bob.put(DOC, "", TURTLE))
    assert_refused(await server.bob.delete(DOC))
    assert (await server.bob.put(DOC, content + "\n", content_type)).status == 204


async def test_control_given_by_the_rules_is_enough(server: Server) -> None:
    """It is the mode that counts, not the owner."""
    content = at(DOC, IDENTITY["issuer"])
    await server.alice.put(DOC, "", TURTLE)
    await server.put_acl(DOC, (f"acl:agent <{server.bob_web_id}>", "Write Control"))
    assert (await put(server.bob, DOC, content)).status == 204
    await server.put_acl(DOC, (f"acl:agent <{server.bob_web_id}>", "Control"))
    assert_refused(await put(server.bob, DOC, frozenset()))
