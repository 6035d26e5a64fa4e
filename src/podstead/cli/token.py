"""``podstead token``: create, list and revoke the simple tokens of pods."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from podstead.cli.options import options_named, root_options
from podstead.cli.output import json_option, now_s, table_lines, time_text
from podstead.cli.running import Output, in_root, on_root, on_settings
from podstead.config import Settings
from podstead.core.messages import counted
from podstead.features import credential_options
from podstead.storage.records import TokenRecord

if TYPE_CHECKING:  # at run time it is loaded when it is needed
    from podstead.app.operator.administration import DataRoot

_create_options = options_named("token-lifetime-s", "token-secret-file")


@click.group()
def token() -> None:
    """Create, list and revoke tokens of pods.

    Changes take effect in a running server with its next request.
    """


@token.command("create", short_help="Create another token for a pod's owner.")
@click.argument("pod")
@credential_options
@on_root(root_options, _create_options, json_option)
async def create_token(root: DataRoot, pod: str, **options: object) -> Output:
    """Create another token for the owner of POD and print it on a line of its own."""
    issued = await root.tokens.create(pod, options)
    return Output({"token": issued.token, **_as_json(issued.record, now_s())}, [issued.token])


@token.command("list", short_help="List tokens with their ids and states.")
@click.argument("pod", required=False)
@on_root()
async def list_tokens(root: DataRoot, pod: str | None) -> Output:
    """List all tokens, or those of POD, newest first: id, pod, times of issue and expiry, state."""
    listed, at_s = await root.tokens.list(pod), now_s()
    table = table_lines(
        ("ID", "POD", "ISSUED", "EXPIRES", "STATE"), [_row(each, at_s) for each in listed]
    )
    return Output([_as_json(each, at_s) for each in listed], table)


@token.command(short_help="Revoke tokens, or all tokens of a pod.")
@click.argument("token_ids", metavar="[TOKEN_ID]...", nargs=-1)
@click.option("--pod", metavar="POD", help="Revoke all tokens of this pod.")
@on_settings()
def revoke(settings: Settings, token_ids: Sequence[str], pod: str | None) -> Output:
    """Revoke each token with an id TOKEN_ID (see 'podstead token list'), or all tokens of a pod."""
    if (not token_ids) == (pod is None):
        raise click.UsageError("Specify either the ids of tokens or --pod.")

    async def revoke_tokens(root: DataRoot) -> Output:
        if pod is not None:
            count = await root.tokens.revoke_all(pod)
            done = f"Revoked {counted(count, 'token')} of {pod}."
            return Output({"pod": pod, "revoked_tokens": count}, [done])
        for each in token_ids:
            await root.tokens.revoke(each)
        return Output.of_each(
            [{"id": each, "revoked_tokens": 1} for each in token_ids],
            [f"Revoked {each}." for each in token_ids],
        )

    return in_root(settings, revoke_tokens)


def _as_json(record: TokenRecord, now_s: int) -> dict[str, object]:
    return {
        "id": record.token_id,
        "pod": record.pod,
        "issued": time_text(record.issued_s),
        "expires": None if record.expires_s is None else time_text(record.expires_s),
        "revoked": None if record.revoked_s is None else time_text(record.revoked_s),
        "is_valid": _state(record, now_s) == "valid",
    }


def _row(record: TokenRecord, now_s: int) -> tuple[str, ...]:
    return (
        record.token_id,
        record.pod,
        time_text(record.issued_s),
        "never" if record.expires_s is None else time_text(record.expires_s),
        _state(record, now_s),
    )


def _state(record: TokenRecord, now_s: int) -> str:
    if record.revoked_s is not None:
        return f"revoked {time_text(record.revoked_s)}"
    if record.expires_s is not None and record.expires_s <= now_s:
        return "expired"
    return "valid"
