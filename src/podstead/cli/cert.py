"""``podstead cert``: client certificates, for services and command-line tools (WebID-TLS)."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from podstead.core.errors import PodsteadError

if TYPE_CHECKING:  # at run time it is loaded when it is needed
    from podstead.app import own_certificates as own

_FILE = click.Path(path_type=Path, dir_okay=False)


@click.group()
def cert() -> None:
    """Make client certificates, by which programs show whose they are (WebID-TLS)."""


@cert.command(short_help="Make a key and a certificate for a WebID.")
@click.option("--webid", "web_id", metavar="IRI", required=True, help="Whose certificate it is.")
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
    help="Where to write its private key, which only this account may read.",
)
@click.option(
    "--days",
    metavar="NUMBER",
    type=click.IntRange(1, 3650),
    default=365,
    show_default=True,
    help="How long it is valid.",
)
@click.option(
    "--bits",
    metavar="NUMBER",
    type=click.IntRange(2048, 8192),
    default=2048,
    show_default=True,
    help="The size of the RSA key.",
)
@click.option(
    "--token",
    metavar="TOKEN",
    envvar="PODSTEAD_TOKEN",
    show_envvar=True,
    help="A token of the WebID's owner, to add the key to the WebID's document.",
)
def new(  # noqa: PLR0917 - one for each option
    web_id: str, certificate: Path, key: Path, days: int, bits: int, token: str | None
) -> None:
    """Make a key and a certificate for a WebID, and say what its document has to state.

    Without --token the statements are printed, to be added by hand; with it, they are added by an
    N3 Patch. Other processes of this machine can see options: set PODSTEAD_TOKEN rather.
    """
    from podstead.app import own_certificates as own

    for path in (certificate, key):
        if path.exists():
            raise own.already_there(path)
    made = own.new_certificate(web_id, now_s=_now_s(), days=days, key_bits=bits)
    own.write_files(made.made, certificate=certificate, key=key)
    click.echo(f"Wrote the certificate to {certificate} and its key to {key}.", err=True)
    if token is None:
        _print_statements(made)
        return
    try:
        asyncio.run(own.state_key(made.new_key, token=token))
    except PodsteadError:
        _print_statements(made)
        raise
    click.echo(f"{made.new_key.document} states the key now.", err=True)


def _print_statements(made: own.OwnCertificate) -> None:
    click.echo(f"Add these statements to {made.new_key.document}:\n", err=True)
    click.echo(made.new_key.turtle(), nl=False)


def _now_s() -> int:
    return int(datetime.now(tz=UTC).timestamp())
