"""``podstead move-base``: everything gets another base URL."""

from __future__ import annotations

import asyncio
from typing import Any

import click

from podstead.cli.options import root_options, settings_from
from podstead.cli.output import echo
from podstead.cli.progress import ProgressLine
from podstead.cli.tables import json_option, print_json
from podstead.config import value_types
from podstead.core.counting import counted


@click.command("move-base", short_help="Change the base URL of everything stored.")
@click.argument("new", metavar="URL")
@click.option(
    "--rewrite-documents",
    is_flag=True,
    help="Rewrite URLs in all RDF documents, not only in access rules and profiles.",
)
@click.option("--dry-run", is_flag=True, help="Say what would happen, and change nothing.")
@json_option
@root_options
def move_base(
    new: str,
    *,
    rewrite_documents: bool,
    dry_run: bool,
    as_json: bool,
    **options: Any,  # noqa: ANN401 - one for each setting
) -> None:
    """Move the data root to another base URL, such as https://pods.example. Stop the server first,
    and start it with the new --base-url afterwards.

    Changes the URLs of pods, WebIDs, accounts, access rules and profiles; with --rewrite-documents
    also those in documents. Tokens are revoked, people sign in again, and passkeys work only if the
    host stays the same. Where the former host still leads to this server, requests to it are
    redirected. Run an interrupted move again to finish it.
    """
    from podstead.app.operator.change_base_url import move_data_root

    try:
        url = value_types.BASE_URL.parse(new)
    except ValueError as error:
        raise click.BadParameter(value_types.BASE_URL.expected, param_hint="URL") from error
    line = ProgressLine()

    def show(done: int) -> None:
        line("Rewriting", done)

    try:
        report = asyncio.run(
            move_data_root(
                settings_from(options),
                url,
                every_document=rewrite_documents,
                dry_run=dry_run,
                progress=show,
            )
        )
    finally:
        line.end()
    if as_json:
        print_json(report)
        return
    moved = report.moved
    for path in moved.unreadable:
        echo(f"Names could not be rewritten: {path}", err=True)
    echo(
        f"{'Would move' if dry_run else 'Moved'} {counted(report.pods, 'pod')} and "
        f"{counted(report.accounts, 'account')} from {report.old} to {report.new}. Rewritten: "
        f"{counted(moved.access_rules, 'ACL')}, {counted(moved.profiles, 'profile')}, "
        f"{counted(moved.documents, 'other document')}. Revoked: "
        f"{counted(report.revoked_tokens, 'token')}."
    )
    if not dry_run:
        echo(f"Start the server with --base-url {report.new}.")
