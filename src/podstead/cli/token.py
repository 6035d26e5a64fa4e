"""``podstead token``: create, list and revoke the simple tokens of pods."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from podstead.cli.administration import administered
from podstead.cli.options import options_named, root_options
from podstead.cli.output import echo
from podstead.cli.tables import (
    json_option,
    now_s,
    print_each_json,
    print_json,
    print_table,
    time_text,
)
from podstead.core.counting import counted
from podstead.storage.records import TokenRecord

if TYPE_CHECKING:  # at run time it is loaded when it is needed
    from podstead.app.operator.token_administration import TokenAdministration

T = TypeVar("T")

_create_options = options_named("token-lifetime-s", "token-secret-file")


@click.group()
def token() -> None:
    """Create, list and revoke tokens of pods.

    Changes take effect in a running server with its next request.
    """


@token.command("create", short_help="Create another token for a pod's owner.")
@click.argument("pod")
@root_options
@_create_options
@json_option
def create_token(pod: str, *, as_json: bool, **options: Any) -> None:  # noqa: ANN401 - one for each setting
    """Create another token for the owner of POD and print it on a line of its own."""
    issued = _administered(options, lambda administration: administration.create(pod))
    if as_json:
        print_json({"token": issued.token, **_as_json(issued.record, now_s())})
    else:
        echo(issued.token)


@token.command("list", short_help="List tokens with their ids and states.")
@click.argument("pod", required=False)
@json_option
@root_options
def list_tokens(pod: str | None, *, as_json: bool, **options: Any) -> None:  # noqa: ANN401 - one for each setting
    """List all tokens, or those of POD, newest first: id, pod, times of issue and expiry, state."""
    listed = _administered(options, lambda administration: administration.list(pod))
    if as_json:
        print_json([_as_json(each, now_s()) for each in listed])
    else:
        _print_table(listed, now_s())


@token.command(short_help="Revoke tokens, or all tokens of a pod.")
@click.argument("token_ids", metavar="[TOKEN_ID]...", nargs=-1)
@click.option("--pod", metavar="POD", help="Revoke all tokens of this pod.")
@json_option
@root_options
def revoke(
    token_ids: Sequence[str],
    pod: str | None,
    *,
    as_json: bool,
    **options: Any,  # noqa: ANN401 - one for each setting
) -> None:
    """Revoke each token with an id TOKEN_ID (see 'podstead token list'), or all tokens of a pod."""
    if (not token_ids) == (pod is None):
        raise click.UsageError("Specify either the ids of tokens or --pod.")
    if pod is None:

        async def act(administration: TokenAdministration) -> None:
            for each in token_ids:
                await administration.revoke(each)

        _administered(options, act)
        results: list[object] = [{"id": each, "revoked_tokens": 1} for each in token_ids]
        done = [f"Revoked {each}." for each in token_ids]
    else:
        name = pod
        count = _administered(options, lambda administration: administration.revoke_all(name))
        results = [{"pod": name, "revoked_tokens": count}]
        done = [f"Revoked {counted(count, 'token')} of {pod}."]
    if as_json:
        print_each_json(results)
        return
    for line in done:
        echo(line)


def _administered(options: dict[str, Any], act: Callable[[TokenAdministration], Awaitable[T]]) -> T:
    from podstead.app.operator.token_administration import open_token_administration

    return administered(open_token_administration, options, act)


def _as_json(record: TokenRecord, now_s: int) -> dict[str, object]:
    return {
        "id": record.token_id,
        "pod": record.pod,
        "issued": time_text(record.issued_s),
        "expires": None if record.expires_s is None else time_text(record.expires_s),
        "revoked": None if record.revoked_s is None else time_text(record.revoked_s),
        "is_valid": _state(record, now_s) == "valid",
    }


def _print_table(records: Sequence[TokenRecord], now_s: int) -> None:
    rows = [
        (
            record.token_id,
            record.pod,
            time_text(record.issued_s),
            "never" if record.expires_s is None else time_text(record.expires_s),
            _state(record, now_s),
        )
        for record in records
    ]
    print_table(("ID", "POD", "ISSUED", "EXPIRES", "STATE"), rows)


def _state(record: TokenRecord, now_s: int) -> str:
    if record.revoked_s is not None:
        return f"revoked {time_text(record.revoked_s)}"
    if record.expires_s is not None and record.expires_s <= now_s:
        return "expired"
    return "valid"
