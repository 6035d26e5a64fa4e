"""``podstead pod``: the operator lists, creates, measures, renames, moves and deletes pods."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from podstead.cli import options, output
from podstead.cli.running import Note, Output, in_root, on_root, on_settings, with_progress
from podstead.config import Settings
from podstead.config.value_types import size_in_bytes

if TYPE_CHECKING:  # at run time it is loaded when it is needed
    from podstead.app.operator.administration import DataRoot, ListedPod, PodSize
    from podstead.resources.importing.values import ImportReport

_QUOTA = size_in_bytes(1, 1 << 50)

_token_options = options.options_named("simple-tokens", "token-lifetime-s", "token-secret-file")


@click.group()
def pod() -> None:
    """List, create, measure, rename, move and delete pods.

    A server started without --idp creates pods without accounts. Changes take effect in a running
    server with its next request.
    """


@pod.command("list", short_help="List pods and whether they have accounts.")
@click.option("--without-account", is_flag=True, help="List only pods that have no account.")
@on_root()
async def list_pods(root: DataRoot, *, without_account: bool) -> Output:
    """List all pods, sorted by name: pod, WebID of the owner, time of creation, size, the last
    sign-in or use by an application, and whether the pod has an account, or its import is
    unfinished: run that again, or delete the pod."""
    listed = await root.pods.list()
    pods = [each for each in listed if not (without_account and each.has_account)]
    head = ("POD", "OWNER", "CREATED", "SIZE", "LAST USE", "ACCOUNT")
    return Output([_as_json(each) for each in pods], output.table_lines(head, map(_row, pods)))


def _as_json(listed: ListedPod) -> dict[str, object]:
    record = listed.record
    return {
        "name": record.name,
        "owner": record.owner,
        "created": output.time_text(record.created_ms // 1000),
        "has_account": listed.has_account,
        "unfinished_import": listed.is_unfinished,
        "used_bytes": listed.used_bytes,
        "last_use": None if listed.last_use_s is None else output.time_text(listed.last_use_s),
        "quota_bytes": record.quota_bytes,
    }


@pod.command("create", short_help="Create a pod without an account.")
@click.argument("name")
@on_settings(output.json_option, options.root_options, _token_options)
def create(settings: Settings, name: str) -> Output:
    """Create the pod NAME without an account, and print a token for its owner if simple tokens are
    on. 'podstead account create' creates a pod with an account."""
    from podstead.app.operator.administration import create_pod

    created = asyncio.run(create_pod(settings, name))
    lines = [Note(f"Created the pod {created.url} of {created.web_id}.")]
    return Output(created, lines if created.token is None else [*lines, created.token])


@pod.command("size", short_help="Count what is in pods.")
@output.names_argument
@on_root()
async def size(root: DataRoot, names: Sequence[str]) -> Output:
    """Count what is in each pod NAME, and what its quota is charged for it."""
    sizes = [await root.pods.size(name) for name in names]
    return Output.of_each(
        sizes, [line for each in sizes for line in _size_lines(each, with_name=len(sizes) > 1)]
    )


def _size_lines(counted: PodSize, *, with_name: bool) -> Iterator[str]:
    rows: list[tuple[str, int]] = [
        ("documents", counted.documents),
        ("containers", counted.containers),
        ("access rules", counted.access_rules),
        ("descriptions", counted.descriptions),
        ("bytes of content", counted.content_bytes),
        ("bytes charged", counted.used_bytes),
    ]
    if with_name:
        yield f"{counted.name}:"
    for what, number in rows:
        yield f"{what:<17} {number:,}"
    yield f"{'quota':<17} {f'{counted.quota_bytes:,}' if counted.quota_bytes else 'none'}"


@pod.command("rename", short_help="Give a pod another name.")
@click.argument("name")
@click.argument("new_name")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@on_settings()
def rename(settings: Settings, name: str, new_name: str, *, yes: bool) -> Output:
    """Give the pod NAME the name NEW_NAME, in one step: its URLs, the WebID of its owner, the URLs
    of the pod in its documents and access rules, and its account.

    Requests for the old URLs are redirected for as long as the old name is reserved. What others
    have shared with the former WebID must be shared again. Tokens are revoked, and applications
    connected again.
    """
    from podstead.app.operator.administration import rename_pod

    if not yes:
        output.confirm(f"Rename the pod '{name}' and change the WebID of its owner?")
    renamed = with_progress(lambda progress: rename_pod(settings, name, new_name, on_step=progress))
    done = (
        f"Renamed the pod to {renamed.url}, with {renamed.resources:,} resources; URLs were "
        f"rewritten in {renamed.rewritten:,} of them. The WebID is {renamed.web_id}."
    )
    unreadable = [Note(f"Names could not be rewritten: {path}") for path in renamed.unreadable]
    named = [Note(f"Names the former WebID: {acl}") for acl in renamed.named_elsewhere]
    return Output(renamed, [*unreadable, *named, done])


@pod.command("delete", short_help="Delete pods.")
@output.names_argument
@click.option("--with-account", is_flag=True, help="Delete their accounts, too.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@on_settings()
def delete_pods(
    settings: Settings, names: Sequence[str], *, with_account: bool, yes: bool
) -> Output:
    """Delete each pod NAME and everything in it. This cannot be undone.

    A pod that has an account is deleted only --with-account. The name of the pod remains reserved,
    because a new owner would have access wherever the old one did. 'podstead account free-name'
    releases the name.
    """
    names = list(dict.fromkeys(names))
    if not with_account:

        async def find(root: DataRoot) -> list[str]:
            return [(await root.pods.find(name)).name for name in names]

        names = in_root(settings, find)
    if not yes:
        for name in names:
            output.confirm(f"Permanently delete the pod '{name}' and everything in it?")

    async def delete(root: DataRoot) -> None:
        for name in names:
            if with_account:
                account = (await root.accounts.find(name)).value
                await root.accounts.act("delete", account.account_id)
            else:
                await root.pods.delete(name)

    in_root(settings, delete)
    return Output.of_each(
        [{"name": name, "deleted": True} for name in names],
        [f"Deleted the pod '{name}'." for name in names],
    )


@pod.command("quota", short_help="Set the quota of pods.")
@output.names_argument
@click.argument("size", metavar="SIZE|none|default")
@on_settings()
def set_quota(settings: Settings, names: Sequence[str], size: str) -> Output:
    """Set the quota of each pod NAME: a number of bytes, a size such as 5G, 'none', or 'default'
    for that of the setting quota-bytes. It applies to the next write; a pod above its quota can
    still shrink."""
    quota_bytes = _quota(size)

    async def act(root: DataRoot) -> None:
        for name in names:
            await root.pods.actions.set_quota(name, quota_bytes)

    in_root(settings, act)
    return Output.of_each(
        [{"name": name, "quota_bytes": quota_bytes} for name in names],
        [f"Set the quota of the pod '{name}' to {size}." for name in names],
    )


@pod.command("export", short_help="Write a pod to an archive.")
@click.argument("name")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--versions",
    is_flag=True,
    help="Write former versions of the documents, too. They are not imported again.",
)
@on_settings()
def export(settings: Settings, name: str, file: Path, *, versions: bool) -> Output:
    """Write everything in the pod NAME to FILE, a ZIP archive that any program unpacks: documents
    with their types and dates, access rules, descriptions, and repositories as bundles. FILE
    must not exist.

    The archive is an RO-Crate with a manifest that has the SHA-256 of each file. 'podstead pod
    import' reads it, on this server or another one.
    """
    from podstead.app.operator.pod_archives import export_pod

    exported = with_progress(
        lambda progress: export_pod(settings, name, file, with_versions=versions, on_step=progress)
    )
    done = (
        f"Wrote {exported.size_bytes:,} bytes with {exported.documents:,} documents and "
        f"{exported.repositories:,} repositories to {file}."
    )
    missing = "Not contained, because the program that packs it is not installed"
    left_out = [Note(f"{missing}: {url}") for url in exported.left_out]
    changed = [Note(f"Changed during the export: {path}") for path in exported.changed]
    return Output(exported, [done, *left_out, *changed])


@pod.command("import", short_help="Create a pod from an archive.")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--as", "name", metavar="NAME", help="Give the pod another name than it had.")
@click.option("--dry-run", is_flag=True, help="Say what would happen, and change nothing.")
@on_settings()
def import_archive(settings: Settings, file: Path, *, name: str | None, dry_run: bool) -> Output:
    """Create a pod from FILE, an archive that 'podstead pod export' wrote.

    URLs of the pod are rewritten in its documents and access rules if the base URL or the name is
    another one now. The pod is visible when everything is there. Run an interrupted import again to
    continue it. With something that could not be imported as it was, the exit code is 1.
    """
    from podstead.app.operator.pod_archives import all_problems, import_pod
    from podstead.resources.importing.pod_archive import opened_archive

    with opened_archive(file) as archive:
        url, report = with_progress(
            lambda progress: import_pod(
                settings, archive, name=name, dry_run=dry_run, on_step=progress
            )
        )
    return Output(
        {"url": url, "dry_run": dry_run, **msgspec.structs.asdict(report)},
        _report_lines(url, report, dry_run=dry_run),
        exit_code=1 if all_problems(report) else 0,
    )


def _report_lines(url: str, report: ImportReport, *, dry_run: bool) -> Iterator[str]:
    for each in report.not_taken:
        yield Note(f"Not imported: {each.path}: {each.reason}")
    for each in report.closed:
        yield Note(f"Nobody has access to what this protects: {each.path}: {each.reason}")
    for each in report.not_renamed:
        yield Note(f"Imported with its old URLs: {each.path}: {each.reason}")
    for path in report.controlled_by_all:
        yield Note(f"Everyone may change the access rules: {path}")
    done = "Would import" if dry_run else "Imported"
    there = f"; {report.already_there:,} were there" if report.already_there else ""
    yield (
        f"{done} {report.documents:,} documents, {report.containers:,} containers, "
        f"{report.descriptions:,} descriptions, {report.rules:,} ACLs, {report.size_bytes:,} "
        f"bytes, and {report.repositories:,} repositories into {url}{there}. URLs were "
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


def _row(listed: ListedPod) -> tuple[str, ...]:
    record = listed.record
    return (
        record.name,
        record.owner,
        output.time_text(record.created_ms // 1000),
        output.bytes_text(listed.used_bytes),
        "-" if listed.last_use_s is None else output.time_text(listed.last_use_s),
        "import unfinished" if listed.is_unfinished else "yes" if listed.has_account else "no",
    )
