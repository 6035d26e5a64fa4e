"""What may a client say about itself, whatever it sends? (A-47 to A-51)"""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podstead.idp.client_metadata import (
    SOLID_OIDC_CONTEXT,
    UnusableMetadata,
    client_of,
    is_usable_redirect,
    read_client_document,
    read_metadata,
    registered_metadata,
)
from podstead.idp.records import Client
from podstead.jose.tokens import Json

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
    client = client_of(metadata, client_id="c", registered=True)
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
