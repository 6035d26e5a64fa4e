"""Messages of Web Push, read by the library http_ece, which push clients and servers use."""

from __future__ import annotations

import os

import pytest

from tests.clients.client_home import StartClient
from tests.support.client_process import ClientFailed, ClientProcess
from tests.support.push_subscription import Subscription, encode, public_bytes

TEXTS = ("x", "bob shared “sea.txt” with you", "x" * 3900)

pytestmark = pytest.mark.feature("web_push")


@pytest.fixture(scope="module")
def client(start_client: StartClient) -> ClientProcess:
    return start_client("http-ece.mjs")


def message(text: str, subscription: Subscription) -> str:
    encryption = pytest.importorskip("podstead.features.web_push.encryption")
    made = encryption.encrypted(
        text.encode(),
        key=public_bytes(subscription.key),
        secret=subscription.auth,
        sender=encryption.new_sender(),
        salt=os.urandom(16),
    )
    return encode(made)


def read(client: ClientProcess, subscription: Subscription, *messages: str) -> list[str]:
    private = subscription.key.private_numbers().private_value.to_bytes(32, "big")
    secret = subscription.sent["auth"]
    report = client.run("texts", privateKey=encode(private), secret=secret, messages=messages)
    return list(report.value)


def test_a_client_reads_what_the_server_encrypts(client: ClientProcess) -> None:
    subscription = Subscription("")
    messages = [message(each, subscription) for each in TEXTS]
    assert read(client, subscription, *messages) == list(TEXTS)


def test_a_client_cannot_read_what_is_for_another_browser(client: ClientProcess) -> None:
    with pytest.raises(ClientFailed):
        read(client, Subscription(""), message("x", Subscription("")))
