"""Certificates that real proxies pass on count from them, and from nobody else (A-171)."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

from tests.support.certificates import holder, key_turtle, rsa_key
from tests.support.curl import CurlAnswer, curl, sending
from tests.support.listeners import CERTIFICATE, KEY
from tests.support.proxies import ADDRESS, BASE_64, RFC_9440, Place, haproxy, nginx, running_proxy
from tests.support.server import ServerProcess

pytestmark = [
    pytest.mark.feature("webid_tls"),
    pytest.mark.needs("curl"),
    pytest.mark.needs("nginx"),
    pytest.mark.needs("haproxy"),
]

PROXIES = {
    "nginx": (nginx, "pem-urlencoded"),
    "HAProxy, RFC 9440": (haproxy(RFC_9440), "rfc9440"),
    "HAProxy, base64": (haproxy(BASE_64), "base64der"),
}


@dataclass(frozen=True)
class World:
    """A server behind a proxy, with a pod whose profile names a key."""

    place: Place
    folder: Path
    form: str

    @property
    def base_url(self) -> str:
        return f"https://localhost:{self.place.port}"

    @property
    def web_id(self) -> str:
        return f"{self.base_url}/alice/#me"

    def ask(self, path: str, *options: str) -> CurlAnswer:
        """What curl gets by the proxy."""
        return curl("--cacert", str(CERTIFICATE), *options, f"{self.base_url}{path}")

    def ask_directly(self, path: str, *options: str) -> CurlAnswer:
        """What curl gets past the proxy, from another address."""
        host = f"Host: localhost:{self.place.port}"
        url = f"http://127.0.0.1:{self.place.server_port}{path}"
        return curl("--header", host, *options, url)

    def written(self) -> str:
        """A good certificate as the proxy would write it."""
        made = holder(self.web_id)
        der = base64.b64encode(made.der).decode()
        forms = {"pem-urlencoded": quote(made.pem, safe=""), "rfc9440": f":{der}:"}
        return forms.get(self.form, der)

    def shown(self, key: RSAPrivateKey | None = None) -> tuple[str, ...]:
        certificate, private_key = holder(self.web_id, key=key).write(self.folder)
        return "--cert", str(certificate), "--key", str(private_key)


@pytest.fixture(params=PROXIES)
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    configure, form = PROXIES[request.param]
    folder = tmp_path / "proxy"
    folder.mkdir()
    with running_proxy(configure, folder, certificate=CERTIFICATE, key=KEY) as place:
        base_url = f"https://localhost:{place.port}"
        options = ("--base-url", base_url, "--trusted-proxy", ADDRESS, "--webid-tls")
        own = ("--client-cert-header", "Client-Cert", "--client-cert-format", form)
        server = ServerProcess(tmp_path / "root", (*options, *own), port=place.server_port)
        try:
            server.launch()
            server.wait_for_line(f"Podstead is ready at {base_url}/")
            yield prepared(World(place, tmp_path, form))
        finally:
            server.close()


def prepared(world: World) -> World:
    body = ("--data", '{"name": "alice"}', *sending("application/json"))
    made = json.loads(world.ask("/.pods", *body).body)
    assert made["webId"] == world.web_id
    owner = ("--header", f"Authorization: Bearer {made['token']}", "--request", "PUT")
    for path, content, kind in (
        ("/alice/", key_turtle(rsa_key()), "text/turtle"),
        ("/alice/private/doc", "text", "text/plain"),
    ):
        answer = world.ask(path, *owner, "--data-binary", content, *sending(kind))
        assert answer.status in {201, 204}, answer.body
    return world


def test_a_certificate_authenticates_if_the_proxy_forwards_it(world: World) -> None:
    assert world.ask("/alice/private/doc").status == 401
    answer = world.ask("/alice/private/doc", *world.shown())
    assert (answer.status, answer.body) == (200, b"text")
    answer = world.ask("/alice/", *world.shown(rsa_key(1)))
    assert answer.status == 401
    assert b"does not name its key" in answer.body
    # What a client writes into the field itself never arrives.
    for value in ("rubbish", world.written()):
        field = ("--header", f"Client-Cert: {value}")
        assert world.ask("/alice/private/doc", *field).status == 401
        assert world.ask("/alice/", *field).status == 200
        assert world.ask("/alice/private/doc", *field, *world.shown()).status == 200
    # Past the proxy, what would be good is nothing.
    good = ("--header", f"Client-Cert: {world.written()}")
    assert world.ask_directly("/alice/private/doc", *good).status == 401
    assert world.ask_directly("/alice/", *good).status == 200
    assert world.ask_directly("/alice/private/doc", *good, "--interface", ADDRESS).status == 200
