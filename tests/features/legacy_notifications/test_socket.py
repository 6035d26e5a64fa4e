"""The socket of solid-0.1: one line for each write and URL, for whoever may read (L-1 to L-12)."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from contextlib import AsyncExitStack

import pytest

from podstead.app.adapters.system import SystemClock
from podstead.core.identifiers import ResourcePath
from podstead.features.legacy_notifications.protocol import MAX_URLS
from podstead.features.legacy_notifications.socket import UPDATES_PATH
from podstead.notifications.deliveries import CAPACITY
from podstead.notifications.readers import Readers, Subscriber
from podstead.storage.records import PodRemoval, Version
from podstead.storage.sqlite import SqliteStore
from podstead.web import websocket
from podstead.web.websocket import MAX_PER_AGENT
from tests.support import nostr_world
from tests.support import token_world as tokens
from tests.support.application import BASE, Server, Start, acl_turtle
from tests.support.asgi import Client
from tests.support.asgi_sockets import Closed, Refused, Socket, connected
from tests.support.clock import FakeClock
from tests.support.nostr import nostr
from tests.support.notification_sockets import PROTOCOL, SENTINEL, heard, pubs, watching
from tests.support.provider import running_provider
from tests.support.rdf import TURTLE

FOLDER = "/alice/public/w/"
DOC = f"{FOLDER}doc.ttl"
PRIVATE = "/alice/private/doc.ttl"
BODY = "<> a <#thing>."
SPARQL = "application/sparql-update"
PUBLIC = "acl:agentClass foaf:Agent"


async def patch(client: Client, path: str, update: str) -> int:
    answer = await client.request(
        "PATCH", path, headers={"Content-Type": SPARQL}, body=update.encode()
    )
    return answer.status


# --- finding it, and the handshake --------------------------------------------------------------


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS"])
@pytest.mark.parametrize("path", ["/alice/", "/alice/profile/card", "/alice/.acl", "/alice/none"])
async def test_every_resource_names_the_socket(server: Server, method: str, path: str) -> None:
    """L-1, P-37."""
    answer = await server.alice.request(method, path, headers={"Origin": "https://app.example"})
    assert answer.header("updates-via") == "ws://localhost:3000/.notifications"
    exposed = answer.header("access-control-expose-headers") or ""
    assert "Updates-Via" in exposed.split(", ")


async def test_the_scheme_of_the_socket_is_that_of_the_server(start: Start) -> None:
    """L-1."""
    server = await start(base_url="https://pods.example")
    answer = await server.alice.get("/alice/")
    assert answer.header("updates-via") == "wss://pods.example/.notifications"


@pytest.mark.parametrize(
    ("offered", "chosen"),
    [((PROTOCOL,), PROTOCOL), (("other", PROTOCOL), PROTOCOL), ((), None)],
)
async def test_the_protocol_is_echoed_if_it_is_offered(
    server: Server, offered: tuple[str, ...], chosen: str | None
) -> None:
    """L-2, L-3."""
    async with connected(server.application, protocols=offered) as socket:
        assert socket.protocol == chosen
        assert await socket.receive() == "protocol solid-0.1"


async def test_a_client_of_other_protocols_gets_an_error_and_is_closed(server: Server) -> None:
    """L-2."""
    async with connected(server.application, protocols=["chat"]) as socket:
        assert socket.protocol is None
        assert await socket.receive() == "error Client does not support protocol solid-0.1"
        with pytest.raises(Closed) as closed:
            await socket.receive()
        assert closed.value.code == 1002


@pytest.mark.parametrize("method", ["GET", "HEAD"])
async def test_a_request_without_an_upgrade_is_told_to_upgrade(server: Server, method: str) -> None:
    answer = await server.public.request(method, "/.notifications")
    assert (answer.status, answer.header("upgrade")) == (426, "websocket")
    assert ("WebSocket" in answer.text) is (method == "GET")


@pytest.mark.parametrize("path", ["/alice/", "/.pods", "/", "/.notifications/none"])
async def test_there_is_no_socket_at_other_urls(server: Server, path: str) -> None:
    with pytest.raises(Refused) as refused:
        async with connected(server.application, path):
            pass
    assert refused.value.status == 404


async def test_a_socket_by_another_name_is_misdirected(server: Server) -> None:
    """A-11."""
    with pytest.raises(Refused) as refused:
        async with connected(server.application, host="evil.example"):
            pass
    assert refused.value.status == 421


async def test_an_invalid_credential_is_refused_before_the_socket_opens(server: Server) -> None:
    """A-5, A-7."""
    with pytest.raises(Refused) as refused:
        async with connected(server.application, headers={"Authorization": "Bearer x"}):
            pass
    assert refused.value.status == 401
    assert 'Bearer realm="' in refused.value.headers["www-authenticate"]
    assert 'DPoP realm="' in refused.value.headers["www-authenticate"]
    assert json.loads(refused.value.body)["error"] == "Unauthorized"


# --- which writes are heard ----------------------------------------------------------------------


@pytest.mark.parametrize("method", ["PUT", "POST", "PATCH"])
async def test_a_new_resource_is_heard_of_at_it_and_its_container(
    server: Server, method: str
) -> None:
    """L-6, L-7."""
    await server.alice.put(FOLDER, None, TURTLE)
    async with watching(server, DOC, FOLDER, "/alice/public/") as socket:
        if method == "PUT":
            assert (await server.alice.put(DOC, BODY, TURTLE)).status == 201
        elif method == "POST":
            answer = await server.alice.post(FOLDER, BODY, TURTLE, slug="doc.ttl")
            assert answer.header("location") == BASE + DOC
        else:
            assert await patch(server.alice, DOC, "INSERT DATA { <> a <#thing> }") == 201
        assert Counter(await heard(server, socket)) == Counter(pubs(DOC, FOLDER))


async def test_every_write_to_a_resource_is_heard_once_at_it_and_its_container(
    server: Server,
) -> None:
    """L-6, L-7: ten patches, ten lines."""
    await server.alice.put(DOC, BODY, TURTLE)
    async with watching(server, DOC, FOLDER, "/alice/public/") as socket:
        for number in range(10):
            assert await patch(server.alice, DOC, f"INSERT DATA {{ <> <#n> {number} }}") == 204
        assert Counter(await heard(server, socket)) == Counter(pubs(*[DOC, FOLDER] * 10))
        assert (await server.alice.put(DOC, "<> a <#other>.", TURTLE)).status == 204
        assert Counter(await heard(server, socket)) == Counter(pubs(DOC, FOLDER))


async def test_a_patch_without_effect_is_heard_once_at_the_resource(server: Server) -> None:
    """L-7: its sender counts on it."""
    await server.alice.put(DOC, BODY, TURTLE)
    before = (await server.alice.get(DOC)).header("etag")
    async with watching(server, DOC, FOLDER) as socket:
        assert await patch(server.alice, DOC, "INSERT DATA { <> a <#thing> }") == 204
        assert await patch(server.alice, DOC, "DELETE DATA { <> a <#nothing> }") == 204
        assert await heard(server, socket) == pubs(DOC, DOC)
    assert (await server.alice.get(DOC)).header("etag") == before


async def test_a_deletion_is_heard_at_the_resource_its_auxiliaries_and_its_container(
    server: Server,
) -> None:
    """L-6, L-12."""
    await server.alice.put(DOC, BODY, TURTLE)
    await server.alice.put(f"{DOC}.meta", BODY, TURTLE)
    await server.put_acl(DOC)
    topics = (DOC, f"{DOC}.meta", f"{DOC}.acl", FOLDER)
    async with watching(server, *topics, "/alice/public/") as socket:
        assert (await server.alice.delete(DOC)).status == 204
        assert Counter(await heard(server, socket)) == Counter(pubs(*topics))


async def test_of_racing_writers_one_is_heard(server: Server) -> None:
    """L-7: ten times `PUT` with `If-None-Match: *`."""
    await server.alice.put(FOLDER, None, TURTLE)
    async with watching(server, DOC, FOLDER) as socket:
        racing = [server.alice.put(DOC, BODY, TURTLE, if_none_match="*") for _ in range(10)]
        statuses = [answer.status for answer in await asyncio.gather(*racing)]
        assert Counter(statuses) == {201: 1, 412: 9}
        assert Counter(await heard(server, socket)) == Counter(pubs(DOC, FOLDER))


async def test_what_fails_is_not_heard(server: Server) -> None:
    """L-7."""
    await server.alice.put(DOC, BODY, TURTLE)
    async with watching(server, DOC, FOLDER, "/alice/public/") as socket:
        assert (await server.alice.delete(FOLDER)).status == 409
        assert (await server.alice.put(DOC, "no turtle", TURTLE)).status == 400
        assert (await server.alice.put(DOC, BODY, TURTLE, if_match='"x"')).status == 412
        assert (await server.bob.put(DOC, BODY, TURTLE)).status == 403
        assert (await server.alice.put(FOLDER, None, TURTLE)).status == 204
        assert await heard(server, socket) == []


async def test_missing_containers_that_come_to_be_are_heard(server: Server) -> None:
    """L-6: the listing above, and each container made, once however much was made in it."""
    made = ("/alice/public/a/", "/alice/public/a/b/", "/alice/public/a/b/doc.ttl")
    async with watching(server, "/alice/", "/alice/public/", *made) as socket:
        assert (await server.alice.put(made[-1], BODY, TURTLE)).status == 201
        assert Counter(await heard(server, socket)) == Counter(pubs("/alice/public/", *made))


async def test_a_containers_own_statements_are_heard_at_it_and_its_description(
    server: Server,
) -> None:
    """L-12, N-17."""
    await server.alice.put(FOLDER, None, TURTLE)
    async with watching(server, FOLDER, f"{FOLDER}.meta", "/alice/public/") as socket:
        answer = await server.alice.put(f"{FOLDER}.meta", f"<{BASE}{FOLDER}> a <#x>.", TURTLE)
        assert answer.status in (201, 204)
        expected = pubs(FOLDER, f"{FOLDER}.meta", "/alice/public/")
        assert Counter(await heard(server, socket)) == Counter(expected)


async def test_access_rules_are_heard_at_their_own_url(server: Server) -> None:
    """L-12."""
    await server.alice.put(DOC, BODY, TURTLE)
    async with watching(server, DOC, f"{DOC}.acl", FOLDER) as socket:
        await server.put_acl(DOC)
        assert await heard(server, socket) == pubs(f"{DOC}.acl")


async def test_a_url_is_heard_of_as_it_was_written(server: Server) -> None:
    """L-4."""
    spellings = [f"{BASE}{DOC}#it", DOC, f"http://127.0.0.1:3000{DOC}"]
    headers = {"Authorization": server.alice.authorization}
    async with connected(server.application, host="127.0.0.1:3000", headers=headers) as socket:
        await socket.receive()
        for spelling in spellings:
            await socket.send(f"sub {spelling}")
            assert await socket.receive() == f"ack {spelling}"
        await server.alice.put(DOC, BODY, TURTLE)
        assert await socket.receive_all(3) == [f"pub {spelling}" for spelling in spellings]


async def test_unsubscribing_ends_notifications(server: Server) -> None:
    """L-8."""
    async with watching(server, DOC, FOLDER) as socket:
        await socket.send(f"unsub {BASE}{FOLDER}")
        await server.alice.put(DOC, BODY, TURTLE)
        assert await heard(server, socket) == pubs(DOC)


async def test_an_unrecognized_message_does_not_close_the_socket(server: Server) -> None:
    """L-8."""
    async with watching(server, DOC) as socket:
        await socket.send("hello")
        await socket.send(b"\0\1")
        await socket.send("x" * 100_000)
        await socket.send("pong")
        assert await socket.receive_all(3) == [
            "warning Unrecognized message hello",
            "warning Unrecognized message (binary)",
            "error: Message too long",
        ]
        await server.alice.put(DOC, BODY, TURTLE)
        assert await socket.receive() == f"pub {BASE}{DOC}"


def _removal(pod: str) -> PodRemoval:
    """Now, since the access rules of what is removed are deleted a day later."""
    return PodRemoval(pod, Version("f" * 16), SystemClock().now_ms())


async def test_commits_of_other_processes_are_heard(server: Server, store: SqliteStore) -> None:
    """N-19; the pod goes by another store, as when the operator deletes an account."""
    async with watching(server, "/bob/profile/card", token_of="bob") as socket:
        assert await store.remove_pod(_removal("bob"))
        assert await socket.receive() == f"pub {BASE}/bob/profile/card"


# --- who may hear -------------------------------------------------------------------------------


async def test_a_proof_of_possession_authenticates_a_socket(start: Start) -> None:
    """A-11: of a GET, and of the address by the scheme of the server."""
    with running_provider() as provider:
        world = await tokens.prepared(start, FakeClock(), provider)
        fields = world.app().fields("GET", f"{BASE}{UPDATES_PATH}")
        async with connected(world.server.application, headers=fields) as socket:
            await socket.receive()
            await socket.send("sub /alice/private/")
            assert await socket.receive() == "ack /alice/private/"
        fields = world.app().fields("GET", f"{BASE}/alice/private/")
        with pytest.raises(Refused) as refused:
            async with connected(world.server.application, headers=fields):
                pass
        assert refused.value.status == 401


@pytest.mark.feature("nostr")
async def test_a_signed_event_authenticates_a_socket(start: Start) -> None:
    """A-140, A-144."""
    world = await nostr_world.prepared(start, FakeClock())
    fields = nostr(world.event(target=UPDATES_PATH))
    async with connected(world.server.application, headers=fields) as socket:
        await socket.receive()
        await socket.send(f"sub {nostr_world.DOC}")
        await socket.send("sub /alice/private/")
        assert await socket.receive_all(2) == [
            f"ack {nostr_world.DOC}",
            "err /alice/private/ forbidden",
        ]


async def test_a_topic_is_granted_to_agents_that_may_read_it(server: Server) -> None:
    """L-10."""
    await server.alice.put(PRIVATE, BODY, TURTLE)
    for token_of in (None, "bob"):
        async with watching(server, "/alice/public/", token_of=token_of) as socket:
            for topic in (PRIVATE, "/alice/private/", "/alice/private/none", f"{PRIVATE}.acl"):
                await socket.send(f"sub {BASE}{topic}")
                assert await socket.receive() == f"err {BASE}{topic} forbidden"
            for topic in ("/.pods", "/", "/nobody/x", "/alice/public/.acl"):
                await socket.send(f"sub {topic}")
                assert await socket.receive() == f"err {topic} forbidden"
    async with watching(server, PRIVATE, "/alice/private/", f"{PRIVATE}.acl"):
        pass


async def test_a_right_that_is_taken_away_ends_the_subscription_at_the_next_event(
    server: Server,
) -> None:
    """N-30, L-10."""
    await server.alice.put(DOC, BODY, TURTLE)
    async with watching(server, DOC, token_of="bob") as socket:
        await server.alice.put(DOC, BODY, TURTLE)
        assert await socket.receive() == f"pub {BASE}{DOC}"
        await server.put_acl(DOC)
        await server.alice.put(DOC, BODY, TURTLE)
        assert await socket.receive() == f"err {BASE}{DOC} forbidden"
        await server.put_acl(DOC, (PUBLIC, "Read"))
        await server.alice.put(DOC, BODY, TURTLE)
        await socket.send(f"sub {BASE}{DOC}")
        assert await socket.receive() == f"ack {BASE}{DOC}"
        await server.alice.put(DOC, BODY, TURTLE)
        assert await socket.receive() == f"pub {BASE}{DOC}"


async def test_a_changed_group_applies_at_once(server: Server) -> None:
    """N-30, W-14."""
    group = "/alice/groups.ttl"
    members = "<#g> <http://www.w3.org/2006/vcard/ns#hasMember> <{}>."
    await server.alice.put(group, members.format(server.bob_web_id), TURTLE)
    await server.alice.put(DOC, BODY, TURTLE)
    await server.put_acl(DOC, (f"acl:agentGroup <{BASE}{group}#g>", "Read"))
    async with watching(server, DOC, token_of="bob") as socket:
        await server.alice.put(DOC, BODY, TURTLE)
        assert await socket.receive() == f"pub {BASE}{DOC}"
        await server.alice.put(group, members.format("https://carol.example/#me"), TURTLE)
        await server.alice.put(DOC, BODY, TURTLE)
        assert await socket.receive() == f"err {BASE}{DOC} forbidden"


@pytest.mark.parametrize("could_read", [True, False])
async def test_agents_that_could_read_a_resource_are_notified_of_its_deletion(
    server: Server, could_read: bool
) -> None:
    """N-18: by the rules that went with it, whatever those of its container say."""
    path = PRIVATE if could_read else DOC  # whose container says the opposite
    await server.alice.put(path, BODY, TURTLE)
    rules = [(PUBLIC, "Read")]
    await server.put_acl(path, *rules)
    async with watching(server, path, token_of="bob") as socket:
        if not could_read:
            await server.put_acl(path)
        assert (await server.alice.delete(path)).status == 204
        expected = f"pub {BASE}{path}" if could_read else f"err {BASE}{path} forbidden"
        assert await socket.receive() == expected


async def test_after_a_deletion_the_rules_in_force_then_apply(server: Server) -> None:
    """N-18."""
    await server.alice.put(PRIVATE, BODY, TURTLE)
    await server.put_acl(PRIVATE, (PUBLIC, "Read"))
    async with watching(server, PRIVATE, token_of="bob") as socket:
        await server.alice.delete(PRIVATE)
        await server.alice.put(PRIVATE, BODY, TURTLE)
        assert await socket.receive() == f"pub {BASE}{PRIVATE}"
        assert await socket.receive() == f"err {BASE}{PRIVATE} forbidden"


async def test_agents_that_had_control_are_notified_of_deleted_access_rules(server: Server) -> None:
    """N-18, L-12."""
    await server.alice.put(DOC, BODY, TURTLE)
    turtle = acl_turtle(DOC, (f"acl:agent <{server.bob_web_id}>", "Control"))
    await server.alice.put(f"{DOC}.acl", turtle, TURTLE)
    async with watching(server, f"{DOC}.acl", token_of="bob") as socket:
        assert (await server.alice.delete(f"{DOC}.acl")).status == 204
        assert await socket.receive() == f"pub {BASE}{DOC}.acl"


async def test_the_removal_of_a_pod_is_notified_by_the_rules_that_it_had(
    server: Server, store: SqliteStore
) -> None:
    """N-18: whatever is inherited in it is gone as well."""
    await server.alice.put(PRIVATE, BODY, TURTLE)
    public = "/alice/public/"
    async with (
        watching(server, PRIVATE, public) as of_alice,
        watching(server, public, token_of=None) as of_nobody,
    ):
        turtle = acl_turtle(PRIVATE, (f"acl:agent <{server.bob_web_id}>", "Read"))
        await server.alice.put(f"{PRIVATE}.acl", turtle, TURTLE)
        async with watching(server, PRIVATE, token_of="bob") as of_bob:
            assert await store.remove_pod(_removal("alice"))
            assert await of_bob.receive() == f"pub {BASE}{PRIVATE}"
        assert Counter(await of_alice.receive_all(2)) == Counter(pubs(PRIVATE, public))
        assert await of_nobody.receive() == f"pub {BASE}{public}"


async def test_rules_that_name_origins_hold_for_sockets(server: Server) -> None:
    """W-17: the page that opened the socket has to be one of those."""
    await server.alice.put(DOC, BODY, TURTLE)
    rule = f"acl:agent <{server.bob_web_id}>; acl:origin <https://app.example>"
    await server.put_acl(DOC, (rule, "Read"))
    for origin, answer in (("https://app.example", "ack"), ("https://evil.example", "err")):
        headers = {"Authorization": server.bob.authorization, "Origin": origin}
        async with connected(server.application, headers=headers) as socket:
            await socket.receive()
            await socket.send(f"sub {DOC}")
            assert (await socket.receive()).startswith(answer)


async def test_the_operator_can_permit_everybody_to_subscribe(start: Start) -> None:
    """L-10: legacy-notifications-open."""
    server = await start(legacy_notifications_open=True)
    async with watching(server, PRIVATE, "/alice/private/", token_of=None) as socket:
        assert (await server.alice.put(PRIVATE, BODY, TURTLE)).status == 201
        assert Counter(await socket.receive_all(2)) == Counter(pubs(PRIVATE, "/alice/private/"))
        await server.alice.delete(PRIVATE)
        assert Counter(await socket.receive_all(2)) == Counter(pubs(PRIVATE, "/alice/private/"))


async def test_a_credential_that_expires_closes_the_socket(start: Start) -> None:
    """A-4."""
    clock = FakeClock()
    server = await start(clock=clock, token_lifetime_s=3600)
    async with watching(server, PRIVATE) as socket:
        await server.alice.put(PRIVATE, BODY, TURTLE)
        assert await socket.receive() == f"pub {BASE}{PRIVATE}"
        clock.advance(3601)
        await socket.send("hello")
        with pytest.raises(Closed) as closed:
            await socket.receive()
        assert closed.value.code == 1008


# --- when a subscription begins ------------------------------------------------------------------


class Decisions:
    """Holds up the decision about each right to read until it is told to go on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: asyncio.Queue[str] = asyncio.Queue()
        self.go_on = asyncio.Event()
        decide = Readers.check

        async def check(readers: Readers, topic: ResourcePath, subscriber: Subscriber) -> None:
            await self.asked.put(topic)
            await self.go_on.wait()
            await decide(readers, topic, subscriber)

        monkeypatch.setattr(Readers, "check", check)


@pytest.fixture
def decisions(monkeypatch: pytest.MonkeyPatch) -> Decisions:
    return Decisions(monkeypatch)


async def test_a_subscription_is_effective_from_its_arrival(
    server: Server, decisions: Decisions
) -> None:
    """A client writes without waiting for the answer."""
    await server.alice.put(DOC, BODY, TURTLE)
    async with watching(server) as socket:
        await socket.send(f"auth {server.alice.authorization}\nsub {BASE}{DOC}")
        assert await decisions.asked.get() == DOC
        for number in range(3):
            await server.alice.put(DOC, f"<> <#n> {number}.", TURTLE)
        decisions.go_on.set()
        assert await socket.receive_all(4) == [f"ack {BASE}{DOC}", *pubs(DOC, DOC, DOC)]
        assert await heard(server, socket) == []


async def test_a_subscription_is_effective_from_its_arrival_even_behind_others(
    server: Server, decisions: Decisions
) -> None:
    async with watching(server) as socket:
        await socket.send(f"sub {BASE}{FOLDER}")
        await socket.send(f"sub {BASE}{DOC}")
        assert await decisions.asked.get() == FOLDER
        await server.alice.put(DOC, BODY, TURTLE)
        decisions.go_on.set()
        lines = await socket.receive_all(4)
        assert Counter(lines) == Counter(
            [f"ack {BASE}{FOLDER}", f"ack {BASE}{DOC}", *pubs(FOLDER, DOC)]
        )
        assert await heard(server, socket) == []


async def test_missed_notifications_require_read_access(
    server: Server, decisions: Decisions
) -> None:
    """The rules are those at the time of the telling, as for all notices."""
    await server.alice.put(DOC, BODY, TURTLE)
    async with watching(server, token_of="bob") as socket:
        await socket.send(f"sub {BASE}{DOC}")
        assert await decisions.asked.get() == DOC
        await server.alice.put(DOC, "<> a <#other>.", TURTLE)
        await server.put_acl(DOC)
        decisions.go_on.set()
        assert await socket.receive() == f"err {BASE}{DOC} forbidden"


# --- credentials on the socket -------------------------------------------------------------------


async def test_a_browser_watches_private_resources_by_lines(start: Start) -> None:
    """The fields of a GET of the resource (RFC 9449 section 7.1), which a page cannot set."""
    with running_provider() as provider:
        world = await tokens.prepared(start, FakeClock(), provider)
        app = world.app()
        async with watching(world.server, token_of=None) as socket:
            for topic in (tokens.DOC, "/alice/private/"):
                fields = app.fields("GET", f"{BASE}{topic}")
                await socket.send(f"auth {fields['Authorization']}")
                await socket.send(f"dpop {fields['DPoP']}")
                await socket.send(f"sub {BASE}{topic}")
                assert await socket.receive() == f"ack {BASE}{topic}"
            await world.server.alice.put(tokens.DOC, BODY, TURTLE)
            assert await socket.receive() == f"pub {BASE}{tokens.DOC}"


async def test_a_proof_of_another_resource_or_an_earlier_use_is_refused(start: Start) -> None:
    """RFC 9449 sections 4.3 and 11.1."""
    with running_provider() as provider:
        world = await tokens.prepared(start, FakeClock(), provider)
        async with watching(world.server, token_of=None) as socket:
            fields = world.app().fields("GET", f"{BASE}{tokens.DOC}")
            credential = f"auth {fields['Authorization']}\ndpop {fields['DPoP']}"
            await socket.send(f"{credential}\nsub {BASE}/alice/private/")
            assert await socket.receive() == f"err {BASE}/alice/private/ forbidden"
            await socket.send(f"{credential}\nsub {BASE}{tokens.DOC}")
            assert await socket.receive() == f"ack {BASE}{tokens.DOC}"
            await socket.send(f"{credential}\nsub {BASE}{tokens.DOC}#again")
            assert await socket.receive() == f"err {BASE}{tokens.DOC}#again forbidden"


async def test_a_credential_is_valid_for_one_subscription(server: Server) -> None:
    async with watching(server, token_of=None) as socket:
        await socket.send(f"auth {server.alice.authorization}")
        for answer in ("ack /alice/private/", "err /alice/private/a forbidden"):
            await socket.send(f"sub {answer.split()[1]}")
            assert await socket.receive() == answer


async def test_an_invalid_credential_subscribes_to_nothing_and_closes_nothing(
    server: Server,
) -> None:
    """A-5: also of what everybody may read."""
    async with watching(server, token_of=None) as socket:
        for value in ("Bearer x", "undefined", "", "Basic eDp5"):
            await socket.send(f"auth {value}\nsub {BASE}{DOC}")
            assert await socket.receive() == f"err {BASE}{DOC} forbidden"
        await socket.send(f"sub {BASE}{DOC}")
        assert await socket.receive() == f"ack {BASE}{DOC}"


async def test_invalid_credentials_on_sockets_count_for_the_limit(start: Start) -> None:
    """A-181."""
    server = await start(invalid_credentials_per_minute=2)
    async with watching(server, token_of=None) as socket:
        for _ in range(3):
            await socket.send(f"auth Bearer x\nsub {BASE}{DOC}")
            assert await socket.receive() == f"err {BASE}{DOC} forbidden"
    answer = await server.public.request("GET", DOC, headers={"Authorization": "Bearer x"})
    assert answer.status == 429


async def test_a_credential_that_expires_ends_its_subscription_alone(start: Start) -> None:
    """A-4."""
    with running_provider() as provider:
        world = await tokens.prepared(start, FakeClock(), provider)
        alice = world.server.alice
        async with watching(world.server, DOC, token_of=None) as socket:
            fields = world.app().fields("GET", f"{BASE}{tokens.DOC}")
            lines = (f"auth {fields['Authorization']}", f"dpop {fields['DPoP']}")
            await socket.send("\n".join([*lines, f"sub {BASE}{tokens.DOC}"]))
            assert await socket.receive() == f"ack {BASE}{tokens.DOC}"
            await alice.put(tokens.DOC, BODY, TURTLE)
            assert await socket.receive() == f"pub {BASE}{tokens.DOC}"
            world.clock.advance(4000)
            await alice.put(tokens.DOC, "<> a <#later>.", TURTLE)
            assert await socket.receive() == f"err {BASE}{tokens.DOC} forbidden"
            await alice.put(DOC, "<> a <#later>.", TURTLE)
            assert await socket.receive() == f"pub {BASE}{DOC}"


async def test_a_new_credential_for_a_subscription_takes_the_place_of_the_old_one(
    server: Server,
) -> None:
    """As before the old one expires: nothing is lost, and nothing is told twice."""
    await server.alice.put(PRIVATE, BODY, TURTLE)
    async with watching(server, token_of=None) as socket:
        for round_ in range(4):
            await socket.send(f"auth {server.alice.authorization}\nsub {BASE}{PRIVATE}")
            assert await socket.receive() == f"ack {BASE}{PRIVATE}"
            for number in range(2):
                await server.alice.put(PRIVATE, f"<> <#n> {round_}{number}.", TURTLE)
            assert await socket.receive_all(2) == pubs(PRIVATE, PRIVATE)
        await socket.send(f"unsub {BASE}{PRIVATE}")
        await server.alice.put(PRIVATE, BODY, TURTLE)
        assert await heard(server, socket) == []


# --- limits and the end -------------------------------------------------------------------------


async def test_sockets_of_one_address_are_limited(start: Start) -> None:
    """N-31."""
    server = await start(sockets_per_address=2)
    async with watching(server, token_of=None), watching(server, token_of=None):
        with pytest.raises(Refused) as refused:
            async with watching(server, token_of=None):
                pass
        assert refused.value.status == 429
        async with watching(server, token_of=None, peer="192.0.2.7"):
            pass
    async with watching(server, token_of=None), watching(server, token_of=None):
        pass


async def test_sockets_of_one_agent_are_limited(server: Server) -> None:
    """N-31."""
    async with AsyncExitStack() as stack:
        for number in range(MAX_PER_AGENT):
            await stack.enter_async_context(watching(server, peer=f"192.0.2.{number}"))
        await stack.enter_async_context(watching(server, token_of=None))
        with pytest.raises(Refused) as refused:
            async with watching(server, peer="198.51.100.1"):
                pass
        assert refused.value.status == 429
        async with watching(server, token_of="bob"):
            pass


async def test_subscriptions_of_one_socket_are_limited(server: Server) -> None:
    """L-11, N-31: at least a thousand fit."""
    async with watching(server) as socket:
        for number in range(MAX_URLS):
            await socket.send(f"sub /alice/public/{number}")
            assert await socket.receive() == f"ack /alice/public/{number}"
        await socket.send("sub /alice/public/more")
        assert await socket.receive() == "error: Subscription limit exceeded"
        await socket.send("unsub /alice/public/7")
        await socket.send("sub /alice/public/more")
        assert await socket.receive() == "ack /alice/public/more"


async def test_a_receiver_that_reads_nothing_is_closed_and_others_continue(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """N-31."""
    monkeypatch.setattr(websocket, "SEND_TIMEOUT_S", 0.05)
    server = await start()
    async with watching(server, DOC) as slow, watching(server, DOC) as quick:
        slow.stalled = True
        await server.alice.put(DOC, BODY, TURTLE)
        assert await quick.receive() == f"pub {BASE}{DOC}"
        with pytest.raises(Closed) as closed:
            await slow.receive()
        assert closed.value.code == 1013
        await server.alice.put(DOC, BODY, TURTLE)
        assert await quick.receive() == f"pub {BASE}{DOC}"


async def read_to_end(socket: Socket) -> None:
    """Raises Closed."""
    while True:
        await socket.receive()


async def test_a_receiver_that_is_too_far_behind_is_closed(server: Server) -> None:
    """N-31."""
    async with watching(server) as socket:
        socket.stalled = True
        await socket.send("\n".join(["hello"] * (CAPACITY + 3)))
        for _ in range(10 * CAPACITY):  # the server reads the lines in turns of the event loop
            await asyncio.sleep(0)
        socket.resume()
        with pytest.raises(Closed) as closed:
            await read_to_end(socket)
        assert closed.value.code == 1013


async def test_an_idle_socket_gets_a_heartbeat(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """L-9."""
    server = await start(heartbeat_s=0)
    async with watching(server) as socket:
        assert await socket.receive() == "ping"


async def test_listeners_are_closed_when_the_server_stops(server: Server) -> None:
    async with watching(server, DOC) as socket, watching(server, token_of=None) as idle:
        await server.application.drain()
        for each in (socket, idle):
            with pytest.raises(Closed) as closed:
                await each.receive()
            assert closed.value.code == 1001


async def test_a_client_that_leaves_leaves_nothing_behind(server: Server) -> None:
    async with watching(server, DOC, FOLDER):
        pass
    async with watching(server, SENTINEL) as socket:
        assert await heard(server, socket) == []
