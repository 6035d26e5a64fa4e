"""``podstead backup`` and ``podstead restore``."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from podstead.cli.options import root_options, settings_from
from podstead.cli.progress import ProgressLine

if TYPE_CHECKING:  # at run time it is loaded when it is needed
    from podstead.storage.backup.manifest import Manifest

_PATH = click.Path(path_type=Path)


@click.command(short_help="Back up everything, also while the server runs.")
@click.argument("target", metavar="FOLDER", type=_PATH)
@click.option(
    "--previous",
    type=_PATH,
    metavar="FOLDER",
    help="An earlier backup. Files that did not change are shared with it (hard links), so the new "
    "backup takes only the space of what did.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the manifest as JSON.")
@root_options
def backup(target: Path, *, previous: Path | None, as_json: bool, **options: Any) -> None:  # noqa: ANN401 - one for each setting
    """Back up everything that the server stores into the new folder FOLDER.

    The server may be running, and people may write meanwhile. The backup contains every write that
    was acknowledged before its moment, which the command prints. What is written is read back and
    compared. The backup contains keys and password hashes: keep it as secret as the data root.
    """
    from podstead.app.operator.backup import back_up_to_folder

    settings = settings_from(options)
    progress = ProgressLine()
    try:
        manifest = asyncio.run(
            back_up_to_folder(settings, target, previous=previous, on_step=progress)
        )
    except OSError as error:
        raise click.ClickException(f"The backup failed: {error}") from error
    finally:
        progress.end()
    _print(manifest, f"Backed up to {target}", as_json=as_json)


@click.command(short_help="Restore a backup into a new data root.")
@click.argument("source", metavar="BACKUP", type=_PATH)
@click.option(
    "--verify-only", is_flag=True, help="Read and verify the whole backup, and restore nothing."
)
@click.option("--json", "as_json", is_flag=True, help="Print the manifest as JSON.")
@root_options
def restore(source: Path, *, verify_only: bool, as_json: bool, **options: Any) -> None:  # noqa: ANN401 - one for each setting
    """Restore BACKUP into the data root, which must be empty or not exist yet.

    Every file is verified while it is restored. If anything is wrong, nothing is left in the data
    root. Start the server afterwards with the same base URL as before.
    """
    from podstead.app.operator.restore import restore_backup, verify_backup

    settings = settings_from(options)
    progress = ProgressLine()
    try:
        if verify_only:
            manifest = verify_backup(source, on_step=progress)
        else:
            manifest = restore_backup(settings, source, on_step=progress)
    except OSError as error:
        raise click.ClickException(f"The backup could not be restored: {error}") from error
    finally:
        progress.end()
    done = f"Verified {source}" if verify_only else f"Restored {source} into {settings.root}"
    _print(manifest, done, as_json=as_json)


def _print(manifest: Manifest, done: str, *, as_json: bool) -> None:
    """Print what was done. A backup of a damaged root ends the command with exit code 1."""
    from podstead.storage.backup.manifest import manifest_text

    if as_json:
        click.echo(manifest_text(manifest), nl=False)
    else:
        counts = manifest.counts
        click.echo(
            f"{done}: {counts.pods} pods, {counts.resources} resources, "
            f"{counts.repositories} git repositories."
        )
        click.echo(f"It contains every write that was acknowledged before {manifest.moment}.")
    for fault in manifest.faults:
        click.echo(f"Warning: {fault}.", err=True)
    if manifest.faults:
        click.echo("Find out more with 'podstead check'.", err=True)
        sys.exit(1)
