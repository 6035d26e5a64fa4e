"""``podstead account``: the operator creates, lists, changes and deletes accounts."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from podstead.cli.administration import administered
from podstead.cli.options import root_options
from podstead.cli.output import confirm, echo
from podstead.cli.tables import (
    json_option,
    names_argument,
    print_each_json,
    print_json,
    print_table,
    time_text,
)
from podstead.config.value_types import BASE_URL

if TYPE_CHECKING:  # at run time it is loaded when it is needed
    from podstead.app.operator.account_administration import AccountAdministration
    from podstead.idp.records import Account

T = TypeVar("T")


@click.group()
def account() -> None:
    """Create, list, change and delete accounts of the identity provider.

    To name an account, use the name of its pod, its e-mail address or its id. Changes take effect
    in a running server with its next request. The server offers accounts only if started with
    --idp.
    """


@account.command("create", short_help="Create an account and its pod.")
@click.argument("pod")
@click.option(
    "--email", metavar="ADDRESS", help="An e-mail address, which also works for signing in."
)
@click.option("--existing-pod", is_flag=True, help="Use an existing pod that has no account.")
@json_option
@root_options
def create_account(
    pod: str,
    email: str | None,
    *,
    existing_pod: bool,
    as_json: bool,
    **options: Any,  # noqa: ANN401 - one for each setting
) -> None:
    """Create an account and its POD, and print its WebID.

    The command prompts for the password. If standard input is not a terminal, its first line is the
    password.
    """
    password = _password()

    async def act(administration: AccountAdministration) -> tuple[Account, str]:
        make = administration.create_for_pod if existing_pod else administration.create
        return await make(pod, email=email, password=password), administration.issuer

    created, issuer = _administered(options, act)
    if as_json:
        print_json(_as_json(created))
    else:
        echo(created.web_id)
    if existing_pod:
        echo(
            "Tokens of the account are valid once the profile states this identity provider: "
            f"<#me> <http://www.w3.org/ns/solid/terms#oidcIssuer> <{issuer}>. "
            "The owner can add the statement on the page Security.",
            err=True,
        )


@account.command("list", short_help="List accounts and their states.")
@json_option
@root_options
def list_accounts(*, as_json: bool, **options: Any) -> None:  # noqa: ANN401 - one for each setting
    """List all accounts, sorted by pod: pod, e-mail address, time of creation, state."""
    accounts = _administered(options, lambda administration: administration.list())
    if as_json:
        print_json([_as_json(each) for each in accounts])
    else:
        _print_table(accounts)


@account.command(short_help="Set a new password.")
@click.argument("name")
@json_option
@root_options
def password(name: str, *, as_json: bool, **options: Any) -> None:  # noqa: ANN401 - one for each setting
    """Set a new password for the account NAME, and sign it out everywhere.

    The command prompts for the password. If standard input is not a terminal, its first line is the
    password. The owner must authorize applications again.
    """
    _administered(
        options, lambda administration: administration.find(name)
    )  # before anything is typed
    chosen = _password()
    _change(
        options,
        [name],
        lambda administration: administration.set_password(name, chosen),
        "Changed the password of the account {name} and signed it out everywhere.",
        as_json=as_json,
    )


def _change_command(name: str, short_help: str, method: str, done: str, description: str) -> None:
    """A command that calls a method of the administration for each of the accounts it is given."""

    @account.command(name, short_help=short_help, help=description)
    @names_argument
    @json_option
    @root_options
    def command(names: Sequence[str], *, as_json: bool, **options: Any) -> None:  # noqa: ANN401 - one for each setting
        async def act(administration: AccountAdministration) -> None:
            for each in names:  # a name that is wrong changes nothing
                await administration.find(each)
            for each in names:
                await getattr(administration, method)(each)

        _change(options, names, act, done, as_json=as_json)


_change_command(
    "disable",
    "Disable accounts.",
    "disable",
    "Disabled the account {name}.",
    "Disable each account NAME, and sign it out everywhere. Its pod does not change.",
)
_change_command(
    "enable",
    "Enable disabled accounts.",
    "enable",
    "Enabled the account {name}.",
    "Enable each disabled account NAME. Its owner must sign in again.",
)
_change_command(
    "promote",
    "Let accounts use the operator's console.",
    "promote",
    "The account {name} is an operator's now.",
    "Make each account NAME an operator's: it may use the console at /.pages/console/, where it "
    "can change and delete all accounts.",
)
_change_command(
    "demote",
    "Let accounts use the operator's console no longer.",
    "demote",
    "The account {name} is no longer an operator's.",
    "Make each account NAME, which is an operator's, an ordinary one.",
)
_change_command(
    "sign-out",
    "Sign accounts out everywhere.",
    "sign_out_everywhere",
    "Signed the account {name} out everywhere.",
    "Sign each account NAME out in every browser. Its applications stay connected.",
)
_change_command(
    "reset-two-factor",
    "Remove lost second factors.",
    "reset_second_factor",
    "The second factor of the account {name} has been reset.",
    """Remove the authenticator app and the recovery codes of each account NAME.

    This is for people who have lost both: make sure who asks. The account is signed out in every
    browser, and its password alone signs in again. If the server requires a second factor, the
    next sign-in sets one up. Passkeys remain.
    """,
)


@account.command("sign-in-link", short_help="Create a one-time link for a lost password.")
@click.argument("name")
@json_option
@root_options
def sign_in_link(name: str, *, as_json: bool, **options: Any) -> None:  # noqa: ANN401 - one for each setting
    """Print a link with which the owner of the account NAME chooses a new password and signs in.

    The link works once, within an hour, and replaces an earlier one. Whoever has it can take over
    the account, so send it to nobody else.
    """
    link = _administered(options, lambda administration: administration.create_sign_in_link(name))
    if as_json:
        print_json({"link": link})
    else:
        echo(link)


@account.command("delete", short_help="Delete accounts and their pods.")
@names_argument
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@json_option
@root_options
def delete_account(names: Sequence[str], *, yes: bool, as_json: bool, **options: Any) -> None:  # noqa: ANN401 - one for each setting
    """Delete each account NAME, its pod, and everything in the pod. This cannot be undone.

    The name of the pod remains reserved, because a new owner would have access wherever the old one
    did. 'podstead account free-name' releases the name.
    """

    async def find(administration: AccountAdministration) -> list[Account]:
        return [await administration.find(name) for name in names]

    found = dict(zip(names, _administered(options, find), strict=True))
    if not yes:
        for name, each in found.items():
            confirm(
                f"Permanently delete the account {name} and everything in its pod '{each.pod}'?"
            )

    async def delete(administration: AccountAdministration) -> None:
        for name in found:
            await administration.delete(name)

    _administered(options, delete)
    if as_json:
        print_each_json(
            [{"pod": each.pod, "web_id": each.web_id, "deleted": True} for each in found.values()]
        )
        return
    for name, each in found.items():
        echo(f"Deleted the account {name} and its pod '{each.pod}'.")


@account.command(name="free-name", short_help="Release the names of deleted pods.")
@click.argument("pods", metavar="POD...", nargs=-1, required=True)
@json_option
@root_options
def free_name(pods: Sequence[str], *, as_json: bool, **options: Any) -> None:  # noqa: ANN401 - one for each setting
    """Release the name POD of each deleted pod, so that a new pod can have it.

    The new owner will have the WebID of the previous owner, and so access to everything that
    others, here and elsewhere, have shared with that WebID. Use this only for the same person.
    """

    async def act(administration: AccountAdministration) -> None:
        for pod in pods:
            await administration.free_name(pod)

    _administered(options, act)
    if as_json:
        print_each_json([{"name": pod, "released": True} for pod in pods])
        return
    for pod in pods:
        echo(f"A new pod can be named '{pod}'.")


@account.command(short_help="Create client credentials for a script.")
@click.argument("name")
@click.option("--label", metavar="TEXT", default="", help="A description to show to the owner.")
@json_option
@root_options
def credentials(name: str, label: str, *, as_json: bool, **options: Any) -> None:  # noqa: ANN401 - one for each setting
    """Create an id and a secret with which a script obtains tokens for the account NAME.

    The secret is shown only once. The script sends both to the token endpoint, with the grant type
    client_credentials.
    """

    async def act(administration: AccountAdministration) -> dict[str, str]:
        made = await administration.create_credentials(name, label=label)
        return {
            "id": made.credential.credential_id,
            "secret": made.secret,
            "web_id": made.credential.web_id,
            "issuer": administration.issuer,
        }

    made = _administered(options, act)
    if as_json:
        print_json(made)
    else:
        for key, value in made.items():
            echo(f"{key:<6}  {value}")


@account.command(name="change-issuer", short_help="Change the URL of the provider.")
@click.argument("url")
@json_option
@root_options
def change_issuer(url: str, *, as_json: bool, **options: Any) -> None:  # noqa: ANN401 - one for each setting
    """Move the accounts to the identity provider at URL when the server next starts.

    Run this command before you start the server with a different --idp-base-url, or without one
    for the first time. The profiles still name the previous provider, so no server accepts tokens
    from the new one until each owner has signed in and restored the statement on the page Security.
    Owners must also connect their applications again.
    """
    try:
        issuer = BASE_URL.parse(url)
    except ValueError as error:
        raise click.BadParameter(BASE_URL.expected, param_hint="URL") from error

    async def act(administration: AccountAdministration) -> str:
        administration.change_issuer(issuer)
        return administration.issuer

    before = _administered(options, act)
    if as_json:
        print_json({"former_issuer": before, "issuer": issuer})
    else:
        echo(f"The accounts will move from {before} to {issuer} when the server next starts.")


def _password() -> str:
    """The password that the operator types twice, or the first line of standard input. Never an
    argument, which everybody on the machine could see."""
    if sys.stdin.isatty():
        typed: str = click.prompt("Password", hide_input=True, confirmation_prompt=True)
        return typed
    line = sys.stdin.readline().rstrip("\r\n")
    if not line:
        raise click.UsageError(
            "The first line of standard input must be the password, but is empty."
        )
    return line


def _administered(
    options: dict[str, Any], act: Callable[[AccountAdministration], Awaitable[T]]
) -> T:
    from podstead.app.operator.account_administration import open_account_administration

    return administered(open_account_administration, options, act)


def _change(
    options: dict[str, Any],
    names: Sequence[str],
    act: Callable[[AccountAdministration], Awaitable[object]],
    done: str,
    *,
    as_json: bool,
) -> None:
    """Change accounts; print what was done, or as JSON the accounts as they are now. ``done`` has
    the placeholder ``name``."""

    async def change(administration: AccountAdministration) -> list[Account]:
        await act(administration)
        return [await administration.find(name) for name in names]

    changed = _administered(options, change)
    if as_json:
        print_each_json([_as_json(each) for each in changed])
        return
    for name in names:
        echo(done.format(name=name))


def _as_json(account: Account) -> dict[str, object]:
    return {
        "id": account.account_id,
        "pod": account.pod,
        "web_id": account.web_id,
        "email": account.email or None,
        "created": time_text(account.created_s),
        "disabled": account.disabled,
        "operator": account.operator,
    }


def _print_table(accounts: Sequence[Account]) -> None:
    rows = [
        (
            each.pod,
            each.email or "-",
            time_text(each.created_s),
            _state(each),
        )
        for each in accounts
    ]
    print_table(("POD", "E-MAIL", "CREATED", "STATE"), rows)


def _state(account: Account) -> str:
    if account.disabled:
        return "disabled"
    return "operator" if account.operator else "in use"
