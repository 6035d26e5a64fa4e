"""Finding the person whom somebody means, without revealing who has an account."""

from __future__ import annotations

import pytest

from podstead.core.errors import RateLimited
from podstead.core.identity import AuthenticationMethod, Identity
from podstead.resources.sharing.people import (
    LOOKUPS_PER_HOUR,
    NobodyFound,
    PeopleDirectory,
    UnusableIri,
)
from tests.support.application import Server

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
