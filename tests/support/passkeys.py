"""An authenticator in software, by the words of WebAuthn Level 3 and with no code of the server's.

What it answers can be made wrong, part by part. Browsers of :mod:`tests.support.browser` add it to
an account and sign in with it.
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import cbor2
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

from tests.support.asgi import Answer
from tests.support.browser import Browser

Json = dict[str, Any]
SCRIPT = {
    "Accept": "application/json",
    "Content-Type": "application/json",
    "Sec-Fetch-Site": "same-origin",
}

PRESENT, VERIFIED, SYNCED, HAS_KEY = 0x01, 0x04, 0x08, 0x40


def encoded(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


@dataclass
class SoftAuthenticator:
    """Holds one passkey."""

    origin: str
    rp_id: str = "localhost"
    sign_count: int = 0
    """What the next signature says."""
    flags: int = PRESENT | VERIFIED
    credential_id: bytes = field(default_factory=lambda: secrets.token_bytes(32))
    user_handle: str = ""
    key: ec.EllipticCurvePrivateKey = field(
        default_factory=lambda: ec.generate_private_key(ec.SECP256R1())
    )
    algorithm: int = -7

    def create(self, options: Mapping[str, Any], **wrong: Any) -> Json:  # noqa: ANN401 - JSON
        """What ``navigator.credentials.create()`` gives, as JSON; ``wrong`` are members of the
        client data, ``statement`` an attestation statement."""
        self.user_handle = options["user"]["id"]
        statement = wrong.pop("statement", ("none", {}))
        numbers = self.key.public_key().public_numbers()
        cose = {
            1: 2,
            3: self.algorithm,
            -1: 1,
            -2: numbers.x.to_bytes(32, "big"),
            -3: numbers.y.to_bytes(32, "big"),
        }
        length = len(self.credential_id).to_bytes(2, "big")
        attested = bytes(16) + length + self.credential_id + cbor2.dumps(cose)
        made = {
            "fmt": statement[0],
            "attStmt": statement[1],
            "authData": self._data(HAS_KEY) + attested,
        }
        response = {
            "clientDataJSON": self._client_data("webauthn.create", options, wrong),
            "attestationObject": encoded(cbor2.dumps(made)),
            "transports": ["internal"],
        }
        return self._credential(response)

    def get(self, options: Mapping[str, Any], **wrong: Any) -> Json:  # noqa: ANN401 - JSON
        """What ``navigator.credentials.get()`` gives, as JSON."""
        client_data = self._client_data("webauthn.get", options, wrong)
        data = self._data(0)
        signed = data + hashlib.sha256(decoded(client_data)).digest()
        response = {
            "clientDataJSON": client_data,
            "authenticatorData": encoded(data),
            "signature": encoded(self.key.sign(signed, ec.ECDSA(hashes.SHA256()))),
            "userHandle": self.user_handle,
        }
        return self._credential(response)

    def _data(self, flags: int) -> bytes:
        rp_hash = hashlib.sha256(self.rp_id.encode()).digest()
        return rp_hash + bytes([self.flags | flags]) + self.sign_count.to_bytes(4, "big")

    def _client_data(self, kind: str, options: Mapping[str, Any], wrong: Json) -> str:
        said = {
            "type": kind,
            "challenge": options["challenge"],
            "origin": self.origin,
            "crossOrigin": False,
        } | wrong
        return encoded(json.dumps(said).encode())

    def _credential(self, response: Json) -> Json:
        name = encoded(self.credential_id)
        return {
            "id": name,
            "rawId": name,
            "type": "public-key",
            "response": response,
            "clientExtensionResults": {},
        }


async def ask(browser: Browser, path: str, sent: object = None, **headers: str) -> Answer:
    body = json.dumps({} if sent is None else sent).encode()
    return await browser.ask("POST", f"/idp/passkey/{path}", headers=SCRIPT | headers, body=body)


async def options(browser: Browser, path: str, **sent: str) -> dict[str, Any]:
    answer = await ask(browser, f"{path}/options", sent)
    assert answer.status == 200, answer.text
    asked: dict[str, Any] = answer.json()
    return asked


async def register(browser: Browser, key: SoftAuthenticator, **wrong: object) -> Answer:
    """Add the passkey to who is signed in; ``wrong`` are members of the client data."""
    asked = await options(browser, "register")
    sent = {"challengeKey": asked["challengeKey"], "credential": key.create(asked, **wrong)}
    return await ask(browser, "register/verify", {**sent, "name": "my key"})


async def log_in(browser: Browser, key: SoftAuthenticator, **wrong: object) -> Answer:
    """Sign in with the passkey."""
    asked = await options(browser, "login")
    sent = {"challengeKey": asked["challengeKey"], "credential": key.get(asked, **wrong)}
    return await ask(browser, "login/verify", sent)


async def listed(browser: Browser) -> list[dict[str, Any]]:
    answer = await browser.ask("GET", "/idp/account/passkeys", headers=SCRIPT)
    assert answer.status == 200, answer.text
    passkeys: list[dict[str, Any]] = answer.json()["passkeys"]
    return passkeys
