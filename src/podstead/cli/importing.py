"""``podstead import``: pods and accounts of other servers, and folders of files, come here."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from podstead.cli.options import root_options, settings_from
from podstead.cli.output import echo
from podstead.cli.progress import ProgressLine
from podstead.cli.tables import json_option, print_json
from podstead.core.counting import counted

if TYPE_CHECKING:  # at run time it is loaded when it is needed
    from collections.abc import Callable, Sequence
    from contextlib import AbstractAsyncContextManager

    from podstead.app.operator.import_files import FilesImportReport, FileSource
    from podstead.app.operator.import_server import ServerImportReport
    from podstead.importers.values import LeftOut

C = TypeVar("C", bound="Callable[..., object]")

_FOLDER = click.Path(path_type=Path)
_INCOMPLETE = 1
"""The exit code if something was left out."""
_FROM_URL = "The base URL of the other server, if its data does not say it."
_AS = (
    "The name of a pod here: with OLD=, that of the pod OLD; without, that of the pod at the root "
    "of the other server. [repeatable]"
)
_SHOWN = 50
"""How many of the things left out are printed; --json has all of them."""


@click.group("import")
def import_() -> None:
    """Import pods with their accounts from another Solid server, or files into a pod.

    Stop the other server first, or import from a copy of its folder: it must not change meanwhile.
    This server may be running. A pod becomes visible when it is complete. If a command was
    interrupted, run it again. It exits with code 1 if anything was left out.
    """


def _server_command(name: str, title: str, folder: str) -> click.Command:
    """The command for one kind of server."""

    @click.option("--from-url", metavar="URL", help=_FROM_URL)
    @click.option("--as", "renamed", metavar="[OLD=]NEW", multiple=True, help=_AS)
    @click.option("--dry-run", is_flag=True, help="Read everything and report, but store nothing.")
    @json_option
    @root_options
    def command(
        folder: Path,
        *,
        from_url: str | None,
        renamed: tuple[str, ...],
        dry_run: bool,
        as_json: bool,
        **options: Any,  # noqa: ANN401 - one for each setting
    ) -> None:
        from podstead.app.operator.import_server import move_in

        progress = ProgressLine()

        def count(pod: str, done: int, total: int) -> None:
            progress(f"{'Reading' if dry_run else 'Importing'} the pod '{pod}'", done, total)

        try:
            report = asyncio.run(
                move_in(
                    settings_from(options),
                    name,
                    folder,
                    from_url=from_url,
                    names=_names(renamed),
                    dry_run=dry_run,
                    counting=count,
                )
            )
        finally:
            progress.end()
        _print(report, as_json=as_json)

    command.__doc__ = f"""Import all pods and accounts of a {title}.

    FOLDER is {folder}. URLs stay as they are if this server has the base URL of the other one;
    otherwise names in documents and access rules follow. People sign in with the passwords that
    they have.
    """
    argument = click.argument("folder", type=_FOLDER)
    return click.command(name, short_help=f"Import from a {title}.")(argument(command))


for each in (
    ("css", "Community Solid Server (version 7)", "the one of its option --rootFilePath"),
    ("nss", "Node Solid Server (versions 5 and 6)", "the one that has 'data' and '.db'"),
    ("jss", "javascript-solid-server", "the one of its option --root"),
):
    import_.add_command(_server_command(*each))


_INTO = (
    "The container for the files, in a pod that exists. It is created with the containers above it."
)


def _into_options(command: C) -> C:
    """The options of the commands that import files."""
    for option in (
        root_options,
        json_option,
        click.option("--dry-run", is_flag=True, help="Read everything, but store nothing."),
        click.option("--into", required=True, metavar="POD/PATH/", help=_INTO),
    ):
        command = option(command)
    return command


@import_.command("folder", short_help="Import a folder of files into a pod.")
@click.argument("folder", type=_FOLDER)
@_into_options
def import_folder(folder: Path, **options: Any) -> None:  # noqa: ANN401 - one for each setting
    """Import everything in FOLDER into a container of a pod.

    A file becomes a document of its name, with the date that it has and the media type of its
    extension or of its content. Nothing that is in the pod already is replaced. Who may read the
    documents follows from the access rules of the container.
    """
    from podstead.app.operator.import_files import files_of

    _import_files(files_of(folder), f"folder:{folder.resolve()}", options)


@import_.command("webdav", short_help="Import a folder of a WebDAV server into a pod.")
@click.argument("place", metavar="PATH|URL")
@click.option("--user", metavar="NAME", help="Sign in there as NAME, with a password.")
@_into_options
def import_webdav(place: str, *, user: str | None, **options: Any) -> None:  # noqa: ANN401 - one for each setting
    """Import everything in a folder of a WebDAV server into a container of a pod.

    With a URL, the server is asked as by any client, and media types and dates are those that it
    states. With a path, the folder on its disk is read, as by 'podstead import folder'. Properties
    and access rules of WebDAV are not imported. If standard input is not a terminal, its first line
    is the password.
    """
    from podstead.app.operator.import_files import files_of, webdav_folder

    if "://" in place:
        password = "" if user is None else _password()
        source = webdav_folder(place, user=user, password=password)
        _import_files(source, f"webdav:{place}", options)
    else:
        _import_files(files_of(Path(place)), f"folder:{Path(place).resolve()}", options)


def _import_files(
    opened: AbstractAsyncContextManager[FileSource], source_id: str, options: dict[str, Any]
) -> None:
    """Import files and print what came of it. Raises Exit if anything was left out."""
    from podstead.app.operator.import_files import import_files

    into, dry_run, as_json = (options.pop(name) for name in ("into", "dry_run", "as_json"))
    settings, progress = settings_from(options), ProgressLine()

    step = f"{'Reading the files for' if dry_run else 'Importing into'} {into}"
    progress(step)

    async def run() -> FilesImportReport:
        async with opened as source:
            return await import_files(
                settings,
                source,
                source_id=source_id,
                into=into,
                dry_run=dry_run,
                counting=lambda done: progress(step, done),
            )

    try:
        report = asyncio.run(run())
    finally:
        progress.end()
    if as_json:
        print_json(report)
    else:
        done = "Would import" if report.dry_run else "Imported"
        echo(
            f"{done} into {report.url}  {counted(report.documents, 'document')}, "
            f"{counted(report.containers, 'container')}, {counted(report.size_bytes, 'byte')}; "
            f"already there: {report.already_there:,}"
        )
        _print_left_out(report.left_out)
    if report.left_out:
        sys.exit(_INCOMPLETE)


def _password() -> str:
    if sys.stdin.isatty():
        typed: str = click.prompt("Password", hide_input=True)
        return typed
    return sys.stdin.readline().rstrip("\r\n")


def _names(renamed: tuple[str, ...]) -> dict[str, str]:
    """New names of pods by their old ones. Raises BadParameter."""
    names: dict[str, str] = {}
    for each in renamed:
        old, _, new = each.rpartition("=")
        if not new or old in names:
            raise click.BadParameter("must be NEW, or OLD=NEW once for each OLD", param_hint="--as")
        names[old] = new
    return names


def _print(report: ServerImportReport, *, as_json: bool) -> None:
    """Print what came of an import. Raises Exit if anything was left out."""
    if as_json:
        print_json(report)
    else:
        done = "Would import" if report.dry_run else "Imported"
        for pod in report.pods:
            if pod.already_there:
                added = "; its account is here now" if pod.account_added else ""
                echo(f"{pod.url}  was imported before{added}")
                continue
            account = "with its account" if pod.account else "without an account"
            echo(
                f"{done} {pod.url}  {counted(pod.documents, 'document')}, "
                f"{counted(pod.containers, 'container')}, {counted(pod.size_bytes, 'byte')}, "
                f"{account}"
            )
        for note in report.notes:
            echo(f"Note: {note}")
        _print_left_out(report.left_out)
    if report.left_out:
        sys.exit(_INCOMPLETE)


def _print_left_out(left_out: Sequence[LeftOut]) -> None:
    if left_out:
        echo(f"{len(left_out)} left out or changed:", err=True)
    for left in left_out[:_SHOWN]:
        echo(f"  {left.path}: {left.reason}", err=True)
    if len(left_out) > _SHOWN:
        echo("  … and more: --json lists all of them", err=True)
