"""Which client asks, and has it shown that it is itself? (RFC 6749 section 2.3, A-62)

Pure. An Authorization header decides if it is there; a client without a secret only says its name.
"""

from __future__ import annotations

import base64
import binascii
import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import unquote_plus

from podstead.idp.records import Client
from podstead.storage.registry import secret_key


class UnreadableClient(Exception):
    """The request names its client in no way that can be read, or in two that differ."""


@dataclass(frozen=True, slots=True)
class PresentedClient:
    """A client's id and the secret that came with it, in each way that it can be read; without a
    secret there is none."""

    client_id: str
    secrets: tuple[str, ...] = ()


def presented_client(
    form: Mapping[str, Sequence[str]], authorization: str | None
) -> PresentedClient | None:
    """The client that a request names; ``None`` if it names none. Raises UnreadableClient."""
    named = _first(form, "client_id")
    if authorization is not None:
        shown = _basic(authorization)
        if shown is None or named not in (None, shown.client_id):
            raise UnreadableClient
        return shown
    if named is None:
        return None
    secret = _first(form, "client_secret")
    return PresentedClient(named, () if secret is None else (secret,))


def authenticates(client: Client, shown: PresentedClient) -> bool:
    """Whether this is the client that it says it is: by its secret, or by having none."""
    if shown.client_id != client.client_id:
        return False
    if client.auth_method == "none":
        return not shown.secrets
    expected = client.secret_hash
    return expected is not None and any(
        hmac.compare_digest(expected, secret_key(secret)) for secret in shown.secrets
    )


def _basic(authorization: str) -> PresentedClient | None:
    """Clients encode both parts as a form does, as they should, or send them as they are."""
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
