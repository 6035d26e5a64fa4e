"""``podstead move-base``: everything gets another base URL."""

from __future__ import annotations

import click

from podstead.cli.output import parsed
from podstead.cli.running import Note, Output, on_settings, with_progress
from podstead.config import Settings
from podstead.config.value_types import BASE_URL
from podstead.core.messages import counted


@click.command("move-base", short_help="Change the base URL of everything stored.")
@click.argument("new", metavar="URL")
@click.option(
    "--rewrite-documents",
    is_flag=True,
    help="Rewrite URLs in all RDF documents, not only in access rules and profiles.",
)
@click.option("--dry-run", is_flag=True, help="Say what would happen, and change nothing.")
@on_settings()
def move_base(settings: Settings, new: str, *, rewrite_documents: bool, dry_run: bool) -> Output:
    """Move the data root to another base URL, such as https://pods.example. Stop the server first,
    and start it with the new --base-url afterwards.

    Changes the URLs of pods, WebIDs, accounts, access rules and profiles; with --rewrite-documents
    also those in documents. Tokens are revoked, people sign in again, and passkeys work only if the
    host stays the same. Where the former host still leads to this server, requests to it are
    redirected. Run an interrupted move again to finish it.
    """
    from podstead.app.operator.change_base_url import move_data_root

    url = parsed(BASE_URL, new, "URL")
    report = with_progress(
        lambda line: move_data_root(
            settings,
            url,
            every_document=rewrite_documents,
            dry_run=dry_run,
            progress=lambda done: line("Rewriting", done),
        )
    )
    moved = report.moved
    lines = [
        *(Note(f"Names could not be rewritten: {path}") for path in moved.unreadable),
        (
            f"{'Would move' if dry_run else 'Moved'} {counted(report.pods, 'pod')} and "
            f"{counted(report.accounts, 'account')} from {report.old} to {report.new}. Rewritten: "
            f"{counted(moved.access_rules, 'ACL')}, {counted(moved.profiles, 'profile')}, "
            f"{counted(moved.documents, 'other document')}. Revoked: "
            f"{counted(report.revoked_tokens, 'token')}."
        ),
    ]
    if not dry_run:
        lines.append(f"Start the server with --base-url {report.new}.")
    return Output(report, lines)
