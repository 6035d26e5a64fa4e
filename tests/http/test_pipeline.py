"""Every request: the order in which it is judged (protocol 0.4), and what every answer carries."""

from __future__ import annotations

import shutil
from ipaddress import ip_network

import pytest

from podstead.config import Settings
from podstead.pods.names import RESERVED_NAMES
from podstead.storage.sqlite import SqliteStore
from tests.support.application import BASE, Server, Start
from tests.support.asgi import Answer, Client
from tests.support.features import QUERIES
from tests.support.rdf import JSON_LD, TURTLE

BAD_CREDENTIAL = {"Authorization": "Bearer garbage"}
DOC = "/alice/private/doc"
TEXT = "/alice/private/text"
N3_TYPE = "text/n3"
SPARQL = "application/sparql-update"


def content(content_type: str, **further: str) -> dict[str, str]:
    return {"Content-Type": content_type, **{k.replace("_", "-"): v for k, v in further.items()}}


async def arrange(server: Server, modes: str = "") -> None:
    """A document of RDF, one of text, and what Bob holds of them."""
    await server.alice.put(DOC, "<#a> <#b> <#c>.", TURTLE)
    await server.alice.put(TEXT, "text", "text/plain")
    if modes:
        await server.put_acl("/alice/private/", (f"acl:agent <{server.bob_web_id}>", modes))


# --- order -------------------------------------------------------------------------------------

# method, target, what Bob holds, who asks, headers, body, the answer; each violates two steps
ORDER = {
    "a malformed target before an unknown method": (
        "BREW", "/alice/%zz", "", "public", {}, b"", 400),
    "a malformed target before OPTIONS": ("OPTIONS", "/alice/%zz", "", "public", {}, b"", 400),
    "a malformed target before a bad credential": (
        "GET", "/alice/%zz", "", "public", BAD_CREDENTIAL, b"", 400),
    "a foreign host before OPTIONS": (
        "OPTIONS", DOC, "", "public", {"Host": "evil.example"}, b"", 421),
    "a foreign host before a bad credential": (
        "GET", DOC, "", "public", {"Host": "evil.example", **BAD_CREDENTIAL}, b"", 421),
    "an unknown method before a bad credential": (
        "BREW", DOC, "", "public", BAD_CREDENTIAL, b"", 501),
    "a refused method before a bad credential": (
        "TRACE", DOC, "", "public", BAD_CREDENTIAL, b"", 405),
    "OPTIONS before a bad credential": ("OPTIONS", DOC, "", "public", BAD_CREDENTIAL, b"", 204),
    "a bad credential before a missing type": (
        "PUT", DOC, "", "public", BAD_CREDENTIAL, b"x", 401),
    "a bad credential before a reserved path": (
        "GET", "/idp/x", "", "public", BAD_CREDENTIAL, b"", 401),
    "a missing type before access": ("PUT", DOC, "", "public", {}, b"x", 400),
    "a missing type before access, of a POST": (
        "POST", "/alice/private/", "", "bob", {}, b"x", 400),
    "a missing type before access, of a PATCH": ("PATCH", DOC, "", "bob", {}, b"x", 400),
    "access before the body of a PUT": (
        "PUT", DOC, "+Append", "bob", content(TURTLE), b"<", 403),
    "access before the body of a POST": (
        "POST", "/alice/private/", "+Read", "bob", content(TURTLE), b"<", 403),
    "access before the body of a PATCH": (
        "PATCH", DOC, "+Read", "bob", content(N3_TYPE), b"<", 403),
    "the form of a patch before its modes": (
        "PATCH", DOC, "+Append", "bob", content(SPARQL), b"DELETE DATA {", 400),
    "the modes of a patch": (
        "PATCH", DOC, "+Append", "bob", content(SPARQL), b"DELETE DATA { <#a> <#b> <#c> }", 403),
    "access before absence": ("GET", "/alice/private/no", "+Write", "bob", {}, b"", 403),
    "access before the other slash form": ("GET", f"{DOC}/", "+Write", "bob", {}, b"", 403),
    "access before the other slash form, of a PUT": (
        "PUT", f"{DOC}/", "+Append", "bob", content(TURTLE), b"", 403),
    "access before a method that is not allowed": (
        "POST", DOC, "+Read", "bob", content(TURTLE), b"", 403),
    "access before what cannot be deleted": ("DELETE", "/alice/", "", "bob", {}, b"", 403),
    "access before a full container": ("DELETE", "/alice/private/", "+Read", "bob", {}, b"", 403),
    "access before preconditions": (
        "PUT", DOC, "+Read", "bob", content(TURTLE, If_None_Match="*"), b"", 403),
    "absence before preconditions": (
        "DELETE", "/alice/private/no", "", "alice", {"If-Match": "*"}, b"", 404),
    "absence before preconditions, of a POST": (
        "POST", "/alice/private/no/", "", "alice", content(TURTLE, If_Match="*"), b"", 404),
    "a method that is not allowed before preconditions": (
        "POST", DOC, "", "alice", content(TURTLE, If_None_Match="*"), b"", 405),
    "the other slash form before preconditions": (
        "GET", f"{DOC}/", "", "alice", {"If-Match": '"x"'}, b"", 301),
    "preconditions before the body": (
        "PUT", DOC, "", "alice", content(TURTLE, If_None_Match="*"), b"<", 412),
    "preconditions before conflicts": (
        "PUT", f"{DOC}/", "", "alice", content(TURTLE, If_Match="*"), b"", 412),
    "preconditions before the body's conflicts": (
        "PUT", "/alice/private/", "", "alice", content(TURTLE, If_None_Match="*"),
        b"<> a <http://www.w3.org/ns/pim/space#Storage>.", 412),
    "the body before conflicts": ("PUT", f"{DOC}/", "", "alice", content(TURTLE), b"<", 400),
}  # fmt: skip

Case = tuple[str, str, str, str, dict[str, str], bytes, int]


@pytest.mark.parametrize("case", ORDER.values(), ids=ORDER)
async def test_of_two_faults_the_earlier_step_is_answered(server: Server, case: Case) -> None:
    method, target, modes, who, headers, body, status = case
    await arrange(server, modes)
    client: Client = getattr(server, who)
    answer = await client.request(method, target, headers=headers, body=body or None)
    assert answer.status == status
    unchanged = await server.alice.get(DOC)
    assert unchanged.body == b"<#a> <#b> <#c>."


async def test_the_body_of_a_refused_write_is_not_taken_in(server: Server) -> None:
    """Step 7: the answer does not wait for a body that never comes."""
    for method, target in (("PUT", DOC), ("POST", "/alice/private/"), ("PATCH", DOC)):
        kind = N3_TYPE if method == "PATCH" else TURTLE
        for client, status in ((server.public, 401), (server.bob, 403)):
            answer = await client.request(
                method, target, headers=content(kind), content_length=10**12, disconnect=True
            )
            assert answer.status == status


# --- hosts and proxies -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost:3000", 200),
        ("LOCALHOST:3000", 200),
        ("127.0.0.1:3000", 200),
        ("[::1]:3000", 200),
        ("localhost", 421),
        ("localhost:3001", 421),
        ("127.0.0.1:80", 421),
        ("127.0.0.2:3000", 421),
        ("evil.example", 421),
        ("localhost:3000.evil.example", 421),
        ("localhost:3000@evil.example", 421),
        ("localhost:3000, evil.example", 421),
        ("localhost:3000/", 421),
        (" ", 421),
        ("", 400),
    ],
)
async def test_a_server_on_this_machine_has_the_names_of_this_machine(
    server: Server, host: str, status: int
) -> None:
    """A-11, A-190: and links are made from the base URL, whatever name was used."""
    answer = await server.public.get("/alice/", host=host)
    assert answer.status == status
    if status == 200:
        assert f"<{BASE}/alice/.acl>" in (answer.header("link") or "")


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("pods.example", 200),
        ("Pods.Example", 200),
        ("pods.example:443", 200),
        ("alias.example:8443", 200),
        ("pods.example:80", 421),
        ("alias.example", 421),
        ("alice.pods.example", 421),
        ("localhost:3000", 421),
        ("127.0.0.1:3000", 421),
    ],
)
async def test_a_public_server_has_its_own_name_and_its_aliases(
    start: Start, host: str, status: int
) -> None:
    """A-11."""
    server = await start(base_url="https://pods.example", host_aliases=("alias.example:8443",))
    assert (await server.public.get("/alice/", host=host)).status == status


async def test_repeated_and_missing_hosts_are_400(server: Server) -> None:
    """Step 1."""
    twice = [("Host", "localhost:3000"), ("Host", "localhost:3000")]
    assert (await server.public.request("GET", "/alice/", headers=twice)).status == 400


@pytest.mark.parametrize("trusted", [False, True])
async def test_forwarding_headers_count_from_trusted_proxies_alone(
    start: Start, trusted: bool
) -> None:
    """A-12: for the host, and for whose limit is used up."""
    proxies = (ip_network("10.0.0.0/8"),) if trusted else ()
    server = await start(trusted_proxies=proxies, invalid_credentials_per_minute=1)

    async def ask(peer: str = "10.1.2.3", **headers: str) -> int:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return (await server.public.request("GET", "/alice/", headers=named, peer=peer)).status

    assert await ask(x_forwarded_host="evil.example") == (421 if trusted else 200)
    assert await ask(host="inside:80", x_forwarded_host="localhost:3000") == (
        200 if trusted else 421
    )
    assert await ask(peer="192.0.2.1", x_forwarded_host="evil.example") == 200
    assert await ask(peer="192.0.2.1", host="inside:80", x_forwarded_host="localhost:3000") == 421

    bad = "Bearer garbage"
    found = [
        await ask(authorization=bad, x_forwarded_for=f"198.51.100.{number}") for number in range(3)
    ]
    assert found == ([401, 401, 401] if trusted else [401, 429, 429])
    # Whatever a client claims itself stands before what the proxy adds.
    spoofed = [
        await ask(authorization=bad, x_forwarded_for=f"203.0.113.{number}, 198.51.100.9, 10.9.9.9")
        for number in range(2)
    ]
    assert spoofed == ([401, 429] if trusted else [429, 429])
    direct = [
        await ask(peer="192.0.2.2", authorization=bad, x_forwarded_for=f"198.51.100.{number}")
        for number in range(20, 22)
    ]
    assert direct == [401, 429]


# --- reserved paths ----------------------------------------------------------------------------

SERVED = {"favicon.ico"}
"""Reserved names at which the server has a document of its own."""

RESERVED = [
    *(
        f"/{name}{rest}"
        for name in sorted(RESERVED_NAMES)
        for rest in ("", "/", "/x")
        if rest or name not in SERVED
    ),
    "/IDP/x", "/%69dp/x", "/.well-known/x", "/.well-known/solid/x", "/%2ewell-known/x",
    "/.notifications/x", "/.pods/x", "/.pods/", "/%2Epods/x", "/.anything", "/.acl", "/.meta",
]  # fmt: skip


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "POST", "PATCH", "DELETE"])
async def test_nothing_can_be_stored_or_read_below_reserved_names(
    server: Server, store: SqliteStore, method: str
) -> None:
    """A-13, A-91: nothing is exempt by a prefix, and nobody owns what is below."""
    changes = await store.changes_after(0, limit=10_000)
    for target in RESERVED:
        for client in (server.public, server.alice):
            kind = SPARQL if method == "PATCH" else TURTLE
            answer = await client.request(method, target, headers=content(kind), body=b"")
            assert answer.status == 404, target
    assert await store.changes_after(0, limit=10_000) == changes


@pytest.mark.parametrize(
    "target",
    [
        "/alice/%2e%2e/bob/private/", "/alice/../bob/private/", "/alice/%2E./bob/private/",
        "/%2e%2e/keys/token.key", "/alice/private/..", "/alice/private/%2e", "//alice/private/",
        "/alice//private/", "/alice/private/%00", "/alice/private/%", "/alice/private/%c0%ae",
    ],
)  # fmt: skip
async def test_no_spelling_of_a_path_leads_elsewhere(server: Server, target: str) -> None:
    """P-50."""
    for method in ("GET", "PUT", "DELETE"):
        answer = await server.alice.request(method, target, headers=content("text/plain"))
        assert answer.status == 400


async def test_an_encoded_slash_is_a_part_of_a_name(server: Server) -> None:
    """P-50: so it climbs nowhere."""
    path = "/alice/..%2fbob%5c..%2f"
    assert (await server.alice.put(path, "mine", "text/plain")).status == 201
    assert "..%2Fbob%5C..%2F" in (await server.alice.get("/alice/")).text
    assert (await server.alice.get("/bob/private/")).status == 403
    assert (await server.alice.get(path)).body == b"mine"


# --- errors ------------------------------------------------------------------------------------

BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
ERRORS = [
    ("GET", "/alice/%zz", "public", {}, 400, "Bad Request"),
    ("GET", "/alice/private/", "public", {}, 401, "Unauthorized"),
    ("GET", "/alice/private/", "bob", {}, 403, "Forbidden"),
    ("GET", "/alice/private/no", "alice", {}, 404, "Not Found"),
    ("GET", "/idp/", "public", {}, 404, "Not Found"),
    ("POST", DOC, "alice", content(TURTLE), 405, "Method Not Allowed"),
    ("PUT", f"{DOC}/", "alice", content(TURTLE), 409, "Conflict"),
    ("PUT", DOC, "alice", content(TURTLE, If_Match='"x"'), 412, "Precondition Failed"),
    ("GET", f"/{'x' * 9000}", "public", {}, 414, "URI Too Long"),
    ("PUT", "/alice/.acl", "alice", content("image/png"), 415, "Unsupported Media Type"),
    ("GET", TEXT, "alice", {"Range": "bytes=999-"}, 416, "Range Not Satisfiable"),
    ("GET", "/", "public", {"Host": "evil.example"}, 421, "Misdirected Request"),
    ("BREW", "/", "public", {}, 501, "Not Implemented"),
]


@pytest.mark.parametrize(("method", "target", "who", "headers", "status", "reason"), ERRORS)
async def test_an_error_is_json_or_a_page_where_a_browser_asks(
    server: Server, method: str, target: str, who: str, headers: dict[str, str], status: int,
    reason: str,
) -> None:  # fmt: skip
    """A-9, P-17, P-5."""
    await arrange(server)
    client: Client = getattr(server, who)
    for accept in (None, "*/*", "application/json", JSON_LD):
        wanted = headers | ({} if accept is None else {"Accept": accept})
        answer = await client.request(method, target, headers=wanted)
        assert (answer.status, answer.header("content-type")) == (status, "application/json")
        assert set(answer.json()) == {"error", "message"}
        assert answer.json()["error"] == reason
        assert answer.json()["message"]
        assert answer.header("content-length") == str(len(answer.body))
        assert answer.header("cache-control") == "no-store"
    script = {"Accept": BROWSER, "Sec-Fetch-Mode": "cors"}  # a navigation may lead to a page
    page = await client.request(method, target, headers=headers | script)
    assert page.status == status
    assert page.header("content-type") == "text/html; charset=utf-8"
    assert reason in page.text
    assert page.header("content-length") == str(len(page.body))


async def test_a_head_has_the_headers_of_an_error_and_no_body(server: Server) -> None:
    """P-15, P-17."""
    for target in ("/alice/private/", "/alice/%zz", "/idp/", "/nobody/"):
        for accept in ("*/*", BROWSER):
            get = await server.public.get(target, accept=accept)
            head = await server.public.head(target, accept=accept)
            assert (head.status, head.headers, head.body) == (get.status, get.headers, b"")


async def test_error_pages_escape_what_was_sent(server: Server) -> None:
    """A-192: a message may name what was sent, and a page must not run it."""
    script = "<script>alert(1)</script>"
    document = f'{{"@context": "http://evil.example/{script}"}}'
    assert (await server.alice.put(DOC, document, JSON_LD)).status == 201
    page = await server.alice.get(DOC, accept="text/html, text/turtle;q=0.5")
    assert (page.status, page.header("content-type")) == (406, "text/html; charset=utf-8")
    assert "evil.example" in page.text
    assert "<script" not in page.text
    assert "&lt;script&gt;" in page.text
    policy = page.header("content-security-policy") or ""
    assert policy.startswith("default-src 'none'")


async def test_server_errors_reveal_none_of_their_causes(
    settings: Settings, server: Server
) -> None:
    """A-186, P-17: never a stack trace, a path or a name of the code."""
    await server.alice.put(DOC, b"x" * 100_000, "text/plain")
    shutil.rmtree(settings.root / "blobs")
    for accept in ("*/*", BROWSER):
        answer = await server.alice.get(DOC, accept=accept)
        assert answer.status == 500
        for told in ("Traceback", "podstead.", ".py", str(settings.root), "blobs", "Errno"):
            assert told not in answer.text
            assert told not in str(answer.headers)


# --- what every answer carries -----------------------------------------------------------------


@pytest.mark.parametrize(("method", "target", "who", "headers", "status", "reason"), ERRORS)
async def test_every_error_has_the_security_headers(
    server: Server, method: str, target: str, who: str, headers: dict[str, str], status: int,
    reason: str,
) -> None:  # fmt: skip
    """A-192."""
    await arrange(server)
    client: Client = getattr(server, who)
    assert_secure(await client.request(method, target, headers=headers), https=False)


@pytest.mark.parametrize("base_url", [BASE, "https://pods.example"])
async def test_every_answer_has_the_security_headers(start: Start, base_url: str) -> None:
    """A-192: and on HTTPS the one that keeps it so."""
    server = await start(base_url=base_url)
    https = base_url.startswith("https")
    for answer in (
        await server.alice.put(DOC, "<#a> <#b> <#c>.", TURTLE),
        await server.alice.get(DOC),
        await server.alice.get(DOC, range="bytes=0-0"),
        await server.alice.get(DOC, if_none_match="*"),
        await server.alice.get(f"{DOC}/"),
        await server.alice.get("/alice/"),
        await server.alice.head("/alice/"),
        await server.alice.delete(DOC),
        await server.public.request("OPTIONS", DOC),
        await server.public.get("/"),
        await server.public.get("/", accept=BROWSER),
        await server.public.post("/.pods", '{"name": "carol"}', "application/json"),
    ):
        assert answer.status < 400
        assert_secure(answer, https=https)


def assert_secure(answer: Answer, *, https: bool) -> None:
    assert answer.header("x-content-type-options") == "nosniff"
    assert answer.header("referrer-policy") == "no-referrer"
    assert (answer.header("strict-transport-security") is not None) is https
    assert answer.header("server") is None
    assert answer.header("x-powered-by") is None


# --- methods -----------------------------------------------------------------------------------

ALLOW = {
    "/alice/": {"OPTIONS", "HEAD", "GET", "PUT", "POST", "PATCH", "COPY"} | QUERIES,
    "/alice/private/": {
        *("OPTIONS", "HEAD", "GET", "PUT", "POST", "PATCH", "DELETE"),
        *("COPY", "MOVE"),
    }
    | QUERIES,
    DOC: {"OPTIONS", "HEAD", "GET", "PUT", "PATCH", "DELETE", "COPY", "MOVE"},
    "/alice/.acl": {"OPTIONS", "HEAD", "GET", "PUT", "PATCH"},
    f"{DOC}.acl": {"OPTIONS", "HEAD", "GET", "PUT", "PATCH", "DELETE"},
    f"{DOC}.meta": {"OPTIONS", "HEAD", "GET", "PUT", "PATCH", "DELETE"},
    "/": {"OPTIONS", "HEAD", "GET"},
    "/.pods": {"OPTIONS", "POST"},
}


@pytest.mark.parametrize(("target", "methods"), ALLOW.items(), ids=ALLOW)
async def test_the_methods_of_a_target_are_the_same_in_every_answer(
    server: Server, target: str, methods: set[str]
) -> None:
    """P-11, P-13, P-14, C-19: in OPTIONS, in what is read, and in 405."""
    await arrange(server)
    await server.put_acl(DOC)
    await server.alice.put(f"{DOC}.meta", "<#a> <#b> <#c>.", TURTLE)
    answers = [await server.public.request("OPTIONS", target)]
    answers += [await server.alice.request(method, target) for method in ("GET", "HEAD")]
    answers += [await server.alice.request(method, target) for method in ("TRACE", "CONNECT")]
    told = [answer for answer in answers if answer.status in (200, 204, 405)]
    assert len(told) == len(answers)
    for answer in told:
        if answer.header("allow") is None:  # a service says it where it is asked
            assert (answer.status, target) == (200, "/")
            continue
        assert set((answer.header("allow") or "").split(", ")) == methods
    for method in {"POST", "DELETE", "PUT"} - methods:
        refused = await server.alice.request(method, target, headers=content(TURTLE))
        assert refused.status == 405
        assert set((refused.header("allow") or "").split(", ")) == methods


@pytest.mark.parametrize("method", ["BREW", "get", "PROPFIND", "MKCOL", "LINK"])
async def test_an_unknown_method_is_501_everywhere(server: Server, method: str) -> None:
    """P-9."""
    for target in ("/alice/", "/alice/private/no", "/", "/.pods", "/idp/"):
        for client in (server.public, server.alice):
            assert (await client.request(method, target)).status == 501
