"""``podstead watch``: print the changes of a resource or container as they come."""

from __future__ import annotations

import click


@click.command(short_help="Print changes as they come.")
@click.argument("url")
def watch(url: str) -> None:
    """Print each change of the resource or container at URL, on any Solid server, as it comes."""
    raise click.UsageError(f"{url} cannot be watched yet.")
