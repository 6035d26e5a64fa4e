"""``podstead cert``: client certificates, for services and command-line tools (WebID-TLS)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import click

from podstead.cli.output import echo, echo_lines, now_s
from podstead.core.errors import PodsteadError

if TYPE_CHECKING:  # at run time it is loaded when it is needed
    from podstead.app.adapters import own_certificates as own

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
    from podstead.app.adapters import own_certificates as own

    for path in (certificate, key):
        if path.exists():
            raise own.already_there(path)
    made = own.new_certificate(web_id, now_s=now_s(), days=days, key_bits=bits)
    own.write_files(made.made, certificate=certificate, key=key)
    echo(f"Wrote the certificate to {certificate} and the key to {key}.", err=True)
    if token is None:
        _print_statements(made)
        return
    try:
        asyncio.run(own.state_key(made.new_key, token=token))
    except PodsteadError:
        _print_statements(made)
        raise
    echo(f"Added the key to {made.new_key.document}.", err=True)


def _print_statements(made: own.OwnCertificate) -> None:
    echo(f"Add these statements to {made.new_key.document}:", err=True)
    echo(err=True)
    echo_lines(made.new_key.turtle())
