"""What may a client say about itself, whatever it sends? (A-47 to A-51)"""

from __future__ import annotations

import base64
import json
from importlib.resources import files
from typing import Any
from urllib.parse import quote, quote_plus, urlsplit

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyld import jsonld  # type: ignore[import-untyped]

from podstead.idp.client_metadata import (
    SOLID_OIDC_CONTEXT,
    PresentedClient,
    UnreadableClient,
    UnusableMetadata,
    authenticates,
    is_usable_redirect,
    matches_redirect,
    presented_client,
    read_client_document,
    read_metadata,
    redirect_host,
    registered_metadata,
)
from podstead.idp.clients import client_members
from podstead.idp.records import Client
from podstead.jose.tokens import Json
from podstead.rdf.codecs import parse
from podstead.rdf.graph import Graph
from podstead.storage.record_store import secret_key

GOOD = "https://app.example/cb"
URL = "https://app.example/id"
NAMES = [
    "redirect_uris",
    "post_logout_redirect_uris",
    "grant_types",
    "response_types",
    "token_endpoint_auth_method",
    "id_token_signed_response_alg",
    "application_type",
    "client_name",
    "client_uri",
    "client_id",
    "@context",
]
WORDS = [GOOD, URL, "none", "native", "web", "code", "ES256", "com.app:/x", SOLID_OIDC_CONTEXT, "x"]
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=10) | st.sampled_from(WORDS)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=2),
    max_leaves=4,
)
SENT = st.dictionaries(st.sampled_from(NAMES) | TEXTS, VALUES, max_size=8)
LIKELY = st.fixed_dictionaries(
    {"redirect_uris": st.just([GOOD])}, optional=dict.fromkeys(NAMES[1:], VALUES)
)


def assert_refusal(refusal: UnusableMetadata) -> None:
    """RFC 7591 section 3.2.2"""
    assert refusal.error in ("invalid_redirect_uri", "invalid_client_metadata")
    assert str(refusal).isascii()


@given(SENT | LIKELY, st.booleans(), st.booleans())
def test_whatever_is_sent_is_refused_or_sound(sent: Json, allow_http: bool, document: bool) -> None:
    """A-49, A-186"""
    try:
        metadata = read_metadata(sent, allow_http=allow_http, for_document=document)
    except UnusableMetadata as refusal:
        assert_refusal(refusal)
        return
    assert metadata.redirect_uris
    for uri in (*metadata.redirect_uris, *metadata.post_logout_redirect_uris):
        kind = metadata.application_type
        assert is_usable_redirect(uri, application_type=kind, allow_http=allow_http)
    assert metadata.identity_algorithm in ("ES256", "RS256")
    assert "client_credentials" not in metadata.grant_types
    assert not document or metadata.auth_method == "none"
    client = msgspec.structs.replace(metadata, client_id="c")
    assert msgspec.json.decode(msgspec.json.encode(client), type=Client) == client
    assert msgspec.json.encode(registered_metadata(client))


@given(SENT | LIKELY)
def test_a_document_is_of_its_own_url_and_has_no_secret(document: Json) -> None:
    """A-51"""
    try:
        client = read_client_document(document, client_id=URL, allow_http=False)
    except UnusableMetadata:
        return
    assert document["client_id"] == client.client_id == URL
    assert (client.auth_method, client.secret_hash, client.registered) == ("none", None, False)


@pytest.mark.parametrize(
    "context",
    [SOLID_OIDC_CONTEXT, [SOLID_OIDC_CONTEXT], ["x", SOLID_OIDC_CONTEXT, {"a": "b"}], None],
)
def test_a_document_of_the_context_is_taken(context: object) -> None:
    """A-51; plain JSON has none"""
    document = {"@context": context, "client_id": URL, "redirect_uris": [GOOD]}
    client = read_client_document(document, client_id=URL, allow_http=False)
    assert client.identity_algorithm == "ES256"


@pytest.mark.parametrize("context", ["x", [], {}, [{"x": SOLID_OIDC_CONTEXT}], 1])
def test_a_document_of_another_context_is_not(context: object) -> None:
    document = {"@context": context, "client_id": URL, "redirect_uris": [GOOD]}
    with pytest.raises(UnusableMetadata):
        read_client_document(document, client_id=URL, allow_http=False)


# --- client graphs -----------------------------------------------------------------------------
#
# A client's document in RDF says what its JSON says; a JSON-LD library is the judge.


CLIENT_ID = "https://app.example/id"

DOCUMENTS: dict[str, dict[str, Any]] = {
    "the least": {"redirect_uris": ["https://app.example/callback"]},
    "several of each": {
        "client_name": "App, the one",
        "client_uri": "https://app.example/",
        "redirect_uris": ["https://app.example/b?x=1", "https://app.example/a"],
        "grant_types": ["refresh_token", "authorization_code"],
        "response_types": ["code", "token"],
        "scope": "openid webid offline_access",
        "require_auth_time": True,
        "default_max_age": 3600,
    },
    "of this machine": {
        "application_type": "native",
        "redirect_uris": ["http://127.0.0.1/callback"],
        "grant_types": "authorization_code",
    },
}


def graph_of(document: dict[str, Any]) -> Graph:
    """The document's triples, as the other library reads them."""
    context = json.loads((files("podstead.rdf") / "contexts/solid-oidc.jsonld").read_bytes())
    n_quads = jsonld.to_rdf(
        {**document, "@context": context["@context"]}, {"format": "application/n-quads"}
    )
    return parse(n_quads.encode(), "application/n-quads", base_iri=CLIENT_ID).graph


@pytest.mark.parametrize("members", DOCUMENTS.values(), ids=DOCUMENTS)
def test_a_graph_describes_the_client_that_its_json_does(members: dict[str, Any]) -> None:
    document = {"@context": SOLID_OIDC_CONTEXT, "client_id": CLIENT_ID, **members}
    by_json = read_client_document(document, client_id=CLIENT_ID, allow_http=False)
    by_graph = read_client_document(
        client_members(graph_of(document), CLIENT_ID), client_id=CLIENT_ID, allow_http=False
    )
    assert set(by_graph.redirect_uris) == set(by_json.redirect_uris)
    for name in by_json.__struct_fields__:
        if name != "redirect_uris":  # whose order a graph does not have
            assert getattr(by_graph, name) == getattr(by_json, name), name


def test_a_graph_about_others_has_no_members() -> None:
    document = {"client_id": "https://app.example/other", **DOCUMENTS["the least"]}
    assert client_members(graph_of(document), CLIENT_ID) == {}
    assert client_members(Graph(), CLIENT_ID) == {}


# --- Which client does a request name, and has it shown that it is itself? (A-62) --------------


TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)


def client(secret: str | None, client_id: str = "c") -> Client:
    return Client(
        client_id,
        (),
        (),
        "none" if secret is None else "client_secret_basic",
        "ES256",
        registered=True,
        secret_hash=None if secret is None else secret_key(secret),
    )


def header(content: str) -> str:
    return "Basic " + base64.b64encode(content.encode()).decode()


@given(client_id=TEXT, secret=TEXT)
@pytest.mark.parametrize("encode", [quote, quote_plus])
def test_both_parts_are_form_encoded(encode: object, client_id: str, secret: str) -> None:
    """RFC 6749 section 2.3.1: ``my id+1`` is ``my+id%2B1``"""
    encoded = [encode(each, safe="") for each in (client_id, secret)]  # type: ignore[operator]
    shown = presented_client({}, header(":".join(encoded)))
    assert shown is not None
    assert shown.client_id == client_id
    assert authenticates(client(secret, client_id), shown)


@given(secret=TEXT)
def test_a_secret_may_come_as_it_is(secret: str) -> None:
    shown = presented_client({}, header(f"c:{secret}"))
    assert shown is not None
    assert authenticates(client(secret), shown)


@given(secret=TEXT, other=TEXT)
def test_another_secret_is_never_taken(secret: str, other: str) -> None:
    """In a form it is read as it is"""
    shown = presented_client({"client_id": ["c"], "client_secret": [other]}, None)
    assert shown == PresentedClient("c", (other,))
    assert authenticates(client(secret), shown) is (secret == other)


@given(st.text(max_size=40))
def test_a_header_is_read_or_refused(text: str) -> None:
    for authorization in (text, f"Basic {text}", header(text.encode("utf-8", "replace").decode())):
        try:
            shown = presented_client({"client_id": ["c"]}, authorization)
        except UnreadableClient:
            continue
        assert shown is not None
        assert shown.client_id == "c"


@pytest.mark.parametrize(
    ("shown", "secret", "expected"),
    [
        (PresentedClient("c"), None, True),
        (PresentedClient("c", ("x",)), None, False),
        (PresentedClient("other"), None, False),
        (PresentedClient("c"), "s", False),
        (PresentedClient("c", ("",)), "s", False),
        (PresentedClient("c", ("x", "s")), "s", True),
        (PresentedClient("other", ("s",)), "s", False),
    ],
)
def test_a_client_is_known_by_its_secret_or_by_having_none(
    shown: PresentedClient, secret: str | None, expected: bool
) -> None:
    assert authenticates(client(secret), shown) is expected


def test_a_client_whose_secret_is_lost_is_nobody() -> None:
    """Fail closed: a record without the hash of its secret"""
    broken = Client("c", (), (), "client_secret_basic", "ES256", registered=True)
    for shown in (
        PresentedClient("c"),
        PresentedClient("c", ("",)),
        PresentedClient("c", ("None",)),
    ):
        assert not authenticates(broken, shown)


def test_a_request_without_a_client_names_none() -> None:
    assert presented_client({"client_secret": ["x"]}, None) is None


# --- Which redirect URIs may be registered, and which are the registered ones? (A-49) ----------


WEB = [
    "https://app.example",
    "https://tester",
    "https://app.example:8443/cb?x=1&y=%2F",
    "https://app.example/a/../b;c",
    "https://[2001:db8::1]/cb",
    "http://localhost:8080/cb",
    "http://127.0.0.1/cb",
    "http://[::1]:1234/cb",
    "HTTPS://APP.example/cb",
]
NATIVE_ONLY = ["com.example.app:/cb", "com.example.app://cb/x"]
DEVELOPMENT_ONLY = ["http://app.example/cb", "http://10.0.0.1/", "http://127.0.0.2/"]
NEVER = {
    "nothing": "",
    "relative": "/cb",
    "no scheme": "//app.example/cb",
    "a fragment": "https://app.example/#x",
    "an empty fragment": "https://app.example/#",
    "a user": "https://user@app.example/",
    "an empty user": "https://@app.example/",
    "a user and password": "https://user:pass@app.example/",
    "no host": "https:///cb",
    "no slashes": "https:app.example",
    "a script": "javascript:alert(1)",
    "data": "data:text/html,x",
    "a scheme without a dot": "myapp:/cb",
    "a line break": "https://app.example/\r\nset-cookie: a=b",
    "a space": "https://app.example/a b",
    "a quote": 'https://app.example/"onload=',
    "angle brackets": "https://app.example/<x>",
    "a backslash": "https://evil.example\\.app.example/",
    "a backslash in front of a user": "https://evil.example\\@app.example/",
    "a semicolon in the host": "https://evil.example;script-src/",
    "a comma in the host": "https://evil.example,app.example/",
    "a quote in the host": "https://evil.example'/",
    "an escape in the host": "https://evil.example%2f.app.example/",
    "letters that are not ASCII": "https://\u0430pp.example/",
    "a bad port": "https://app.example:99999/",
    "a port that is no number": "https://app.example:x/",
    "a bracket": "https://[::1/",
    "too long": "https://app.example/" + "x" * 2048,
}


@pytest.mark.parametrize("uri", WEB)
def test_https_and_this_machine_may_be_registered(uri: str) -> None:
    for application_type in ("web", "native"):
        assert is_usable_redirect(uri, application_type=application_type, allow_http=False)


@pytest.mark.parametrize("uri", NATIVE_ONLY)
def test_a_scheme_of_its_own_is_for_native_applications(uri: str) -> None:
    """RFC 8252 section 7.1"""
    assert is_usable_redirect(uri, application_type="native", allow_http=False)
    assert not is_usable_redirect(uri, application_type="web", allow_http=True)


@pytest.mark.parametrize("uri", DEVELOPMENT_ONLY)
def test_plain_http_to_other_hosts_is_for_development(uri: str) -> None:
    assert is_usable_redirect(uri, application_type="web", allow_http=True)
    assert not is_usable_redirect(uri, application_type="native", allow_http=False)


@pytest.mark.parametrize("uri", NEVER.values(), ids=NEVER)
def test_a_path_that_could_lead_elsewhere_is_never_accepted(uri: str) -> None:
    """Open redirects, headers, and policies that a name is put into"""
    for application_type in ("web", "native"):
        assert not is_usable_redirect(uri, application_type=application_type, allow_http=True)


@given(st.text(st.sampled_from("htps:/\\@[]#?.;,'\" a1%\n"), max_size=30))
def test_whatever_is_taken_leads_to_the_host_that_is_shown(rest: str) -> None:
    uri = f"https://{rest}"
    if is_usable_redirect(uri, application_type="web", allow_http=True):
        host = redirect_host(uri)
        assert host == urlsplit(uri).netloc
        assert not set(host) & set("\\@;,'\" %\n")


def redirecting_client(*uris: str, application_type: str = "web") -> Client:
    return Client(
        "c", uris, (), "none", "ES256", registered=True, application_type=application_type
    )


def test_a_request_must_name_a_registered_uri_letter_by_letter() -> None:
    one = redirecting_client("https://app.example/cb", "https://tester")
    assert matches_redirect("https://app.example/cb", one)
    assert matches_redirect("https://tester", one)
    for other in (
        "https://app.example/cb/",
        "https://app.example/CB",
        "https://APP.example/cb",
        "https://app.example:443/cb",
        "https://app.example/cb?x",
        "https://app.example/cb/../cb",
        "https://tester/",
        "https://tester.evil.example",
        "",
    ):
        assert not matches_redirect(other, one), other


def test_a_native_application_chooses_its_port_on_this_machine() -> None:
    """RFC 8252 section 7.3"""
    uris = ("http://127.0.0.1/cb", "http://[::1]/cb", "https://app.example/cb")
    native, web = redirecting_client(*uris, application_type="native"), redirecting_client(*uris)
    for uri in ("http://127.0.0.1:5555/cb", "http://[::1]:1/cb"):
        assert matches_redirect(uri, native)
        assert not matches_redirect(uri, web)
    for uri in (
        "http://127.0.0.1:5555/other",
        "http://127.0.0.1:5555/cb?x",
        "http://localhost:5555/cb",
        "http://user@127.0.0.1:5555/cb",
        "http://127.0.0.1:5555/cb#",
        "http://127.0.0.1:5555/cb#x",
        "https://app.example:444/cb",
        "https://127.0.0.1:5555/cb",
    ):
        assert not matches_redirect(uri, native), uri
