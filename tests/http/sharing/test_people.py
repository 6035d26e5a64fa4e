"""Finding the person whom somebody means, without revealing who has an account."""

from __future__ import annotations

import json

import pytest
from rdflib import RDF, Graph, URIRef
from rdflib.namespace import Namespace

from podstead.app.services import Services
from podstead.core.errors import AccessDenied, NotAuthenticated, NotFound, RateLimited
from podstead.core.identifiers import ResourcePath
from podstead.core.identity import AuthenticationMethod, Identity
from podstead.resources.sharing.access_requests import (
    REQUESTS_TO_ONE_OWNER_PER_DAY,
    AccessRequests,
    HasAccess,
    NoInbox,
)
from podstead.resources.sharing.documents import AgentDocuments
from podstead.resources.sharing.people import (
    LOOKUPS_PER_HOUR,
    Contact,
    Contacts,
    NobodyFound,
    PeopleDirectory,
    UnusableIri,
)
from podstead.wac.sharing.rules import ROLE_MODES, Role
from tests.support.application import BASE, Server, acl_turtle
from tests.support.rdf import JSON_LD, TURTLE

BOBS = "bob@example.org"


def alice(server: Server) -> Identity:
    return Identity(server.alice_web_id, AuthenticationMethod.SESSION)


async def state(server: Server, statement: str) -> None:
    update = f"INSERT DATA {{ <{server.bob_web_id}> {statement} }}"
    answer = await server.bob.request(
        "PATCH",
        "/bob/",
        headers={"Content-Type": "application/sparql-update"},
        body=update.encode(),
    )
    assert answer.status < 300, answer.text


async def test_a_name_is_that_of_a_pod(server: Server, people: PeopleDirectory) -> None:
    assert await people.find(alice(server), " bob ") == server.bob_web_id
    for unknown in ("nobody", "", "../bob", "bob/private"):
        with pytest.raises(NobodyFound):
            await people.find(alice(server), unknown)


@pytest.mark.parametrize(
    "web_id", ["https://carol.example/profile#me", "http://localhost:3000/bob/#me", "did:nostr:ab"]
)
async def test_a_web_id_is_taken_as_it_is(
    web_id: str, server: Server, people: PeopleDirectory
) -> None:
    assert await people.find(alice(server), web_id) == web_id


@pytest.mark.parametrize(
    "text",
    [
        "javascript://x/%0aalert(1)",
        "https://",
        'https://a.example/"><script>',
        "did:web:x",
        "https://a.example/#me\nx",
        f"https://a.example/{'a' * 3000}",
    ],
)
async def test_what_is_no_web_id_is_refused(
    text: str, server: Server, people: PeopleDirectory
) -> None:
    with pytest.raises(UnusableIri):
        await people.find(alice(server), text)


async def test_an_e_mail_address_finds_only_who_publishes_it(
    server: Server, people: PeopleDirectory, emails: dict[str, str]
) -> None:
    """Unknown addresses and unpublished ones are the same to the person who asks."""
    emails[BOBS] = server.bob_web_id
    for unknown in (BOBS, "nobody@example.org"):
        with pytest.raises(NobodyFound):
            await people.find(alice(server), unknown)
    await state(server, f"<http://xmlns.com/foaf/0.1/mbox> <mailto:{BOBS}>")
    assert await people.find(alice(server), BOBS) == server.bob_web_id


async def test_a_profile_that_states_an_address_of_somebody_else_does_not_get_it(
    server: Server, people: PeopleDirectory, emails: dict[str, str]
) -> None:
    await state(server, "<http://xmlns.com/foaf/0.1/mbox> <mailto:carol@example.org>")
    emails["carol@example.org"] = "http://localhost:3000/carol/#me"
    with pytest.raises(NobodyFound):
        await people.find(alice(server), "carol@example.org")


async def test_look_ups_are_limited_for_each_person(
    server: Server, people: PeopleDirectory
) -> None:
    for number in range(LOOKUPS_PER_HOUR):
        with pytest.raises(NobodyFound):
            await people.find(alice(server), f"guess{number}@example.org")
    with pytest.raises(RateLimited):
        await people.find(alice(server), "bob")
    bob = Identity(server.bob_web_id, AuthenticationMethod.SESSION)
    assert await people.find(bob, "alice") == server.alice_web_id


async def test_a_new_web_id_from_elsewhere_does_not_get_further_look_ups(
    server: Server, people: PeopleDirectory
) -> None:
    def visitor(number: int) -> Identity:
        return Identity(f"https://n{number}.example/#me", AuthenticationMethod.SESSION)

    for number in range(LOOKUPS_PER_HOUR):
        with pytest.raises(NobodyFound):
            await people.find(visitor(number), f"guess{number}@example.org")
    with pytest.raises(RateLimited):
        await people.find(visitor(1000), "guess@example.org")
    assert await people.find(alice(server), "bob") == server.bob_web_id


# --- The people in a person's address books, as Solid applications write them ------------------


PREFIXES = (
    "@prefix solid: <http://www.w3.org/ns/solid/terms#>. "
    "@prefix vcard: <http://www.w3.org/2006/vcard/ns#>. "
)
BOOK = "/alice/contacts"
CAROL = "https://carol.example/profile#me"


@pytest.fixture
def contacts(parts: Services) -> Contacts:
    return Contacts(AgentDocuments(parts.resources, parts.documents))


async def put(server: Server, path: str, turtle: str) -> None:
    assert (await server.alice.put(path, PREFIXES + turtle, TURTLE)).status in (201, 204)


async def make_book(server: Server, *, index: str = "privateTypeIndex") -> None:
    """An address book as SolidOS creates it."""
    await put(
        server,
        f"/alice/settings/{index}.ttl",
        "<#book> a solid:TypeRegistration; solid:forClass vcard:AddressBook; "
        "solid:instance </alice/contacts/index.ttl#this>.",
    )
    await put(server, f"{BOOK}/index.ttl", "<#this> vcard:nameEmailIndex <people.ttl>.")
    await put(
        server,
        f"{BOOK}/people.ttl",
        "<Person/1/index.ttl#this> vcard:fn 'Carol'. <Person/2/index.ttl#this> vcard:fn 'Dan'. "
        "<Person/3/index.ttl#this> vcard:fn 'Eve'.",
    )
    await put(
        server,
        f"{BOOK}/Person/1/index.ttl",
        "<#this> a vcard:Individual; vcard:fn 'Carol <b>'; "
        f"vcard:url [ a vcard:WebId; vcard:value <{CAROL}> ].",
    )
    await put(server, f"{BOOK}/Person/2/index.ttl", "<#this> vcard:fn 'Dan'.")
    await put(
        server,
        f"{BOOK}/Person/3/index.ttl",
        "<#this> vcard:fn 'Eve'; vcard:url <https://eve.example/blog>, <javascript:alert(1)#x>.",
    )


@pytest.mark.parametrize("index", ["privateTypeIndex", "publicTypeIndex"])
async def test_people_with_a_web_id_are_found(
    index: str, server: Server, contacts: Contacts
) -> None:
    await make_book(server, index=index)
    alice = Identity(server.alice_web_id, AuthenticationMethod.SESSION)
    assert await contacts.of(alice) == (Contact("Carol <b>", CAROL),)


async def test_cards_of_their_own_are_found_in_their_folder(
    server: Server, contacts: Contacts
) -> None:
    await put(
        server,
        "/alice/settings/publicTypeIndex.ttl",
        "<#cards> solid:forClass vcard:Individual; solid:instanceContainer </alice/cards/>.",
    )
    await put(server, "/alice/cards/c.ttl", f"<#it> vcard:fn 'Carol'; vcard:hasURL <{CAROL}>.")
    await server.alice.put("/alice/cards/picture", "no RDF", "text/plain")
    alice = Identity(server.alice_web_id, AuthenticationMethod.SESSION)
    assert await contacts.of(alice) == (Contact("Carol", CAROL),)


async def test_an_address_book_is_read_as_the_person_who_asks(
    server: Server, contacts: Contacts
) -> None:
    """Whatever it refers to: a book that names somebody's private documents reveals nothing."""
    await make_book(server)
    bob = Identity(server.bob_web_id, AuthenticationMethod.SESSION)
    index = "/bob/settings/publicTypeIndex.ttl"
    turtle = (
        "<#book> solid:forClass vcard:AddressBook; solid:instance </alice/contacts/index.ttl#this>."
    )
    assert (await server.bob.put(index, PREFIXES + turtle, TURTLE)).status == 204
    assert await contacts.of(bob) == ()


@pytest.mark.parametrize("web_id", ["https://elsewhere.example/#me", f"{BASE}/nobody/#me"])
async def test_who_has_no_profile_here_has_no_contacts(web_id: str, contacts: Contacts) -> None:
    assert await contacts.of(Identity(web_id, AuthenticationMethod.SESSION)) == ()


# --- access requests ---------------------------------------------------------------------------
#
# Asking for access: what lands in the inbox, who may send it, and what the owner sees.


ALICE_POD = ResourcePath("/alice/")
DOC = ResourcePath("/alice/private/plan.txt")
VIEW, EDIT = ROLE_MODES[Role.VIEW], ROLE_MODES[Role.EDIT]
ACL = Namespace("http://www.w3.org/ns/auth/acl#")
AS = Namespace("https://www.w3.org/ns/activitystreams#")


def person(web_id: str) -> Identity:
    return Identity(web_id, AuthenticationMethod.SESSION)


async def members(server: Server, container: str = "/alice/inbox/") -> list[str]:
    listing = await server.alice.get(container, accept=TURTLE)
    graph = Graph().parse(data=listing.text, format="turtle", publicID=f"{BASE}{container}")
    contains = URIRef("http://www.w3.org/ns/ldp#contains")
    return [str(each).removeprefix(BASE) for each in graph.objects(None, contains)]


async def test_a_request_lands_in_the_inbox_in_standard_terms(
    server: Server, requests: AccessRequests
) -> None:
    bob = person(server.bob_web_id)
    await requests.ask(bob, DOC, VIEW, message='Hello <script>alert("x")</script>')
    (path,) = await members(server)
    stored = await server.alice.get(path, accept=TURTLE)
    graph = Graph().parse(data=stored.text, format="turtle", publicID=f"{BASE}{path}")
    (offer,) = graph.subjects(RDF.type, AS.Offer)
    assert list(graph.objects(offer, AS.actor)) == [URIRef(server.bob_web_id)]
    (authorization,) = graph.objects(offer, AS.object)
    assert (authorization, RDF.type, ACL.Authorization) in graph
    assert (authorization, ACL.agent, URIRef(server.bob_web_id)) in graph
    assert (authorization, ACL.accessTo, URIRef(f"{BASE}{DOC}")) in graph
    assert list(graph.objects(authorization, ACL.mode)) == [ACL.Read]
    (found,) = await requests.pending(person(server.alice_web_id), ALICE_POD)
    assert (found.actor, found.resource, found.modes) == (server.bob_web_id, DOC, VIEW)
    assert found.message == 'Hello <script>alert("x")</script>'


async def test_the_answer_does_not_tell_whether_the_resource_exists(
    server: Server, requests: AccessRequests
) -> None:
    await server.alice.put(DOC, "content", "text/plain")
    for path in (DOC, ResourcePath("/alice/private/nothing")):
        await requests.ask(person(server.bob_web_id), path, VIEW)
    assert len(await requests.pending(person(server.alice_web_id), ALICE_POD)) == 2


async def test_the_same_request_is_listed_once_and_removed_with_its_copies(
    server: Server, requests: AccessRequests
) -> None:
    alice = person(server.alice_web_id)
    for modes in (VIEW, VIEW, EDIT):
        await requests.ask(person(server.bob_web_id), DOC, modes)
    found = await requests.pending(alice, ALICE_POD)
    assert {request.modes for request in found} == {VIEW, EDIT}
    await requests.dismiss(alice, next(each for each in found if each.modes == VIEW))
    assert [each.modes for each in await requests.pending(alice, ALICE_POD)] == [EDIT]
    assert len(await members(server)) == 1


async def test_who_has_access_need_not_ask_and_the_public_cannot(
    server: Server, requests: AccessRequests
) -> None:
    with pytest.raises(HasAccess):
        await requests.ask(person(server.alice_web_id), DOC, EDIT)
    with pytest.raises(HasAccess):
        await requests.ask(person(server.bob_web_id), ResourcePath("/alice/public/"), VIEW)
    with pytest.raises(NotAuthenticated):
        await requests.ask(None, DOC, VIEW)


async def test_the_server_lends_nobody_its_rights(server: Server, requests: AccessRequests) -> None:
    """A request is posted with the rights of the person who asks."""
    closed = acl_turtle("/alice/inbox/")
    assert (await server.alice.put("/alice/inbox/.acl", closed, TURTLE)).status == 204
    with pytest.raises(NoInbox):
        await requests.ask(person(server.bob_web_id), DOC, VIEW)
    assert await members(server) == []


async def test_an_inbox_outside_the_storage_gets_no_requests(
    server: Server, requests: AccessRequests
) -> None:
    """Otherwise a profile could have other people's agents write anywhere."""
    inbox = "<http://www.w3.org/ns/ldp#inbox>"
    update = (
        f"DELETE DATA {{ <#me> {inbox} <inbox/> }}; INSERT DATA {{ <#me> {inbox} </bob/inbox/> }}"
    )
    answer = await server.alice.request(
        "PATCH",
        "/alice/",
        headers={"Content-Type": "application/sparql-update"},
        body=update.encode(),
    )
    assert answer.status < 300, answer.text
    with pytest.raises(NoInbox):
        await requests.ask(person(server.bob_web_id), DOC, VIEW)


async def test_one_person_can_send_a_few_requests_and_takes_nothing_from_others(
    server: Server, requests: AccessRequests
) -> None:
    bob = person(server.bob_web_id)
    for number in range(REQUESTS_TO_ONE_OWNER_PER_DAY):
        await requests.ask(bob, ResourcePath(f"/alice/private/{number}"), VIEW)
    with pytest.raises(RateLimited):
        await requests.ask(bob, DOC, VIEW)
    await requests.ask(person("https://carol.example/#me"), DOC, VIEW)


_FORGED = {
    "@context": ["https://www.w3.org/ns/activitystreams", {"acl": str(ACL)}],
    "type": "Offer",
    "actor": "https://mallory.example/#me",
    "object": {
        "type": "acl:Authorization",
        "acl:agent": {"id": "https://mallory.example/#me"},
        "acl:accessTo": {"id": f"{BASE}{DOC}"},
        "acl:mode": {"id": "acl:Read"},
    },
}


@pytest.mark.parametrize(
    "changed",
    [
        {"acl:agent": {"id": "https://other.example/#me"}},
        {"acl:accessTo": {"id": f"{BASE}/bob/private/"}},
        {"acl:accessTo": {"id": "https://elsewhere.example/doc"}},
        {"acl:mode": {"id": "https://example.org/Fly"}},
        {"acl:accessTo": [{"id": f"{BASE}{DOC}"}, {"id": f"{BASE}/alice/"}]},
        {"type": "Object"},
    ],
    ids=str,
)
async def test_what_is_no_request_of_its_sender_for_this_storage_is_not_listed(
    changed: dict[str, object], server: Server, requests: AccessRequests
) -> None:
    alice = person(server.alice_web_id)
    await server.public.post("/alice/inbox/", json.dumps(_FORGED), JSON_LD)
    assert len(await requests.pending(alice, ALICE_POD)) == 1
    offered = {**_FORGED["object"], **changed}  # type: ignore[dict-item]
    forged = json.dumps({**_FORGED, "object": offered})
    assert (await server.public.post("/alice/inbox/", forged, JSON_LD)).status == 201
    await server.public.post("/alice/inbox/", "not RDF", "text/plain")
    assert len(await requests.pending(alice, ALICE_POD)) == 1


async def test_only_who_may_read_the_inbox_sees_the_requests(
    server: Server, requests: AccessRequests
) -> None:
    await requests.ask(person(server.bob_web_id), DOC, VIEW)
    with pytest.raises(AccessDenied):
        await requests.pending(person(server.bob_web_id), ALICE_POD)
    (found,) = await requests.pending(person(server.alice_web_id), ALICE_POD)
    with pytest.raises((AccessDenied, NotFound)):
        await requests.dismiss(person(server.bob_web_id), found)
    assert len(await members(server)) == 1
