"""``podstead pod``: the operator lists pods and deletes pods that have no account."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
import msgspec

from podstead.cli.administration import administered
from podstead.cli.options import root_options, settings_from
from podstead.cli.progress import ProgressLine
from podstead.cli.tables import print_json, print_table, time_text

if TYPE_CHECKING:  # at run time it is loaded when it is needed
    from podstead.app.operator.pod_administration import ListedPod, PodAdministration
    from podstead.resources.importing.values import ImportReport

T = TypeVar("T")

MAX_QUOTA_BYTES = 1 << 50

_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.group()
def pod() -> None:
    """List pods, set their quotas, and delete pods that have no account.

    A server started without --idp creates pods without accounts. Changes take effect in a running
    server with its next request.
    """


@pod.command("list", short_help="List pods and whether they have accounts.")
@click.option("--without-account", is_flag=True, help="List only pods that have no account.")
@root_options
def list_pods(*, without_account: bool, **options: Any) -> None:  # noqa: ANN401 - one for each setting
    """List all pods, sorted by name: pod, WebID of the owner, time of creation, and whether the pod
    has an account."""
    listed = _administered(options, lambda administration: administration.list())
    _print_table([each for each in listed if not (without_account and each.has_account)])


@pod.command("delete", short_help="Delete a pod that has no account.")
@click.argument("name")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@root_options
def delete_pod(name: str, *, yes: bool, **options: Any) -> None:  # noqa: ANN401 - one for each setting
    """Delete the pod NAME, which has no account, and everything in it. This cannot be undone.

    To delete a pod together with its account, use 'podstead account delete'. The name of the pod
    remains reserved, because a new owner would have access wherever the old one did. 'podstead
    account free-name' releases the name.
    """
    found = _administered(options, lambda administration: administration.find(name))
    if not yes:
        click.confirm(
            f"Permanently delete the pod '{found.name}' and everything in it?", abort=True
        )
    _administered(options, lambda administration: administration.delete(name))
    click.echo(f"Deleted the pod '{found.name}'.")


@pod.command("quota", short_help="Set the quota of a pod.")
@click.argument("name")
@click.argument("size", metavar="BYTES|none|default")
@root_options
def set_quota(name: str, size: str, **options: Any) -> None:  # noqa: ANN401 - one for each setting
    """Set the quota of the pod NAME: a number of bytes, 'none', or 'default' for that of the
    setting quota-bytes. It applies to the next write; a pod above its quota can still shrink."""
    quota_bytes = _quota(size)
    _administered(options, lambda administration: administration.set_quota(name, quota_bytes))
    click.echo(f"Set the quota of the pod '{name}' to {size}.")


@pod.command("export", short_help="Write a pod to an archive.")
@click.argument("name")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@_json
@root_options
def export(name: str, file: Path, *, as_json: bool, **options: Any) -> None:  # noqa: ANN401 - one for each setting
    """Write everything in the pod NAME to FILE, a ZIP archive that any program unpacks: documents
    with their types and dates, access rules and descriptions. FILE must not exist.

    The archive is an RO-Crate with a manifest that has the SHA-256 of each file. 'podstead pod
    import' reads it, on this server or another one.
    """
    from podstead.app.operator.pod_archives import export_pod

    settings = settings_from(options)
    line = ProgressLine()

    def show(done: int, total: int) -> None:
        line("Writing", done, total)

    try:
        exported = asyncio.run(export_pod(settings, name, file, progress=show))
    finally:
        line.end()
    if as_json:
        print_json(exported)
        return
    click.echo(
        f"Wrote {exported.size_bytes:,} bytes with {exported.documents:,} documents to {file}."
    )
    for url in exported.repositories:
        click.echo(f"Not contained: the git repository of {url}", err=True)
    for path in exported.changed:
        click.echo(f"Changed during the export: {path}", err=True)


@pod.command("import", short_help="Create a pod from an archive.")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False, exists=True))
@click.option("--as", "name", metavar="NAME", help="Give the pod another name than it had.")
@click.option("--dry-run", is_flag=True, help="Say what would happen, and change nothing.")
@_json
@root_options
def import_archive(
    file: Path,
    *,
    name: str | None,
    dry_run: bool,
    as_json: bool,
    **options: Any,  # noqa: ANN401 - one for each setting
) -> None:
    """Create a pod from FILE, an archive that 'podstead pod export' wrote.

    URLs of the pod are rewritten in its documents and access rules if the base URL or the name is
    another one now. The pod is visible when everything is there. Run an interrupted import again to
    continue it. With something that could not be imported as it was, the exit code is 1.
    """
    from podstead.app.operator.pod_archives import all_problems, import_pod
    from podstead.resources.importing.pod_archive import opened_archive

    settings = settings_from(options)
    line = ProgressLine()
    with opened_archive(file) as archive:
        count = archive.count

        def show(report: ImportReport) -> None:
            line("Importing", report.resources, count)

        try:
            url, report = asyncio.run(
                import_pod(settings, archive, name=name, dry_run=dry_run, progress=show)
            )
        finally:
            line.end()
    if as_json:
        print_json({"url": url, "dry_run": dry_run, **msgspec.structs.asdict(report)})
    else:
        _print_report(url, report, dry_run=dry_run)
    if all_problems(report):
        sys.exit(1)


def _print_report(url: str, report: ImportReport, *, dry_run: bool) -> None:
    for each in report.not_taken:
        click.echo(f"Not imported: {each.path}: {each.reason}", err=True)
    for each in report.closed:
        click.echo(f"Nobody has access to what this protects: {each.path}: {each.reason}", err=True)
    for each in report.not_renamed:
        click.echo(f"Imported with its old URLs: {each.path}: {each.reason}", err=True)
    done = "Would import" if dry_run else "Imported"
    there = f"; {report.already_there:,} were there" if report.already_there else ""
    click.echo(
        f"{done} {report.documents:,} documents, {report.containers:,} containers, "
        f"{report.descriptions:,} descriptions and {report.rules:,} ACLs, {report.size_bytes:,} "
        f"bytes, into {url}{there}. URLs were rewritten in {report.renamed:,} of them."
    )


def _quota(text: str) -> int | None:
    """Raises BadParameter."""
    if text == "default":
        return None
    if text == "none":
        return 0
    if not text.isascii() or not text.isdigit() or not 0 < int(text) <= MAX_QUOTA_BYTES:
        raise click.BadParameter(
            "must be a number of bytes, 'none' or 'default'", param_hint="BYTES"
        )
    return int(text)


def _administered(options: dict[str, Any], act: Callable[[PodAdministration], Awaitable[T]]) -> T:
    from podstead.app.operator.pod_administration import open_pod_administration

    return administered(open_pod_administration, options, act)


def _print_table(pods: Sequence[ListedPod]) -> None:
    rows = [
        (
            each.record.name,
            each.record.owner,
            time_text(each.record.created_ms // 1000),
            "yes" if each.has_account else "no",
        )
        for each in pods
    ]
    print_table(("POD", "OWNER", "CREATED", "ACCOUNT"), rows)
