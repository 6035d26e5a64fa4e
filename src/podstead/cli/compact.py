"""``podstead compact``: gives space back to the disk."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import click

from podstead.cli.output import bytes_text, table_lines
from podstead.cli.running import Output, on_settings, with_progress
from podstead.config import Settings
from podstead.core.messages import counted

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
@on_settings()
def compact_data(settings: Settings) -> Output:
    """Remove what is not in use any longer, pack git repositories, and make the database smaller.

    The server does a part of this every ten minutes. The command may run beside it, and does more
    while it is stopped: then it rewrites the database. A PostgreSQL database is vacuumed, and not
    rewritten.
    """
    from podstead.app.operator.compact import compact_root

    result = with_progress(
        lambda progress: compact_root(settings, on_step=progress),
        "The data could not be compacted",
    )
    sizes = {part: (getattr(result.before, part), getattr(result.after, part)) for part in _PARTS}
    return Output(
        {
            **{
                part: {"before_bytes": before, "after_bytes": after}
                for part, (before, after) in sizes.items()
            },
            "database_outcome": result.database.value,
            "packed_repositories": result.packed,
            "busy_repositories": result.busy,
        },
        _lines(result, sizes),
    )


def _lines(result: CompactResult, sizes: Mapping[str, tuple[int, int]]) -> Iterator[str]:
    rows = [
        (part, bytes_text(before), bytes_text(after), bytes_text(max(before - after, 0)))
        for part, (before, after) in sizes.items()
    ]
    yield from table_lines(("", "BEFORE", "AFTER", "GIVEN BACK"), rows)
    if result.busy:
        yield f"Left as before, because in use or damaged: {counted(result.busy, 'repository')}."
    if result.database.value in _MESSAGES:
        yield _MESSAGES[result.database.value]
