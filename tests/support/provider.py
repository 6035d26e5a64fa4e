"""A Solid identity provider that does as it is told: real HTTP on this machine, good or bad.

It publishes a configuration, a key set and WebID documents, and signs whatever a test wants. What
it answers under any path can be replaced, and what it was asked is noted. An ``App`` is what a
person uses: it holds a key and a token, and makes a proof for each request.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.support.signing import Change, Json, Signer, proof_claims

CONFIGURATION = "/.well-known/openid-configuration"
KEYS = "/jwks"
_TURTLE = "text/turtle"


@dataclass(frozen=True)
class Page:
    """One answer."""

    body: bytes
    content_type: str = "application/json"
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, value: object, **headers: str) -> Page:
        """JSON; keyword arguments are headers, with ``_`` for ``-``."""
        named = {name.replace("_", "-"): text for name, text in headers.items()}
        return cls(json.dumps(value).encode(), headers=named)

    @classmethod
    def redirect(cls, location: str) -> Page:
        return cls(b"", status=302, headers={"Location": location})


class Provider:
    """The provider; ``issuer`` has no slash at its end."""

    def __init__(self) -> None:
        self.keys = [Signer.new("ES256")]
        self.pages: dict[str, Page | Callable[[], Page]] = {
            CONFIGURATION: lambda: Page.of(self.configuration()),
            KEYS: lambda: Page.of(self.key_set()),
        }
        self.posts: dict[str, Callable[[bytes, Mapping[str, str]], Page]] = {}
        """What POST requests are answered, by path: from their content and header fields."""
        self.asked: list[str] = []
        self.released = threading.Event()
        """Until it is set, pages made by :meth:`stalled` are not answered."""
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()

    @property
    def issuer(self) -> str:
        return f"http://localhost:{self._server.server_port}"

    def close(self) -> None:
        self.released.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def count(self, path: str) -> int:
        """How often the path was asked for."""
        return self.asked.count(path)

    # --- what it says -------------------------------------------------------------------------

    def configuration(self) -> Json:
        return {"issuer": self.issuer, "jwks_uri": f"{self.issuer}{KEYS}"}

    def key_set(self) -> Json:
        return {"keys": [{**key.jwk, "kid": key.thumbprint, "use": "sig"} for key in self.keys]}

    def profile(self, path: str, *issuers: str) -> str:
        """Publish a WebID document that names issuers; the WebID."""
        web_id = f"{self.issuer}{path}#me"
        named = "".join(
            f"<#me> <http://www.w3.org/ns/solid/terms#oidcIssuer> <{each}>.\n" for each in issuers
        )
        self.pages[path] = Page(named.encode(), _TURTLE)
        return web_id

    def stalled(self) -> Page:
        """A page that does not come before ``released``."""
        self.released.wait()
        return Page(b"{}")

    # --- what it signs ------------------------------------------------------------------------

    def claims(self, web_id: str, jkt: str, *, now_s: int) -> Json:
        """An access token's claims, as Solid-OIDC has them."""
        return {
            "iss": self.issuer,
            "sub": web_id,
            "webid": web_id,
            "aud": "solid",
            "azp": "https://app.example/id",
            "iat": now_s,
            "exp": now_s + 3600,
            "jti": f"token-{now_s}",
            "cnf": {"jkt": jkt},
        }

    def sign(self, claims: Json, key: Signer | None = None, **header: object) -> str:
        signer = key or self.keys[-1]
        return signer.sign({"kid": signer.thumbprint, "typ": "at+jwt", **header}, claims)

    def app(
        self,
        web_id: str,
        *changes: Change,
        now_s: int | None = None,
        key: Signer | None = None,
        signed_by: Signer | None = None,
        **header: object,
    ) -> App:
        """An application with a token for the WebID; each change makes one claim otherwise."""
        signer = key or Signer.new("ES256")
        at_s = int(time.time()) if now_s is None else now_s
        claims = self.claims(web_id, signer.thumbprint, now_s=at_s)
        for change in changes:
            change(claims)
        return App(signer, self.sign(claims, signed_by, **header), at_s)


@dataclass(frozen=True)
class App:
    """An application that holds a key and a token."""

    key: Signer
    token: str
    now_s: int

    def fields(
        self, method: str, url: str, *changes: Change, key: Signer | None = None, **header: object
    ) -> dict[str, str]:
        """The fields of one request, with a proof of its own."""
        claims = proof_claims(method, url, self.now_s)
        for change in changes:
            change(claims)
        proof = (key or self.key).proof(claims, **header)
        return {"Authorization": f"DPoP {self.token}", "DPoP": proof}


@contextmanager
def running_provider() -> Iterator[Provider]:
    """A provider that stops in the end."""
    provider = Provider()
    try:
        yield provider
    finally:
        provider.close()


def _handler(provider: Provider) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            provider.asked.append(self.path)
            made = provider.pages.get(self.path, Page(b"", status=404))
            page = made if isinstance(made, Page) else made()
            try:
                self._send(page)
            except OSError:
                self.close_connection = True  # who asked has gone

        def do_POST(self) -> None:
            provider.asked.append(self.path)
            content = self.rfile.read(int(self.headers["Content-Length"]))
            answer = provider.posts.get(self.path)
            self._send(
                Page(b"", status=404)
                if answer is None
                else answer(content, dict(self.headers.items()))
            )

        def _send(self, page: Page) -> None:
            self.send_response(page.status)
            self.send_header("Content-Type", page.content_type)
            self.send_header("Content-Length", str(len(page.body)))
            for name, text in page.headers.items():
                self.send_header(name, text)
            self.end_headers()
            self.wfile.write(page.body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
            """Say nothing."""

    return Handler
