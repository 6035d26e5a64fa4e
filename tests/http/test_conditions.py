"""Conditions of access rules over HTTP: two applications of one person, and rules that end."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from podstead.core.date_times import write_time
from tests.support.application import BASE, Start, acl_turtle
from tests.support.asgi import Answer
from tests.support.clock import FakeClock
from tests.support.provider import App, Page, Provider, running_provider
from tests.support.rdf import TURTLE
from tests.support.signing import set_to
from tests.support.token_world import DOC, URL, World, prepared

NOTES_APP = "https://notes.example/id"
PHOTO_APP = "https://photos.example/id"
PREFIXES = (
    "@prefix access: <urn:uuid:83c6a852-1ff7-4d9b-acde-c873bc613aee#>.\n"
    "@prefix xsd: <http://www.w3.org/2001/XMLSchema#>.\n"
    "@prefix vcard: <http://www.w3.org/2006/vcard/ns#>.\n"
)
IGNORED = 'rel="urn:uuid:83c6a852-1ff7-4d9b-acde-c873bc613aee#ignoredCondition"'


@pytest.fixture
def provider() -> Iterator[Provider]:
    with running_provider() as provider:
        yield provider


@pytest.fixture
async def world(start: Start, clock: FakeClock, provider: Provider) -> World:
    return await prepared(start, clock, provider)


@pytest.fixture
def friend(provider: Provider) -> str:
    """The WebID of somebody else, who uses two applications."""
    return provider.profile("/friend", provider.issuer)


def through(world: World, friend: str, client: str) -> App:
    return world.app(set_to("azp", client), web_id=friend)


async def rules(world: World, who: str, *conditions: str, modes: str = "Read") -> Answer:
    """Give the document a rule with conditions."""
    named = "".join(f"; acl:condition {each}" for each in conditions)
    turtle = PREFIXES + acl_turtle(DOC, (who + named, modes))
    answer = await world.server.alice.put(f"{DOC}.acl", turtle, TURTLE)
    assert answer.status in {201, 204}, answer.text
    return answer


def client(*names: str) -> str:
    return f"[ a acl:ClientCondition; acl:client {', '.join(f'<{each}>' for each in names)} ]"


def ends(at_ms: int) -> str:
    return f'[ a access:PeriodCondition; access:ends "{write_time(at_ms)}"^^xsd:dateTime ]'


async def test_one_application_is_let_in_and_the_other_is_not(world: World, friend: str) -> None:
    await rules(world, f"acl:agent <{friend}>", client(NOTES_APP), modes="Read Write")
    notes, photos = through(world, friend, NOTES_APP), through(world, friend, PHOTO_APP)
    allowed = await world.get(notes)
    assert (allowed.status, allowed.header("wac-allow")) == (
        200, 'user="read write append",public=""',
    )  # fmt: skip
    refused = await world.get(photos)
    assert (refused.status, refused.header("wac-allow")) == (403, 'user="",public=""')
    for app, status in ((notes, 204), (photos, 403)):
        answer = await world.server.public.request(
            "PUT",
            DOC,
            headers={**dict(app.fields("PUT", URL)), "Content-Type": "text/plain"},
            body=b"new",
        )
        assert answer.status == status


async def test_conditions_apply_together_and_rules_add_up(world: World, friend: str) -> None:
    issuer = f"[ a acl:IssuerCondition; acl:issuer <{world.provider.issuer}/> ]"
    elsewhere = "[ a acl:IssuerCondition; acl:issuer <https://elsewhere.example> ]"
    notes = through(world, friend, NOTES_APP)
    for conditions, status in (
        ((client(NOTES_APP), issuer), 200),
        ((client(NOTES_APP), elsewhere), 403),
        ((client(PHOTO_APP), issuer), 403),
        ((client(NOTES_APP), client(PHOTO_APP)), 403),
        ((client(NOTES_APP, PHOTO_APP),), 200),
    ):
        await rules(world, f"acl:agent <{friend}>", *conditions)
        assert (await world.get(notes)).status == status


async def test_the_public_is_let_in_through_no_application(world: World, friend: str) -> None:
    await rules(world, "acl:agentClass foaf:Agent", client(NOTES_APP))
    assert (await world.server.public.get(DOC)).status == 401
    answer = await world.get(through(world, friend, NOTES_APP))
    assert (answer.status, answer.header("wac-allow")) == (200, 'user="read",public=""')
    assert (await world.get(through(world, friend, PHOTO_APP))).status == 403


@pytest.mark.parametrize("is_local", [True, False])
async def test_groups_of_applications_are_fetched(
    world: World, friend: str, provider: Provider, *, is_local: bool
) -> None:
    """As those of agents; a document that cannot be fetched has no members."""
    members = f"{PREFIXES}<#apps> vcard:hasMember <{NOTES_APP}>."
    if is_local:
        group = f"{BASE}/alice/apps#apps"
        await world.server.alice.put("/alice/apps", members, TURTLE)
    else:
        group = f"{provider.issuer}/apps#apps"
        provider.pages["/apps"] = Page(members.encode(), TURTLE)
    await rules(
        world, f"acl:agent <{friend}>", f"[ a acl:ClientCondition; acl:clientGroup <{group}> ]"
    )
    assert (await world.get(through(world, friend, NOTES_APP))).status == 200
    assert (await world.get(through(world, friend, PHOTO_APP))).status == 403
    if is_local:
        await world.server.alice.delete("/alice/apps")
    else:
        provider.pages["/apps"] = Page(b"", status=500)
        world.clock.advance(60)
    assert (await world.get(through(world, friend, NOTES_APP))).status == 403


async def test_a_rule_ends_for_everyone_at_its_time(world: World, friend: str) -> None:
    """Also where the response was cached: that of the public is the same each time."""
    until_ms = world.clock.now_ms() + 100_000
    await rules(world, "acl:agentClass foaf:Agent", ends(until_ms))
    for seconds, expected in ((0, 200), (99.5, 200), (0.5, 401), (1000, 401)):
        world.clock.advance(seconds)
        answer = await world.server.public.get(DOC)
        assert answer.status == expected
        assert 'public="' in (answer.header("wac-allow") or "")
        assert (await world.server.bob.get(DOC)).status == (200 if expected == 200 else 403)
    assert (await world.server.alice.get(DOC)).status == 200


async def test_a_rule_begins_at_its_time(world: World) -> None:
    begins = write_time(world.clock.now_ms() + 60_000)
    condition = f'[ a access:PeriodCondition; access:begins "{begins}"^^xsd:dateTime ]'
    await rules(world, "acl:agentClass foaf:Agent", condition)
    assert (await world.server.public.get(DOC)).status == 401
    world.clock.advance(60)
    assert (await world.server.public.get(DOC)).status == 200


async def test_a_folder_that_is_no_longer_shared_shows_nothing(world: World) -> None:
    """What inherits from it ends with it, and the profile of the pod stays readable."""
    server = world.server
    until_ms = world.clock.now_ms() + 60_000
    path = "/alice/private/"
    everyone = f"acl:agentClass foaf:Agent; acl:condition {ends(until_ms)}"
    turtle = PREFIXES + acl_turtle(path, (everyone, "+Read"))
    assert (await server.alice.put(f"{path}.acl", turtle, TURTLE)).status in {201, 204}
    assert [(await server.public.get(each)).status for each in (path, DOC)] == [200, 200]
    world.clock.advance(60)
    assert [(await server.public.get(each)).status for each in (path, DOC)] == [401, 401]


async def test_what_a_rule_restricted_to_an_origin_stays_restricted_when_it_ends(
    world: World,
) -> None:
    """An end never opens anything (W-17)."""
    origin = "https://app.example"
    turtle = PREFIXES + acl_turtle(
        DOC,
        (f"acl:agent <{world.server.bob_web_id}>", "Read"),
        (f"acl:origin <{origin}>; acl:condition {ends(world.clock.now_ms() + 1000)}", "Read"),
    )
    assert (await world.server.alice.put(f"{DOC}.acl", turtle, TURTLE)).status in {201, 204}

    async def statuses() -> list[int]:
        return [
            (await world.server.bob.get(DOC, origin=each)).status
            for each in (origin, "https://other.example")
        ]

    assert await statuses() == [200, 403]
    world.clock.advance(1)
    assert await statuses() == [403, 403]


async def test_the_types_are_announced_on_acls_alone(world: World) -> None:
    await rules(world, "acl:agentClass foaf:Agent")
    alice = world.server.alice
    for method in ("GET", "HEAD", "OPTIONS"):
        for target, announced in ((f"{DOC}.acl", 3), (DOC, 0)):
            link = " ".join((await alice.request(method, target)).header_lines("link"))
            assert link.count('rel="http://www.w3.org/ns/auth/acl#condition"') == announced


async def test_conditions_with_names_are_written_and_removed_by_patches(
    world: World, friend: str
) -> None:
    """As libraries do that say changes without blank nodes: in both formats."""
    acl, server, base = f"{DOC}.acl", world.server, f"{URL}.acl"
    await rules(world, "acl:agentClass acl:AuthenticatedAgent", client(PHOTO_APP))
    named = "acl:condition <#condition>. <#condition> a acl:ClientCondition; acl:client"
    patch = (
        f"{PREFIXES}@prefix acl: <http://www.w3.org/ns/auth/acl#>. "
        "<> a <http://www.w3.org/ns/solid/terms#InsertDeletePatch>; "
        "<http://www.w3.org/ns/solid/terms#inserts> { <#new> a acl:Authorization; "
        f"acl:agent <{friend}>; acl:accessTo <{URL}>; acl:mode acl:Read; "
        f"{named} <{NOTES_APP}>. }}."
    )
    assert (await server.alice.request(
        "PATCH", acl, headers={"Content-Type": "text/n3"}, body=patch.encode()
    )).status == 204  # fmt: skip
    notes, other = through(world, friend, NOTES_APP), through(world, friend, "https://x.example/id")
    assert [(await world.get(each)).status for each in (notes, other)] == [200, 403]
    condition = f"<{base}#condition> <http://www.w3.org/ns/auth/acl#client>"
    link = f"<{base}#new> <http://www.w3.org/ns/auth/acl#condition> <{base}#condition>"
    for update, expected in (
        (f"DELETE DATA {{ {condition} <{NOTES_APP}> }}", [403, 403]),
        (f"INSERT DATA {{ {condition} <https://x.example/id> }}", [403, 200]),
        (f"DELETE DATA {{ {link} }}", [200, 200]),
        (f"INSERT DATA {{ {link} }}", [403, 200]),
    ):
        answer = await server.alice.request(
            "PATCH",
            acl,
            headers={"Content-Type": "application/sparql-update"},
            body=update.encode(),
        )
        assert answer.status in {200, 204}, answer.text
        assert [(await world.get(each)).status for each in (notes, other)] == expected


async def test_a_write_says_which_conditions_are_ignored(world: World) -> None:
    """And its rules apply without them."""
    weather = "[ a <https://example.org/WeatherCondition> ]"
    answer = await rules(world, "acl:agentClass foaf:Agent", weather, client(NOTES_APP))
    links = " ".join(answer.header_lines("link"))
    assert f"<https://example.org/WeatherCondition>; {IGNORED}" in links
    assert (await world.server.public.get(DOC)).status == 401  # the other condition is evaluated
    answer = await rules(world, "acl:agentClass foaf:Agent", weather, "[ acl:client <x:y> ]")
    links = " ".join(answer.header_lines("link"))
    assert f"<http://www.w3.org/ns/auth/acl#Condition>; {IGNORED}" in links
    assert (await world.server.public.get(DOC)).status == 200
    answer = await rules(world, "acl:agentClass foaf:Agent", client(NOTES_APP))
    assert IGNORED not in " ".join(answer.header_lines("link"))


async def test_control_of_a_storage_needs_a_rule_without_an_end(world: World) -> None:
    """W-4."""
    control = f"acl:agent <{world.server.bob_web_id}>; acl:condition "
    for condition, status in ((ends(world.clock.now_ms() + 1000), 409), (client(NOTES_APP), 204)):
        turtle = PREFIXES + acl_turtle("/alice/", (control + condition, "Control"), owner=False)
        answer = await world.server.alice.put("/alice/.acl", turtle, TURTLE)
        assert answer.status == status
