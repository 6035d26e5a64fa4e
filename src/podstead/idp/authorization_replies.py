"""How does the response to an authorization request reach the client? Through the browser."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from podstead.idp.codes import IdpCodes
from podstead.idp.oauth.authorization import ReplyAddress, UnusableClient
from podstead.idp.records import Client

_ADDRESS: Final = re.compile(r"https?://[!-~]{1,500}")
"""A client identifier that a page may repeat. Whoever created the link wrote it, so it must not be
able to hold a sentence."""


@dataclass(frozen=True, slots=True)
class AuthorizationReply:
    """A response to the client, sent through the browser."""

    redirect_uri: str
    response_mode: str
    parameters: Mapping[str, str]
    stranger: Client | None = None
    """The client, if nobody has agreed to be sent to it. A page then names the address first, so
    that an error cannot make this server redirect to any address (RFC 9700 section 4.11.2)."""


@dataclass(frozen=True, slots=True)
class Interact:
    """The person has to act: the interaction with this uid continues."""

    uid: str


Next = AuthorizationReply | Interact


@dataclass(frozen=True, slots=True)
class Replies:
    """Creates the responses of one issuer."""

    issuer: str

    def refusal(self, address: ReplyAddress, error: str, description: str) -> AuthorizationReply:
        """An error response (RFC 6749 section 4.1.2.1)."""
        return self.reply(address, {"error": error, "error_description": description})

    def reply(self, address: ReplyAddress, parameters: Mapping[str, str]) -> AuthorizationReply:
        """A response with the issuer, by which a client tells providers apart (RFC 9207)."""
        state = {} if address.state is None else {"state": address.state}
        return AuthorizationReply(
            address.redirect_uri,
            address.response_mode,
            {**parameters, **state, "iss": self.issuer},
        )


def unusable_client(client_id: str) -> UnusableClient:
    """The error for a client that does not exist, or whose document is not usable."""
    if _ADDRESS.fullmatch(client_id):
        return UnusableClient(IdpCodes.CLIENT_DOCUMENT_UNUSABLE, address=client_id)
    return UnusableClient(IdpCodes.CLIENT_UNKNOWN)
