"""``podstead invite``: the operator creates, lists and revokes invitations."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from podstead.cli.administration import administered
from podstead.cli.options import root_options
from podstead.cli.output import echo
from podstead.cli.tables import json_option, print_each_json, print_json, print_table, time_text

if TYPE_CHECKING:  # at run time it is loaded when it is needed
    from podstead.app.operator.invitation_administration import (
        InvitationAdministration,
        ListedInvitation,
    )

T = TypeVar("T")


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
@json_option
@root_options
def create_invitation(uses: int, days: int, *, as_json: bool, **options: Any) -> None:  # noqa: ANN401 - one for each setting
    """Print the code of a new invitation, and the link that leads to the registration with it.

    Both are shown only now, because the server stores a hash of the code. Whoever has the code can
    register, until the invitation is used up or has ended.
    """
    made = _administered(options, lambda administration: administration.create(uses, days))
    if as_json:
        print_json(_as_json(made))
        return
    echo(made.link or made.code)
    echo(f"The code of the invitation {made.invitation_id} is {made.code}", err=True)


@invite.command("list", short_help="List invitations with the uses left.")
@json_option
@root_options
def list_invitations(*, as_json: bool, **options: Any) -> None:  # noqa: ANN401 - one for each setting
    """List the invitations that have not ended, newest first: id, uses left, uses in all, time of
    creation, end."""
    listed = _administered(options, lambda administration: administration.list())
    if as_json:
        print_json([_as_json(each) for each in listed])
        return
    print_table(("ID", "LEFT", "USES", "CREATED", "ENDS"), [_row(each) for each in listed])


@invite.command("revoke", short_help="End invitations.")
@click.argument("invitation_ids", metavar="ID...", nargs=-1, required=True)
@json_option
@root_options
def revoke_invitations(
    invitation_ids: Sequence[str],
    *,
    as_json: bool,
    **options: Any,  # noqa: ANN401 - one for each setting
) -> None:
    """End each invitation ID (see 'podstead invite list'). Accounts that were created with it
    remain."""

    async def act(administration: InvitationAdministration) -> None:
        for each in invitation_ids:
            await administration.revoke(each)

    _administered(options, act)
    if as_json:
        print_each_json([{"id": each, "revoked": True} for each in invitation_ids])
        return
    for each in invitation_ids:
        echo(f"Revoked the invitation {each}.")


def _as_json(each: ListedInvitation) -> dict[str, object]:
    """The code and the link are known only of a new one."""
    secret = {"code": each.code, "link": each.link or None} if each.code else {}
    return {
        "id": each.invitation_id,
        **secret,
        "uses": each.uses,
        "uses_left": each.uses_left,
        "created": time_text(each.created_s),
        "expires": time_text(each.expires_s),
    }


def _row(each: ListedInvitation) -> tuple[str, ...]:
    return (
        each.invitation_id,
        str(each.uses_left),
        str(each.uses),
        time_text(each.created_s),
        time_text(each.expires_s),
    )


def _administered(
    options: dict[str, Any], act: Callable[[InvitationAdministration], Awaitable[T]]
) -> T:
    from podstead.app.operator.invitation_administration import open_invitation_administration

    return administered(open_invitation_administration, options, act)
