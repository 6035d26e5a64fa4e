"""CORS: every origin may ask, of every route, and every answer says so (P-39 to P-46)."""

from __future__ import annotations

import re
import shutil

import pytest

from podstead.config import Settings
from tests.support.application import Server, Start
from tests.support.asgi import Answer, Client
from tests.support.rdf import TURTLE

ORIGIN = "https://tester"
OTHER_ORIGIN = "http://localhost:8080"
EXPOSED = {
    "accept-post", "accept-put", "allow", "content-range", "content-length", "etag",
    "last-modified", "link", "location", "vary", "wac-allow", "www-authenticate", "date",
    "retry-after",
}  # fmt: skip
"""P-44, W-55: what this server sends and scripts may want to read."""


def assert_cors(answer: Answer, origin: str = ORIGIN) -> None:
    assert answer.header("access-control-allow-origin") == origin  # P-39
    assert answer.header("access-control-allow-credentials") == "true"  # P-45
    exposed = answer.header("access-control-expose-headers") or ""  # P-40
    assert "*" not in exposed
    assert {name.strip().lower() for name in exposed.split(",")} >= EXPOSED
    assert answer.header("access-control-allow-headers")  # P-46
    assert_vary(answer)


def assert_vary(answer: Answer) -> None:
    """P-28: one line, and the test suite looks for exactly ``Origin``."""
    names = (answer.header("vary") or "").split(", ")
    assert {"Accept", "Authorization", "Origin"} <= set(names)


async def with_resources(server: Server) -> None:
    await server.alice.put("/alice/private/a.ttl", "<#a> <#b> <#c>.", TURTLE)
    await server.alice.put("/alice/private/c/", None, TURTLE)


# what is asked, by whom, and how it ends
ANSWERS = [
    ("GET", "/alice/private/a.ttl", "alice", {}, 200),
    ("HEAD", "/alice/private/a.ttl", "alice", {}, 200),
    ("GET", "/alice/private/", "alice", {}, 200),
    ("GET", "/alice/", "public", {}, 200),
    ("GET", "/alice/private/a.ttl", "alice", {"If-None-Match": "*"}, 304),
    ("GET", "/alice/private/a.ttl", "alice", {"Range": "bytes=0-3"}, 206),
    ("GET", "/alice/private/a.ttl", "alice", {"Range": "bytes=99-"}, 416),
    ("GET", "/alice/private/a.ttl", "alice", {"Accept": "image/png"}, 406),
    ("PUT", "/alice/private/a.ttl", "alice", {"Content-Type": TURTLE}, 204),
    ("PUT", "/alice/private/new.ttl", "alice", {"Content-Type": TURTLE}, 201),
    ("POST", "/alice/private/", "alice", {"Content-Type": "text/plain"}, 201),
    ("DELETE", "/alice/private/a.ttl", "alice", {}, 204),
    ("GET", "/alice/private/c", "alice", {}, 301),
    ("PUT", "/alice/private/a.ttl", "alice", {}, 400),
    ("GET", "/alice/%zz", "alice", {}, 400),
    ("GET", "/alice/private/a.ttl", "public", {}, 401),
    ("HEAD", "/alice/private/", "public", {}, 401),
    ("POST", "/alice/private/", "public", {"Content-Type": "text/plain"}, 401),
    ("GET", "/alice/", "public", {"Authorization": "Bearer nonsense"}, 401),
    ("GET", "/alice/private/a.ttl", "bob", {}, 403),
    ("GET", "/alice/private/missing", "alice", {}, 404),
    ("POST", "/alice/private/a.ttl", "alice", {"Content-Type": "text/plain"}, 405),
    ("TRACE", "/alice/private/", "alice", {}, 405),
    ("PUT", "/alice/private/a", "alice", {"Content-Type": "x"}, 400),
    ("PUT", "/alice/private/a.ttl/", "alice", {"Content-Type": TURTLE}, 409),
    ("PUT", "/alice/private/a.ttl", "alice", {"Content-Type": TURTLE, "If-Match": '"x"'}, 412),
    ("PUT", "/alice/private/a.ttl.acl", "alice", {"Content-Type": "text/plain"}, 415),
    ("GET", "/alice/", "public", {"Host": "evil.example"}, 421),
    ("BREW", "/alice/", "public", {}, 501),
    ("GET", "/", "public", {}, 200),
    ("PUT", "/", "public", {}, 405),
    ("POST", "/.pods", "public", {"Content-Type": "application/json"}, 400),
    ("GET", "/.pods", "public", {}, 405),
    ("GET", "/idp/nothing", "public", {}, 404),
    ("GET", "/.well-known/nothing", "public", {}, 404),
]


@pytest.mark.parametrize(("method", "target", "who", "headers", "status"), ANSWERS)
@pytest.mark.parametrize("origin", [ORIGIN, OTHER_ORIGIN])
async def test_every_answer_to_a_web_page_may_be_read_by_it(
    server: Server, method: str, target: str, who: str, headers: dict[str, str], status: int,
    origin: str,
) -> None:  # fmt: skip
    """P-39, P-40, P-43, P-46; trap 1: refusals too."""
    await with_resources(server)
    client: Client = getattr(server, who)
    answer = await client.request(method, target, headers={**headers, "Origin": origin})
    assert answer.status == status
    assert_cors(answer, origin)
    # P-42: what was not asked for must not be listed.
    assert "Accept" not in (answer.header("access-control-allow-headers") or "")


@pytest.mark.parametrize(("method", "target", "who", "headers", "status"), ANSWERS)
async def test_requests_without_an_origin_get_no_cors_headers_and_the_same_vary(
    server: Server, method: str, target: str, who: str, headers: dict[str, str], status: int
) -> None:
    """P-28, P-45."""
    await with_resources(server)
    client: Client = getattr(server, who)
    answer = await client.request(method, target, headers=headers)
    assert answer.status == status
    assert not [name for name, _ in answer.headers if name.startswith("access-control-")]
    assert_vary(answer)


async def test_server_errors_can_be_read_too(settings: Settings, server: Server) -> None:
    """P-39: 5xx."""
    await server.alice.put("/alice/private/large", b"x" * 100_000, "text/plain")
    shutil.rmtree(settings.root / "blobs")
    answer = await server.alice.get("/alice/private/large", origin=ORIGIN)
    assert answer.status == 500
    assert_cors(answer)


async def test_too_many_requests_may_be_read_too(start: Start) -> None:
    """P-39, P-44: Retry-After."""
    server = await start(invalid_credentials_per_minute=1)
    bad = {"authorization": "Bearer nonsense", "origin": ORIGIN}
    answers = [await server.public.get("/alice/", **bad) for _ in range(2)]
    assert [answer.status for answer in answers] == [401, 429]
    assert_cors(answers[1])


# --- preflights -------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
@pytest.mark.parametrize(
    "target", ["/alice/private/", "/alice/private/a.ttl", "/alice/private/missing", "/.pods", "/"]
)
async def test_a_preflight_without_credentials_is_granted_with_the_names_as_they_were_written(
    server: Server, method: str, target: str
) -> None:
    """P-41: on private and on missing targets alike."""
    await with_resources(server)
    wanted = "X-CUSTOM, Content-Type, Accept, aUtHoRiZaTiOn, DPoP"
    answer = await server.public.request(
        "OPTIONS", target,
        headers={
            "Origin": ORIGIN,
            "Access-Control-Request-Method": method,
            "Access-Control-Request-Headers": wanted,
        },
    )  # fmt: skip
    assert (answer.status, answer.body) == (204, b"")
    assert_cors(answer)
    methods = (answer.header("access-control-allow-methods") or "").split(", ")
    assert method in methods
    assert answer.header("access-control-allow-headers") == wanted
    assert answer.header("access-control-max-age") == "86400"  # P-45


async def test_accept_is_allowed_only_if_it_is_requested(server: Server) -> None:
    """P-42."""
    for wanted, has_accept in (("X-CUSTOM, Content-Type", False), ("X-CUSTOM, Accept", True)):
        answer = await server.public.request(
            "OPTIONS", "/alice/private/",
            headers={
                "Origin": ORIGIN,
                "Access-Control-Request-Method": "GET",
                "Access-Control-Request-Headers": wanted,
            },
        )  # fmt: skip
        allowed = answer.header("access-control-allow-headers") or ""
        assert ("Accept" in allowed) is has_accept


async def test_a_long_accept_is_honoured(server: Server) -> None:
    """P-42: past 128 characters browsers ask for it in the preflight."""
    accept = ", ".join(f"application/x-{number};q=0.1" for number in range(8))
    assert len(accept) > 128
    answer = await server.public.get("/alice/", accept=f"{accept}, text/turtle", origin=ORIGIN)
    assert (answer.status, answer.header("content-type")) == (200, TURTLE)
    assert answer.body
    assert_cors(answer)


async def test_credentials_of_any_kind_change_nothing_of_a_preflight(server: Server) -> None:
    """P-13, P-41: OPTIONS is not authenticated."""
    headers = {"Origin": ORIGIN, "Access-Control-Request-Method": "PUT"}
    answers = [
        await client.request("OPTIONS", "/alice/private/", headers={**headers, **further})
        for client, further in (
            (server.public, {}),
            (server.alice, {}),
            (server.bob, {}),
            (server.public, {"Authorization": "Bearer nonsense"}),
            (server.public, {"Authorization": "Basic YTpi"}),
        )
    ]
    assert {answer.status for answer in answers} == {204}
    assert len({str(answer.headers) for answer in answers}) == 1


async def test_a_cookie_is_not_a_credential(server: Server) -> None:
    """P-45, A-2: answers with credentials may be read by any page, so none comes by itself."""
    token = server.alice.authorization.removeprefix("Bearer ")
    answer = await server.public.get(
        "/alice/private/", origin=ORIGIN, cookie=f"token={token}; authorization=Bearer {token}"
    )
    assert answer.status == 401
    in_query = await server.public.get(f"/alice/private/?access_token={token}", origin=ORIGIN)
    assert in_query.status == 401


async def test_every_header_that_is_sent_is_exposed(server: Server) -> None:
    """P-44: all but those that scripts always see, and those for the browser itself."""
    await with_resources(server)
    always = {"cache-control", "content-length", "content-type", "last-modified"}
    own = re.compile(
        "access-control-|content-security-policy|x-content-type-options|referrer-policy"
    )
    for method, target, who, headers, _ in ANSWERS:
        client: Client = getattr(server, who)
        answer = await client.request(method, target, headers={**headers, "Origin": ORIGIN})
        exposed = (answer.header("access-control-expose-headers") or "").lower().split(", ")
        hidden = {name for name, _ in answer.headers if name not in exposed} - always
        assert {name for name in hidden if not own.match(name)} == set(), (method, target)
