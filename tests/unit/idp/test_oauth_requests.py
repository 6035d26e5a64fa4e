"""Whatever is sent to the authorization and token endpoints gets an answer of ours, in words of
ours (A-53, A-64, A-68, A-186)."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TypeVar

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podstead.idp.client_metadata import UnreadableClient, presented_client
from podstead.idp.oauth.authorization import (
    RefusedRequest,
    UnusableClient,
    check_authorization_request,
)
from podstead.idp.oauth.messages import Parameters
from podstead.idp.oauth.token import (
    Subject,
    TokenExchange,
    TokenRequest,
    TokenRequestRecords,
    TokenSet,
)
from podstead.idp.records import (
    CODES,
    GRANTS,
    REFRESH_TOKENS,
    Account,
    AuthorizationCode,
    Client,
    ClientCredential,
    Grant,
    RefreshToken,
)
from podstead.storage.record_store import RecordKind, Versioned, secret_key
from podstead.storage.records import EntryAtVersion, EntryId, Version
from tests.support.signing import token_hash

NOW_S = 1_800_000_000
REDIRECT = "https://app.example/cb"
VERIFIER = "v" * 43
PUBLIC = Client(
    "c",
    (REDIRECT,),
    ("authorization_code", "refresh_token"),
    "none",
    "ES256",
    registered=True,
)
SECRET = Client(
    "c",
    (),
    ("client_credentials",),
    "client_secret_basic",
    "RS256",
    registered=True,
    secret_hash=secret_key("s"),
)
ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
WORDS = st.sampled_from(
    [
        "c",
        "code",
        "s",
        "none",
        "login none",
        "S256",
        "plain",
        "query",
        "fragment",
        "openid",
        "openid webid",
        "0",
        "99999999999",
        "²",
        REDIRECT,
        VERIFIER,
        token_hash(VERIFIER),
        "authorization_code",
        "refresh_token",
        "client_credentials",
        '"\\\n\r\x00é',
    ]
)
NAMES = st.sampled_from(
    [
        "client_id",
        "redirect_uri",
        "response_type",
        "response_mode",
        "scope",
        "state",
        "nonce",
        "prompt",
        "max_age",
        "login_hint",
        "id_token_hint",
        "dpop_jkt",
        "code_challenge",
        "code_challenge_method",
        "request",
        "request_uri",
        "grant_type",
        "code",
        "code_verifier",
        "refresh_token",
        "client_secret",
        "error",
    ]
)
VALUES = st.lists(WORDS | ANY_TEXT, min_size=1, max_size=2) | st.lists(
    WORDS, min_size=1, max_size=1
)
ANYTHING = st.dictionaries(NAMES | ANY_TEXT, VALUES, max_size=8)


def changed(right: Mapping[str, str]) -> st.SearchStrategy[Parameters]:
    """A right request with some parameters changed, added or left out."""
    return st.builds(
        lambda changes, missing: {
            name: values
            for name, values in {
                **{name: [value] for name, value in right.items()},
                **changes,
            }.items()
            if name not in missing
        },
        st.dictionaries(NAMES | ANY_TEXT, VALUES, max_size=2),
        st.sets(st.sampled_from(sorted(right)), max_size=1),
    )


RIGHT_REQUEST = {
    "client_id": "c",
    "redirect_uri": REDIRECT,
    "response_type": "code",
    "scope": "openid webid",
    "code_challenge": token_hash(VERIFIER),
    "code_challenge_method": "S256",
}


@given(ANYTHING | changed(RIGHT_REQUEST))
def test_every_authorization_request_is_accepted_or_refused(parameters: Parameters) -> None:
    """A-53: never sent elsewhere, never without PKCE, never another error"""
    try:
        request = check_authorization_request(parameters, PUBLIC)
    except UnusableClient:
        assert parameters.get("redirect_uri") != [REDIRECT]
        return
    except RefusedRequest as refusal:
        assert parameters["redirect_uri"] == [REDIRECT]
        assert_refusal(refusal)
        return
    assert all(len(values) == 1 for values in parameters.values())
    given_once = {name: values[0] for name, values in parameters.items()}
    assert given_once["redirect_uri"] == request.redirect_uri == REDIRECT
    assert given_once["response_type"] == "code"
    assert given_once["code_challenge_method"] == "S256"
    assert given_once["code_challenge"] == request.code_challenge
    assert "openid" in request.scopes
    assert {"request", "request_uri"}.isdisjoint(given_once)


def assert_refusal(refusal: RefusedRequest) -> None:
    assert refusal.reply.redirect_uri == REDIRECT
    assert refusal.reply.response_mode in ("query", "fragment", "form_post")
    assert_words(refusal.error, refusal.description)


def test_the_right_request_is_accepted() -> None:
    """So that the property below is about something"""
    request = check_authorization_request({n: [v] for n, v in RIGHT_REQUEST.items()}, PUBLIC)
    assert (request.client_id, request.scopes) == ("c", ("openid", "webid"))


def assert_words(error: str, description: str) -> None:
    """RFC 6749 section 5.2: the characters that are allowed"""
    for text in (error, description):
        assert all(0x20 <= ord(each) < 0x7F and each not in '"\\' for each in text)


# --- token requests ------------------------------------------------------------------------------

ACCOUNT = Account("a", "alice", "https://pod.example/alice/#me", None, None, NOW_S)
GRANT = Grant(
    "g", "a", ACCOUNT.web_id, "c", None, ("openid", "offline_access"), NOW_S, "s", NOW_S, NOW_S
)
CODE = AuthorizationCode("g", "c", REDIRECT, token_hash(VERIFIER), NOW_S + 60)
REFRESH = RefreshToken("g", "c", ("openid", "offline_access"), "k" * 43)


@dataclasses.dataclass
class CountingMint:
    """Counts what it is asked to mint."""

    subjects: list[Subject] = dataclasses.field(default_factory=list)

    def mint(self, subject: Subject, *, client: Client, with_refresh: bool) -> TokenSet:  # noqa: ARG002
        self.subjects.append(subject)
        return TokenSet({"access_token": "t"})


Shape = TypeVar("Shape", bound=msgspec.Struct)


def kept(records: RecordKind[Shape], value: Shape) -> Versioned[Shape]:
    return Versioned(
        "x", value, EntryAtVersion(EntryId(f"{records.kind}/x"), Version("v")), "a", None
    )


def facts_for(client: Client, form: Parameters) -> TokenRequestRecords:
    """Everything there can be about a request that names it by the word ``code``."""
    credential = None
    if client is SECRET:
        credential = ClientCredential("c", "x", "a", ACCOUNT.web_id, secret_key("s"), NOW_S)
    named: Sequence[str] = form.get("code", ())
    refreshing: Sequence[str] = form.get("refresh_token", ())
    return TokenRequestRecords(
        client=client,
        credential=credential,
        code=kept(CODES, CODE) if list(named)[:1] == ["code"] else None,
        refresh_token=kept(REFRESH_TOKENS, REFRESH) if list(refreshing)[:1] == ["code"] else None,
        grant=kept(GRANTS, GRANT),
        account=ACCOUNT,
    )


RIGHT_CODE = {
    "grant_type": "authorization_code",
    "code": "code",
    "client_id": "c",
    "redirect_uri": REDIRECT,
    "code_verifier": VERIFIER,
}
RIGHT_REFRESH = {"grant_type": "refresh_token", "refresh_token": "code", "client_id": "c"}
RIGHT_CREDENTIALS = {"grant_type": "client_credentials", "client_id": "c", "client_secret": "s"}
FORMS = ANYTHING | changed(RIGHT_CODE) | changed(RIGHT_REFRESH) | changed(RIGHT_CREDENTIALS)


@pytest.mark.parametrize(
    ("form", "client"),
    [(RIGHT_CODE, PUBLIC), (RIGHT_REFRESH, PUBLIC), (RIGHT_CREDENTIALS, SECRET)],
    ids=["code", "refresh", "credentials"],
)
def test_the_right_token_requests_are_answered(form: Mapping[str, str], client: Client) -> None:
    """So that the property below is about something"""
    sent = {name: [value] for name, value in form.items()}
    request = TokenRequest(sent, presented_client(sent, None), "k" * 43, NOW_S)
    answer = TokenExchange(request, facts_for(client, sent), CountingMint()).respond()
    assert (answer.status, answer.body) == (200, {"access_token": "t"})


@given(FORMS, st.sampled_from([PUBLIC, SECRET]), st.sampled_from(["k" * 43, "l" * 43, None]))
def test_every_token_request_is_answered_by_the_rules(
    form: Parameters, client: Client, jkt: str | None
) -> None:
    """A-64, A-68: tokens only for what is right in every point, and an answer to all else"""
    try:
        shown = presented_client(form, None)
    except UnreadableClient:
        return
    mint = CountingMint()
    exchange = TokenExchange(TokenRequest(form, shown, jkt, NOW_S), facts_for(client, form), mint)
    answer = exchange.respond()
    assert dict(answer.headers)["Cache-Control"] == "no-store"
    if answer.status != 200:
        assert answer.status in (400, 401)
        assert set(answer.body) == {"error", "error_description"}
        assert_words(str(answer.body["error"]), str(answer.body["error_description"]))
        assert mint.subjects == []
        assert not exchange.records
        return
    assert len(mint.subjects) == 1
    once = {name: values[0] for name, values in form.items() if len(values) == 1}
    assert len(once) == len(form)
    assert once["client_id"] == "c"
    match once["grant_type"]:
        case "authorization_code":
            assert RIGHT_CODE.items() <= once.items()
            assert client is PUBLIC
        case "refresh_token":
            assert RIGHT_REFRESH.items() <= once.items()
            assert jkt == REFRESH.jkt
        case "client_credentials":
            assert RIGHT_CREDENTIALS.items() <= once.items()
            assert client is SECRET
        case other:
            raise AssertionError(other)
    # What it uses up joins the write that the tokens depend on.
    uses = {each.entry.partition("/")[0] for each in exchange.preconditions}  # type: ignore[union-attr]
    expected = {
        "authorization_code": {"code", "grant"},
        "refresh_token": {"refresh", "grant"},
        "client_credentials": set(),
    }
    assert uses == expected[once["grant_type"]]
