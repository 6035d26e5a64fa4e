"""``podstead account``: the operator makes, lists, changes and removes accounts."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from podstead.cli.options import OPTION_ROWS, settings_from, settings_options
from podstead.cli.tables import table, time_text
from podstead.config.kinds import BASE_URL

if TYPE_CHECKING:  # at run time it is loaded when it is needed
    from podstead.app.account_desk import AccountDesk
    from podstead.idp.records import Account

T = TypeVar("T")

_ROWS = {row.name: row for row in OPTION_ROWS}
_root_options = settings_options([_ROWS["root"], _ROWS["config"]])


@click.group()
def account() -> None:
    """Make, list, change and remove accounts of the identity provider.

    An account is named by its pod or by its e-mail address. A running server sees each change with
    its next request; it offers accounts if it was started with --idp.
    """


@account.command(short_help="Make an account, with a pod.")
@click.argument("pod")
@click.option("--email", metavar="ADDRESS", help="The e-mail address, to sign in with as well.")
@click.option(
    "--existing-pod", is_flag=True, help="The pod is there already and has no account: keep it."
)
@_root_options
def create(pod: str, email: str | None, *, existing_pod: bool, **options: Any) -> None:  # noqa: ANN401 - one for each setting
    """Make an account and its POD, and print its WebID.

    You are asked for the password; if the input is no terminal, its first line is the password.
    """
    password = _password()

    async def act(desk: AccountDesk) -> tuple[str, str]:
        make = desk.create_for_pod if existing_pod else desk.create
        return (await make(pod, email=email, password=password)).web_id, desk.issuer

    web_id, issuer = _at_desk(options, act)
    click.echo(web_id)
    if existing_pod:
        click.echo(
            "Tokens of the account are accepted once the profile names this server: "
            f"<#me> <http://www.w3.org/ns/solid/terms#oidcIssuer> <{issuer}>. "
            "The account page offers the owner to add that.",
            err=True,
        )


@account.command("list", short_help="List accounts, with their states.")
@_root_options
def list_(**options: Any) -> None:  # noqa: ANN401 - one for each setting
    """List all accounts by pod: pod, e-mail address, when it was made, state."""
    for line in _table(_at_desk(options, lambda desk: desk.list())):
        click.echo(line)


@account.command(short_help="Set another password.")
@click.argument("name")
@_root_options
def password(name: str, **options: Any) -> None:  # noqa: ANN401 - one for each setting
    """Set another password for the account NAME, and sign it out everywhere.

    You are asked for the password; if the input is no terminal, its first line is the password.
    Applications that the account was connected with have to be allowed again.
    """
    _at_desk(options, lambda desk: desk.find(name))  # before anything is typed
    chosen = _password()
    _at_desk(options, lambda desk: desk.set_password(name, chosen))
    click.echo(f"The account {name} has another password, and is signed out everywhere.")


@account.command(short_help="Let nobody use an account.")
@click.argument("name")
@_root_options
def disable(name: str, **options: Any) -> None:  # noqa: ANN401 - one for each setting
    """Let nobody use the account NAME, and sign it out everywhere. Its pod stays as it is."""
    _at_desk(options, lambda desk: desk.disable(name))
    click.echo(f"The account {name} is disabled.")


@account.command(short_help="Let a disabled account be used again.")
@click.argument("name")
@_root_options
def enable(name: str, **options: Any) -> None:  # noqa: ANN401 - one for each setting
    """Let the account NAME be used again; its owner signs in anew."""
    _at_desk(options, lambda desk: desk.enable(name))
    click.echo(f"The account {name} can be used again.")


@account.command(short_help="Remove an account with its pod.")
@click.argument("name")
@click.option("--yes", is_flag=True, help="Do not ask first.")
@_root_options
def delete(name: str, *, yes: bool, **options: Any) -> None:  # noqa: ANN401 - one for each setting
    """Remove the account NAME, its pod, and everything in the pod. This cannot be undone.

    Nobody gets the name of the pod again, since a new owner would be let in wherever the old one
    was; 'podstead account free-name' allows it.
    """
    found = _at_desk(options, lambda desk: desk.find(name))
    if not yes:
        click.confirm(
            f"Remove the account {name} and everything in its pod '{found.pod}' for good?",
            abort=True,
        )
    _at_desk(options, lambda desk: desk.delete(name))
    click.echo(f"The account {name} and its pod '{found.pod}' are gone.")


@account.command(name="free-name", short_help="Let somebody else have a former pod's name.")
@click.argument("pod")
@_root_options
def free_name(pod: str, **options: Any) -> None:  # noqa: ANN401 - one for each setting
    """Let a new pod have the name POD of one that is gone.

    Its owner will have the WebID of the one before, and so whatever others, here and elsewhere,
    have shared with that WebID. Do it for the same person only.
    """
    _at_desk(options, lambda desk: desk.free_name(pod))
    click.echo(f"A new pod can be named '{pod}'.")


@account.command(short_help="Make client credentials for a script.")
@click.argument("name")
@click.option("--label", metavar="TEXT", default="", help="What they are for, shown to the owner.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
@_root_options
def credentials(name: str, label: str, *, as_json: bool, **options: Any) -> None:  # noqa: ANN401 - one for each setting
    """Make an id and a secret by which a script gets tokens of the account NAME.

    The secret is shown now and never again. The script sends both to the token endpoint, with the
    grant type client_credentials.
    """

    async def act(desk: AccountDesk) -> dict[str, str]:
        made = await desk.create_credentials(name, label=label)
        return {
            "id": made.credential.credential_id,
            "secret": made.secret,
            "webId": made.credential.web_id,
            "issuer": desk.issuer,
        }

    made = _at_desk(options, act)
    if as_json:
        click.echo(json.dumps(made))
    else:
        for key, value in made.items():
            click.echo(f"{key:<6}  {value}")


@account.command(name="change-issuer", short_help="Give the provider another URL.")
@click.argument("url")
@_root_options
def change_issuer(url: str, **options: Any) -> None:  # noqa: ANN401 - one for each setting
    """Let the accounts belong to the provider URL, from the next start of the server on.

    Do it before the server is started with another --idp-base-url, or without one for the first
    time. The profiles go on naming the provider of before, so nobody accepts tokens of the new one:
    each owner signs in and restores the statement on the account page. Applications have to be
    connected anew.
    """
    try:
        issuer = BASE_URL.parse(url)
    except ValueError as error:
        raise click.BadParameter(BASE_URL.expected, param_hint="URL") from error

    async def act(desk: AccountDesk) -> str:
        desk.change_issuer(issuer)
        return desk.issuer

    before = _at_desk(options, act)
    click.echo(f"The accounts belong to {issuer} from the next start on, and no more to {before}.")


def _password() -> str:
    """What the operator types twice, or the first line of what is piped in. Never an argument,
    which everybody on the machine could see."""
    if sys.stdin.isatty():
        typed: str = click.prompt("Password", hide_input=True, confirmation_prompt=True)
        return typed
    line = sys.stdin.readline().rstrip("\r\n")
    if not line:
        raise click.UsageError("The first line of the input must be the password; it is empty.")
    return line


def _at_desk(options: dict[str, Any], act: Callable[[AccountDesk], Awaitable[T]]) -> T:
    from podstead.app.account_desk import open_account_desk

    settings = settings_from(options)

    async def run() -> T:
        async with open_account_desk(settings) as desk:
            return await act(desk)

    return asyncio.run(run())


def _table(accounts: Sequence[Account]) -> list[str]:
    rows = [
        (
            each.pod,
            each.email or "-",
            time_text(each.created_s),
            "disabled" if each.disabled else "in use",
        )
        for each in accounts
    ]
    return table(("POD", "E-MAIL", "CREATED", "STATE"), rows)
