"""``podstead import``: pods and accounts of other servers, and folders of files, come here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from podstead.cli.output import ProgressLine, read_password
from podstead.cli.running import Note, Output, on_settings, with_progress
from podstead.config import Settings
from podstead.core.messages import counted

if TYPE_CHECKING:
    from podstead.features.importers.files import FilesImportReport, FileSource
    from podstead.features.importers.pods import ImportedPod
    from podstead.features.importers.values import LeftOut


C = TypeVar("C", bound=Callable[..., object])

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
    @on_settings()
    def command(
        settings: Settings,
        folder: Path,
        *,
        from_url: str | None,
        renamed: tuple[str, ...],
        dry_run: bool,
    ) -> Output:
        from podstead.features.importers.pods import move_in

        names, reading = _names(renamed), "Reading" if dry_run else "Importing"
        report = with_progress(
            lambda progress: move_in(
                settings,
                name,
                folder,
                from_url=from_url,
                names=names,
                dry_run=dry_run,
                counting=lambda pod, done, total: progress(
                    f"{reading} the pod '{pod}'", done, total
                ),
            )
        )
        pods = [_pod_line(each, "Would import" if dry_run else "Imported") for each in report.pods]
        notes = [f"Note: {note}" for note in report.notes]
        return _result(report, [*pods, *notes], report.left_out)

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
    command = click.option("--dry-run", is_flag=True, help="Read everything, but store nothing.")(
        command
    )
    return click.option("--into", required=True, metavar="POD/PATH/", help=_INTO)(command)


@import_.command("folder", short_help="Import a folder of files into a pod.")
@click.argument("folder", type=_FOLDER)
@_into_options
@on_settings()
def import_folder(settings: Settings, folder: Path, *, into: str, dry_run: bool) -> Output:
    """Import everything in FOLDER into a container of a pod.

    A file becomes a document of its name, with the date that it has and the media type of its
    extension or of its content. Nothing that is in the pod already is replaced. Who may read the
    documents follows from the access rules of the container.
    """
    from podstead.features.importers.files import files_of

    source_id = f"folder:{folder.resolve()}"
    return _import_files(settings, files_of(folder), source_id, into=into, dry_run=dry_run)


@import_.command("webdav", short_help="Import a folder of a WebDAV server into a pod.")
@click.argument("place", metavar="PATH|URL")
@click.option("--user", metavar="NAME", help="Sign in there as NAME, with a password.")
@_into_options
@on_settings()
def import_webdav(
    settings: Settings, place: str, *, user: str | None, into: str, dry_run: bool
) -> Output:
    """Import everything in a folder of a WebDAV server into a container of a pod.

    With a URL, the server is asked as by any client, and media types and dates are those that it
    states. With a path, the folder on its disk is read, as by 'podstead import folder'. Properties
    and access rules of WebDAV are not imported. If standard input is not a terminal, its first line
    is the password.
    """
    from podstead.features.importers.files import files_of, webdav_folder

    if "://" in place:
        password = "" if user is None else read_password()
        source, source_id = webdav_folder(place, user=user, password=password), f"webdav:{place}"
    else:
        source, source_id = files_of(Path(place)), f"folder:{Path(place).resolve()}"
    return _import_files(settings, source, source_id, into=into, dry_run=dry_run)


def _import_files(
    settings: Settings,
    opened: AbstractAsyncContextManager[FileSource],
    source_id: str,
    *,
    into: str,
    dry_run: bool,
) -> Output:
    from podstead.features.importers.files import import_files

    step = f"{'Reading the files for' if dry_run else 'Importing into'} {into}"

    async def run(progress: ProgressLine) -> FilesImportReport:
        progress(step)
        async with opened as source:
            return await import_files(
                settings,
                source,
                source_id=source_id,
                into=into,
                dry_run=dry_run,
                counting=lambda done: progress(step, done),
            )

    report = with_progress(run)
    done = "Would import" if report.dry_run else "Imported"
    line = (
        f"{done} into {report.url}  {counted(report.documents, 'document')}, "
        f"{counted(report.containers, 'container')}, {counted(report.size_bytes, 'byte')}; "
        f"already there: {report.already_there:,}"
    )
    return _result(report, [line], report.left_out)


def _names(renamed: tuple[str, ...]) -> dict[str, str]:
    """New names of pods by their old ones. Raises BadParameter."""
    names: dict[str, str] = {}
    for each in renamed:
        old, _, new = each.rpartition("=")
        if not new or old in names:
            raise click.BadParameter("must be NEW, or OLD=NEW once for each OLD", param_hint="--as")
        names[old] = new
    return names


def _pod_line(pod: ImportedPod, done: str) -> str:
    if pod.already_there:
        added = "; its account is here now" if pod.account_added else ""
        return f"{pod.url}  was imported before{added}"
    account = "with its account" if pod.account else "without an account"
    return (
        f"{done} {pod.url}  {counted(pod.documents, 'document')}, "
        f"{counted(pod.containers, 'container')}, {counted(pod.size_bytes, 'byte')}, "
        f"{account}"
    )


def _result(report: object, lines: Sequence[str], left_out: Sequence[LeftOut]) -> Output:
    """What came of an import."""
    exit_code = _INCOMPLETE if left_out else 0
    return Output(report, [*lines, *_left_out_lines(left_out)], exit_code=exit_code)


def _left_out_lines(left_out: Sequence[LeftOut]) -> Iterator[Note]:
    if left_out:
        yield Note(f"{len(left_out)} left out or changed:")
    for left in left_out[:_SHOWN]:
        yield Note(f"  {left.path}: {left.reason}")
    if len(left_out) > _SHOWN:
        yield Note("  … and more: --json lists all of them")
