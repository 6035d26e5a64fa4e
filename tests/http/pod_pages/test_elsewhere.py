"""Signing in to the pages with an identity of another server, and attacks on it.

The other provider is real HTTP on this machine and does as it is told.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from html import unescape
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

import pytest

from podstead.web.sign_in import people
from tests.http.pod_pages.test_sharing import words
from tests.support.application import BASE, Server, Start, password_of
from tests.support.browser import Browser, Page
from tests.support.clock import FakeClock
from tests.support.pod_pages import csrf_token_of, sign_in_by_token
from tests.support.provider import CONFIGURATION, Provider, running_provider
from tests.support.provider import Page as Answer
from tests.support.signing import Json, Signer

SIGN_IN = "/.pages/sign-in"
ELSEWHERE = "/.pages/sign-in/elsewhere"
CALLBACK = "/.pages/sign-in/callback/"
CLIENT = "registered"
CODE = "the-code"


class Elsewhere:
    """A provider with one person, Carol, who agrees to everything."""

    def __init__(self, provider: Provider) -> None:
        self.provider = provider
        self.web_id = provider.profile("/carol", provider.issuer)
        self.claims: Json = {}
        self.header: Json = {"typ": "JWT"}
        self.signer: Signer | None = None
        self.nonces: list[str] = []
        self.asked_for: dict[str, str] = {}
        self.forms: list[dict[str, str]] = []
        self.proofs: list[Json] = []
        self.registered: Json = {}
        provider.pages[CONFIGURATION] = lambda: Answer.of(self.configuration())
        provider.posts["/token"] = self.token
        provider.posts["/reg"] = self.register
        self.changes: Json = {}

    def configuration(self) -> Json:
        issuer = self.provider.issuer
        described = {
            **self.provider.configuration(),
            "authorization_endpoint": f"{issuer}/auth",
            "token_endpoint": f"{issuer}/token",
            "registration_endpoint": f"{issuer}/reg",
            "response_types_supported": ["code"],
            "code_challenge_methods_supported": ["S256"],
            "scopes_supported": ["openid", "webid"],
            "authorization_response_iss_parameter_supported": True,
            **self.changes,
        }
        return {name: value for name, value in described.items() if value is not None}

    def register(self, content: bytes, _: Mapping[str, str]) -> Answer:
        self.registered = json.loads(content)
        return Answer(json.dumps({**self.registered, "client_id": CLIENT}).encode(), status=201)

    def token(self, content: bytes, fields: Mapping[str, str]) -> Answer:
        form = dict(parse_qsl(content.decode()))
        self.forms.append(form)
        self.proofs.append(claims_of(fields["DPoP"]))
        if self.nonces:
            body = b'{"error": "use_dpop_nonce"}'
            return Answer(body, status=400, headers={"DPoP-Nonce": self.nonces.pop()})
        verifier = hashlib.sha256(form["code_verifier"].encode()).digest()
        challenge = base64.urlsafe_b64encode(verifier).rstrip(b"=").decode()
        if form["code"] != CODE or challenge != self.asked_for["code_challenge"]:
            return Answer(b'{"error": "invalid_grant"}', status=400)
        tokens = {"access_token": "x", "token_type": "DPoP", "id_token": self.id_token()}
        return Answer.of(tokens, DPoP_Nonce="for the next request")

    def id_token(self) -> str:
        now_s = int(time.time())
        claims = {
            "iss": self.provider.issuer,
            "sub": self.web_id,
            "webid": self.web_id,
            "aud": [CLIENT, "solid"],
            "azp": CLIENT,
            "nonce": self.asked_for["nonce"],
            "iat": now_s,
            "exp": now_s + 3600,
            **self.claims,
        }
        kept = {name: value for name, value in claims.items() if value is not None}
        return self.provider.sign(kept, self.signer, **self.header)

    # --- what a person does -------------------------------------------------------------------

    async def begin(self, browser: Browser, typed: str | None = None, after: str = "") -> str:
        """Type an identity on the sign-in page; the address that the browser is led to."""
        page = await browser.get(SIGN_IN + (f"?next={after}" if after else ""))
        page = await browser.send(page, ELSEWHERE, identity=typed or self.web_id)
        assert page.status == 200, page.text
        links = re.findall(r'<a class="button" href="([^"]+)"', page.text)
        address = unescape(links[-1])
        assert f'<meta http-equiv="refresh" content="0; url={links[-1]}">' in page.text
        self.asked_for = {name: each[0] for name, each in parse_qs(urlsplit(address).query).items()}
        return address

    async def come_back(self, browser: Browser, **changes: str | None) -> Page:
        """Return from the provider, which has agreed."""
        answer = {
            "code": CODE,
            "state": self.asked_for["state"],
            "iss": self.provider.issuer,
            **changes,
        }
        kept = {name: value for name, value in answer.items() if value is not None}
        path = self.asked_for["redirect_uri"].removeprefix(BASE)
        return await browser.get(f"{path}?{urlencode(kept)}", Sec_Fetch_Site="cross-site")

    async def sign_in(self, browser: Browser, typed: str | None = None, after: str = "") -> Page:
        await self.begin(browser, typed, after)
        return await self.come_back(browser)


def claims_of(token: str) -> Json:
    part = token.split(".")[1]
    found: Json = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    return found


@pytest.fixture
def elsewhere() -> Iterator[Elsewhere]:
    with running_provider() as provider:
        yield Elsewhere(provider)


async def is_signed_in(browser: Browser) -> bool:
    return (await browser.get("/.pages/shared")).path == "/.pages/shared"


async def test_a_visitor_sees_what_is_shared_with_the_web_id(
    server: Server, browser: Browser, elsewhere: Elsewhere
) -> None:
    await server.put_acl("/alice/private/", (f"acl:agent <{elsewhere.web_id}>", "+Read"))
    page = await elsewhere.sign_in(browser)
    assert page.path == "/.pages/shared"
    assert "private" in words(page)
    assert elsewhere.web_id.partition("://")[2] in words(page)
    assert (await browser.get("/.pages/files/alice/private/")).status == 200
    assert (await browser.get("/.pages/files/alice/settings/")).status == 403
    assert (await browser.get("/.pages/files/")).path == "/.pages/shared"
    navigation = re.search(r'<nav class="nav".*?</nav>', page.text, re.DOTALL)
    assert navigation is not None
    assert re.findall(r'href="([^"]+)"', navigation[0]) == ["/.pages/shared"]


async def test_a_provider_can_be_named_instead_of_a_web_id(
    server: Server, browser: Browser, elsewhere: Elsewhere
) -> None:
    page = await elsewhere.sign_in(browser, elsewhere.provider.issuer)
    assert page.path == "/.pages/shared"
    await browser.post("/.pages/sign-out", {"csrf_token": csrf_token_of(page)})
    assert not await is_signed_in(browser)


async def test_the_request_is_bound_to_this_server_and_sign_in(
    server: Server, browser: Browser, elsewhere: Elsewhere
) -> None:
    address = await elsewhere.begin(browser)
    asked = elsewhere.asked_for
    assert address.startswith(f"{elsewhere.provider.issuer}/auth?")
    key = hashlib.sha256(elsewhere.provider.issuer.encode()).hexdigest()[:32]
    assert asked["redirect_uri"] == BASE + CALLBACK + key
    assert (asked["response_type"], asked["scope"]) == ("code", "openid webid")
    assert asked["code_challenge_method"] == "S256"
    assert elsewhere.registered["redirect_uris"] == [asked["redirect_uri"]]
    assert elsewhere.registered["token_endpoint_auth_method"] == "none"
    first = {asked["state"], asked["nonce"], asked["code_challenge"]}
    assert len(first) == 3
    await elsewhere.begin(browser)
    assert not first & set(elsewhere.asked_for.values())
    await elsewhere.come_back(browser)
    proof = elsewhere.proofs[0]
    assert (proof["htm"], proof["htu"]) == ("POST", f"{elsewhere.provider.issuer}/token")


async def test_a_nonce_that_the_provider_wants_is_sent(
    server: Server, browser: Browser, elsewhere: Elsewhere
) -> None:
    elsewhere.nonces = ["wanted"]
    assert (await elsewhere.sign_in(browser)).path == "/.pages/shared"
    assert [proof.get("nonce") for proof in elsewhere.proofs] == [None, "wanted"]
    assert elsewhere.proofs[0]["jti"] != elsewhere.proofs[1]["jti"]


@pytest.mark.parametrize("status", [200, 201, 400])
async def test_tokens_are_asked_for_again_only_with_a_nonce(
    server: Server, browser: Browser, elsewhere: Elsewhere, status: int
) -> None:
    """A nonce that comes with them is for later requests (RFC 9449 section 8.2)."""
    await elsewhere.begin(browser)

    def answer(content: bytes, fields: Mapping[str, str]) -> Answer:
        good = elsewhere.token(content, fields)
        return replace(good, status=status, headers={} if status == 400 else good.headers)

    elsewhere.provider.posts["/token"] = answer
    page = await elsewhere.come_back(browser)
    assert (page.path == "/.pages/shared") is (status != 400)
    assert len(elsewhere.proofs) == 1


async def test_a_visitor_is_led_back_to_the_page_they_wanted(
    server: Server, browser: Browser, elsewhere: Elsewhere
) -> None:
    wanted = "/.pages/ask/alice/private/"
    assert (await elsewhere.sign_in(browser, after=wanted)).path == wanted


@pytest.mark.parametrize(
    "after", ["https://evil.example/", "//evil.example", "/alice/", "/.pages/../x", "\\\\evil"]
)
async def test_the_sign_in_leads_to_no_other_place(
    server: Server, browser: Browser, elsewhere: Elsewhere, after: str
) -> None:
    page = await elsewhere.sign_in(browser, after=after)
    assert page.url.startswith(f"{BASE}/.pages/shared")


async def test_unknown_providers_keep_nobody_from_a_known_one(
    start: Start, elsewhere: Elsewhere
) -> None:
    """All requests come from one address; sign-ins are limited at each provider (A-111)."""
    server = await start(clock=FakeClock(int(time.time() * 1000)))
    await elsewhere.sign_in(Browser(server.application), elsewhere.provider.issuer)
    stranger = Browser(server.application)
    page = await stranger.get(SIGN_IN)
    statuses = [
        (await stranger.send(page, ELSEWHERE, identity=f"http://idp-{each}.localhost:1")).status
        for each in range(32)
    ]
    assert statuses[0] == 503
    assert statuses[-1] == 429
    other = Browser(server.application)
    page = await other.get(SIGN_IN)
    known = [
        (await other.send(page, ELSEWHERE, identity=elsewhere.provider.issuer)).status
        for _ in range(31)
    ]
    assert known == [200] * 29 + [429] * 2
    assert len(elsewhere.forms) == 1


# --- attacks on the way back -----------------------------------------------------------------


async def refused(browser: Browser, page: Page, *texts: str) -> None:
    assert page.status == 400
    assert not await is_signed_in(browser)
    for text in texts:
        assert text in words(page)


async def test_a_wrong_state_signs_nobody_in(
    server: Server, browser: Browser, elsewhere: Elsewhere
) -> None:
    await elsewhere.begin(browser)
    for state in ("", "0" * 64, None):
        await refused(browser, await elsewhere.come_back(browser, state=state), "Begin again")
    assert not elsewhere.forms


async def test_another_browser_cannot_finish_a_sign_in(
    server: Server, browser: Browser, elsewhere: Elsewhere
) -> None:
    """Nobody can sign another person's browser in as themselves."""
    await elsewhere.begin(browser)
    other = Browser(server.application)
    await refused(other, await elsewhere.come_back(other))
    with_visit = Browser(server.application)
    state = elsewhere.asked_for
    await elsewhere.begin(with_visit)
    elsewhere.asked_for = state
    await refused(with_visit, await elsewhere.come_back(with_visit))
    assert not elsewhere.forms
    assert (await elsewhere.come_back(browser)).path == "/.pages/shared"


async def test_an_answer_can_be_used_once(
    server: Server, browser: Browser, elsewhere: Elsewhere
) -> None:
    page = await elsewhere.sign_in(browser)
    await browser.post("/.pages/sign-out", {"csrf_token": csrf_token_of(page)})
    await refused(browser, await elsewhere.come_back(browser), "This sign-in is over")
    assert len(elsewhere.forms) == 1


@pytest.mark.parametrize("iss", ["https://evil.example", "", None])
async def test_the_answer_of_another_provider_is_refused_before_its_code_is_sent(
    server: Server, browser: Browser, elsewhere: Elsewhere, iss: str | None
) -> None:
    await elsewhere.begin(browser)
    await refused(browser, await elsewhere.come_back(browser, iss=iss))
    assert not elsewhere.forms


async def test_a_provider_that_never_names_itself_may_go_on_so(
    server: Server, browser: Browser, elsewhere: Elsewhere
) -> None:
    elsewhere.changes = {"authorization_response_iss_parameter_supported": None}
    await elsewhere.begin(browser)
    assert (await elsewhere.come_back(browser, iss=None)).path == "/.pages/shared"


@pytest.fixture
def honest() -> Iterator[Elsewhere]:
    """Another provider, which names nobody in its responses."""
    with running_provider() as provider:
        other = Elsewhere(provider)
        other.changes = {"authorization_response_iss_parameter_supported": None}
        yield other


@pytest.mark.parametrize("claimed", [None, True])
async def test_a_provider_that_calls_the_endpoint_of_another_its_own_gets_no_code(
    server: Server, browser: Browser, elsewhere: Elsewhere, honest: Elsewhere, claimed: bool | None
) -> None:
    """RFC 9700 section 4.4: whether or not it claims to name itself."""
    there = honest.configuration()
    elsewhere.changes = {
        "authorization_endpoint": there["authorization_endpoint"],
        "registration_endpoint": there["registration_endpoint"],
        "authorization_response_iss_parameter_supported": claimed,
    }
    page = await begin(browser, elsewhere.web_id)
    if claimed is None:
        await refused(browser, page, "lacks something")
        return
    await elsewhere.begin(browser)
    await refused(browser, await elsewhere.come_back(browser, iss=None))
    assert not elsewhere.forms


async def test_each_provider_sends_people_back_to_an_address_of_its_own(
    server: Server, browser: Browser, elsewhere: Elsewhere, honest: Elsewhere
) -> None:
    """An answer of one is not taken for that of another, which would be sent its code."""
    elsewhere.changes = {"authorization_response_iss_parameter_supported": None}
    await honest.begin(browser)
    await elsewhere.begin(browser)
    there = honest.asked_for["redirect_uri"]
    assert there != elsewhere.asked_for["redirect_uri"]
    assert honest.registered["redirect_uris"] == [there]
    elsewhere.asked_for["redirect_uri"] = there
    await refused(browser, await elsewhere.come_back(browser, iss=None), "is not valid")
    assert not elsewhere.forms
    assert (await honest.come_back(browser, iss=None)).path == "/.pages/shared"
    assert honest.forms[0]["redirect_uri"] == there


async def test_who_declines_is_not_signed_in(
    server: Server, browser: Browser, elsewhere: Elsewhere
) -> None:
    await elsewhere.begin(browser)
    page = await elsewhere.come_back(browser, code=None, error="access_denied")
    await refused(browser, page, "The provider did not sign you in")


async def test_a_code_of_another_sign_in_does_not_fit(
    server: Server, browser: Browser, elsewhere: Elsewhere
) -> None:
    """The verifier is that of this sign-in, so a stolen code is of no use here."""
    await elsewhere.begin(browser)
    elsewhere.asked_for = {**elsewhere.asked_for, "code_challenge": "another"}
    await refused(browser, await elsewhere.come_back(browser))


_FORGERIES: dict[str, Json] = {
    "for another client": {"aud": ["another", "solid"], "azp": "another"},
    "for another client and this one": {"aud": [CLIENT, "another"], "azp": "another"},
    "for several clients": {"azp": None},
    "for nobody": {"aud": None},
    "of another sign-in": {"nonce": "another"},
    "without a nonce": {"nonce": None},
    "of another issuer": {"iss": "https://evil.example"},
    "expired": {"exp": int(time.time()) - 3600, "iat": int(time.time()) - 7200},
    "without an end": {"exp": None},
    "without a WebID": {"webid": "carol"},
}


@pytest.mark.parametrize("claims", _FORGERIES.values(), ids=_FORGERIES.keys())
async def test_a_token_that_is_not_for_this_sign_in_is_refused(
    server: Server, browser: Browser, elsewhere: Elsewhere, claims: Json
) -> None:
    elsewhere.claims = claims
    page = await elsewhere.sign_in(browser)
    await refused(browser, page, "The response of the provider is not valid")


async def test_a_token_that_another_key_signed_is_refused(
    server: Server, browser: Browser, elsewhere: Elsewhere
) -> None:
    elsewhere.signer = Signer.new("ES256")
    await refused(browser, await elsewhere.sign_in(browser))


async def test_an_access_token_is_not_an_id_token(
    server: Server, browser: Browser, elsewhere: Elsewhere
) -> None:
    elsewhere.header = {"typ": "at+jwt"}
    await refused(browser, await elsewhere.sign_in(browser))


async def test_a_provider_cannot_sign_in_people_who_do_not_name_it(
    server: Server, browser: Browser, elsewhere: Elsewhere
) -> None:
    victim = elsewhere.provider.profile("/victim", "https://other.example")
    await server.put_acl("/alice/private/", (f"acl:agent <{victim}>", "+Read"))
    elsewhere.claims = {"webid": victim, "sub": victim}
    await refused(browser, await elsewhere.sign_in(browser), "does not name this provider")


async def test_a_provider_elsewhere_cannot_sign_in_the_owner_of_a_pod_here(
    server: Server, browser: Browser, elsewhere: Elsewhere
) -> None:
    elsewhere.claims = {"webid": server.alice_web_id, "sub": server.alice_web_id}
    await refused(browser, await elsewhere.sign_in(browser))


async def test_owners_can_name_a_provider_elsewhere(
    server: Server, browser: Browser, elsewhere: Elsewhere
) -> None:
    profile = f"<#me> <http://www.w3.org/ns/solid/terms#oidcIssuer> <{elsewhere.provider.issuer}>."
    patch = f"INSERT DATA {{ {profile} }}"
    answer = await server.alice.request(
        "PATCH",
        "/alice/",
        headers={"Content-Type": "application/sparql-update"},
        body=patch.encode(),
    )
    assert answer.status == 204, answer.text
    elsewhere.claims = {"webid": server.alice_web_id, "sub": server.alice_web_id}
    page = await elsewhere.sign_in(browser, server.alice_web_id)
    assert page.path == "/.pages/"
    assert (await browser.get("/.pages/files/alice/private/")).status == 200


async def test_the_session_ends_when_the_web_id_no_longer_names_the_provider(
    start: Start, elsewhere: Elsewhere
) -> None:
    clock = FakeClock(int(time.time() * 1000))
    server = await start(clock=clock)
    browser = Browser(server.application)
    await elsewhere.sign_in(browser)
    assert await is_signed_in(browser)
    elsewhere.provider.profile("/carol", "https://other.example")
    clock.advance(301)
    assert not await is_signed_in(browser)


async def test_the_session_ends_after_eight_hours(start: Start, elsewhere: Elsewhere) -> None:
    clock = FakeClock(int(time.time() * 1000))
    server = await start(clock=clock)
    browser = Browser(server.application)
    await elsewhere.sign_in(browser)
    clock.advance(8 * 3600 - 1)
    assert await is_signed_in(browser)
    clock.advance(1)
    assert not await is_signed_in(browser)


# --- what cannot begin -----------------------------------------------------------------------


async def begin(browser: Browser, typed: str) -> Page:
    return await browser.send(await browser.get(SIGN_IN), ELSEWHERE, identity=typed)


@pytest.mark.parametrize(
    ("typed", "text"),
    [
        ("", "This is not an address"),
        ("javascript://alert(1)", "This is not an address"),
        ("http://login.example", "This is not an address"),
        ("https://user:password@login.example", "This is not an address"),
        (BASE, "There is no provider at this address"),
        (f"{BASE}/alice/#me", "There is no provider at this address"),
        (f"{BASE}/nobody/#me", "There is no provider at this address"),
        ("https://10.0.0.1/", "There is no provider at this address"),
        ('https://x.example/"><script>alert(1)</script>', "This is not an address"),
    ],
)
async def test_what_is_no_identity_is_told_so(
    server: Server, browser: Browser, typed: str, text: str
) -> None:
    page = await begin(browser, typed)
    assert text in words(page)
    assert "<script>alert" not in page.text


@pytest.mark.parametrize(
    "changes",
    [
        {"issuer": "https://evil.example"},
        {"authorization_endpoint": None},
        {"authorization_endpoint": "javascript:alert(1)"},
        {"token_endpoint": "http://10.0.0.1/token"},
        {"response_types_supported": ["id_token"]},
        {"code_challenge_methods_supported": ["plain"]},
        {"dpop_signing_alg_values_supported": ["RS256"]},
        {"registration_endpoint": None},
    ],
)
async def test_a_provider_that_cannot_do_it_is_not_used(
    server: Server, browser: Browser, elsewhere: Elsewhere, changes: Json
) -> None:
    elsewhere.changes = changes
    page = await begin(browser, elsewhere.web_id)
    assert page.status == 400
    assert "http-equiv" not in page.text


async def test_a_provider_that_the_operator_refuses_is_not_used(
    start: Start, elsewhere: Elsewhere
) -> None:
    server = await start(refused_issuers=(elsewhere.provider.issuer,))
    browser = Browser(server.application)
    page = await begin(browser, elsewhere.web_id)
    assert "do not accept this provider" in words(page)


async def test_one_address_cannot_begin_without_end(
    server: Server, browser: Browser, elsewhere: Elsewhere
) -> None:
    pages = [await begin(browser, elsewhere.web_id) for _ in range(40)]
    assert {page.status for page in pages} == {200, 429}
    other = Browser(server.application, peer="10.1.2.3")
    assert (await begin(other, elsewhere.web_id)).status == 200


async def test_addresses_of_one_customer_are_one_address(
    server: Server, elsewhere: Elsewhere
) -> None:
    browsers = [Browser(server.application, peer=f"2001:db8::{n:x}") for n in range(1, 41)]
    pages = [await begin(browser, elsewhere.web_id) for browser in browsers]
    assert {page.status for page in pages} == {200, 429}


@pytest.mark.feature("previews")
async def test_web_ids_of_one_provider_share_what_their_network_may_do(
    server: Server, browser: Browser, elsewhere: Elsewhere, monkeypatch: pytest.MonkeyPatch
) -> None:
    requesters: list[str] = []

    async def render(*_: object, requester: str) -> bytes:
        requesters.append(requester)
        return b""

    processes = "podstead.features.previews.processes.RenderingProcesses"
    monkeypatch.setattr(f"{processes}.carry_out", render)
    await server.alice.put("/alice/public/x.md", "x", "text/markdown")
    await elsewhere.sign_in(browser)
    other = Browser(server.application, peer="2001:db8::1")
    neighbour = Browser(server.application, peer="2001:db8::2")
    for each in (browser, other, neighbour):
        assert (await each.get("/.pages/files/alice/public/x.md")).status == 200
        await server.alice.put("/alice/public/x.md", f"{len(requesters)}", "text/markdown")
    assert requesters == ["127.0.0.1", "2001:db8::/64", "2001:db8::/64"]


async def test_other_sites_cannot_begin_a_sign_in(
    server: Server, browser: Browser, elsewhere: Elsewhere
) -> None:
    page = await browser.post(
        ELSEWHERE,
        {"identity": elsewhere.web_id},
        Sec_Fetch_Site="cross-site",
        Origin="https://evil.example",
    )
    assert page.status == 403
    assert not elsewhere.registered


async def test_who_is_signed_in_already_is_led_on(server: Server) -> None:
    alice = await sign_in_by_token(server, server.alice)
    assert (await alice.get(ELSEWHERE)).path == "/.pages/shared"


async def test_a_public_server_names_itself_by_a_document(start: Start) -> None:
    server = await start(base_url="https://pods.example")
    key = hashlib.sha256(b"https://login.example").hexdigest()[:32]
    answer = await server.public.get(f"/.pages/client/{key}")
    assert answer.status == 200
    assert answer.header("content-type") == "application/ld+json"
    document = answer.json()
    assert document["client_id"] == f"https://pods.example/.pages/client/{key}"
    assert document["redirect_uris"] == [f"https://pods.example/.pages/sign-in/callback/{key}"]
    assert document["token_endpoint_auth_method"] == "none"


# --- the provider of this server, at another origin ------------------------------------------

PROVIDER = "http://127.0.0.1:3000"


@pytest.mark.parametrize("typed", [PROVIDER, f"{BASE}/alice/#me", None])
async def test_people_with_accounts_sign_in_at_the_provider_of_the_server(
    start: Start, typed: str | None
) -> None:
    """Without a request of the server to itself over the network."""
    server = await start(idp=True, idp_base_url=PROVIDER)
    await signed_in_at_both(server, typed)


@pytest.mark.parametrize("everywhere", [False, True])
async def test_the_sessions_of_a_pod_end_on_the_page_about_security_at_the_provider(
    start: Start, *, everywhere: bool
) -> None:
    """The pods have an origin of their own, and their sessions outlast those of the provider."""
    server = await start(idp=True, idp_base_url=PROVIDER)
    others, provider = await signed_in_at_both(server, f"{BASE}/alice/#me")
    page = await provider.get("/.pages/security")
    assert f"by the provider {PROVIDER}" in page.text
    if everywhere:
        await provider.send(page, "/idp/account/sessions")
    else:
        page = await provider.send(page, "/.pages/security/browsers")
        assert "That browser has been signed out." in page.text
        assert f"by the provider {PROVIDER}" not in page.text
    assert (await others.get("/.pages/files/alice/private/")).path == "/.pages/sign-in"


async def test_a_browser_that_is_removed_at_the_provider_is_signed_out_of_the_pods(
    start: Start,
) -> None:
    server = await start(idp=True, idp_base_url=PROVIDER)
    others, provider = await signed_in_at_both(server, f"{BASE}/alice/#me")
    page = await provider.get("/.pages/security")
    [removing] = [
        each.action for each in page.forms if each.action.startswith("/idp/account/sessions/")
    ]
    await provider.send(page, removing)
    assert (await others.get("/.pages/files/alice/private/")).path == "/.pages/sign-in"


async def signed_in_at_both(server: Server, typed: str | None) -> tuple[Browser, Browser]:
    """The browsers in which Alice is signed in to her pod, and at the provider of the server."""
    pods = Browser(server.application)
    page = await pods.get(f"{SIGN_IN}?ways=all")
    if typed is None:
        form = next(form for form in page.forms if form.fields.get("identity"))
        page = await pods.post(form.action, dict(form.fields))
    else:
        page = await pods.send(page, ELSEWHERE, identity=typed)
    assert page.status == 200, page.text
    address = unescape(re.findall(r'<a class="button" href="([^"]+)"', page.text)[-1])
    assert address.startswith(f"{PROVIDER}/idp/auth?")
    provider = Browser(server.application, base_url=PROVIDER)
    page = await provider.get(address)
    typed_there = {"username": "alice", "password": password_of("alice")}
    page = await provider.send(page, page.path, **typed_there)
    page = await provider.send(page, page.path)
    assert page.url.startswith(f"{BASE}{CALLBACK}"), page.text
    page = await pods.get(page.url.removeprefix(BASE))
    assert page.status == 200, page.text
    assert (await pods.get("/.pages/files/")).path == "/.pages/files/alice/"
    return pods, provider


async def test_a_network_has_few_sessions_and_a_new_one_ends_its_oldest(
    server: Server, elsewhere: Elsewhere, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(people, "MAX_OF_NETWORK", 2)
    first, second, third = (Browser(server.application) for _ in range(3))
    for each in (first, second):
        await elsewhere.sign_in(each)
    await elsewhere.sign_in(third)
    signed_in = [await is_signed_in(each) for each in (first, second, third)]
    assert signed_in.count(True) == 2
    assert signed_in[2]
