"""``podstead pod``: the operator lists pods and deletes pods that have no account."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from podstead.cli.administration import administered
from podstead.cli.options import root_options
from podstead.cli.tables import print_table, time_text

if TYPE_CHECKING:  # at run time it is loaded when it is needed
    from podstead.app.operator.pod_administration import ListedPod, PodAdministration

T = TypeVar("T")

MAX_QUOTA_BYTES = 1 << 50


@click.group()
def pod() -> None:
    """List pods, set their quotas, and delete pods that have no account.

    A server started without --idp creates pods without accounts. Changes take effect in a running
    server with its next request.
    """


@pod.command("list", short_help="List pods and whether they have accounts.")
@click.option("--without-account", is_flag=True, help="List only pods that have no account.")
@root_options
def list_pods(*, without_account: bool, **options: Any) -> None:  # noqa: ANN401 - one for each setting
    """List all pods, sorted by name: pod, WebID of the owner, time of creation, and whether the pod
    has an account."""
    listed = _administered(options, lambda administration: administration.list())
    _print_table([each for each in listed if not (without_account and each.has_account)])


@pod.command("delete", short_help="Delete a pod that has no account.")
@click.argument("name")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@root_options
def delete_pod(name: str, *, yes: bool, **options: Any) -> None:  # noqa: ANN401 - one for each setting
    """Delete the pod NAME, which has no account, and everything in it. This cannot be undone.

    To delete a pod together with its account, use 'podstead account delete'. The name of the pod
    remains reserved, because a new owner would have access wherever the old one did. 'podstead
    account free-name' releases the name.
    """
    found = _administered(options, lambda administration: administration.find(name))
    if not yes:
        click.confirm(
            f"Permanently delete the pod '{found.name}' and everything in it?", abort=True
        )
    _administered(options, lambda administration: administration.delete(name))
    click.echo(f"Deleted the pod '{found.name}'.")


@pod.command("quota", short_help="Set the quota of a pod.")
@click.argument("name")
@click.argument("size", metavar="BYTES|none|default")
@root_options
def set_quota(name: str, size: str, **options: Any) -> None:  # noqa: ANN401 - one for each setting
    """Set the quota of the pod NAME: a number of bytes, 'none', or 'default' for that of the
    setting quota-bytes. It applies to the next write; a pod above its quota can still shrink."""
    quota_bytes = _quota(size)
    _administered(options, lambda administration: administration.set_quota(name, quota_bytes))
    click.echo(f"Set the quota of the pod '{name}' to {size}.")


def _quota(text: str) -> int | None:
    """Raises BadParameter."""
    if text == "default":
        return None
    if text == "none":
        return 0
    if not text.isascii() or not text.isdigit() or not 0 < int(text) <= MAX_QUOTA_BYTES:
        raise click.BadParameter(
            "must be a number of bytes, 'none' or 'default'", param_hint="BYTES"
        )
    return int(text)


def _administered(options: dict[str, Any], act: Callable[[PodAdministration], Awaitable[T]]) -> T:
    from podstead.app.operator.pod_administration import open_pod_administration

    return administered(open_pod_administration, options, act)


def _print_table(pods: Sequence[ListedPod]) -> None:
    rows = [
        (
            each.record.name,
            each.record.owner,
            time_text(each.record.created_ms // 1000),
            "yes" if each.has_account else "no",
        )
        for each in pods
    ]
    print_table(("POD", "OWNER", "CREATED", "ACCOUNT"), rows)
