"""``podstead keys``: the keys with which the identity provider signs its tokens."""

import asyncio

import click

from podstead.cli.output import now_s, table_lines, time_text
from podstead.cli.running import Output, on_settings
from podstead.config import Settings


@click.group()
def keys() -> None:
    """List and replace the keys with which the identity provider signs tokens.

    Changes take effect in a running server within a minute. The server replaces the keys itself
    every 90 days.
    """


@keys.command("list", short_help="List the keys and their states.")
@on_settings()
def list_keys(settings: Settings) -> Output:
    """List the keys, newest first: id, algorithm, time of creation, time of first use, and state.

    A key in state "next" is published but does not sign yet. A replaced key is published until the
    last token that it signed has expired, and is then kept for a while to verify sign-out requests.
    """
    from podstead.app.operator.administration import existing_keys, state_of

    roster = existing_keys(settings).roster()
    fields = [
        {
            "id": each.pair.key_id,
            "algorithm": each.pair.algorithm,
            "created": time_text(each.made_s),
            "signs_from": time_text(each.signs_from_s),
            "state": state_of(each, roster),
        }
        for each in sorted(roster.keys, key=lambda key: (-key.signs_from_s, key.pair.algorithm))
    ]
    head = ("ID", "ALGORITHM", "CREATED", "SIGNS FROM", "STATE")
    return Output(fields, table_lines(head, [tuple(each.values()) for each in fields]))


@keys.command(short_help="Create new keys.")
@click.option(
    "--compromised",
    is_flag=True,
    help="The current keys may have been stolen: delete them, and sign with the new ones "
    "immediately. All existing tokens become invalid, and applications must sign in again.",
)
@on_settings()
def rotate(settings: Settings, *, compromised: bool) -> Output:
    """Create a new key for each algorithm.

    The server publishes it immediately and begins to sign with it a day later, when every server
    that caches the keys has had time to fetch it. Tokens signed with earlier keys remain valid.
    """
    from podstead.app.operator.administration import opened_keys

    async def act() -> int:
        async with opened_keys(settings) as stored:
            if compromised:
                stored.replace_all()
            else:
                stored.rotate()
            return max(key.signs_from_s for key in stored.roster().keys)

    signs_from_s = asyncio.run(act())
    start = time_text(signs_from_s)
    done = "are in use" if signs_from_s <= now_s() else f"will be in use from {start}"
    return Output({"signs_from": start}, [f"The new keys {done}."])
