"""The options with which commands limit a new token or new client credentials."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

import click

from podstead.core.errors import BadRequest
from podstead.features import CommandOption
from podstead.features.access_limits.enforcement import LimitStore
from podstead.features.access_limits.limits import ACTIONS, AllowedPlace, Limit, usable_path
from podstead.idp.records import ACCOUNTS, ClientCredential
from podstead.storage.record_store import RecordStore
from podstead.storage.records import Record, TokenRecord

OPTIONS: Final[Sequence[CommandOption]] = (
    click.option(
        "--folder",
        metavar="PATH",
        multiple=True,
        help="Limit it to this folder or document; relative to the pod. May be repeated.",
    ),
    click.option("--read", is_flag=True, help="Let it read, there or in the whole pod."),
    click.option("--add", is_flag=True, help="Let it add something."),
    click.option("--edit", is_flag=True, help="Let it change and delete."),
    click.option("--shared", is_flag=True, help="The same with what others share with the owner."),
    click.option(
        "--until",
        metavar="DATE",
        type=click.DateTime(["%Y-%m-%d", "%Y-%m-%dT%H:%M:%SZ"]),
        help="Let it do nothing from this time on, in UTC.",
    ),
)


async def records_of(
    records: RecordStore, credential: TokenRecord | ClientCredential, options: Mapping[str, object]
) -> Sequence[Record]:
    """The limit of a new credential; nothing without any of the options. Raises BadRequest."""
    if not any(options.get(each) for each in (*ACTIONS, "folder", "shared", "until")):
        return ()
    if isinstance(credential, TokenRecord):
        pod = credential.pod
    else:
        account = await records.read(ACCOUNTS, credential.account_id)
        pod = "" if account is None else account.value.pod
    limit = _limit(f"/{pod}/", options)
    return await LimitStore(records).of_new_credential(credential, limit)


def _limit(pod: str, options: Mapping[str, object]) -> Limit:
    """Without an action everything is allowed in the places, and without a place in the pod."""
    actions = tuple(each for each in ACTIONS if options.get(each)) or ACTIONS
    folders = options.get("folder") or ()
    places = []
    for each in folders if isinstance(folders, tuple) else ():
        path = usable_path(each if each.startswith("/") else pod + each)
        if path is None:
            raise BadRequest(f"'{each}' is not the path of a folder or document.")
        places.append(AllowedPlace(path, actions))
    until = options.get("until")
    ends_s = int(until.replace(tzinfo=UTC).timestamp()) if isinstance(until, datetime) else None
    return Limit(
        pod,
        tuple(places) or (AllowedPlace(pod, actions),),
        actions if options.get("shared") else (),
        ends_s=ends_s,
    )
