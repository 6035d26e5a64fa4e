"""One gate: every route says by what right it may be asked, and no resource goes past it.

The second half runs the application behind a gate that grants nothing to anybody, on a store that
notes what is written: whatever is then asked of resources must be refused, and nothing be stored.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest

from podstead.app import services
from podstead.app.adapters import engine
from podstead.config import Settings
from podstead.core.identifiers import ResourcePath
from podstead.storage.records import Body, CommitOutcome, Write
from podstead.storage.sqlite import SqliteStore
from podstead.wac.gate import Gate, GrantedAccess
from podstead.wac.modes import NO_MODES
from podstead.web import application as web_application
from podstead.web.routes import Access
from tests.support.application import Server, running
from tests.support.asgi import Client
from tests.support.features import LEFT_OUT
from tests.support.rdf import TURTLE

PUBLIC_SERVICES = {
    "/": {"GET", "HEAD"},
    "/favicon.ico": {"GET", "HEAD"},
    "/.pods": {"POST"},
    "/.well-known/solid": {"GET", "HEAD"},
    "/.notifications/gateway": {"POST"},
    "/.notifications/gateway/sockets": {"POST"},
}
if "legacy_notifications" not in LEFT_OUT:
    PUBLIC_SERVICES["/.notifications"] = {"GET", "HEAD"}
if "webhooks" not in LEFT_OUT:
    PUBLIC_SERVICES |= {
        "/.well-known/openid-configuration": {"GET", "HEAD"},
        "/.well-known/jwks.json": {"GET", "HEAD"},
        "/.notifications/sender": {"GET", "HEAD"},
        "/.notifications/WebhookChannel2023/": {"GET", "HEAD", "POST"},
        "/.notifications/WebhookChannel2023/{key}": {"GET", "HEAD", "DELETE"},
    }
PUBLIC_SERVICES["/.probe/{key}"] = {"GET"}
if "uploads" not in LEFT_OUT:
    PUBLIC_SERVICES["/.uploads/"] = {"POST"}
    PUBLIC_SERVICES["/.uploads/{upload}"] = {"HEAD", "PATCH", "DELETE", "POST"}
if "search" not in LEFT_OUT:
    for _service in ("in", "description"):
        PUBLIC_SERVICES[f"/.search/{_service}/{{path...}}"] = {"GET", "HEAD"}
if "history" not in LEFT_OUT:
    PUBLIC_SERVICES["/.history/trash/{path...}"] = {"GET", "POST", "DELETE"}
    for _service in ("timegate", "timemap", "version"):
        PUBLIC_SERVICES[f"/.history/{_service}/{{path...}}"] = {"GET", "HEAD"}
if "sparql" not in LEFT_OUT:
    PUBLIC_SERVICES["/.sparql/query/{path...}"] = {"GET", "HEAD", "POST"}
for _type in ("WebSocket", "EventSource", "StreamingHTTP"):
    _service = f"/.notifications/{_type}Channel2023/"
    PUBLIC_SERVICES[_service] = {"GET", "HEAD", "POST"}
    PUBLIC_SERVICES[f"{_service}{{key}}"] = {"GET", "HEAD", "DELETE"}
    PUBLIC_SERVICES[f"{_service}{{key}}/messages"] = {"GET", "HEAD"}
"""All that may be asked without rights, beside the descriptions of storages. Notifications look at
the right to read what they are about, and channels are for whoever has their unguessable URL.
A search asks the gate about each document that it shows.
Uploads ask the gate about the PUT that they will become, and belong to their agent. The trash,
former versions and queries ask the gate about the resource that they are of."""

PUBLIC_DESCRIPTION = {"GET", "HEAD"}
QUERY = "QUERY"
METHODS = set(web_application._KNOWN_METHODS) - {"OPTIONS"}


# --- services ----------------------------------------------------------------------------------


async def test_every_route_states_its_access_and_the_public_ones_are_exactly_these(
    server: Server,
) -> None:
    """A-13: whoever adds a route adds it here, or puts it behind the gate."""
    routes = server.application.routes
    for route in routes.services:
        assert isinstance(route.access, Access)
    public = {
        str(route.path): set(route.endpoints)
        for route in routes.services
        if route.access is Access.PUBLIC
    }
    assert public == PUBLIC_SERVICES
    assert set(routes.storage_description) == PUBLIC_DESCRIPTION


async def test_a_service_answers_its_exact_path_and_methods_only(server: Server) -> None:
    """A-13: neither a prefix nor another spelling or method gets there."""
    routes = server.application.routes
    unknown = METHODS - set(server.application._methods)
    paths = {str(route.path): set(route.methods) for route in routes.services}
    paths["/alice/.well-known/solid"] = {"OPTIONS", *routes.storage_description}
    for path, methods in paths.items():
        for method in METHODS - unknown | {"TRACE", "CONNECT"}:
            answer = await server.alice.request(method, path, headers={"Content-Type": TURTLE})
            assert (answer.status == 405) is (method not in methods), (method, path)
        if path == "/" or path.endswith("/{path...}"):  # these pages have the resource in the path
            continue
        for other in (f"{path}/", f"{path}/x", f"{path}x"):
            if routes.service(ResourcePath(other)) is not None:
                continue  # another route, such as that of any name below the first
            refused = [400] if "//" in other else [401, 404]
            assert (await server.public.get(other)).status in refused
            answer = await server.public.post(other, "{}", "application/json")
            assert answer.status in refused


# --- resources ---------------------------------------------------------------------------------


class DenyingGate(Gate):
    """Finds that nobody holds anything anywhere."""

    asked = 0

    async def _grant_on(self, *_: object, **__: object) -> GrantedAccess:
        DenyingGate.asked += 1
        return GrantedAccess(NO_MODES, NO_MODES)

    _restricted_grant_on = _grant_on


@dataclass
class Noted:
    """What the store was asked to write."""

    commits: list[Write] = field(default_factory=list)
    staged: int = 0


@pytest.fixture
def noted(server: Server, monkeypatch: pytest.MonkeyPatch) -> Noted:
    """Applications built after ``server`` have the denying gate, and note their writes."""
    noted = Noted()

    class NotingStore(SqliteStore):
        async def commit(self, write: Write) -> CommitOutcome:
            noted.commits.append(write)
            return await super().commit(write)

        async def stage_body(
            self, content: bytes | AsyncIterator[bytes], *, content_type: str | None = None
        ) -> Body:
            noted.staged += 1
            return await super().stage_body(content, content_type=content_type)

    monkeypatch.setattr(services, "Gate", DenyingGate)
    monkeypatch.setattr(engine, "SqliteStore", NotingStore)
    monkeypatch.setattr(DenyingGate, "asked", 0)
    return noted


TARGETS = [
    "/alice/", "/alice/.acl", "/alice/.meta", "/alice", "/alice/public/", "/alice/public/.acl",
    "/alice/public/.meta", "/alice/public", "/alice/public/doc", "/alice/public/doc/",
    "/alice/public/doc.acl", "/alice/public/doc.meta", "/alice/public/doc.acl.acl",
    "/alice/public/doc.acl.meta", "/alice/public/doc.meta.acl", "/alice/public/doc/x",
    "/alice/public/missing", "/alice/public/missing/", "/alice/public/missing.acl",
    "/alice/public/missing.meta", "/alice/public/mis/sing/", "/alice/public/mis/sing",
    "/alice/inbox/", "/alice/profile/card", "/alice/settings/publicTypeIndex.ttl",
    "/alice/.well-known/", "/alice/.well-known/other", "/alice/keys/token.key", "/nobody/",
    "/nobody/.acl", "/nobody/x", "/nobody", "/x.txt", "/alice/public/?query", "/bob/private/",
]  # fmt: skip
TYPES: list[str | None] = [TURTLE, "text/plain", "text/n3", "application/sparql-update"]


def test_the_application_knows_the_methods_that_are_walked() -> None:
    assert {"GET", "HEAD", "PUT", "POST", "PATCH", "DELETE", "COPY", "MOVE", QUERY} == METHODS


@pytest.mark.parametrize("method", sorted(METHODS - {QUERY}))  # features answer it
async def test_denied_requests_reveal_and_change_nothing(
    settings: Settings, server: Server, noted: Noted, method: str
) -> None:
    """One gate through which every route passes. Everything here exists or not, is public
    or not, and its owner asks as well: whatever gets through gets past the gate."""
    put = await server.alice.put("/alice/public/doc", "<#a> <#b> 'secret'.", TURTLE)
    acl = await server.put_acl("/alice/public/doc", ("acl:agentClass foaf:Agent", "Read Write"))
    assert (put.status, acl.status) == (201, 201)
    async with running(settings) as application:
        for target in TARGETS:
            for kind in bodies(method):
                await assert_denied(server.public.asking(application), method, target, kind, 401)
                await assert_denied(server.alice.asking(application), method, target, kind, 403)
    assert noted.commits == []
    assert noted.staged == 0
    assert DenyingGate.asked > len(TARGETS)
    unchanged = await server.public.get("/alice/public/doc")
    assert unchanged.text == "<#a> <#b> 'secret'."


def bodies(method: str) -> list[str | None]:
    """Content types that get a request of the method as far as the gate."""
    if method == "PATCH":
        return TYPES[2:]
    return TYPES[:2] if method in ("PUT", "POST") else [None]


async def assert_denied(
    client: Client, method: str, target: str, kind: str | None, status: int
) -> None:
    headers = {"Destination": "/carol/new"}
    headers |= {} if kind is None else {"Content-Type": kind}
    body = None if kind is None else b"INSERT DATA { <#a> <#b> <#c> }"
    answer = await client.request(method, target, headers=headers, body=body)
    assert answer.status == status, (method, target, kind)
    assert "secret" not in answer.text
    assert answer.header("etag") is None
    assert answer.header("last-modified") is None
    assert answer.header("location") is None


@pytest.mark.parametrize("method", sorted(METHODS - {QUERY}))
async def test_with_the_real_gate_the_owner_gets_through(server: Server, method: str) -> None:
    """The refusals above are the gate's: without it the same requests are answered otherwise."""
    await server.alice.put("/alice/public/doc", "<#a> <#b> <#c>.", TURTLE)
    target = "/alice/public/" if method == "POST" else "/alice/public/doc"
    kind = "application/sparql-update" if method == "PATCH" else TURTLE
    content = {"PATCH": b"INSERT DATA { <#a> <#b> <#d> }", "PUT": b"<#a> <#b> <#c>."}
    headers = {"Content-Type": kind, "Destination": "/alice/public/new"}
    answer = await server.alice.request(method, target, headers=headers, body=content.get(method))
    assert answer.status in (200, 201, 204)
