"""``podstead backup`` and ``podstead restore``."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from podstead.cli.options import root_options, settings_from
from podstead.cli.output import CommandFailed, echo
from podstead.cli.progress import ProgressLine
from podstead.cli.tables import bytes_text, json_option, print_json, print_json_line
from podstead.core.counting import counted

if TYPE_CHECKING:  # at run time it is loaded when it is needed
    from podstead.app.operator.backup_series import BackupSeries, SeriesResult
    from podstead.storage.backup.manifest import Manifest
    from podstead.storage.backup.retention import KeepRule

T = TypeVar("T")

_PATH = click.Path(path_type=Path)
_ARCHIVE = ".tar.zst"


@click.command(short_help="Back up everything, also while the server runs.")
@click.argument("target", metavar=f"FOLDER|FILE{_ARCHIVE}", type=_PATH)
@click.option(
    "--previous",
    type=_PATH,
    metavar="FOLDER",
    help="An earlier backup. Files that did not change are shared with it (hard links), so the new "
    "backup takes only the space of what did.",
)
@click.option(
    "--every",
    metavar="INTERVAL",
    help="Keep running, and make a backup whenever the newest is this old: 30m, 6h, 1d.",
)
@click.option(
    "--keep",
    metavar="RULES",
    help="Make dated backups in FOLDER, each incremental to the one before, and remove those that "
    "are not the newest of one of these days, weeks or months: 7d,4w,6m.",
)
@json_option
@root_options
def backup(
    target: Path,
    *,
    previous: Path | None,
    every: str | None,
    keep: str | None,
    as_json: bool,
    **options: Any,  # noqa: ANN401 - one for each setting
) -> None:
    """Back up everything that the server stores into the new folder FOLDER, or as one compressed
    file.

    The server may be running, and people may write meanwhile. The backup contains every write that
    was acknowledged before its moment, which the command prints. What is written is read back and
    compared. The backup contains keys and password hashes: keep it as secret as the data root.

    With --keep or --every, FOLDER may exist and gets a folder for each backup, named by its time.
    """
    settings = settings_from(options)
    is_archive = target.name.endswith(_ARCHIVE)
    is_series = every is not None or keep is not None
    if is_archive and (previous or is_series):
        raise click.UsageError("An archive is always complete: use a folder for a series.")
    if previous and is_series:
        raise click.UsageError("With --keep or --every, the previous backup is found in FOLDER.")
    if is_series:
        from podstead.app.operator.backup_series import BackupSeries

        series = BackupSeries(settings, target, _rules(keep))
        return _run_series(series, None if every is None else _interval_s(every), as_json=as_json)

    from podstead.app.operator.backup import back_up_to_archive, back_up_to_folder

    with ProgressLine() as progress:
        if is_archive:
            making = back_up_to_archive(settings, target, on_step=progress)
        else:
            making = back_up_to_folder(settings, target, previous=previous, on_step=progress)
        manifest = _reporting(lambda: asyncio.run(making), "The backup failed")
    return _print(manifest, f"Backed up to {target}", as_json=as_json)


@click.command(short_help="Restore a backup into a new data root.")
@click.argument("source", metavar="BACKUP", type=_PATH)
@click.option(
    "--verify-only", is_flag=True, help="Read and verify the whole backup, and restore nothing."
)
@json_option
@root_options
def restore(source: Path, *, verify_only: bool, as_json: bool, **options: Any) -> None:  # noqa: ANN401 - one for each setting
    """Restore BACKUP, a folder or a file, into the data root, which must be empty or not exist yet.

    Every file is verified while it is restored. If anything is wrong, nothing is left in the data
    root. Start the server afterwards with the same base URL as before.
    """
    from podstead.app.operator.restore import restore_backup, verify_backup

    settings = settings_from(options)
    with ProgressLine() as progress:
        manifest = _reporting(
            lambda: (
                verify_backup(source, on_step=progress)
                if verify_only
                else restore_backup(settings, source, on_step=progress)
            ),
            "The backup could not be read",
        )
    done = f"Verified {source}" if verify_only else f"Restored {source} into {settings.root}"
    _print(manifest, done, as_json=as_json)


def _run_series(series: BackupSeries, interval_s: int | None, *, as_json: bool) -> None:
    from podstead.app.operator.backup_series import keep_backing_up

    def on_result(result: SeriesResult) -> None:
        progress.end()
        _print_result(result, as_json=as_json)

    def on_failure(error: Exception) -> None:
        progress.end()
        echo(f"The backup failed: {error}", err=True)

    with ProgressLine(only_on_terminal=True) as progress:
        if interval_s is None:
            result = _reporting(lambda: asyncio.run(series.add(progress)), "The backup failed")
            on_result(result)
            sys.exit(1 if result.manifest.faults else 0)
        # As a service, it ends when it is told to, and removes what it has begun.
        signal.signal(signal.SIGTERM, lambda _number, _frame: sys.exit(0))
        running = keep_backing_up(
            series, interval_s, on_step=progress, on_result=on_result, on_failure=on_failure
        )
        asyncio.run(running)


def _reporting(act: Callable[[], T], what: str) -> T:
    try:
        return act()
    except OSError as error:
        raise CommandFailed(f"{what}: {error}") from error


def _rules(keep: str | None) -> Sequence[KeepRule]:
    from podstead.storage.backup.retention import parse_keep_rules

    try:
        return () if keep is None else parse_keep_rules(keep)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--keep") from error


def _interval_s(every: str) -> int:
    from podstead.storage.backup.retention import parse_interval_s

    try:
        return parse_interval_s(every)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--every") from error


def _print(manifest: Manifest, done: str, *, as_json: bool) -> None:
    """Print what was done. A backup of a damaged root ends the command with exit code 1."""
    if as_json:
        print_json(manifest)
    else:
        counts = manifest.counts
        echo(
            f"{done}: {counted(counts.pods, 'pod')}, {counted(counts.resources, 'resource')}, "
            f"{counted(counts.repositories, 'git repository')}."
        )
        echo(f"It contains every write that was acknowledged before {manifest.moment}.")
    _print_faults(manifest)
    if manifest.faults:
        sys.exit(1)


def _print_result(result: SeriesResult, *, as_json: bool) -> None:
    manifest = result.manifest
    copied, linked = manifest.copied, manifest.linked
    if as_json:
        fields = {
            "folder": str(result.folder),
            "moment": manifest.moment,
            "duration_s": round(result.duration_s, 3),
            "copied_files": copied.files,
            "copied_bytes": copied.bytes,
            "linked_files": linked.files,
            "linked_bytes": linked.bytes,
            "removed": [path.name for path in result.removed],
            "faults": list(manifest.faults),
        }
        print_json_line(fields)
    else:
        removed = f"; removed {', '.join(path.name for path in result.removed)}"
        echo(
            f"{result.folder}: {counted(copied.files, 'file')} copied "
            f"({bytes_text(copied.bytes)}), {linked.files} shared "
            f"({bytes_text(linked.bytes)}) in {result.duration_s:.1f} s"
            f"{removed if result.removed else ''}"
        )
    sys.stdout.flush()
    _print_faults(manifest)


def _print_faults(manifest: Manifest) -> None:
    for fault in manifest.faults:
        echo(f"Warning: {fault}.", err=True)
    if manifest.faults:
        echo("Find out more with 'podstead check'.", err=True)
