"""``podstead cert``: client certificates, for services and command-line tools (WebID-TLS)."""

import asyncio
from pathlib import Path

import click

from podstead.authn.claims import is_usable_address
from podstead.cli.output import echo, echo_lines, now_s
from podstead.core.errors import BadRequest, Conflict, PodsteadError, StorageError
from podstead.features.webid_tls.certificates import IssuedCertificate, issue_certificate
from podstead.features.webid_tls.keys import NewKey
from podstead.storage.files import write_private

_DAY_S = 24 * 3600
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
_FILE = click.Path(path_type=Path, dir_okay=False)


@click.group()
def cert() -> None:
    """Create client certificates with which programs authenticate (WebID-TLS)."""


@cert.command(short_help="Create a key and a certificate for a WebID.")
@click.option(
    "--webid",
    "web_id",
    metavar="IRI",
    required=True,
    help="The WebID that the certificate identifies.",
)
@click.option(
    "--cert",
    "certificate",
    metavar="FILE",
    type=_FILE,
    default="client-cert.pem",
    show_default=True,
    help="Where to write the certificate.",
)
@click.option(
    "--key",
    metavar="FILE",
    type=_FILE,
    default="client-key.pem",
    show_default=True,
    help="Where to write the private key. Only the current user can read the file.",
)
@click.option(
    "--days",
    metavar="NUMBER",
    type=click.IntRange(1, 3650),
    default=365,
    show_default=True,
    help="The number of days for which the certificate is valid.",
)
@click.option(
    "--bits",
    metavar="NUMBER",
    type=click.IntRange(2048, 8192),
    default=2048,
    show_default=True,
    help="The size of the RSA key in bits.",
)
@click.option(
    "--token",
    metavar="TOKEN",
    envvar="PODSTEAD_TOKEN",
    show_envvar=True,
    help="A token of the WebID's owner, used to add the key to the profile.",
)
def new(  # noqa: PLR0917 - one for each option
    web_id: str, certificate: Path, key: Path, days: int, bits: int, token: str | None
) -> None:
    """Create a key and a certificate for a WebID, whose profile must then state the key.

    With --token, the command adds the statements to the profile with an N3 Patch. Otherwise it
    prints them, and you add them yourself. Other processes on this machine can see options, so
    prefer the variable PODSTEAD_TOKEN.
    """
    for path in (certificate, key):
        if path.exists():
            raise already_there(path)
    issued = new_certificate(web_id, days=days, key_bits=bits)
    write_files(issued, certificate=certificate, key=key)
    echo(f"Wrote the certificate to {certificate} and the key to {key}.", err=True)
    if token is None:
        _print_statements(issued.new_key)
        return
    try:
        asyncio.run(state_key(issued.new_key, token=token))
    except PodsteadError:
        _print_statements(issued.new_key)
        raise
    echo(f"Added the key to {issued.new_key.document}.", err=True)


def _print_statements(new_key: NewKey) -> None:
    echo(f"Add these statements to {new_key.document}:", err=True)
    echo(err=True)
    echo_lines(new_key.turtle())


class NotStated(PodsteadError):
    """The WebID's document was not changed; the message gives the reason."""


def new_certificate(web_id: str, *, days: int, key_bits: int) -> IssuedCertificate:
    """Create a certificate for a WebID. Raises BadRequest for a name that is not a valid WebID."""
    if not web_id.isascii() or not is_usable_address(web_id, allow_loopback=True):
        raise BadRequest(
            f"'{web_id}' cannot be used as a WebID. A WebID is an absolute URL in ASCII that "
            "begins with https:// (or with http:// for a server on this machine), such as "
            "https://pods.example/alice/#me."
        )
    return issue_certificate(web_id, now_s=now_s(), valid_s=days * _DAY_S, key_bits=key_bits)


def write_files(issued: IssuedCertificate, *, certificate: Path, key: Path) -> None:
    """Write both files, readable by the current user only. Raises Conflict if one exists, and
    StorageError if one cannot be written; neither exists then."""
    _write(key, issued.key_pem)
    try:
        _write(certificate, issued.certificate_pem)
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
    from podstead.outbound.guard import opened_guard
    from podstead.outbound.requests import OutgoingRequest, submit
    from podstead.outbound.urls import UrlRules, origin_of_url

    # The user of the command chose the server, which may be in a private network.
    rules = UrlRules(private_origins=frozenset({origin_of_url(new_key.document)}))
    submission = OutgoingRequest(
        "PATCH",
        new_key.document,
        {"Authorization": f"Bearer {token}", "Content-Type": "text/n3"},
        new_key.insertion().encode(),
    )
    try:
        with opened_guard(rules) as guard:
            reply = await submit(submission, guard, tls=trusted_certificates())
    except Unreachable as error:
        raise NotStated(
            f"{new_key.document} was not changed: its server could not be reached. Check the host "
            "name. If your system does not trust the server's certificate, set SSL_CERT_FILE to "
            "the certificate file of its authority."
        ) from error
    if not 200 <= reply.status < 300:
        advice = _ADVICE.get(reply.status, "see the documentation of that server")
        raise NotStated(
            f"{new_key.document} was not changed: its server responded with {reply.status} "
            f"({advice})."
        )
