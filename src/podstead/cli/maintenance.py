"""Commands that look after a data root: ``check``, ``compact``, ``doctor`` and ``move-base``."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import click

from podstead.cli import options, output, start
from podstead.cli.running import Note, Output, on_settings, with_progress, with_settings
from podstead.config import Settings
from podstead.config.value_types import BASE_URL
from podstead.core.errors import StorageError
from podstead.core.messages import counted

if TYPE_CHECKING:
    from podstead.app.operator.checking.findings import Finding
    from podstead.app.operator.compact import CompactResult


@click.command("check", short_help="Find damage in the data root, and repair it.")
@click.option("--quick", is_flag=True, help="Look at the sizes of bodies and not at their content.")
@click.option("--repair", is_flag=True, help="Set right what can be, and set aside the rest.")
@click.option("--json", "as_json", is_flag=True, help="Print each finding as a line of JSON.")
@options.root_options
@with_settings
def check_data(settings: Settings, *, quick: bool, repair: bool, as_json: bool) -> None:
    """Check the data root, also while the server runs.

    The command compares the database with itself and with its files: bodies with their hashes,
    containers with their members, figures with what they count, access rules, repositories,
    keys and modes. It exits with code 0 if all is well, and with code 1 if there are findings that
    were not repaired, or if it could not check everything. It ends with how much space the pods use
    and how much is free.

    With --repair, what cannot stay in use is moved to a dated folder below set-aside/ in the data
    root, with a list. A document whose body is gone is deleted, and the command says so and exits
    with code 1: restore it from a backup.
    """
    from podstead.app.operator.check import check_root

    async def check(progress: output.ProgressLine) -> Sequence[Finding]:
        def on_finding(finding: Finding) -> None:
            progress.end()
            _print_finding(finding, as_json=as_json)

        return await check_root(
            settings, is_quick=quick, repair=repair, on_step=progress, on_finding=on_finding
        )

    findings = with_progress(check, "The data could not be checked", only_on_terminal=True)
    left = sum(not finding.is_repaired for finding in findings)
    if not as_json:
        repaired = f", {len(findings) - left} of them repaired" if repair and findings else ""
        output.echo(f"{counted(len(findings), 'finding')}{repaired}.")
        _print_space(settings)
    sys.exit(1 if left else 0)


def _print_space(settings: Settings) -> None:
    from podstead.app.operator.check import measure_space

    try:
        space = asyncio.run(measure_space(settings))
    except (OSError, StorageError) as error:
        output.echo(f"How much space is used is not known: {error}.", err=True)
        return
    pods = space.pods
    of_quotas = f" of {output.bytes_text(pods.quota_bytes)} in quotas" if pods.quota_bytes else ""
    output.echo(
        f"{counted(pods.pods, 'pod')}: {output.bytes_text(pods.used_bytes)} used{of_quotas}."
    )
    if pods.nearly_full:
        full = counted(pods.nearly_full, "pod")
        output.echo(f"{full} at nine tenths of the quota or more: see 'podstead pod list'.")
    floor = f"; below {output.bytes_text(space.floor_bytes)}, new content is refused"
    output.echo(
        f"Disk: {output.bytes_text(space.free_bytes)} free{floor if space.floor_bytes else ''}."
    )


def _print_finding(finding: Finding, *, as_json: bool) -> None:
    if as_json:
        fields = {
            "code": finding.code.value,
            "where": finding.where,
            "what": finding.what,
            "remedy": finding.remedy,
            "repaired": finding.is_repaired,
            "loss": finding.loss,
        }
        output.print_json_line(fields)
        return
    done = "repaired" if finding.is_repaired else finding.loss or finding.remedy
    output.echo(f"{finding.code.value}: {finding.where}: {finding.what}. [{done}]")


_OUTCOMES = {
    "shrunk": ("A server is running, so the database was not rewritten; that can give back more."),
    "vacuumed": (
        "PostgreSQL uses what is free for new content. VACUUM FULL or pg_repack makes its files "
        "smaller."
    ),
    "needs-to-be-alone": (
        "This database can only be made smaller while no server runs: stop it and run the command "
        "again."
    ),
    "needs-space": "The database was not rewritten: that takes three times its size of free space.",
}


@click.command("compact", short_help="Give space back to the disk.")
@on_settings()
def compact_data(settings: Settings) -> Output:
    """Remove what is not in use any longer, pack repositories, and make the database smaller.

    The server does a part of this every ten minutes. The command may run beside it, and does more
    while it is stopped: then it rewrites the database. A PostgreSQL database is vacuumed, and not
    rewritten.
    """
    from podstead.app.operator.compact import compact_root

    result = with_progress(
        lambda progress: compact_root(settings, on_step=progress),
        "The data could not be compacted",
    )
    sizes = {part: (before, result.after[part]) for part, before in result.before.items()}
    figures = {}
    for folder, done in result.folders:
        figures[f"packed_{folder.items}"] = done.packed
        figures[f"busy_{folder.items}"] = done.busy
    return Output(
        {
            **{
                part: {"before_bytes": before, "after_bytes": after}
                for part, (before, after) in sizes.items()
            },
            "database_outcome": result.database.value,
            **figures,
        },
        _compact_lines(result, sizes),
    )


def _compact_lines(result: CompactResult, sizes: Mapping[str, tuple[int, int]]) -> Iterator[str]:
    rows = [
        (
            part,
            output.bytes_text(before),
            output.bytes_text(after),
            output.bytes_text(max(before - after, 0)),
        )
        for part, (before, after) in sizes.items()
    ]
    yield from output.table_lines(("", "BEFORE", "AFTER", "GIVEN BACK"), rows)
    for folder, done in result.folders:
        if done.busy:
            yield f"Left as before, because in use or damaged: {counted(done.busy, folder.item)}."
    if result.database.value in _OUTCOMES:
        yield _OUTCOMES[result.database.value]


@click.command(
    cls=options.GroupedCommand, common=start.COMMON_SETTINGS, short_help="Find what is wrong."
)
@on_settings(output.json_option, options.settings_options())
def doctor(settings: Settings) -> Output:
    """Find what is wrong with a server, and say what to do about it.

    Run it beside the running server, as the same user and with the same options, variables or file.
    It looks at the data root, the disk, the clock, the last backup, DNS, TLS, the proxy, the
    identity provider as applications see it, the mail server, and the private address.

    The exit code is 1 if there is a problem, and 0 if there are only warnings.
    """
    from podstead.app.monitoring.diagnosis import Severity
    from podstead.app.operator.doctor import diagnose

    findings = asyncio.run(diagnose(settings))
    lines = []
    for finding in findings:
        lines.append(f"{finding.severity.value:<8} {finding.check}: {finding.detail}")
        if finding.remedy:
            lines.append(f"{'':<8} -> {finding.remedy}")
    is_wrong = any(finding.severity is Severity.PROBLEM for finding in findings)
    return Output({"findings": findings}, lines, exit_code=1 if is_wrong else 0)


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

    url = output.parsed(BASE_URL, new, "URL")
    report = with_progress(
        lambda progress: move_data_root(
            settings, url, every_document=rewrite_documents, dry_run=dry_run, on_step=progress
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
