"""Which client does a request name, and has it shown that it is itself? (A-62)"""

from __future__ import annotations

import base64
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podstead.idp.client_authentication import (
    PresentedClient,
    UnreadableClient,
    authenticates,
    presented_client,
)
from podstead.idp.records import Client
from podstead.storage.record_store import secret_key

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
