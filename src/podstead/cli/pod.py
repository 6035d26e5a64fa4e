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
from podstead.cli.options import options_named, root_options, settings_from
from podstead.cli.output import confirm, echo
from podstead.cli.progress import ProgressLine
from podstead.cli.tables import (
    bytes_text,
    json_option,
    names_argument,
    print_each_json,
    print_json,
    print_table,
    time_text,
)
from podstead.config.value_types import size_in_bytes

if TYPE_CHECKING:  # at run time it is loaded when it is needed
    from podstead.app.operator.account_administration import AccountAdministration
    from podstead.app.operator.pod_administration import ListedPod, PodAdministration, PodSize
    from podstead.resources.importing.values import ImportReport

T = TypeVar("T")

_QUOTA = size_in_bytes(1, 1 << 50)

_token_options = options_named("simple-tokens", "token-lifetime-s", "token-secret-file")


@click.group()
def pod() -> None:
    """List, create, measure, rename, move and delete pods.

    A server started without --idp creates pods without accounts. Changes take effect in a running
    server with its next request.
    """


@pod.command("list", short_help="List pods and whether they have accounts.")
@click.option("--without-account", is_flag=True, help="List only pods that have no account.")
@json_option
@root_options
def list_pods(*, without_account: bool, as_json: bool, **options: Any) -> None:  # noqa: ANN401 - one for each setting
    """List all pods, sorted by name: pod, WebID of the owner, time of creation, size, the last
    sign-in or use by an application, and whether the pod has an account, or its import is
    unfinished: run that again, or delete the pod."""
    listed = _administered(options, lambda administration: administration.list())
    pods = [each for each in listed if not (without_account and each.has_account)]
    if as_json:
        print_json([_as_json(each) for each in pods])
    else:
        _print_table(pods)


def _as_json(listed: ListedPod) -> dict[str, object]:
    record = listed.record
    return {
        "name": record.name,
        "owner": record.owner,
        "created": time_text(record.created_ms // 1000),
        "has_account": listed.has_account,
        "unfinished_import": listed.is_unfinished,
        "used_bytes": listed.used_bytes,
        "last_use": None if listed.last_use_s is None else time_text(listed.last_use_s),
        "quota_bytes": record.quota_bytes,
    }


@pod.command("create", short_help="Create a pod without an account.")
@click.argument("name")
@json_option
@root_options
@_token_options
def create(name: str, *, as_json: bool, **options: Any) -> None:  # noqa: ANN401 - one for each setting
    """Create the pod NAME without an account, and print a token for its owner if simple tokens are
    on. 'podstead account create' creates a pod with an account."""
    from podstead.app.operator.pod_administration import create_pod

    created = asyncio.run(create_pod(settings_from(options), name))
    if as_json:
        print_json(created)
        return
    echo(f"Created the pod {created.url} of {created.web_id}.", err=True)
    if created.token is not None:
        echo(created.token)


@pod.command("size", short_help="Count what is in pods.")
@names_argument
@json_option
@root_options
def size(names: Sequence[str], *, as_json: bool, **options: Any) -> None:  # noqa: ANN401 - one for each setting
    """Count what is in each pod NAME, and what its quota is charged for it."""

    async def count(administration: PodAdministration) -> list[PodSize]:
        return [await administration.size(name) for name in names]

    sizes = _administered(options, count)
    if as_json:
        print_each_json(sizes)
        return
    for counted in sizes:
        _print_size(counted, with_name=len(sizes) > 1)


def _print_size(counted: PodSize, *, with_name: bool) -> None:
    rows: list[tuple[str, int]] = [
        ("documents", counted.documents),
        ("containers", counted.containers),
        ("access rules", counted.access_rules),
        ("descriptions", counted.descriptions),
        ("bytes of content", counted.content_bytes),
        ("bytes charged", counted.used_bytes),
    ]
    if with_name:
        echo(f"{counted.name}:")
    for what, number in rows:
        echo(f"{what:<17} {number:,}")
    echo(f"{'quota':<17} {f'{counted.quota_bytes:,}' if counted.quota_bytes else 'none'}")


@pod.command("rename", short_help="Give a pod another name.")
@click.argument("name")
@click.argument("new_name")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@json_option
@root_options
def rename(name: str, new_name: str, *, yes: bool, as_json: bool, **options: Any) -> None:  # noqa: ANN401 - one for each setting
    """Give the pod NAME the name NEW_NAME, in one step: its URLs, the WebID of its owner, the URLs
    of the pod in its documents and access rules, and its account.

    Requests for the old URLs are redirected for as long as the old name is reserved. What others
    have shared with the former WebID must be shared again. Tokens are revoked, and applications
    connected again.
    """
    from podstead.app.operator.pod_administration import rename_pod

    if not yes:
        confirm(f"Rename the pod '{name}' and change the WebID of its owner?")
    line = ProgressLine()

    def show(done: int, total: int) -> None:
        line("Reading", done, total)

    try:
        renamed = asyncio.run(rename_pod(settings_from(options), name, new_name, progress=show))
    finally:
        line.end()
    if as_json:
        print_json(renamed)
        return
    for path in renamed.unreadable:
        echo(f"Names could not be rewritten: {path}", err=True)
    for acl in renamed.named_elsewhere:
        echo(f"Names the former WebID: {acl}", err=True)
    echo(
        f"Renamed the pod to {renamed.url}, with {renamed.resources:,} resources; URLs were "
        f"rewritten in {renamed.rewritten:,} of them. The WebID is {renamed.web_id}."
    )


@pod.command("delete", short_help="Delete pods.")
@names_argument
@click.option("--with-account", is_flag=True, help="Delete their accounts, too.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@json_option
@root_options
def delete_pods(
    names: Sequence[str],
    *,
    with_account: bool,
    yes: bool,
    as_json: bool,
    **options: Any,  # noqa: ANN401 - one for each setting
) -> None:
    """Delete each pod NAME and everything in it. This cannot be undone.

    A pod that has an account is deleted only --with-account. The name of the pod remains reserved,
    because a new owner would have access wherever the old one did. 'podstead account free-name'
    releases the name.
    """
    names = list(dict.fromkeys(names))
    if not with_account:

        async def find(administration: PodAdministration) -> list[str]:
            return [(await administration.find(name)).name for name in names]

        names = _administered(options, find)
    if not yes:
        for name in names:
            confirm(f"Permanently delete the pod '{name}' and everything in it?")
    if with_account:
        from podstead.app.operator.account_administration import open_account_administration

        administered(open_account_administration, options, lambda each: _delete_all(each, names))
    else:
        _administered(options, lambda each: _delete_all(each, names))
    if as_json:
        print_each_json([{"name": name, "deleted": True} for name in names])
        return
    for name in names:
        echo(f"Deleted the pod '{name}'.")


async def _delete_all(
    administration: PodAdministration | AccountAdministration, names: Sequence[str]
) -> None:
    for name in names:
        await administration.delete(name)


@pod.command("quota", short_help="Set the quota of pods.")
@names_argument
@click.argument("size", metavar="SIZE|none|default")
@json_option
@root_options
def set_quota(names: Sequence[str], size: str, *, as_json: bool, **options: Any) -> None:  # noqa: ANN401 - one for each setting
    """Set the quota of each pod NAME: a number of bytes, a size such as 5G, 'none', or 'default'
    for that of the setting quota-bytes. It applies to the next write; a pod above its quota can
    still shrink."""
    quota_bytes = _quota(size)

    async def act(administration: PodAdministration) -> None:
        for name in names:
            await administration.set_quota(name, quota_bytes)

    _administered(options, act)
    if as_json:
        print_each_json([{"name": name, "quota_bytes": quota_bytes} for name in names])
        return
    for name in names:
        echo(f"Set the quota of the pod '{name}' to {size}.")


@pod.command("export", short_help="Write a pod to an archive.")
@click.argument("name")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@json_option
@root_options
def export(name: str, file: Path, *, as_json: bool, **options: Any) -> None:  # noqa: ANN401 - one for each setting
    """Write everything in the pod NAME to FILE, a ZIP archive that any program unpacks: documents
    with their types and dates, access rules, descriptions, and git repositories as bundles. FILE
    must not exist.

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
    echo(
        f"Wrote {exported.size_bytes:,} bytes with {exported.documents:,} documents and "
        f"{exported.repositories:,} git repositories to {file}."
    )
    for url in exported.left_out:
        echo(f"Not contained, because git is not installed: {url}", err=True)
    for path in exported.changed:
        echo(f"Changed during the export: {path}", err=True)


@pod.command("import", short_help="Create a pod from an archive.")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--as", "name", metavar="NAME", help="Give the pod another name than it had.")
@click.option("--dry-run", is_flag=True, help="Say what would happen, and change nothing.")
@json_option
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
        echo(f"Not imported: {each.path}: {each.reason}", err=True)
    for each in report.closed:
        echo(f"Nobody has access to what this protects: {each.path}: {each.reason}", err=True)
    for each in report.not_renamed:
        echo(f"Imported with its old URLs: {each.path}: {each.reason}", err=True)
    for path in report.controlled_by_all:
        echo(f"Everyone may change the access rules: {path}", err=True)
    done = "Would import" if dry_run else "Imported"
    there = f"; {report.already_there:,} were there" if report.already_there else ""
    echo(
        f"{done} {report.documents:,} documents, {report.containers:,} containers, "
        f"{report.descriptions:,} descriptions, {report.rules:,} ACLs, {report.size_bytes:,} "
        f"bytes, and {report.repositories:,} git repositories into {url}{there}. URLs were "
        f"rewritten in {report.renamed:,} of them."
    )


def _quota(text: str) -> int | None:
    """Raises BadParameter."""
    if text == "default":
        return None
    if text == "none":
        return 0
    try:
        return _QUOTA.parse(text)
    except ValueError as error:
        raise click.BadParameter(
            f"{_QUOTA.expected}, 'none' or 'default'", param_hint="SIZE"
        ) from error


def _administered(options: dict[str, Any], act: Callable[[PodAdministration], Awaitable[T]]) -> T:
    from podstead.app.operator.pod_administration import open_pod_administration

    return administered(open_pod_administration, options, act)


def _print_table(pods: Sequence[ListedPod]) -> None:
    rows = [
        (
            each.record.name,
            each.record.owner,
            time_text(each.record.created_ms // 1000),
            bytes_text(each.used_bytes),
            "-" if each.last_use_s is None else time_text(each.last_use_s),
            "import unfinished" if each.is_unfinished else "yes" if each.has_account else "no",
        )
        for each in pods
    ]
    print_table(("POD", "OWNER", "CREATED", "SIZE", "LAST USE", "ACCOUNT"), rows)
