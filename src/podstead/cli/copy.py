"""``podstead copy``: copies everything to another place."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

import click

from podstead.cli.output import bytes_text, json_option
from podstead.cli.running import Output, shows_result, with_progress
from podstead.config import value_types
from podstead.core.messages import counted

if TYPE_CHECKING:  # at run time it is loaded when it is needed
    from podstead.app.operator.copying import Place

T = TypeVar("T")

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
@shows_result
def copy_place(source: tuple[str, ...], target: tuple[str, ...], *, start_over: bool) -> Output:
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
    result = with_progress(
        lambda progress: copy_everything(*places, start_over=start_over, on_step=progress),
        "The copy failed",
    )
    pods = f"{counted(result.pods, 'pod')} with {counted(result.resources, 'resource')}"
    lines = [f"Copied and verified {pods} ({bytes_text(result.body_bytes)})."]
    if result.unfinished_uploads:
        uploads = counted(result.unfinished_uploads, "unfinished upload")
        lines.append(f"{uploads} not copied: their clients start again.")
    lines.append(f"Start the server there with --base-url {result.base_url}.")
    return Output(result, lines)


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
    database = _parsed(value_types.POSTGRESQL_URL, databases, option)
    place_of_bodies = _parsed(value_types.BODIES, bodies, option)
    try:
        return Place(roots[0] if roots else None, database, place_of_bodies)
    except CopyRefused as error:
        raise click.BadParameter(str(error), param_hint=option) from error


def _parsed(kind: value_types.ValueType[T], words: Sequence[str], option: str) -> T | None:
    try:
        return kind.parse(words[0]) if words else None
    except ValueError as error:
        raise click.BadParameter(f"{words[0]}: {kind.expected}", param_hint=option) from error
