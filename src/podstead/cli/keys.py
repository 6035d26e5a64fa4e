"""``podstead keys``: the keys by which the identity provider signs its tokens (A-44)."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import click

from podstead.cli.options import OPTION_ROWS, settings_from, settings_options
from podstead.cli.tables import table, time_text

_ROWS = {row.name: row for row in OPTION_ROWS}
_root_options = settings_options([_ROWS["root"], _ROWS["config"]])


@click.group()
def keys() -> None:
    """List and replace the keys that sign the identity provider's tokens.

    A running server sees the change within a minute. Keys are replaced by themselves every 90
    days.
    """


@keys.command("list", short_help="List the keys, with their states.")
@_root_options
def list_(**options: Any) -> None:  # noqa: ANN401 - one for each setting
    """List the keys, newest first: id, algorithm, since when they sign, and their state.

    A key that is next is published but signs nothing yet; one that is replaced is published until
    no token of it is in use, and then kept for a while to recognise whoever signs out.
    """
    from podstead.app.key_desk import KeyDesk

    rows = KeyDesk(settings_from(options)).list()
    lines = [
        (row.key_id, row.algorithm, time_text(row.made_s), time_text(row.signs_from_s), row.state)
        for row in rows
    ]
    for line in table(("ID", "ALGORITHM", "MADE", "SIGNS FROM", "STATE"), lines):
        click.echo(line)


@keys.command(short_help="Make new keys.")
@click.option(
    "--compromised",
    is_flag=True,
    help="The keys there are may have been stolen: remove them, and sign with the new ones at "
    "once. Every token there is stops counting; applications sign in again.",
)
@_root_options
def rotate(*, compromised: bool, **options: Any) -> None:  # noqa: ANN401 - one for each setting
    """Make a new key for each algorithm.

    It is published at once and signs from a day later on, so that every server that keeps a copy
    of the keys knows it by then. Tokens signed before go on to count.
    """
    from podstead.app.key_desk import open_key_desk

    settings = settings_from(options)

    async def run() -> int:
        async with open_key_desk(settings) as desk:
            return desk.rotate(compromised=compromised)

    signs_from_s = asyncio.run(run())
    when = "at once" if signs_from_s <= _now_s() else f"from {time_text(signs_from_s)} on"
    click.echo(f"The new keys sign {when}.")


def _now_s() -> int:
    return int(datetime.now(tz=UTC).timestamp())
