"""What a token must say, and that its issuer must have signed it (A-75, A-106, A-107, A-114)."""

from __future__ import annotations

import json

import pytest

from tests.support.application import BASE, Start
from tests.support.clock import FakeClock
from tests.support.provider import CONFIGURATION, KEYS, App, Page, Provider
from tests.support.rdf import TURTLE
from tests.support.signing import (
    Change,
    Json,
    Signer,
    base64url,
    set_to,
    signed_with_secret,
    unsigned,
    with_other_signature,
    without,
)
from tests.support.token_world import (
    DOC,
    ISSUER_TERM,
    MISNAMED,
    NO_ADDRESS,
    NO_DOCUMENT,
    NOT_FOR_US,
    NOT_NAMED,
    NOT_NOW,
    UNVERIFIABLE,
    URL,
    World,
    assert_refused,
    prepared,
)


def later(seconds: int) -> int:
    return FakeClock().now_ms() // 1000 + seconds


BAD_TOKENS: dict[str, tuple[Change, str]] = {
    "no cnf": (without("cnf"), "The token is not bound to a key"),
    "cnf no object": (set_to("cnf", "x"), "The token is not bound to a key"),
    "cnf without jkt": (set_to("cnf", {"x5t#S256": "x"}), "The token is not bound to a key"),
    "jkt not ASCII": (set_to("cnf", {"jkt": "é" * 43}), "The token is not bound to a key"),
    "jkt of another": (
        set_to("cnf", {"jkt": Signer.new("ES256").thumbprint}),
        "The token is bound to another key",
    ),
    "no aud": (without("aud"), NOT_FOR_US),
    "aud another": (set_to("aud", "https://api.example"), NOT_FOR_US),
    "aud list without solid": (set_to("aud", ["a", "solid "]), NOT_FOR_US),
    "aud in a list in a list": (set_to("aud", [["solid"]]), NOT_FOR_US),
    "aud an object": (set_to("aud", {"solid": 1}), NOT_FOR_US),
    "no exp": (without("exp"), NOT_NOW),
    "exp a text": (set_to("exp", str(later(60))), NOT_NOW),
    "expired": (set_to("exp", later(-60)), NOT_NOW),
    "no iat": (without("iat"), NOT_NOW),
    "iat of the future": (set_to("iat", later(121)), NOT_NOW),
    "for more than a day": (set_to("exp", later(24 * 3600 + 1)), NOT_NOW),
    "not yet": (set_to("nbf", later(61)), NOT_NOW),
    "nbf a text": (set_to("nbf", "1"), NOT_NOW),
    "no iss": (without("iss"), NO_ADDRESS),
    "iss no URL": (set_to("iss", "idp.example"), NO_ADDRESS),
    "iss plain http elsewhere": (set_to("iss", "http://idp.example"), NO_ADDRESS),
    "iss another scheme": (set_to("iss", "file:///etc/passwd"), NO_ADDRESS),
    "iss with a name": (set_to("iss", "https://a:b@idp.example"), NO_ADDRESS),
    "iss with a query": (set_to("iss", "https://idp.example/?x="), NO_ADDRESS),
    "iss with a fragment": (set_to("iss", "https://idp.example/#x"), NO_ADDRESS),
    "iss with a line": (set_to("iss", "https://idp.example/\n"), NO_ADDRESS),
    "iss too long": (set_to("iss", f"https://idp.example/{'a' * 2048}"), NO_ADDRESS),
    "iss with a wrong port": (set_to("iss", "https://idp.example:x"), UNVERIFIABLE),
    "iss in broken brackets": (set_to("iss", "https://[::1"), NO_ADDRESS),
    "webid no URL": (set_to("webid", "alice"), NO_ADDRESS),
    "webid a list": (set_to("webid", ["https://a.example/#me"]), NO_ADDRESS),
    "webid plain http elsewhere": (set_to("webid", "http://a.example/#me"), NO_ADDRESS),
    "webid no IRI": (set_to("webid", f"{BASE}/alice/#<me>"), NO_ADDRESS),
    "webid of a path that cannot be": (set_to("webid", f"{BASE}/alice/%zz#me"), NO_DOCUMENT),
    "webid of nothing": (set_to("webid", f"{BASE}/alice/nothing#me"), NOT_NAMED),
    "webid of another here": (set_to("webid", f"{BASE}/bob/#me"), NOT_NAMED),
    "webid with another fragment": (set_to("webid", f"{BASE}/alice/#you"), NOT_NAMED),
    "webid of no RDF": (set_to("webid", f"{BASE}{DOC}#me"), NO_DOCUMENT),
    "iss of this server": (set_to("iss", BASE), UNVERIFIABLE),
}


@pytest.mark.parametrize(("change", "phrase"), BAD_TOKENS.values(), ids=BAD_TOKENS)
async def test_a_token_that_says_something_wrong_is_refused(
    world: World, change: Change, phrase: str
) -> None:
    """A-106, A-107, A-109, W-12."""
    assert_refused(await world.get(world.app(change)), phrase)


async def test_the_subject_must_be_a_webid(world: World) -> None:
    """A-107."""
    app = world.app(without("webid"), set_to("sub", "alice"))
    assert_refused(await world.get(app), NO_ADDRESS)


GOOD_TOKENS: dict[str, Change] = {
    "expired a moment ago": set_to("exp", later(-59)),
    "of a clock that is ahead": set_to("iat", later(120)),
    "for a day": set_to("exp", later(24 * 3600)),
    "from a moment later": set_to("nbf", later(60)),
}


@pytest.mark.parametrize("change", GOOD_TOKENS.values(), ids=GOOD_TOKENS)
async def test_clocks_may_differ_a_little(world: World, change: Change) -> None:
    """A-107."""
    assert (await world.get(world.app(change))).status == 200


async def test_a_token_that_was_verified_ends(world: World) -> None:
    """A-110."""
    app = world.app()
    assert (await world.get(app)).status == 200
    world.clock.advance(3600 + 60)
    answer = await world.get(app, set_to("iat", world.now_s))
    assert_refused(answer, NOT_NOW)


async def test_a_token_that_its_issuer_did_not_sign_is_refused(world: World) -> None:
    """W-3."""
    key = Signer.new("ES256")
    claims = world.provider.claims(world.server.alice_web_id, key.thumbprint, now_s=world.now_s)
    forger, kid = Signer.new("ES256"), world.provider.keys[0].thumbprint
    known = world.provider.keys[0].jwk
    good = world.provider.sign(claims)
    tokens = {
        "by another key": forger.sign({"kid": kid}, claims),
        "by a key that it brings": forger.sign({"kid": kid, "jwk": forger.jwk}, claims),
        "by a key elsewhere": forger.sign({"kid": kid, "jku": "http://localhost:1/"}, claims),
        "by the application's key": key.sign({"kid": kid}, claims),
        "by nobody": unsigned({"kid": kid}, claims),
        "by the public key as a secret": signed_with_secret(
            json.dumps(known).encode(), {"kid": kid}, claims
        ),
        "changed": with_other_signature(good),
    }
    for how, token in tokens.items():
        answer = await world.get(App(key, token, world.now_s))
        assert answer.status == 401, how
        assert answer.json()["message"] == "Invalid token", how
    assert (await world.get(App(key, good, world.now_s))).status == 200


async def test_a_token_of_a_key_that_is_not_published_is_refused(world: World) -> None:
    stranger = Signer.new("ES256")
    assert_refused(
        await world.get(world.app(signed_by=stranger)),
        "The token was signed with a key that its issuer does not publish",
    )


async def test_a_token_of_more_than_eight_kibibytes_is_not_looked_at(world: World) -> None:
    """A-114: nobody is asked about it."""
    long, longer = world.app(set_to("more", "x" * 5000)), world.app(set_to("more", "x" * 5800))
    assert len(long.token) < 8192 < len(longer.token)
    assert_refused(await world.get(longer), "Invalid token")
    assert world.provider.asked == []
    assert (await world.get(long)).status == 200


async def test_a_member_named_twice_is_refused(world: World) -> None:
    """A-114."""
    key = Signer.new("ES256")
    claims = world.provider.claims(world.server.alice_web_id, key.thumbprint, now_s=world.now_s)
    twice = json.dumps(claims)[:-1] + f', "webid": "{world.server.bob_web_id}"}}'
    signed = world.provider.sign(claims)
    header, _, signature = signed.split(".")
    token = f"{header}.{base64url(twice.encode())}.{signature}"
    assert_refused(await world.get(App(key, token, world.now_s)), "Invalid token")


# --- How a token and its proof are sent, and how not (A-1 to A-6) ------------------------------


async def test_a_token_without_a_proof_is_refused(world: World) -> None:
    fields = world.app().fields("GET", URL)
    del fields["DPoP"]
    assert_refused(await world.send(fields), "Missing DPoP proof header", "invalid_dpop_proof")


async def test_two_proofs_are_refused(world: World) -> None:
    """A-6."""
    app = world.app()
    first, second = app.fields("GET", URL), app.fields("GET", URL)
    fields = [*first.items(), ("DPoP", second["DPoP"])]
    assert_refused(await world.send(fields), "Send only one DPoP header", "invalid_dpop_proof")
    merged = {**first, "DPoP": f"{first['DPoP']}, {second['DPoP']}"}
    assert_refused(await world.send(merged), "Invalid token", "invalid_dpop_proof")


async def test_two_credentials_are_a_bad_request(world: World) -> None:
    """A-6."""
    fields = world.app().fields("GET", URL)
    twice = [*fields.items(), ("Authorization", fields["Authorization"])]
    assert (await world.send(twice)).status == 400
    merged = {**fields, "Authorization": f"{fields['Authorization']}, Nostr abc"}
    answer = await world.send(merged)
    assert (answer.status, answer.json()["error"]) == (400, "Bad Request")


async def test_a_credential_of_more_than_16_kibibytes_is_too_large(world: World) -> None:
    """A-3."""
    fields = world.app().fields("GET", URL)
    for size, status in ((16 * 1024 - 5, 401), (16 * 1024 - 4, 431)):
        answer = await world.send({**fields, "Authorization": f"DPoP {'a' * size}"})
        assert answer.status == status, size


@pytest.mark.parametrize("token", ["", " ", "é.é.é", "a b", "a,b", "=a", '"a"', "a==b"])
async def test_text_that_cannot_be_a_token_is_refused(world: World, token: str) -> None:
    """A-3: by its characters alone."""
    fields = {**world.app().fields("GET", URL), "Authorization": f"DPoP {token}"}
    assert_refused(await world.send(fields), "Invalid token")


async def test_a_bound_token_sent_as_bearer_is_refused(world: World) -> None:
    """W-6."""
    for app in (world.app(), world.app(without("cnf"))):
        answer = await world.send({"Authorization": f"Bearer {app.token}"})
        assert answer.status == 401
        dpop, bearer, *_ = answer.header_lines("www-authenticate")
        assert "error=" not in dpop
        assert 'error="invalid_token"' in bearer
    assert world.provider.asked == []


async def test_options_is_never_authenticated(world: World) -> None:
    """A-1."""
    fields = {
        "Authorization": "DPoP rubbish",
        "DPoP": "rubbish",
        "Origin": "https://app.example",
        "Access-Control-Request-Method": "GET",
        "Access-Control-Request-Headers": "authorization, dpop",
    }
    answer = await world.send(fields, "OPTIONS")
    assert answer.status == 204
    assert answer.header("access-control-allow-headers") == "authorization, dpop"
    exposed = (await world.send(fields)).header("access-control-expose-headers") or ""
    assert {"www-authenticate", "dpop-nonce"} <= {
        name.strip().lower() for name in exposed.split(",")
    }


async def test_an_invalid_token_is_refused_although_the_public_has_access(world: World) -> None:
    """A-5, W-13."""
    assert (await world.server.public.get("/alice/")).status == 200
    fields = world.app().fields("GET", f"{BASE}/alice/", set_to("htm", "PUT"))
    assert (await world.send(fields, target="/alice/")).status == 401


async def test_a_proof_of_another_url_is_no_reason_to_redirect(world: World) -> None:
    """A-102: the slash is not corrected, since the proof is for one URL only."""
    assert (await world.server.alice.get("/alice/private/")).status == 200
    answer = await world.send(
        world.app().fields("GET", f"{BASE}/alice/private"), target="/alice/private"
    )
    assert answer.status == 404
    assert answer.header("location") is None


# --- Which providers are believed, and what they must publish (A-108, A-109, A-112) ------------


async def test_without_a_triple_no_provider_speaks_for_a_webid(world: World) -> None:
    """W-3; and a change of the document counts at once (A-110)."""
    app = world.app()
    assert (await world.get(app)).status == 200
    await world.name_issuer()
    assert_refused(await world.get(app), NOT_NAMED)
    await world.name_issuer("https://idp.example", world.provider.issuer)
    assert (await world.get(app)).status == 200


async def test_a_provider_may_be_refused(
    start: Start, clock: FakeClock, provider: Provider
) -> None:
    """A-112."""
    world = await prepared(start, clock, provider, refused_issuers=(provider.issuer,))
    for slash in ("", "/"):
        app = world.app(set_to("iss", provider.issuer + slash))
        assert_refused(await world.get(app), "The token's issuer is not accepted")
    assert provider.asked == []


@pytest.mark.parametrize("accepted", [True, False])
async def test_only_the_accepted_providers_count_if_there_are_any(
    start: Start, clock: FakeClock, provider: Provider, accepted: bool
) -> None:
    """A-112."""
    named = provider.issuer if accepted else "https://idp.example"
    world = await prepared(start, clock, provider, accepted_issuers=(named,))
    assert (await world.get(world.app())).status == (200 if accepted else 401)


def config(provider: Provider, **changes: object) -> Page:
    return Page.of({**provider.configuration(), **changes})


def published(provider: Provider, **changes: object) -> Json:
    return {**provider.key_set()["keys"][0], **changes}


async def test_invalid_documents_of_a_provider_are_refused(world: World) -> None:
    """A-108, A-111: each 401, and never a 500 or the public."""
    provider = world.provider
    good: Json = provider.configuration()
    bad = {
        "another's": (CONFIGURATION, config(provider, issuer="https://idp.example")),
        "no issuer": (CONFIGURATION, Page.of({"jwks_uri": good["jwks_uri"]})),
        "no key set": (CONFIGURATION, Page.of({"issuer": good["issuer"]})),
        "key set a number": (CONFIGURATION, config(provider, jwks_uri=1)),
        "key set a path": (CONFIGURATION, config(provider, jwks_uri=KEYS)),
        "key set of this server": (CONFIGURATION, config(provider, jwks_uri=f"{BASE}/alice/k")),
        "key set in a private network": (
            CONFIGURATION,
            config(provider, jwks_uri="http://10.0.0.1/keys"),
        ),
        "no JSON": (CONFIGURATION, Page(b"<html>")),
        "HTML": (CONFIGURATION, Page(json.dumps(good).encode(), "text/html")),
        "an array": (CONFIGURATION, Page.of([good])),
        "gone": (CONFIGURATION, Page(b"", status=404)),
        "huge": (CONFIGURATION, config(provider, more="x" * 256 * 1024)),
        "elsewhere": (CONFIGURATION, Page.redirect("http://127.0.0.1:1/")),
        "deep": (CONFIGURATION, config(provider, more=[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]])),
        "keys no list": (KEYS, Page.of({"keys": {}})),
        "keys too many": (KEYS, Page.of({"keys": [published(provider)] * 33})),
        "keys gone": (KEYS, Page(b"", status=404)),
    }
    for how, (path, page) in bad.items():
        kept = provider.pages[path]
        provider.pages[path] = page
        assert_refused(await world.get(world.app()), UNVERIFIABLE)
        assert provider.asked, how
        provider.asked.clear()
        provider.pages[path] = kept
        world.clock.advance(61)
    assert (await world.get(world.app())).status == 200


async def test_keys_that_cannot_sign_are_passed_over(world: World) -> None:
    """A-108: by use, algorithm, kind and soundness."""
    provider = world.provider
    unusable = {
        "for encryption": published(provider, use="enc"),
        "for another algorithm": published(provider, alg="ES384"),
        "private": published(provider, d="AQAB"),
        "symmetric": {"kty": "oct", "k": "AQAB", "kid": provider.keys[0].thumbprint},
        "no object": "key",
        "of another id": published(provider, kid="other"),
        "of an id that is no text": published(provider, kid=7),
    }
    for how, key in unusable.items():
        provider.pages[KEYS] = Page.of({"keys": [key]})
        answer = await world.get(world.app())
        assert_refused(answer, "The token was signed with a key that its issuer does not publish")
        provider.pages[KEYS] = Page.of({"keys": [key, published(provider)]})
        world.clock.advance(901)
        assert (await world.get(world.app())).status == 200, how
        world.clock.advance(901)


async def test_a_token_without_a_key_id_is_tried_with_every_key(world: World) -> None:
    """A-108."""
    world.provider.keys[:0] = [Signer.new("ES256"), Signer.new("RS256")]
    key = Signer.new("ES256")
    claims = world.provider.claims(world.server.alice_web_id, key.thumbprint, now_s=world.now_s)
    token = world.provider.keys[-1].sign({}, claims)
    assert (await world.get(App(key, token, world.now_s))).status == 200


# --- web ids -----------------------------------------------------------------------------------
#
# WebIDs whose documents are on other servers, and documents that are no good (A-109).


async def test_a_webid_elsewhere_is_accepted_if_it_names_the_provider(
    world: World, elsewhere: Provider
) -> None:
    """A-109."""
    web_id = elsewhere.profile("/carol", world.provider.issuer)
    await world.let_in(web_id)
    assert (await world.get(world.app(web_id=web_id))).status == 200
    other = elsewhere.profile("/dave", "https://idp.example")
    assert_refused(await world.get(world.app(web_id=other)), NOT_NAMED)


async def test_a_webid_document_may_be_json_ld_and_may_have_moved(
    world: World, elsewhere: Provider
) -> None:
    """A-109, A-189: relative references are resolved against where it was found."""
    web_id = f"{elsewhere.issuer}/carol#me"
    await world.let_in(web_id)
    document = [{"@id": web_id, ISSUER_TERM: [{"@id": f"{world.provider.issuer}/"}]}]
    elsewhere.pages["/moved"] = Page(json.dumps(document).encode(), "application/ld+json")
    elsewhere.pages["/carol"] = Page.redirect("/moved")
    assert (await world.get(world.app(web_id=web_id))).status == 200
    relative = f"<#me> <{ISSUER_TERM}> <{world.provider.issuer}>."
    elsewhere.pages["/dave"] = Page.redirect("/moved-too")
    elsewhere.pages["/moved-too"] = Page(relative.encode(), TURTLE)
    answer = await world.get(world.app(web_id=f"{elsewhere.issuer}/dave#me"))
    assert_refused(answer, NOT_NAMED)


async def test_invalid_webid_documents_are_refused(world: World, elsewhere: Provider) -> None:
    """A-109, A-111, A-189."""
    web_id = f"{elsewhere.issuer}/carol#me"
    await world.let_in(web_id)
    triple = f"<#me> <{ISSUER_TERM}> <{world.provider.issuer}>."
    text = f'<#me> <{ISSUER_TERM}> "{world.provider.issuer}".'
    link = {"Link": f'<{world.provider.issuer}>; rel="{ISSUER_TERM}"'}
    many = "".join(f"<#a> <#b> {each}." for each in range(10_000))
    issuers = "".join(f"<#me> <{ISSUER_TERM}> <https://{each}.example>." for each in range(64))
    bad = {
        "gone": (Page(b"", status=404), NO_DOCUMENT),
        "no RDF": (Page(b"<html>", "text/html"), NO_DOCUMENT),
        "text": (Page(triple.encode(), "text/plain"), NO_DOCUMENT),
        "not Turtle": (Page(b"<", TURTLE), NO_DOCUMENT),
        "huge": (Page(triple.encode() + b"#" * 1024 * 1024, TURTLE), NO_DOCUMENT),
        "too many triples": (Page((triple + many).encode(), TURTLE), NO_DOCUMENT),
        "too many issuers": (Page((triple + issuers).encode(), TURTLE), NO_DOCUMENT),
        "moved to this server": (Page.redirect(f"{BASE}/alice/"), MISNAMED),
        "moved to a private network": (Page.redirect("http://10.0.0.1/"), NO_DOCUMENT),
        "moved to itself": (Page.redirect("/carol"), NO_DOCUMENT),
        "in a header only": (Page(b"", TURTLE, headers=link), NOT_NAMED),
        "as a text": (Page(text.encode(), TURTLE), NOT_NAMED),
        "of another subject": (Page(triple.replace("#me", "#you").encode(), TURTLE), NOT_NAMED),
        "of a longer issuer": (Page(triple.replace(">.", "/x>.").encode(), TURTLE), NOT_NAMED),
        "of the issuer in other case": (
            Page(triple.replace("localhost", "LOCALHOST").encode(), TURTLE),
            NOT_NAMED,
        ),
        "in a comment": (Page(f"# {triple}".encode(), TURTLE), NOT_NAMED),
    }
    for how, (page, phrase) in bad.items():
        elsewhere.pages["/carol"] = page
        answer = await world.get(world.app(web_id=web_id))
        assert (how, answer.json()["message"]) == (how, phrase)
        assert_refused(answer, phrase)
        world.clock.advance(61)
    elsewhere.pages["/carol"] = Page(triple.encode(), TURTLE)
    assert (await world.get(world.app(web_id=web_id))).status == 200


async def test_a_huge_document_here_is_not_read_for_its_issuers(world: World) -> None:
    """A-111: anybody may have a token for it."""
    path = "/alice/huge"
    triple = f"<#me> <{ISSUER_TERM}> <{world.provider.issuer}>."
    for extra, phrase in ((1024 * 1024, NO_DOCUMENT), (0, None)):
        content = triple.encode() + b"\n#" + b"x" * extra
        assert (await world.server.alice.put(path, content, TURTLE)).status in {201, 204}
        answer = await world.get(world.app(web_id=f"{BASE}{path}#me"))
        assert answer.status == (403 if phrase is None else 401)
