"""Who issues the tokens of requests with a proof? One provider for all servers, in this process.

It publishes what a resource server reads from a provider (OpenID Connect Discovery and a key set)
and signs access tokens for any WebID. An `Application` has such a token and the key it is bound to,
and creates as many proofs (RFC 9449) as a round needs before the round begins.
"""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import secrets
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar, Final

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

TOKEN_LIFETIME_S: Final = 12 * 3600
_COORDINATE_BYTES: Final = 32

_numbers = itertools.count()


class Key:
    """A key on P-256 that signs by ES256."""

    def __init__(self) -> None:
        """Make a new one."""
        self._private = ec.generate_private_key(ec.SECP256R1())
        point = self._private.public_key().public_numbers()
        self.jwk: Final = {
            "crv": "P-256",
            "kty": "EC",
            "x": _base64url(point.x.to_bytes(_COORDINATE_BYTES, "big")),
            "y": _base64url(point.y.to_bytes(_COORDINATE_BYTES, "big")),
        }
        canonical = json.dumps(self.jwk, sort_keys=True, separators=(",", ":")).encode()
        self.thumbprint: Final = _base64url(hashlib.sha256(canonical).digest())

    def sign(self, header: Mapping[str, Any], claims: Mapping[str, Any]) -> str:
        """Return a compact token."""
        signed = f"{_json({'alg': 'ES256', **header})}.{_json(claims)}"
        r, s = decode_dss_signature(
            self._private.sign(signed.encode("ascii"), ec.ECDSA(hashes.SHA256()))
        )
        raw = r.to_bytes(_COORDINATE_BYTES, "big") + s.to_bytes(_COORDINATE_BYTES, "big")
        return f"{signed}.{_base64url(raw)}"


class Application:
    """What a person uses: a token for the WebID, and the key that it is bound to."""

    def __init__(self, issuer: str, issuer_key: Key, web_id: str) -> None:
        """Get a token for the WebID."""
        self._key = Key()
        now_s = int(time.time())
        claims = {
            "iss": issuer,
            "sub": web_id,
            "webid": web_id,
            "aud": "solid",
            "azp": "bench",
            "iat": now_s,
            "exp": now_s + TOKEN_LIFETIME_S,
            "jti": secrets.token_urlsafe(),
            "cnf": {"jkt": self._key.thumbprint},
        }
        header = {"typ": "at+jwt", "kid": issuer_key.thumbprint}
        self.authorization: Final = f"DPoP {issuer_key.sign(header, claims)}"

    def proof(self, method: str, url: str) -> str:
        """Return a fresh proof, good for one request in the next minutes."""
        header = {"typ": "dpop+jwt", "jwk": self._key.jwk}
        # As short as the jti that clients send.
        claims = {"htm": method, "htu": url, "iat": int(time.time()), "jti": f"{_next():036x}"}
        return self._key.sign(header, claims)


class Provider:
    """A provider that listens on the loopback interface."""

    def __init__(self, port: int) -> None:
        """Nothing is asked of it yet; `issuer` has no slash at its end."""
        self.issuer: Final = f"http://localhost:{port}"
        self._key = Key()

    def application(self, web_id: str) -> Application:
        """Return an application that acts for the WebID."""
        return Application(self.issuer, self._key, web_id)

    def documents(self) -> dict[str, Any]:
        """Return what it publishes, by path."""
        return {
            "/.well-known/openid-configuration": {
                "issuer": self.issuer,
                "jwks_uri": f"{self.issuer}/keys",
            },
            "/keys": {"keys": [{**self._key.jwk, "kid": self._key.thumbprint, "alg": "ES256"}]},
        }


@contextmanager
def running_provider() -> Iterator[Provider]:
    """Serve a provider until the end of the block."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    provider = Provider(server.server_port)
    _Handler.documents = provider.documents()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield provider
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    documents: ClassVar[Mapping[str, Any]] = {}

    def do_GET(self) -> None:
        """Answer with one of the documents."""
        found = self.path in self.documents
        body = json.dumps(self.documents[self.path]).encode() if found else b""
        self.send_response(200 if found else 404)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
        """Say nothing."""


def _next() -> int:
    return secrets.randbits(64) << 32 | next(_numbers)


def _json(value: Mapping[str, Any]) -> str:
    return _base64url(json.dumps(value, separators=(",", ":")).encode())


def _base64url(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode("ascii")
