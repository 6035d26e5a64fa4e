"""``podstead keys``: the keys with which the identity provider signs its tokens (A-44)."""

from __future__ import annotations

from typing import Any

import click

from podstead.cli.administration import administered
from podstead.cli.options import root_options, settings_from
from podstead.cli.output import echo
from podstead.cli.tables import json_option, now_s, print_json, print_table, time_text


@click.group()
def keys() -> None:
    """List and replace the keys with which the identity provider signs tokens.

    Changes take effect in a running server within a minute. The server replaces the keys itself
    every 90 days.
    """


@keys.command("list", short_help="List the keys and their states.")
@json_option
@root_options
def list_keys(*, as_json: bool, **options: Any) -> None:  # noqa: ANN401 - one for each setting
    """List the keys, newest first: id, algorithm, time of creation, time of first use, and state.

    A key in state "next" is published but does not sign yet. A replaced key is published until the
    last token that it signed has expired, and is then kept for a while to verify sign-out requests.
    """
    from podstead.app.operator.key_administration import KeyAdministration

    rows = KeyAdministration(settings_from(options)).list()
    if as_json:
        print_json(
            [
                {
                    "id": row.key_id,
                    "algorithm": row.algorithm,
                    "created": time_text(row.made_s),
                    "signs_from": time_text(row.signs_from_s),
                    "state": row.state,
                }
                for row in rows
            ]
        )
        return
    lines = [
        (row.key_id, row.algorithm, time_text(row.made_s), time_text(row.signs_from_s), row.state)
        for row in rows
    ]
    print_table(("ID", "ALGORITHM", "CREATED", "SIGNS FROM", "STATE"), lines)


@keys.command(short_help="Create new keys.")
@click.option(
    "--compromised",
    is_flag=True,
    help="The current keys may have been stolen: delete them, and sign with the new ones "
    "immediately. All existing tokens become invalid, and applications must sign in again.",
)
@json_option
@root_options
def rotate(*, compromised: bool, as_json: bool, **options: Any) -> None:  # noqa: ANN401 - one for each setting
    """Create a new key for each algorithm.

    The server publishes it immediately and begins to sign with it a day later, when every server
    that caches the keys has had time to fetch it. Tokens signed with earlier keys remain valid.
    """
    from podstead.app.operator.key_administration import (
        KeyAdministration,
        open_key_administration,
    )

    async def act(administration: KeyAdministration) -> int:
        return administration.rotate(compromised=compromised)

    signs_from_s = administered(open_key_administration, options, act)
    if as_json:
        print_json({"signs_from": time_text(signs_from_s)})
    elif signs_from_s <= now_s():
        echo("The new keys are in use.")
    else:
        echo(f"The new keys will be in use from {time_text(signs_from_s)}.")
