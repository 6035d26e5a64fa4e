"""How is a certificate ordered? By ACME (RFC 8555), with the challenge http-01.

The only module that uses the libraries for ACME.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

import requests
from acme import challenges, crypto_util, errors, messages
from acme.client import ClientNetwork, ClientV2
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from josepy.jwa import ES256
from josepy.jwk import JWKEC

from podstead import __version__
from podstead.core.errors import PodsteadError

_TIMEOUT_S: Final = 30
_MAX_ORDER_TIME: Final = timedelta(minutes=3)

Publish = Callable[[str, bytes], None]
"""Makes a body available at a path, by plain HTTP."""


class OrderFailed(PodsteadError):
    """No certificate was issued; the message says why."""


@dataclass(frozen=True, slots=True)
class CertificateOrder:
    """What to order, from whom, and as whom."""

    directory: str
    """The URL of the authority's directory."""
    ca_file: Path | None
    """The certificates by which the authority's HTTPS is verified; ``None`` for those of the
    system."""
    email: str
    names: Sequence[str]
    """The host names, all of which the certificate is to be valid for."""
    account_key: bytes
    """In PEM format, of the curve P-256; it identifies the account."""
    key: bytes
    """The new private key of the certificate, in PEM format."""


def order_certificate(order: CertificateOrder, publish: Publish) -> bytes:
    """Order a certificate and wait for it; the chain in PEM format. Raises OrderFailed."""
    try:
        return _order(order, publish)
    except errors.ValidationError as error:
        raise OrderFailed(_challenge_failure(error)) from error
    except errors.TimeoutError as error:
        raise OrderFailed(f"{order.directory} did not decide within three minutes.") from error
    except requests.exceptions.SSLError as error:
        raise OrderFailed(
            f"The certificate of {order.directory} is not trusted: for an authority of your own, "
            "set acme-ca-file to the file with its certificates."
        ) from error
    except requests.ConnectionError as error:
        raise OrderFailed(f"{order.directory} cannot be reached.") from error
    except (errors.Error, messages.Error, requests.RequestException, ValueError) as error:
        raise OrderFailed(f"{order.directory} refused the order: {_one_line(error)}") from error


def _order(order: CertificateOrder, publish: Publish) -> bytes:
    key = JWKEC(key=load_pem_private_key(order.account_key, None))
    network = ClientNetwork(
        key,
        alg=ES256,
        # The library hands it to requests, which takes a path as well.
        verify_ssl=order.ca_file is None or str(order.ca_file),  # type: ignore[arg-type]
        user_agent=f"podstead/{__version__}",
        timeout=_TIMEOUT_S,
    )
    client = ClientV2(ClientV2.get_directory(order.directory, network), network)
    _log_in(client, order.email)
    placed = client.new_order(crypto_util.make_csr(order.key, list(order.names)))
    for authorization in placed.authorizations:
        if authorization.body.status != messages.STATUS_VALID:
            _prove(client, authorization, publish)
    deadline = datetime.now() + _MAX_ORDER_TIME  # noqa: DTZ005 - what the library compares with
    finished = client.poll_and_finalize(placed, deadline)
    chain: str = finished.fullchain_pem
    return chain.encode("ascii")


def _log_in(client: ClientV2, email: str) -> None:
    """Create the account, or use the one that the key has."""
    wanted = messages.NewRegistration.from_data(email=email, terms_of_service_agreed=True)
    try:
        client.new_account(wanted)
    except errors.ConflictError as existing:
        client.net.account = messages.RegistrationResource(
            uri=existing.location, body=messages.Registration()
        )


def _prove(
    client: ClientV2, authorization: messages.AuthorizationResource, publish: Publish
) -> None:
    """Answer the challenge for one name (section 8.3)."""
    for offered in authorization.body.challenges:
        if isinstance(offered.chall, challenges.HTTP01):
            response, validation = offered.response_and_validation(client.net.key)
            publish(offered.chall.path, validation.encode("ascii"))
            client.answer_challenge(offered, response)
            return
    raise OrderFailed(
        f"The authority offers no challenge http-01 for {authorization.body.identifier.value}."
    )


def _challenge_failure(error: errors.ValidationError) -> str:
    reasons = [
        f"{failed.body.identifier.value}: {_one_line(challenge.error)}"
        for failed in error.failed_authzrs
        for challenge in failed.body.challenges
        if challenge.error is not None
    ]
    return f"The authority could not verify the host names. {'; '.join(reasons)}"


def _one_line(error: object) -> str:
    return " ".join(str(error).split())[:500]
