"""``podstead invite``: the operator creates, lists and revokes invitations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from podstead.cli.output import table_lines, time_text
from podstead.cli.running import Note, Output, on_root

if TYPE_CHECKING:  # at run time it is loaded when it is needed
    from podstead.app.operator.administration import DataRoot
    from podstead.storage.invitations import Invitation


@click.group()
def invite() -> None:
    """Create, list and revoke invitations to register.

    People need an invitation where the server runs with --registration invited. Changes take effect
    in a running server with its next request.
    """


@invite.command("create", short_help="Create an invitation.")
@click.option(
    "--uses",
    metavar="NUMBER",
    type=click.IntRange(1, 10_000),
    default=1,
    show_default=True,
    help="How many people can use it.",
)
@click.option(
    "--days",
    metavar="NUMBER",
    type=click.IntRange(1, 3650),
    default=7,
    show_default=True,
    help="For how many days it is valid.",
)
@click.option(
    "--note",
    metavar="TEXT",
    default="",
    help="A note for those you invite, shown on the registration page.",
)
@click.option(
    "--send-to",
    metavar="ADDRESS",
    default="",
    help="An e-mail address to which the running server sends the invitation.",
)
@on_root()
async def create_invitation(
    root: DataRoot, uses: int, days: int, note: str, send_to: str
) -> Output:
    """Print the code of a new invitation, and the link that leads to the registration with it.

    Both are shown only now, because the server stores a hash of the code. Whoever has the code can
    register, until the invitation is used up or has ended. With --send-to, they are printed
    nowhere: only the message has them. It waits until a server that sends mail runs, for two days
    at most.
    """
    made = await root.invitations.create(uses=uses, days=days, note=note, send_to=send_to)
    if send_to:
        return Output(
            _as_json(made.invitation, made.expires_ms),
            [f"The invitation {made.invitation.invitation_id} waits to be sent to {send_to}."],
        )
    link = root.invitation_link(made.code)
    return Output(
        _as_json(made.invitation, made.expires_ms, code=made.code, link=link),
        [
            link or made.code,
            Note(f"The code of the invitation {made.invitation.invitation_id} is {made.code}"),
        ],
    )


@invite.command("list", short_help="List invitations with the uses left.")
@on_root()
async def list_invitations(root: DataRoot) -> Output:
    """List the invitations that have not ended, newest first: id, uses left, uses in all, time of
    creation, end."""
    found = [_as_json(each.value, each.expires_ms) for each in await root.invitations.list()]
    columns = ("id", "uses_left", "uses", "created", "expires")
    rows = [[str(each[column]) for column in columns] for each in found]
    return Output(found, table_lines(("ID", "LEFT", "USES", "CREATED", "ENDS"), rows))


@invite.command("revoke", short_help="End invitations.")
@click.argument("invitation_ids", metavar="ID...", nargs=-1, required=True)
@on_root()
async def revoke_invitations(root: DataRoot, invitation_ids: Sequence[str]) -> Output:
    """End each invitation ID (see 'podstead invite list'). Accounts that were created with it
    remain."""
    for each in invitation_ids:
        await root.invitations.revoke(each)
    return Output.of_each(
        [{"id": each, "revoked": True} for each in invitation_ids],
        [f"Revoked the invitation {each}." for each in invitation_ids],
    )


def _as_json(invitation: Invitation, expires_ms: int | None, **secret: object) -> dict[str, object]:
    """The code and the link are known only of a new one."""
    return {
        "id": invitation.invitation_id,
        **secret,
        "note": invitation.note,
        "sent_to": invitation.sent_to,
        "uses": invitation.uses,
        "uses_left": invitation.uses_left,
        "created": time_text(invitation.created_ms // 1000),
        "expires": time_text((expires_ms or 0) // 1000),
    }
