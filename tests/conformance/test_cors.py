"""What scripts of other origins may request and read (P-39 to P-46)."""

from __future__ import annotations

import pytest

from tests.conformance.agents import WRITTEN, Agent, Response
from tests.conformance.conformance_places import PLACES
from tests.support.rdf import TURTLE

ORIGIN = "https://tester"
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
EXPOSED = {
    *("Accept-Patch", "Accept-Post", "Accept-Put", "Allow", "Content-Length", "Content-Range"),
    *("Date", "ETag", "Last-Modified", "Link", "Location", "Retry-After", "Vary", "WAC-Allow"),
    "WWW-Authenticate",
}


@pytest.fixture
def text(alice: Agent, container: str) -> str:
    return alice.create(f"{container}x.txt", "Hello", "text/plain")


def ask(agent: Agent, method: str, target: str, origin: str = ORIGIN) -> Response:
    """A request of a script; with content where the method has some."""
    fields = {"Origin": origin}
    if method == "PATCH":
        return agent.patch(target, "INSERT DATA { <#a> <#b> <#c> . }", headers=fields)
    if method in {"POST", "PUT"}:
        return agent.request(method, target, "Hello", {**fields, "Content-Type": "text/plain"})
    return agent.request(method, target, None, fields)


def preflight(agent: Agent, target: str, method: str, headers: str | None = None) -> Response:
    fields = {"Origin": ORIGIN, "Access-Control-Request-Method": method}
    if headers is not None:
        fields["Access-Control-Request-Headers"] = headers
    response = agent.options(target, headers=fields)
    assert (response.status, response.body) == (204, b"")
    return response


# --- P-39, P-40: the origin, and what it may see ----------------------------------------------


@pytest.mark.parametrize("method", [*METHODS, "OPTIONS", "TRACE", "BREW"])
@pytest.mark.parametrize("who", ["alice", "bob", "public"])
@pytest.mark.parametrize("kind", ["container", "text"])
def test_p_39_every_response_allows_the_origin_of_the_request(
    alice: Agent,
    bob: Agent,
    public: Agent,
    text: str,
    container: str,
    method: str,
    who: str,
    kind: str,
) -> None:
    agent = {"alice": alice, "bob": bob, "public": public}[who]
    response = ask(agent, method, text if kind == "text" else container)
    assert response.values("Access-Control-Allow-Origin") == [ORIGIN]
    [vary] = response.values("Vary")
    assert "Origin" in vary.split(", ")


@pytest.mark.parametrize(
    ("method", "status"),
    [("GET", 200), ("HEAD", 200), ("POST", 201)],
)
def test_p_39_simple_requests_of_the_owner_succeed(
    alice: Agent, container: str, method: str, status: int
) -> None:
    response = ask(alice, method, container)
    assert response.status == status
    assert response.header("Access-Control-Allow-Origin") == ORIGIN


@pytest.mark.parametrize("method", METHODS)
def test_p_39_a_challenge_allows_the_origin(public: Agent, container: str, method: str) -> None:
    response = ask(public, method, container)
    assert response.status == 401
    assert response.header("Access-Control-Allow-Origin") == ORIGIN


def test_p_39_the_content_arrives(alice: Agent, text: str) -> None:
    assert ask(alice, "GET", text).text == "Hello"
    assert ask(alice, "HEAD", text).text == ""


@pytest.mark.parametrize(
    ("target", "status"),
    [
        ("missing.txt", 404),
        ("x.txt/", 301),
        ("%00", 400),
        ("/.well-known/solid", 200),
        ("/", 200),
        ("/nobody/", 401),
        ("a" * 9000, 414),
    ],
)
def test_p_39_refusals_redirects_and_the_server_s_own_pages_allow_the_origin(
    alice: Agent, public: Agent, text: str, container: str, target: str, status: int
) -> None:
    agent = public if target.startswith("/") else alice
    response = ask(agent, "GET", target if target.startswith("/") else container + target)
    assert response.status == status
    assert response.header("Access-Control-Allow-Origin") == ORIGIN


def test_p_39_not_modified_allows_the_origin(alice: Agent, text: str) -> None:
    fields = {"Origin": ORIGIN, "If-None-Match": "*"}
    response = alice.get(text, headers=fields)
    assert response.status == 304
    assert response.header("Access-Control-Allow-Origin") == ORIGIN


@pytest.mark.parametrize("method", [*METHODS, "OPTIONS"])
@pytest.mark.parametrize("who", ["alice", "bob", "public"])
def test_p_40_every_response_lists_what_scripts_may_read(
    alice: Agent, bob: Agent, public: Agent, text: str, method: str, who: str
) -> None:
    agent = {"alice": alice, "bob": bob, "public": public}[who]
    exposed = ask(agent, method, text).listed("Access-Control-Expose-Headers")
    assert exposed
    assert "*" not in exposed


# --- P-41, P-42: preflights -------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", [*PLACES, "server"])
def test_p_41_a_preflight_allows_the_requested_headers(
    public: Agent, places: dict[str, str], kind: str, method: str
) -> None:
    names = "X-CUSTOM, Content-Type, Accept"
    response = preflight(public, places.get(kind, "/"), method, names)
    assert response.header("Access-Control-Allow-Origin") == ORIGIN
    assert method in response.listed("Access-Control-Allow-Methods")
    assert response.listed("Access-Control-Allow-Headers") >= set(names.split(", "))
    assert response.header("Access-Control-Expose-Headers")


@pytest.mark.parametrize(
    "names", ["X-CUSTOM", "x-custom", "authorization,dpop", "AUTHORIZATION, If-None-MATCH"]
)
def test_p_41_the_names_come_back_letter_by_letter(
    public: Agent, container: str, names: str
) -> None:
    response = preflight(public, container, "PUT", names)
    asked = {name.strip() for name in names.split(",")}
    assert response.listed("Access-Control-Allow-Headers") >= asked


def test_p_42_accept_is_allowed_on_request(public: Agent, container: str) -> None:
    allowed = preflight(public, container, "GET", "X-CUSTOM, Accept")
    assert "Accept" in allowed.listed("Access-Control-Allow-Headers")


@pytest.mark.parametrize("names", ["X-CUSTOM, Content-Type", None])
def test_p_42_nothing_like_accept_is_allowed_otherwise(
    public: Agent, container: str, names: str | None
) -> None:
    response = preflight(public, container, "GET", names)
    allowed = response.header("Access-Control-Allow-Headers")
    assert allowed
    assert "Accept" not in allowed


def test_p_42_a_long_accept_is_understood(alice: Agent, container: str) -> None:
    accept = ", ".join([*(f"application/x-{n};q=0.1" for n in range(10)), f"{TURTLE};q=0.9"])
    assert len(accept) > 128
    response = alice.get(container, headers={"Origin": ORIGIN, "Accept": accept})
    assert (response.status, response.media_type) == (200, TURTLE)
    assert response.body


# --- P-43 to P-46 -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "origin", ["null", "http://localhost:1", "https://evil.example", "app://x", "not an origin"]
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_p_43_no_origin_is_refused(alice: Agent, container: str, method: str, origin: str) -> None:
    response = ask(alice, method, container, origin)
    assert response.status in WRITTEN
    assert response.header("Access-Control-Allow-Origin") == origin


@pytest.mark.parametrize("method", ["GET", "PROPFIND", "BREW", "x"])
def test_p_43_no_method_and_no_header_is_refused_in_a_preflight(
    public: Agent, container: str, method: str
) -> None:
    response = preflight(public, container, method, "X-Unheard-Of, X-Other")
    assert response.header("Access-Control-Allow-Origin") == ORIGIN
    assert response.listed("Access-Control-Allow-Headers") >= {"X-Unheard-Of", "X-Other"}


@pytest.mark.parametrize("method", ["GET", "OPTIONS", "PUT"])
def test_p_44_scripts_may_read_every_useful_header(alice: Agent, text: str, method: str) -> None:
    assert ask(alice, method, text).listed("Access-Control-Expose-Headers") >= EXPOSED


@pytest.mark.parametrize("method", [*METHODS, "OPTIONS"])
def test_p_45_credentials_are_allowed(alice: Agent, text: str, method: str) -> None:
    assert ask(alice, method, text).header("Access-Control-Allow-Credentials") == "true"


def test_p_45_a_preflight_may_be_remembered_for_a_day(public: Agent, container: str) -> None:
    response = preflight(public, container, "GET")
    assert response.header("Access-Control-Max-Age") == "86400"


@pytest.mark.parametrize("method", [*METHODS, "OPTIONS"])
def test_p_45_without_origin_there_is_nothing_of_cors(alice: Agent, text: str, method: str) -> None:
    response = alice.request(method, text)
    assert not [name for name, _ in response.lines if name.lower().startswith("access-control")]


@pytest.mark.parametrize("name", ["token", "session", "Authorization", "podstead"])
def test_p_45_a_cookie_is_not_a_credential(
    alice: Agent, public: Agent, container: str, name: str
) -> None:
    for value in (alice.token, f"Bearer {alice.token}"):
        response = public.get(container, headers={"Cookie": f"{name}={value}", "Origin": ORIGIN})
        assert response.status == 401


@pytest.mark.parametrize("method", METHODS)
def test_p_46_responses_say_which_headers_are_allowed(alice: Agent, text: str, method: str) -> None:
    response = ask(alice, method, text)
    assert response.header("Access-Control-Allow-Origin") == ORIGIN
    assert response.header("Access-Control-Allow-Headers")
