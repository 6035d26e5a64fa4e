"""``podstead account``: the operator creates, lists, changes and deletes accounts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import click

from podstead.cli import output
from podstead.cli.running import Output, in_root, on_root, on_settings
from podstead.config import Settings
from podstead.config.value_types import BASE_URL
from podstead.features import credential_options, credential_records, features

if TYPE_CHECKING:  # at run time it is loaded when it is needed
    from podstead.app.operator.administration import DataRoot
    from podstead.idp.records import Account, ClientCredential
    from podstead.storage.records import Record


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
@on_settings()
def create_account(
    settings: Settings, pod: str, email: str | None, *, existing_pod: bool
) -> Output:
    """Create an account and its POD, and print its WebID.

    The command prompts for the password. If standard input is not a terminal, its first line is the
    password.
    """
    password = output.read_password(confirmed=True)

    async def create(root: DataRoot) -> Output:
        accounts = root.provider.accounts
        if existing_pod:
            created = await accounts.create_for_pod(pod, email=email, password=password)
        else:
            made = await accounts.create(
                name=pod, email=email, password=password, needs_email=False
            )
            created = made.account
        note = (
            "Tokens of the account are valid once the profile states this identity provider: "
            f"<#me> <http://www.w3.org/ns/solid/terms#oidcIssuer> <{root.issuer}>. "
            "The owner can add the statement on the page Security."
        )
        return Output(_as_json(created), [created.web_id], notes=[note] if existing_pod else ())

    return in_root(settings, create)


@account.command("list", short_help="List accounts and their states.")
@on_root()
async def list_accounts(root: DataRoot) -> Output:
    """List all accounts, sorted by pod: pod, e-mail address, time of creation, state."""
    accounts = sorted([each async for each in root.accounts.each()], key=lambda it: it.pod.lower())
    rows = [
        (each.pod, each.email or "-", output.time_text(each.created_s), _state(each))
        for each in accounts
    ]
    table = output.table_lines(("POD", "E-MAIL", "CREATED", "STATE"), rows)
    return Output([_as_json(each) for each in accounts], table)


@account.command(short_help="Set a new password.")
@click.argument("name")
@on_settings()
def password(settings: Settings, name: str) -> Output:
    """Set a new password for the account NAME, and sign it out everywhere.

    The command prompts for the password. If standard input is not a terminal, its first line is the
    password. The owner must authorize applications again.
    """
    in_root(settings, lambda root: root.accounts.find(name))  # before anything is typed
    chosen = output.read_password(confirmed=True)

    async def change(root: DataRoot) -> Output:
        account_id = (await root.accounts.find(name)).value.account_id
        await root.provider.accounts.set_password(account_id, chosen)
        done = "Changed the password of the account {name} and signed it out everywhere."
        return await _changed(root, [name], done)

    return in_root(settings, change)


_CHANGES: Final = (
    (
        "disable",
        "Disable accounts.",
        "Disabled the account {name}.",
        "Disable each account NAME, and sign it out everywhere. Its pod does not change.",
    ),
    (
        "enable",
        "Enable disabled accounts.",
        "Enabled the account {name}.",
        "Enable each disabled account NAME. Its owner must sign in again.",
    ),
    (
        "promote",
        "Let accounts use the operator's console.",
        "The account {name} is an operator's now.",
        (
            "Make each account NAME an operator's: it may use the console at /.pages/console/, "
            "where it can change and delete all accounts."
        ),
    ),
    (
        "demote",
        "Let accounts use the operator's console no longer.",
        "The account {name} is no longer an operator's.",
        "Make each account NAME, which is an operator's, an ordinary one.",
    ),
    (
        "sign-out",
        "Sign accounts out everywhere.",
        "Signed the account {name} out everywhere.",
        "Sign each account NAME out in every browser. Its applications stay connected.",
    ),
)
"""The name, the short help, what is printed, and the help."""


def _add_change(name: str, short_help: str, done: str, description: str) -> None:
    """Add the command that carries out an action for each of the accounts it is given."""

    @account.command(name, short_help=short_help, help=description)
    @output.names_argument
    @on_root()
    async def command(root: DataRoot, names: Sequence[str]) -> Output:
        found = [await root.accounts.find(each) for each in names]  # a wrong one changes nothing
        for each in found:
            await root.accounts.act(name, each.value.account_id)
        return await _changed(root, names, done)


for change in _CHANGES:
    _add_change(*change)
for reset in (each for feature in features() for each in feature.account_resets()):
    _add_change(reset.name, reset.short_help, reset.done, reset.help)


@account.command("sign-in-link", short_help="Create a one-time link for a lost password.")
@click.argument("name")
@on_root()
async def sign_in_link(root: DataRoot, name: str) -> Output:
    """Print a link with which the owner of the account NAME chooses a new password and signs in.

    The link works once, within an hour, and replaces an earlier one. Whoever has it can take over
    the account, so send it to nobody else.
    """
    account_id = (await root.accounts.find(name)).value.account_id
    link = root.link(await root.accounts.create_sign_in_link(account_id))
    return Output({"link": link}, [link])


@account.command("delete", short_help="Delete accounts and their pods.")
@output.names_argument
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@on_settings()
def delete_account(settings: Settings, names: Sequence[str], *, yes: bool) -> Output:
    """Delete each account NAME, its pod, and everything in the pod. This cannot be undone.

    The name of the pod remains reserved, because a new owner would have access wherever the old one
    did. 'podstead account free-name' releases the name.
    """

    async def find(root: DataRoot) -> dict[str, Account]:
        return {name: (await root.accounts.find(name)).value for name in names}

    found = in_root(settings, find)
    if not yes:
        for name, each in found.items():
            output.confirm(
                f"Permanently delete the account {name} and everything in its pod '{each.pod}'?"
            )

    async def delete(root: DataRoot) -> None:
        for each in found.values():
            await root.accounts.act("delete", each.account_id)

    in_root(settings, delete)
    return Output.of_each(
        [{"pod": each.pod, "web_id": each.web_id, "deleted": True} for each in found.values()],
        [f"Deleted the account {name} and its pod '{each.pod}'." for name, each in found.items()],
    )


@account.command(name="free-name", short_help="Release the names of deleted pods.")
@click.argument("pods", metavar="POD...", nargs=-1, required=True)
@on_root()
async def free_name(root: DataRoot, pods: Sequence[str]) -> Output:
    """Release the name POD of each deleted pod, so that a new pod can have it.

    The new owner will have the WebID of the previous owner, and so access to everything that
    others, here and elsewhere, have shared with that WebID. Use this only for the same person.
    """
    for pod in pods:
        await root.provider.accounts.free_name(pod)
    return Output.of_each(
        [{"name": pod, "released": True} for pod in pods],
        [f"A new pod can be named '{pod}'." for pod in pods],
    )


@account.command(short_help="Create client credentials for a script.")
@click.argument("name")
@click.option("--label", metavar="TEXT", default="", help="A description to show to the owner.")
@credential_options
@on_root()
async def credentials(root: DataRoot, name: str, label: str, **options: object) -> Output:
    """Create an id and a secret with which a script obtains tokens for the account NAME.

    The secret is shown only once. The script sends both to the token endpoint, with the grant type
    client_credentials.
    """

    async def joined(credential: ClientCredential) -> Sequence[Record]:
        return await credential_records(root.records, credential, options)

    account = await root.accounts.find(name)
    made = await root.provider.credentials.create(account, name=label, joined=joined)
    fields = {
        "id": made.credential.credential_id,
        "secret": made.secret,
        "web_id": made.credential.web_id,
        "issuer": root.issuer,
    }
    return Output(fields, [f"{key:<6}  {value}" for key, value in fields.items()])


@account.command(name="change-issuer", short_help="Change the URL of the provider.")
@click.argument("url")
@on_settings()
def change_issuer(settings: Settings, url: str) -> Output:
    """Move the accounts to the identity provider at URL when the server next starts.

    Run this command before you start the server with a different --idp-base-url, or without one
    for the first time. The profiles still name the previous provider, so no server accepts tokens
    from the new one until each owner has signed in and restored the statement on the page Security.
    Owners must also connect their applications again.
    """
    issuer = output.parsed(BASE_URL, url, "URL")

    async def change(root: DataRoot) -> Output:
        before = root.issuer
        root.change_issuer(issuer)
        return Output(
            {"former_issuer": before, "issuer": issuer},
            [f"The accounts will move from {before} to {issuer} when the server next starts."],
        )

    return in_root(settings, change)


async def _changed(root: DataRoot, names: Sequence[str], done: str) -> Output:
    """What was done, or as JSON the accounts as they are now. ``done`` has the placeholder
    ``name``."""
    found = [(await root.accounts.find(name)).value for name in names]
    return Output.of_each(
        [_as_json(each) for each in found], [done.format(name=name) for name in names]
    )


def _as_json(account: Account) -> dict[str, object]:
    return {
        "id": account.account_id,
        "pod": account.pod,
        "web_id": account.web_id,
        "email": account.email or None,
        "created": output.time_text(account.created_s),
        "disabled": account.disabled,
        "operator": account.operator,
    }


def _state(account: Account) -> str:
    if account.disabled:
        return "disabled"
    return "operator" if account.operator else "in use"
