"""Identifies and authenticates the client of a request (RFC 6749 section 2.3, A-62).

Pure. An Authorization header takes precedence. A client without a secret only gives its id.
"""

from __future__ import annotations

import base64
import binascii
import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import unquote_plus

from podstead.idp.records import Client
from podstead.storage.record_store import secret_key


class UnreadableClient(Exception):
    """The client id cannot be read, or the request gives two different ones."""


@dataclass(frozen=True, slots=True)
class PresentedClient:
    """A client id and the secret that came with it, in every form in which it can be decoded; no
    secrets if none was sent."""

    client_id: str
    secrets: tuple[str, ...] = ()


def presented_client(
    form: Mapping[str, Sequence[str]], authorization: str | None
) -> PresentedClient | None:
    """The client that a request names; ``None`` if it names none. Raises UnreadableClient."""
    named = _first(form, "client_id")
    if authorization is not None:
        presented = _basic(authorization)
        if presented is None or named not in (None, presented.client_id):
            raise UnreadableClient
        return presented
    if named is None:
        return None
    secret = _first(form, "client_secret")
    return PresentedClient(named, () if secret is None else (secret,))


def authenticates(client: Client, presented: PresentedClient) -> bool:
    """Whether the client has authenticated: with its secret or, if it has none, by sending none."""
    if presented.client_id != client.client_id:
        return False
    if client.auth_method == "none":
        return not presented.secrets
    expected = client.secret_hash
    return expected is not None and any(
        hmac.compare_digest(expected, secret_key(secret)) for secret in presented.secrets
    )


def _basic(authorization: str) -> PresentedClient | None:
    """Clients should encode both parts as a form does (RFC 6749 section 2.3.1), but some send them
    as they are."""
    scheme, _, encoded = authorization.strip(" \t").partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        decoded = base64.b64decode(encoded.strip(" "), validate=True).decode()
    except (binascii.Error, ValueError):
        return None
    client_id, colon, secret = decoded.partition(":")
    if not colon:
        return None
    return PresentedClient(
        unquote_plus(client_id), (unquote_plus(secret), secret) if secret else ()
    )


def _first(form: Mapping[str, Sequence[str]], name: str) -> str | None:
    values = form.get(name)
    return values[0] if values else None
