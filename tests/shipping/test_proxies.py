"""The examples for reverse proxies, as operators would use them, with other paths and ports."""

from __future__ import annotations

import base64
import json
import os
import socket
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.curl import CurlAnswer, curl
from tests.support.listeners import CERTIFICATE, KEY, client_tls
from tests.support.processes import REPOSITORY
from tests.support.proxies import Configure, Place, program, running_proxy
from tests.support.server import DEADLINE_S, ServerProcess

EXAMPLES = REPOSITORY / "deploy/proxies"

pytestmark = [
    pytest.mark.needs(package) for package in ("apache2", "caddy", "curl", "haproxy", "nginx")
]


def example(name: str, place: Place, **others: str) -> str:
    """An example with the addresses of the test. Each has to be in it."""
    text = (EXAMPLES / name).read_text(encoding="utf-8")
    changes = {
        "127.0.0.1:3000": f"127.0.0.1:{place.server_port}",
        "127.0.0.1:3001": f"127.0.0.1:{place.sockets_port}",
        **others,
    }
    for before, after in changes.items():
        assert before in text, before
        text = text.replace(before, after)
    return text


def files(place: Place) -> Mapping[str, str]:
    return {
        "/etc/podstead/chain.pem": str(place.certificate),
        "/etc/podstead/key.pem": str(place.key),
    }


def nginx(place: Place) -> list[str]:
    folder = place.folder
    temporary = "".join(
        f"{kind}_temp_path {folder}/{kind};\n"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    site = example(
        "nginx.conf",
        place,
        **files(place),
        **{"listen 443": f"listen 127.0.0.1:{place.port}", "pods.example": "localhost"},
    )
    text = f"""
daemon off; master_process off; worker_processes 1;
pid {folder}/nginx.pid; error_log {folder}/error.log;
events {{ worker_connections 64; }}
http {{ access_log off; {temporary} {site} }}
"""
    (folder / "nginx.conf").write_text(text)
    return [program("nginx"), "-p", str(folder), "-c", str(folder / "nginx.conf"), "-e", "stderr"]


def caddy(place: Place) -> list[str]:
    site = f"https://localhost:{place.port} {{\n\tbind 127.0.0.1\n"
    site += f"\ttls {place.certificate} {place.key}\n"
    text = example("Caddyfile", place, **{"pods.example {": site})
    options = "{\n\tadmin off\n\tauto_https disable_redirects\n\tskip_install_trust\n}\n"
    path = place.folder / "Caddyfile"
    path.write_text(options + text)
    home = f"HOME={place.folder}"
    return ["/usr/bin/env", home, program("caddy"), "run", "--config", str(path)]


def apache(place: Place) -> list[str]:
    folder = place.folder
    modules = Path("/usr/lib/apache2/modules")
    names = "mpm_event authz_core headers proxy proxy_http proxy_wstunnel rewrite ssl socache_shmcb"
    loaded = "".join(
        f"LoadModule {name}_module {modules}/mod_{name}.so\n" for name in names.split()
    )
    site = example(
        "apache.conf",
        place,
        **files(place),
        **{"*:443": f"127.0.0.1:{place.port}", "pods.example": "localhost"},
    )
    text = f"""
ServerRoot {folder}
ServerName localhost
PidFile {folder}/apache.pid
DefaultRuntimeDir {folder}
Mutex sem default
ErrorLog {folder}/error.log
Listen 127.0.0.1:{place.port}
{loaded}{site}
"""
    (folder / "apache.conf").write_text(text)
    return [program("apache2"), "-X", "-f", str(folder / "apache.conf")]


def haproxy(place: Place) -> list[str]:
    both = place.folder / "both.pem"
    both.write_bytes(place.certificate.read_bytes() + place.key.read_bytes())
    text = example(
        "haproxy.cfg",
        place,
        **{"/etc/podstead/both.pem": str(both), ":443 ssl": f"127.0.0.1:{place.port} ssl"},
    )
    path = place.folder / "haproxy.cfg"
    path.write_text(text)
    return [program("haproxy"), "-db", "-q", "-f", str(path)]


PROXIES: Mapping[str, Configure] = {
    "nginx": nginx,
    "Caddy": caddy,
    "Apache": apache,
    "HAProxy": haproxy,
}


@dataclass(frozen=True)
class World:
    """A server behind a proxy."""

    place: Place
    server: ServerProcess

    @property
    def base_url(self) -> str:
        return f"https://localhost:{self.place.port}"

    def ask(self, path: str, *options: str) -> CurlAnswer:
        return curl(
            "--path-as-is", "--cacert", str(CERTIFICATE), *options, f"{self.base_url}{path}"
        )


@pytest.fixture(params=PROXIES)
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    folder = tmp_path / "proxy"
    folder.mkdir()
    with running_proxy(PROXIES[request.param], folder, certificate=CERTIFICATE, key=KEY) as place:
        base_url = f"https://localhost:{place.port}"
        options = (
            *("--base-url", base_url, "--trusted-proxy", "127.0.0.1", "--workers", "1"),
            *("--sockets-port", str(place.sockets_port), "--sockets-url", base_url),
            *("--invalid-credentials-per-minute", "2"),
        )
        server = ServerProcess(tmp_path / "root", options, port=place.server_port)
        try:
            server.launch()
            server.wait_for_line(f"Podstead is ready at {base_url}/")
            yield World(place, server)
        finally:
            server.close()


def open_socket(world: World, address: str) -> tuple[int, str]:
    """The status of a handshake over TLS, and the first message."""
    path = address.partition(str(world.place.port))[2]
    key = base64.b64encode(os.urandom(16)).decode()
    with (
        socket.create_connection(("127.0.0.1", world.place.port), DEADLINE_S) as plain,
        client_tls().wrap_socket(plain, server_hostname="localhost") as connection,
    ):
        connection.sendall(
            f"GET {path} HTTP/1.1\r\nHost: localhost:{world.place.port}\r\n"
            "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
            f"Sec-WebSocket-Key: {key}\r\n\r\n".encode()
        )
        received = b""
        while b"protocol solid-0.1" not in received:
            piece = connection.recv(4096)
            if not piece:
                break
            received += piece
    return int(received.split()[1]), received.decode("latin-1")


@pytest.mark.feature("legacy_notifications")
def test_the_example_passes_on_what_the_server_needs(world: World) -> None:
    """Host, paths as they are, large bodies, addresses of clients, and WebSockets."""
    body = ("--data", '{"name": "alice"}', "--header", "Content-Type: application/json")
    made = json.loads(world.ask("/.pods", *body).body)
    assert made["podUri"] == f"{world.base_url}/alice/"
    owner = ("--header", f"Authorization: Bearer {made['token']}")
    large = world.place.folder / "large"
    large.write_bytes(os.urandom(3_000_000))
    for name in ("a%2Fb", "caf%C3%A9", "a%20b+c"):
        path = f"/alice/public/{name}"
        sent = ("--upload-file", str(large), "--header", "Content-Type: image/x-test")
        stored = world.ask(path, *owner, *sent)
        assert stored.status == 201
        assert world.ask(path).body == large.read_bytes()
    listing = world.ask("/alice/public/", "--header", "Accept: text/turtle").body
    assert b"a%2Fb" in listing
    head = world.ask("/alice/", "--head", *owner)
    address = f"wss://localhost:{world.place.port}/.notifications"
    assert f"updates-via: {address}\r\n" in head.body.decode().lower()
    status, text = open_socket(world, address)
    assert status == 101
    assert "protocol solid-0.1" in text
    # A client cannot hide behind another address: the third attempt is refused whatever it says.
    wrong = ("--header", "Authorization: Bearer wrong")
    statuses = [
        world.ask("/alice/", *wrong, "--header", f"X-Forwarded-For: 192.0.2.{number}").status
        for number in range(4)
    ]
    assert statuses[-1] == 429


def test_the_example_for_traefik_is_complete() -> None:
    """Traefik is not a Debian package: the file is read, and not run."""
    routing = tomllib.loads((EXAMPLES / "traefik.toml").read_text(encoding="utf-8"))["http"]
    routers, services = routing["routers"], routing["services"]
    assert {router["service"] for router in routers.values()} == set(services)
    urls = [
        server["url"]
        for service in services.values()
        for server in service["loadBalancer"]["servers"]
    ]
    assert urls == ["http://127.0.0.1:3000", "http://127.0.0.1:3001"]
