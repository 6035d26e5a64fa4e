"""Creates client certificates, for the command line and the account page."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from podstead.authn.claims import is_usable_address
from podstead.core.errors import BadRequest, Conflict, PodsteadError, StorageError
from podstead.rdf.rsa_keys import NewKey
from podstead.storage.files import write_private
from podstead.x509.issuing import IssuedCertificate, issue_certificate

_DAY_S = 24 * 3600
_KEY_BITS = 2048
_ADVICE = {
    401: "the server rejected the token, or it has expired",
    403: "the token's agent may not change the document",
    404: "there is no such document",
    405: "the document cannot be changed by PATCH",
    409: "the change conflicts with the document",
    412: "the change conflicts with the document",
    415: "the server does not support N3 Patch",
    429: "try again later",
}
"""What the status of the response to the patch means."""


class NotStated(PodsteadError):
    """The WebID's document was not changed; the message gives the reason."""


@dataclass(frozen=True, slots=True)
class OwnCertificate:
    """A certificate for a WebID, and the key that the WebID's document must state."""

    made: IssuedCertificate
    new_key: NewKey


def new_certificate(web_id: str, *, now_s: int, days: int, key_bits: int) -> OwnCertificate:
    """Create a certificate for a WebID. Raises BadRequest for a name that is not a valid WebID."""
    if not web_id.isascii() or not is_usable_address(web_id, allow_loopback=True):
        raise BadRequest(
            f"'{web_id}' cannot be used as a WebID. A WebID is an absolute URL in ASCII that "
            "begins with https:// (or with http:// for a server on this machine), such as "
            "https://pods.example/alice/#me."
        )
    made = issue_certificate(
        web_id, name=_common_name(web_id), now_s=now_s, valid_s=days * _DAY_S, key_bits=key_bits
    )
    return OwnCertificate(made, NewKey(web_id, made.key.modulus, made.key.exponent))


async def make_in_thread(web_id: str, now_s: int, valid_s: int) -> IssuedCertificate:
    """Create a certificate for the WebID of an account, in a thread."""
    work = partial(
        issue_certificate,
        web_id,
        name=_common_name(web_id),
        now_s=now_s,
        valid_s=valid_s,
        key_bits=_KEY_BITS,
    )
    return await asyncio.to_thread(work)


def write_files(made: IssuedCertificate, *, certificate: Path, key: Path) -> None:
    """Write both files, readable by the current user only. Raises Conflict if one exists, and
    StorageError if one cannot be written; neither exists then."""
    _write(key, made.key_pem)
    try:
        _write(certificate, made.certificate_pem)
    except PodsteadError:
        key.unlink()
        raise


def _write(path: Path, content: bytes) -> None:
    try:
        write_private(path, content)
    except FileExistsError as error:
        raise already_there(path) from error
    except OSError as error:
        raise StorageError(f"Cannot write {path}: {error.strerror}.") from error


def already_there(path: Path) -> Conflict:
    """The error for a file that already exists."""
    return Conflict(f"{path} already exists and was not overwritten. Choose another name.")


async def state_key(new_key: NewKey, *, token: str) -> None:
    """Add the key to the WebID's document with an N3 Patch and a token of its owner. Raises
    NotStated, and OutboundError if requests to its server are not allowed or it does not respond in
    time."""
    from podstead.outbound.errors import Unreachable
    from podstead.outbound.fetch import trusted_certificates
    from podstead.outbound.guard import Guard, SystemResolver
    from podstead.outbound.requests import OutgoingRequest, submit
    from podstead.outbound.urls import UrlRules, parse_origin

    resolver = SystemResolver()
    scheme, _, rest = new_key.document.partition("://")
    # The user of the command chose the server, which may be in a private network.
    origin = parse_origin(f"{scheme}://{rest.partition('/')[0].partition('?')[0]}")
    guard = Guard(UrlRules(private_origins=frozenset({origin})), resolver)
    submission = OutgoingRequest(
        "PATCH",
        new_key.document,
        {"Authorization": f"Bearer {token}", "Content-Type": "text/n3"},
        new_key.insertion().encode(),
    )
    try:
        reply = await submit(submission, guard, tls=trusted_certificates())
    except Unreachable as error:
        raise NotStated(
            f"{new_key.document} was not changed: its server could not be reached. Check the host "
            "name. If your system does not trust the server's certificate, set SSL_CERT_FILE to "
            "the certificate file of its authority."
        ) from error
    finally:
        resolver.close()
    if not 200 <= reply.status < 300:
        advice = _ADVICE.get(reply.status, "see the documentation of that server")
        raise NotStated(
            f"{new_key.document} was not changed: its server responded with {reply.status} "
            f"({advice})."
        )


def _common_name(web_id: str) -> str:
    """The name that programs show for the certificate; X.520 limits it to 64 characters."""
    name = web_id.partition("://")[2]
    return name if len(name) <= 64 else f"{name[:63]}…"
