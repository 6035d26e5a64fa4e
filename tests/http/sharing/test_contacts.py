"""The people in a person's address books, as Solid applications write them."""

from __future__ import annotations

import pytest

from podstead.app.services import Services
from podstead.core.identity import AuthenticationMethod, Identity
from podstead.resources.sharing.documents import AgentDocuments
from podstead.resources.sharing.people import Contact, Contacts
from tests.support.application import BASE, Server
from tests.support.rdf import TURTLE

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
