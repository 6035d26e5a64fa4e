"""NIP-44 by its vectors: the library of our documents, and the reading that the tests compare with.

The round trips of `test_encrypted_content.py` stand on both.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from tests.clients import nostr_encryption as oracle
from tests.clients.client_home import StartClient
from tests.support.client_process import ClientProcess
from tests.support.nostr import NostrKey

VECTORS = Path(__file__).resolve().parents[1] / "vectors/nostr/nip44.vectors.json"
NAMED_BY_THE_NIP = "269ed0f69e4c192512cc779e78c555090cebc7c785b609e338a62afc3ce25040"

CONVERSATION = "c41c775356fd92eadc63ff5a0dc1da211b268cbea22316767095b2871ea1412d"
NONCE = f"{1:064x}"
EXTENDED = {
    65535: "6d8c2810d1e870fbaa1f0a0937126cca837a15f9260e27060c331d70a3c0bc84",
    65536: "b7b4edb36ba92e267d322d56d9aebc22e7fa96ff52e3c12adc07f07a43cbc616",
    65537: "eeb7c7c5373894ea2c1547cfd3ccb15d5a0b2d619da852e5c79df792dcc9e435",
}
"""Of the letter a so many times, with that key and nonce: the payload's hash, by NIP-44 itself."""


@pytest.fixture(scope="module")
def client(start_client: StartClient) -> ClientProcess:
    return start_client("nostr-vectors.mjs")


@pytest.fixture(scope="module")
def valid() -> dict[str, Any]:
    return dict(_vectors()["valid"])


@pytest.fixture(scope="module")
def invalid() -> dict[str, Any]:
    return dict(_vectors()["invalid"])


def _vectors() -> dict[str, Any]:
    return dict(json.loads(VECTORS.read_bytes())["v2"])


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def test_the_vectors_are_those_that_nip_44_names() -> None:
    assert hashlib.sha256(VECTORS.read_bytes()).hexdigest() == NAMED_BY_THE_NIP


def test_two_keys_make_the_key_of_the_vector(client: ClientProcess, valid: dict[str, Any]) -> None:
    rows = valid["get_conversation_key"]
    assert len(rows) == 35
    expected = [row["conversation_key"] for row in rows]
    pairs = [(row["sec1"], row["pub2"]) for row in rows]
    assert client.run("conversationKeys", pairs=pairs).value == expected
    assert [oracle.conversation_key(int(a, 16), b).hex() for a, b in pairs] == expected


def test_what_is_no_key_makes_none(client: ClientProcess, invalid: dict[str, Any]) -> None:
    pairs = [(row["sec1"], row["pub2"]) for row in invalid["get_conversation_key"]]
    assert len(pairs) == 8
    assert client.run("conversationKeys", pairs=pairs).value == [None] * 8
    for secret, public in pairs:
        with pytest.raises(ValueError):  # noqa: PT011 - whatever the library calls it
            oracle.conversation_key(int(secret, 16), public)


def test_a_nonce_makes_the_keys_of_the_vector(valid: dict[str, Any]) -> None:
    group = valid["get_message_keys"]
    conversation = bytes.fromhex(group["conversation_key"])
    assert len(group["keys"]) == 32
    for row in group["keys"]:
        expected = tuple(
            bytes.fromhex(row[name]) for name in ("chacha_key", "chacha_nonce", "hmac_key")
        )
        assert oracle.message_keys(conversation, bytes.fromhex(row["nonce"])) == expected


def test_lengths_are_padded_as_the_vectors_say(
    client: ClientProcess, valid: dict[str, Any]
) -> None:
    lengths, padded = zip(*valid["calc_padded_len"], strict=True)
    assert client.run("paddedLengths", lengths=lengths).value == list(padded)
    assert tuple(map(oracle.padded_length, lengths)) == padded


def test_texts_are_encrypted_and_read_as_the_vectors_say(
    client: ClientProcess, valid: dict[str, Any]
) -> None:
    rows = valid["encrypt_decrypt"]
    assert len(rows) == 10
    keys = [[NostrKey.of(int(row[name], 16)) for name in ("sec1", "sec2")] for row in rows]
    secrets = [row[name] for row in rows for name in ("sec1", "sec2")]
    assert client.run("publicKeys", secrets=secrets).value == [
        key.public for pair in keys for key in pair
    ]
    messages = [
        {
            "conversation": row["conversation_key"],
            "nonce": row["nonce"],
            "text": row["plaintext"],
            "payload": row["payload"],
        }
        for row in rows
    ]
    assert client.run("payloads", messages=messages).value == [row["payload"] for row in rows]
    read = client.run("texts", messages=messages).value
    assert read == [{"text": row["plaintext"]} for row in rows]
    for row, (first, second) in zip(rows, keys, strict=True):
        conversation = bytes.fromhex(row["conversation_key"])
        assert oracle.conversation_key(int(row["sec1"], 16), second.public) == conversation
        assert oracle.conversation_key(int(row["sec2"], 16), first.public) == conversation
        nonce = bytes.fromhex(row["nonce"])
        assert oracle.encrypt_44(row["plaintext"], conversation, nonce) == row["payload"]
        assert oracle.decrypt_44(row["payload"], conversation) == row["plaintext"]


def test_long_texts_are_encrypted_as_the_vectors_say(
    client: ClientProcess, valid: dict[str, Any]
) -> None:
    messages = [
        {
            "conversation": row["conversation_key"],
            "nonce": row["nonce"],
            "pattern": row["pattern"],
            "repeat": row["repeat"],
        }
        for row in valid["encrypt_decrypt_long_msg"]
    ]
    payloads = [row["payload_sha256"] for row in valid["encrypt_decrypt_long_msg"]]
    assert len(messages) == 3
    for length, payload in EXTENDED.items():
        messages.append(
            {"conversation": CONVERSATION, "nonce": NONCE, "pattern": "a", "repeat": length}
        )
        payloads.append(payload)
    texts = [message["pattern"] * message["repeat"] for message in messages]
    assert client.run("longMessages", messages=messages).value == [
        {"text": sha256(text), "payload": payload, "same": True}
        for text, payload in zip(texts, payloads, strict=True)
    ]
    for text, payload, message in zip(texts, payloads, messages, strict=True):
        conversation = bytes.fromhex(message["conversation"])
        encrypted = oracle.encrypt_44(text, conversation, bytes.fromhex(message["nonce"]))
        assert sha256(encrypted) == payload
        assert oracle.decrypt_44(encrypted, conversation) == text


def test_no_text_is_not_encrypted(client: ClientProcess, invalid: dict[str, Any]) -> None:
    """The lengths beyond 65535 that the file has are valid since NIP-44 knows long messages."""
    assert invalid["encrypt_msg_lengths"][0] == 0
    message = {"conversation": CONVERSATION, "nonce": NONCE, "text": ""}
    assert client.run("payloads", messages=[message]).value == [None]
    with pytest.raises(ValueError, match="at least one byte"):
        oracle.encrypt_44("", bytes.fromhex(CONVERSATION), bytes.fromhex(NONCE))


def test_payloads_that_are_none_are_not_read(
    client: ClientProcess, invalid: dict[str, Any]
) -> None:
    rows = invalid["decrypt"]
    assert len(rows) == 12
    messages = [
        {"conversation": row["conversation_key"], "payload": row["payload"]} for row in rows
    ]
    answers = client.run("texts", messages=messages).value
    for row, answer in zip(rows, answers, strict=True):
        assert set(answer) == {"error"}, row["note"]
        with pytest.raises(oracle.Unreadable):
            oracle.decrypt_44(row["payload"], bytes.fromhex(row["conversation_key"]))
    reasons = {answer["error"].partition(":")[0] for answer in answers}
    assert {"invalid MAC", "invalid padding", "invalid base64"} < reasons
