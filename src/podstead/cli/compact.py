"""``podstead compact``."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import click

from podstead.cli.options import root_options, settings_from
from podstead.cli.output import CommandFailed, echo
from podstead.cli.progress import ProgressLine
from podstead.cli.tables import bytes_text, json_option, print_json, print_table
from podstead.core.counting import counted

if TYPE_CHECKING:  # at run time it is loaded when it is needed
    from podstead.app.operator.compact import CompactResult

_PARTS = ("database", "bodies", "repositories", "total")
_MESSAGES = {
    "shrunk": ("A server is running, so the database was not rewritten; that can give back more."),
    "vacuumed": (
        "PostgreSQL uses what is free for new content. VACUUM FULL or pg_repack makes its files "
        "smaller."
    ),
    "needs-to-be-alone": (
        "This database can only be made smaller while no server runs: stop it and run the command "
        "again."
    ),
    "needs-space": "The database was not rewritten: that takes three times its size of free space.",
}


@click.command("compact", short_help="Give space back to the disk.")
@json_option
@root_options
def compact_data(*, as_json: bool, **options: Any) -> None:  # noqa: ANN401 - one for each setting
    """Remove what is not in use any longer, pack git repositories, and make the database smaller.

    The server does a part of this every ten minutes. The command may run beside it, and does more
    while it is stopped: then it rewrites the database. A PostgreSQL database is vacuumed, and not
    rewritten.
    """
    from podstead.app.operator.compact import compact_root

    settings = settings_from(options)
    with ProgressLine() as progress:
        try:
            result = asyncio.run(compact_root(settings, on_step=progress))
        except OSError as error:
            raise CommandFailed(f"The data could not be compacted: {error}") from error
    _print(result, as_json=as_json)


def _print(result: CompactResult, *, as_json: bool) -> None:
    sizes = {part: (getattr(result.before, part), getattr(result.after, part)) for part in _PARTS}
    if as_json:
        fields = {
            part: {"before_bytes": before, "after_bytes": after}
            for part, (before, after) in sizes.items()
        }
        outcome = {"database_outcome": result.database.value}
        counts = {"packed_repositories": result.packed, "busy_repositories": result.busy}
        print_json({**fields, **outcome, **counts})
        return
    rows = [
        (part, bytes_text(before), bytes_text(after), bytes_text(max(before - after, 0)))
        for part, (before, after) in sizes.items()
    ]
    print_table(("", "BEFORE", "AFTER", "GIVEN BACK"), rows)
    if result.busy:
        kept = counted(result.busy, "repository")
        echo(f"Left as before, because in use or damaged: {kept}.")
    message = _MESSAGES.get(result.database.value)
    if message is not None:
        echo(message)
