"""WebhookChannel2023: signed, in order, until they are taken, by one worker (N-21)."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import logging
from collections.abc import AsyncIterator, Mapping
from typing import Any

import joserfc.jwk
import joserfc.jws
import joserfc.jwt
import pytest
import rdflib

from podstead.config import Settings
from podstead.features.webhooks import records, worker
from podstead.features.webhooks.sender import Sender
from tests.support.application import BASE, Server, Start, running
from tests.support.notification_channels import NOTES, NOTIFY, TURTLE, channel, path_of, subscribe
from tests.support.rdf import said, triples
from tests.support.webhook_receiver import (
    Delivered,
    Misbehaviour,
    Receiver,
    answering_without_end,
    closing,
    redirecting_to,
    running_receiver,
    sending_nonsense,
)

TYPE = "WebhookChannel2023"
SENDER = f"{BASE}/.notifications/sender#it"
JWKS = "/.well-known/jwks.json"
OPENID = "/.well-known/openid-configuration"


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What takes seconds takes hundredths."""
    monkeypatch.setattr(worker, "LOOK_S", 0.01)
    monkeypatch.setattr(records, "WAITS_MS", (10,))


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with running_receiver() as receiver:
        yield receiver


async def put(server: Server, body: str = "") -> None:
    assert (await server.alice.put(NOTES, body, TURTLE)).status in (201, 204)


def kinds(delivered: list[Delivered]) -> list[str]:
    return [each.json()["type"] for each in delivered]


async def test_changes_are_sent(server: Server, receiver: Receiver) -> None:
    """N-16, N-21."""
    made = await channel(server.alice, TYPE, NOTES, sendTo=receiver.url)
    assert (made["sendTo"], made["sender"]) == (receiver.url, SENDER)
    assert "receiveFrom" not in made
    await put(server)
    first = await receiver.next()
    assert first.target == "/hook"
    assert first.headers["content-type"] == "application/ld+json"
    assert (first.json()["type"], first.json()["object"]) == ("Create", BASE + NOTES)
    await put(server, "<> a <#A> .")
    await server.alice.delete(NOTES)
    assert kinds([await receiver.next(), await receiver.next()]) == ["Update", "Delete"]


async def test_messages_can_be_turtle(server: Server, receiver: Receiver) -> None:
    """N-15."""
    await channel(server.alice, TYPE, NOTES, sendTo=receiver.url, accept=TURTLE)
    await put(server)
    delivered = await receiver.next()
    assert delivered.headers["content-type"] == TURTLE
    assert triples(delivered.body, TURTLE, BASE)


@pytest.mark.parametrize("idp", [False, True])
async def test_verifiers_of_solid_tokens_can_verify_the_sender(
    start: Start, receiver: Receiver, idp: bool
) -> None:
    """N-21: from the sender's document to the keys, with and without an identity provider."""
    server = await start(idp=idp)
    await channel(server.alice, TYPE, NOTES, sendTo=receiver.url)
    await put(server)
    delivered = await receiver.next()
    scheme, _, token = delivered.headers["authorization"].partition(" ")
    assert scheme == "DPoP"
    sender_document = await server.public.get(path_of(SENDER.partition("#")[0]), accept=TURTLE)
    issuers = {
        str(o)
        for s, p, o in said(sender_document, SENDER)
        if (str(s), str(p)) == (SENDER, "http://www.w3.org/ns/solid/terms#oidcIssuer")
    }
    assert issuers == {BASE}
    configuration = (await server.public.get(OPENID)).json()
    assert configuration["issuer"] == BASE
    keys = joserfc.jwk.KeySet.import_key_set(
        (await server.public.get(path_of(configuration["jwks_uri"]))).json()
    )
    claims = joserfc.jwt.decode(token, keys, algorithms=["ES256"]).claims
    assert (claims["iss"], claims["webid"], claims["sub"], claims["azp"]) == (BASE, *[SENDER] * 3)
    assert claims["aud"] == [SENDER, "solid"]
    assert claims["exp"] - claims["iat"] == 20 * 60
    proof = delivered.headers["dpop"]
    header = json.loads(base64.urlsafe_b64decode(proof.partition(".")[0] + "=="))
    shown = joserfc.jwk.ECKey.import_key(header["jwk"])
    assert not shown.is_private
    assert shown.thumbprint() == claims["cnf"]["jkt"]
    proven = joserfc.jwt.decode(proof, shown, algorithms=["ES256"]).claims
    assert (header["typ"], proven["htm"], proven["htu"]) == ("dpop+jwt", "POST", receiver.url)
    digest = hashlib.sha256(token.encode()).digest()
    assert proven["ath"] == base64.urlsafe_b64encode(digest).decode().rstrip("=")


async def test_there_are_no_keys_before_something_is_sent(server: Server) -> None:
    """N-21: of a server without an identity provider."""
    assert (await server.public.get(JWKS)).json() == {"keys": []}


@pytest.mark.parametrize(
    "answer",
    [500, 404, 302, 102, closing, sending_nonsense],
    ids=["500", "404", "302", "102", "closes", "nonsense"],
)
async def test_messages_that_are_not_accepted_are_sent_again(
    server: Server, receiver: Receiver, answer: int | Misbehaviour
) -> None:
    """N-21: the same message, and what comes after it waits."""
    receiver.answers += [answer, answer]
    await channel(server.alice, TYPE, NOTES, sendTo=receiver.url)
    await put(server)
    await put(server, "<> a <#A> .")
    delivered = [await receiver.next() for _ in range(4)]
    assert kinds(delivered) == ["Create", "Create", "Create", "Update"]
    assert len({each.json()["id"] for each in delivered}) == 2
    assert len({each.headers["dpop"] for each in delivered}) == 4, "each proof is of its own"


async def test_an_error_that_nothing_foresaw_loses_nothing(
    server: Server,
    receiver: Receiver,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """N-21: the channel is served again, and goes on where it was."""
    monkeypatch.setattr(worker, "UNFORESEEN_S", 0.01)
    credentials, asked = Sender.credentials, iter([True])

    async def fails_once(sender: Sender, send_to: str) -> Mapping[str, str]:
        if next(asked, False):
            raise KeyError(send_to)
        return await credentials(sender, send_to)

    monkeypatch.setattr(Sender, "credentials", fails_once)
    await channel(server.alice, TYPE, NOTES, sendTo=receiver.url)
    await put(server)
    assert kinds([await receiver.next()]) == ["Create"]
    assert "Unexpected error while serving a webhook" in caplog.text


async def test_no_redirect_is_followed(server: Server, receiver: Receiver) -> None:
    """A-187: a receiver does not choose where else this server sends to."""
    async with running_receiver() as elsewhere:
        receiver.answers += [redirecting_to(elsewhere.url)]
        await channel(server.alice, TYPE, NOTES, sendTo=receiver.url)
        await put(server)
        assert kinds([await receiver.next(), await receiver.next()]) == ["Create", "Create"]
        assert elsewhere.is_quiet


async def test_an_answer_without_end_is_not_read(server: Server, receiver: Receiver) -> None:
    receiver.answers += [answering_without_end]
    await channel(server.alice, TYPE, NOTES, sendTo=receiver.url)
    await put(server)
    await put(server, "<> a <#A> .")
    assert kinds([await receiver.next(), await receiver.next()]) == ["Create", "Update"]


async def test_a_slow_receiver_holds_up_no_other(server: Server, receiver: Receiver) -> None:
    async def hanging(_: asyncio.StreamWriter) -> None:
        await released.wait()

    released = asyncio.Event()
    receiver.answers += [hanging]
    await channel(server.alice, TYPE, NOTES, sendTo=receiver.url)
    async with running_receiver() as other:
        await channel(server.alice, TYPE, NOTES, sendTo=other.url)
        await put(server)
        await receiver.next()
        await put(server, "<> a <#A> .")
        assert kinds([await other.next(), await other.next()]) == ["Create", "Update"]
    released.set()
    assert kinds([await receiver.next()]) == ["Create"]


async def test_what_was_not_sent_is_sent_after_a_restart(
    start: Start, settings: Settings, receiver: Receiver
) -> None:
    """N-21: nothing is queued in memory only, and nothing that was taken is sent again."""
    server = await start()
    made = await channel(server.alice, TYPE, NOTES, sendTo=receiver.url)
    await put(server)
    assert kinds([await receiver.next()]) == ["Create"]
    receiver.answers += [500]
    await put(server, "<> a <#A> .")
    failed = await receiver.next()
    await server.application.lifespan.stop()
    async with running(settings) as later:
        again = await receiver.next()
        assert again.json() == failed.json()
        alice = server.alice.asking(later)
        assert (await alice.delete(NOTES)).status == 204
        assert kinds([await receiver.next()]) == ["Delete"]
        assert (await alice.get(path_of(made["id"]))).status == 200
    assert receiver.is_quiet


async def test_one_worker_sends(server: Server, settings: Settings, receiver: Receiver) -> None:
    """N-21: whichever made the channel or the change; another goes on when it stops."""
    async with running(settings) as other:
        await channel(server.alice.asking(other), TYPE, NOTES, sendTo=receiver.url)
        await channel(server.alice, TYPE, NOTES, sendTo=receiver.url)
        await put(server)
        delivered = [await receiver.next() for _ in range(2)]
        for client in (server.alice, server.alice.asking(other)):
            assert (await client.put(NOTES, "<> a <#A> .", TURTLE)).status == 204
            delivered += [await receiver.next() for _ in range(2)]
        assert sorted(kinds(delivered)) == ["Create"] * 2 + ["Update"] * 4
        await server.application.lifespan.stop()
        assert (await server.alice.asking(other).delete(NOTES)).status == 204
        assert kinds([await receiver.next() for _ in range(2)]) == ["Delete"] * 2
    assert receiver.is_quiet


async def test_a_receiver_that_is_gone_gets_nothing_more_and_the_description_says_so(
    server: Server, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    """N-21: 410; in the channel's description, and in the log."""
    receiver.answers += [410]
    made = await channel(server.alice, TYPE, NOTES, sendTo=receiver.url)
    with caplog.at_level(logging.WARNING, "podstead.notifications"):
        await put(server)
        await receiver.next()
        shown = await given_up(server, made)
    assert "410" in shown
    assert any("Giving up" in record.message for record in caplog.records)
    await put(server, "<> a <#A> .")
    assert receiver.is_quiet
    assert (await server.alice.delete(path_of(made["id"]))).status == 204


async def test_a_receiver_that_takes_nothing_is_given_up(
    server: Server, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """N-21."""
    monkeypatch.setattr(records, "GIVEN_UP_AFTER_MS", 20)
    receiver.answers += [500] * 1000
    made = await channel(server.alice, TYPE, NOTES, sendTo=receiver.url)
    await put(server)
    assert "500" in await given_up(server, made)


async def test_revoking_ends_the_sending(server: Server, receiver: Receiver) -> None:
    """N-30: also of what waits to be sent again."""
    await put(server)
    await server.put_acl(NOTES, (f"acl:agent <{server.bob_web_id}>", "Read"))
    made = await channel(server.bob, TYPE, NOTES, sendTo=receiver.url)
    await put(server, "<> a <#A> .")
    assert kinds([await receiver.next()]) == ["Update"]
    await server.put_acl(NOTES)
    await put(server, "<> a <#B> .")
    assert "may not be read" in await given_up(server, made)
    assert receiver.is_quiet


async def test_a_channel_that_is_closed_sends_nothing(server: Server, receiver: Receiver) -> None:
    """N-10."""
    made = await channel(server.alice, TYPE, NOTES, sendTo=receiver.url)
    other = await channel(server.alice, TYPE, NOTES, sendTo=f"{receiver.url}/other")
    await put(server)
    assert {(await receiver.next()).target for _ in range(2)} == {"/hook", "/hook/other"}
    assert (await server.alice.delete(path_of(made["id"]))).status == 204
    await put(server, "<> a <#A> .")
    await put(server, "<> a <#B> .")
    assert [(await receiver.next()).target for _ in range(2)] == ["/hook/other"] * 2
    assert other["id"] != made["id"]


async def test_a_state_that_has_changed_is_sent_once(server: Server, receiver: Receiver) -> None:
    """N-14."""
    await put(server)
    await channel(server.alice, TYPE, NOTES, sendTo=receiver.url, state="another")
    assert kinds([await receiver.next()]) == ["Update"]
    await server.alice.delete(NOTES)
    assert kinds([await receiver.next()]) == ["Delete"]


async def test_the_public_has_no_webhooks(server: Server, receiver: Receiver) -> None:
    """N-21: the subscription must be authenticated."""
    assert (await subscribe(server.public, TYPE, NOTES, sendTo=receiver.url)).status == 401


@pytest.mark.parametrize(
    "send_to",
    [
        "http://example.org/",
        "https://user@example.org/",
        "https://10.0.0.1/",
        "ftp://example.org/",
        "https://example.org:22/",
        "http://127.1/",
        f"{BASE}/alice/inbox/",
        "mailto:a@example.org",
    ],
)
async def test_nothing_is_sent_to_where_it_must_not_be(server: Server, send_to: str) -> None:
    """A-187: told at once where the text of the URL tells it."""
    answer = await subscribe(server.alice, TYPE, NOTES, sendTo=send_to)
    assert answer.status == 422, answer.text


async def test_only_a_loopback_server_sends_to_its_machine(start: Start) -> None:
    """A-190."""
    server = await start(base_url="https://pod.example", ssl_cert=None)
    for send_to in ("http://localhost:9/", "https://localhost:9/", "https://127.0.0.1:9000/"):
        sent = {
            "@context": ["https://www.w3.org/ns/solid/notification/v1"],
            "type": NOTIFY + TYPE,
            "topic": "https://pod.example" + NOTES,
            "sendTo": send_to,
        }
        path = f"/.notifications/{TYPE}/"
        answer = await server.alice.post(path, json.dumps(sent), "application/ld+json")
        assert answer.status == 422, answer.text


async def given_up(server: Server, made: dict[str, Any]) -> str:
    """What a channel's description says, once it says that nothing is sent any more."""
    comment = rdflib.RDFS.comment
    async with asyncio.timeout(60):
        while True:
            shown = await server.alice.get(path_of(made["id"]))
            text = shown.json().get(str(comment))
            if text is not None:
                return str(text)
            await asyncio.sleep(0)
