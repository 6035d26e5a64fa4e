"""``podstead backup``, ``podstead restore``, and ``podstead copy`` to another place."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

import click

from podstead.cli import running as cli_running
from podstead.cli.options import root_options
from podstead.cli.output import bytes_text, echo, json_option, print_json_line
from podstead.config import Settings, value_types
from podstead.core.messages import counted

if TYPE_CHECKING:
    from podstead.app.operator.backup_series import BackupSeries, SeriesResult
    from podstead.app.operator.copying import Place
    from podstead.storage.backup.reading import Manifest


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
@cli_running.with_settings
def backup(
    settings: Settings,
    target: Path,
    *,
    previous: Path | None,
    every: str | None,
    keep: str | None,
    as_json: bool,
) -> None:
    """Back up everything that the server stores into the new folder FOLDER, or as one compressed
    file.

    The server may be running, and people may write meanwhile. The backup contains every write that
    was acknowledged before its moment, which the command prints. What is written is read back and
    compared. The backup contains keys and password hashes: keep it as secret as the data root.

    With --keep or --every, FOLDER may exist and gets a folder for each backup, named by its time.
    """
    is_archive = target.name.endswith(_ARCHIVE)
    is_series = every is not None or keep is not None
    if is_archive and (previous or is_series):
        raise click.UsageError("An archive is always complete: use a folder for a series.")
    if previous and is_series:
        raise click.UsageError("With --keep or --every, the previous backup is found in FOLDER.")
    if is_series:
        from podstead.app.operator.backup_series import BackupSeries
        from podstead.storage.backup.retention import parse_interval_s, parse_keep_rules

        series = BackupSeries(settings, target, _parsed(parse_keep_rules, keep, "--keep") or ())
        interval_s = _parsed(parse_interval_s, every, "--every")
        return _run_series(series, interval_s, as_json=as_json)

    from podstead.app.operator.backup import back_up_to_archive, back_up_to_folder

    manifest = cli_running.with_progress(
        lambda progress: (
            back_up_to_archive(settings, target, on_step=progress)
            if is_archive
            else back_up_to_folder(settings, target, previous=previous, on_step=progress)
        ),
        "The backup failed",
    )
    return _output(manifest, f"Backed up to {target}").show(as_json=as_json)


@click.command(short_help="Restore a backup into a new data root.")
@click.argument("source", metavar="BACKUP", type=_PATH)
@click.option(
    "--verify-only", is_flag=True, help="Read and verify the whole backup, and restore nothing."
)
@cli_running.on_settings()
def restore(settings: Settings, source: Path, *, verify_only: bool) -> cli_running.Output:
    """Restore BACKUP, a folder or a file, into the data root, which must be empty or not exist yet.

    Every file is verified while it is restored. If anything is wrong, nothing is left in the data
    root. Start the server afterwards with the same base URL as before.
    """
    from podstead.app.operator.backup import restore_backup, verify_backup

    with cli_running.showing_progress("The backup could not be read") as progress:
        if verify_only:
            manifest = verify_backup(source, on_step=progress)
        else:
            manifest = restore_backup(settings, source, on_step=progress)
    done = f"Verified {source}" if verify_only else f"Restored {source} into {settings.root}"
    return _output(manifest, done)


def _run_series(series: BackupSeries, interval_s: int | None, *, as_json: bool) -> None:
    from podstead.app.operator.backup_series import keep_backing_up

    def on_result(result: SeriesResult) -> None:
        progress.end()
        _print_result(result, as_json=as_json)

    def on_failure(error: Exception) -> None:
        progress.end()
        echo(f"The backup failed: {error}", err=True)

    with cli_running.showing_progress("The backup failed", only_on_terminal=True) as progress:
        if interval_s is None:
            result = asyncio.run(series.add(progress))
            on_result(result)
            sys.exit(1 if result.manifest.faults else 0)
        # As a service, it ends when it is told to, and removes what it has begun.
        signal.signal(signal.SIGTERM, lambda _number, _frame: sys.exit(0))
        running = keep_backing_up(
            series, interval_s, on_step=progress, on_result=on_result, on_failure=on_failure
        )
        asyncio.run(running)


def _parsed(parse: Callable[[str], T], text: str | None, option: str) -> T | None:
    try:
        return None if text is None else parse(text)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint=option) from error


def _output(manifest: Manifest, done: str) -> cli_running.Output:
    """What was done. A backup of a damaged root ends the command with exit code 1."""
    counts = manifest.counts
    lines = [
        (
            f"{done}: {counted(counts.pods, 'pod')}, {counted(counts.resources, 'resource')}, "
            f"{counted(counts.repositories, 'repository')}."
        ),
        f"It contains every write that was acknowledged before {manifest.moment}.",
    ]
    return cli_running.Output(
        manifest, lines, [*_faults(manifest)], exit_code=1 if manifest.faults else 0
    )


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
    for line in _faults(manifest):
        echo(line, err=True)


def _faults(manifest: Manifest) -> Iterator[str]:
    for fault in manifest.faults:
        yield f"Warning: {fault}."
    if manifest.faults:
        yield "Find out more with 'podstead check'."


_OPTIONS: Final = ("--from", "--to")
_DATABASES: Final = ("postgresql:", "postgres:")
_BUCKETS: Final = "s3:"
_METAVAR: Final = "FOLDER|URL…"


class _PlacesCommand(click.Command):
    """A command in which several values may follow ``--from`` and ``--to``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, _repeated(args))


def _repeated(args: Sequence[str]) -> list[str]:
    """The arguments with the option before each of its values."""
    found: list[str] = []
    option: str | None = None
    for argument in args:
        if argument.startswith("-"):
            option = argument if argument in _OPTIONS else None
            if option is None:
                found.append(argument)
        elif option is None:
            found.append(argument)
        else:
            found += [option, argument]
    return found


@click.command("copy", cls=_PlacesCommand, short_help="Copy everything to another place.")
@click.option(
    "--from",
    "source",
    multiple=True,
    required=True,
    metavar=_METAVAR,
    help="What to copy: a data root, its database and its place for large bodies; those that the "
    "servers have, in any order.",
)
@click.option(
    "--to",
    "target",
    multiple=True,
    required=True,
    metavar=_METAVAR,
    help="An empty place, described in the same way.",
)
@click.option(
    "--start-over", is_flag=True, help="Remove what an unfinished copy has brought, and copy anew."
)
@json_option
@cli_running.shows_result
def copy_place(
    source: tuple[str, ...], target: tuple[str, ...], *, start_over: bool
) -> cli_running.Output:
    """Copy everything that a server stores to another place, and verify it: from SQLite to
    PostgreSQL and back, or to another database.

    \b
      podstead copy --from ./data --to postgresql://db.example/podstead s3://bucket/pods
      podstead copy --from postgresql://db.example/podstead s3://bucket/pods --to ./data

    Stop all servers first. The source is not changed. Versions and the positions of the change log
    stay, so that clients and watchers go on where they were. What is copied is read back and
    compared; no server starts on the target before that is done. Run an interrupted copy again to
    continue it.
    """  # noqa: D301 - a control character keeps the lines of the example apart
    from podstead.app.operator.copying import copy_everything

    places = _place(source, "--from"), _place(target, "--to")
    result = cli_running.with_progress(
        lambda progress: copy_everything(*places, start_over=start_over, on_step=progress),
        "The copy failed",
    )
    pods = f"{counted(result.pods, 'pod')} with {counted(result.resources, 'resource')}"
    lines = [f"Copied and verified {pods} ({bytes_text(result.body_bytes)})."]
    if result.unfinished_uploads:
        uploads = counted(result.unfinished_uploads, "unfinished upload")
        lines.append(f"{uploads} not copied: their clients start again.")
    lines.append(f"Start the server there with --base-url {result.base_url}.")
    return cli_running.Output(result, lines)


def _place(words: Sequence[str], option: str) -> Place:
    from podstead.app.operator.copying import Place
    from podstead.storage.copying.rows import CopyRefused

    databases = [word for word in words if word.startswith(_DATABASES)]
    buckets = [word for word in words if word.startswith(_BUCKETS)]
    folders = [Path(word) for word in words if word not in {*databases, *buckets}]
    # A second folder is for large bodies.
    roots, bodies = folders[:1], [*buckets, *(str(each.resolve()) for each in folders[1:])]
    if len(databases) > 1 or len(bodies) > 1:
        message = "must be one data root, one database and one place for large bodies at most"
        raise click.BadParameter(message, param_hint=option)
    database = _parsed_place(value_types.POSTGRESQL_URL, databases, option)
    place_of_bodies = _parsed_place(value_types.BODIES, bodies, option)
    try:
        return Place(roots[0] if roots else None, database, place_of_bodies)
    except CopyRefused as error:
        raise click.BadParameter(str(error), param_hint=option) from error


def _parsed_place(kind: value_types.ValueType[T], words: Sequence[str], option: str) -> T | None:
    try:
        return kind.parse(words[0]) if words else None
    except ValueError as error:
        raise click.BadParameter(f"{words[0]}: {kind.expected}", param_hint=option) from error
