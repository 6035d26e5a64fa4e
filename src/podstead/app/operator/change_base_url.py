"""Gives a data root another base URL.

The server must not run meanwhile. A fact in the data root says where it is being moved until that
is finished, and no server starts with it before, so an interruption leaves nothing half-moved that
is served. Every step may be repeated.
"""

from contextlib import nullcontext
from dataclasses import dataclass

import msgspec

from podstead.app.adapters import root
from podstead.app.adapters.audit import operator_audit
from podstead.app.operator.data_root import OnStep, check_has_records
from podstead.app.operator.importing import opened_pods
from podstead.config import Settings
from podstead.core.errors import Conflict, RootUnusable
from podstead.features import features
from podstead.idp.account_creation import move_accounts
from podstead.idp.audit import AuditEvent
from podstead.idp.records import ACCOUNTS
from podstead.resources.pod_renaming import BaseMove, MovedDocuments
from podstead.resources.renaming import NameMapping
from podstead.storage.pods import revocations
from podstead.storage.record_store import RecordStore
from podstead.storage.records import DropPod
from podstead.storage.root import lock_root

_PODS_AT_ONCE = 200


@dataclass(frozen=True, slots=True)
class BaseMoveReport:
    """What was moved, or would be. ``issuer`` is that of the identity provider afterwards."""

    old: str
    new: str
    issuer: str
    pods: int
    accounts: int
    revoked_tokens: int
    moved: MovedDocuments


async def move_data_root(
    settings: Settings,
    new: str,
    *,
    every_document: bool,
    dry_run: bool,
    on_step: OnStep,
) -> BaseMoveReport:
    """Move a data root to the base URL ``new``, which is valid.

    Raises Conflict if another move was not finished, RootInUse, RootUnusable, StorageError.
    """
    check_has_records(settings)
    old, issuer = root.remembered_base_url(settings), root.remembered_issuer(settings)
    if old is None or issuer is None:
        raise RootUnusable(f"The data root {settings.root} has no base URL yet.")
    unfinished = root.unfinished_move(settings)
    if unfinished not in (None, new):
        raise Conflict(f"The move to {unfinished} was interrupted. Finish that one first.")
    if old == new and unfinished is None:
        raise Conflict(f"The base URL is {new} already.")
    with nullcontext() if dry_run else lock_root(settings.root):
        if not dry_run:
            root.begin_move(settings, new)
        async with (
            opened_pods(settings, moving_to=new) as pods,
            operator_audit(pods.records) as audit,
        ):
            move = BaseMove(pods, old, new)
            count, revoked, accounts = await _move_records(
                pods.records, move.names, dry_run=dry_run
            )
            moved = await move.rewrite(
                every_document=every_document,
                dry_run=dry_run,
                progress=lambda done: on_step("Rewriting", done, 0),
            )
            if not dry_run:
                audit.note(AuditEvent.BASE_URL_CHANGED, old=old, new=new)
        if not dry_run:
            root.finish_move(settings, new)
    return BaseMoveReport(
        old=old,
        new=new,
        issuer=new if issuer == old else issuer,
        pods=count,
        accounts=accounts,
        revoked_tokens=revoked,
        moved=moved,
    )


async def _move_records(
    records: RecordStore, names: NameMapping, *, dry_run: bool
) -> tuple[int, int, int]:
    """Pods, revoked tokens and accounts. Before the documents, because the records that follow from
    a profile depend on who owns the pod."""
    tokens = [each for each in await records.store.list_tokens() if each.revoked_s is None]
    count, last = 0, ""
    while pods := await records.store.list_pods(after=last, limit=_PODS_AT_ONCE):
        count, last = count + len(pods), pods[-1].name
        moved = [msgspec.structs.replace(pod, owner=names.renamed(pod.owner)) for pod in pods]
        if not dry_run:
            await records.commit([*(DropPod(pod.name) for pod in pods), *moved])
    if dry_run:
        return count, len(tokens), await _count_accounts(records)
    # They name the former WebIDs and are signed, so they cannot be rewritten.
    await records.commit(revocations(tokens, now_s=records.now_s()))
    for feature in features():
        await feature.moved_base(records, names.renamed)
    return count, len(tokens), await move_accounts(records, names.renamed)


async def _count_accounts(records: RecordStore) -> int:
    return await ACCOUNTS.count(records.store, at_most=10**9)
