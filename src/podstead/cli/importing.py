"""``podstead import``: pods and accounts of other servers, and folders of files, come here."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from podstead.cli.options import root_options, settings_from
from podstead.cli.progress import ProgressLine

if TYPE_CHECKING:  # at run time it is loaded when it is needed
    from podstead.app.operator.moving_in import MoveReport

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
    @click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
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
        from podstead.app.operator.moving_in import move_in

        progress = ProgressLine()

        def count(pod: str, done: int, total: int) -> None:
            progress(f"Importing the pod '{pod}'", done, total)

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


def _names(renamed: tuple[str, ...]) -> dict[str, str]:
    """New names of pods by their old ones. Raises BadParameter."""
    names: dict[str, str] = {}
    for each in renamed:
        old, _, new = each.rpartition("=")
        if not new or old in names:
            raise click.BadParameter("must be NEW, or OLD=NEW once for each OLD", param_hint="--as")
        names[old] = new
    return names


def _print(report: MoveReport, *, as_json: bool) -> None:
    """Print what came of an import. Raises Exit if anything was left out."""
    import msgspec

    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(report)).decode())
    else:
        done = "Would import" if report.dry_run else "Imported"
        for pod in report.pods:
            if pod.already_there:
                click.echo(f"{pod.url}  was imported before")
                continue
            account = "with its account" if pod.account else "without an account"
            click.echo(
                f"{done} {pod.url}  {pod.documents} documents, {pod.containers} containers, "
                f"{pod.size_bytes} bytes, {account}"
            )
        for note in report.notes:
            click.echo(f"Note: {note}")
        if report.left_out:
            click.echo(f"{len(report.left_out)} left out or changed:", err=True)
            for left in report.left_out[:_SHOWN]:
                click.echo(f"  {left.path}: {left.reason}", err=True)
            if len(report.left_out) > _SHOWN:
                click.echo("  … and more: --json lists all of them", err=True)
    if report.left_out:
        sys.exit(_INCOMPLETE)
