"""Listing and revoking pod tokens, for the operator and for the owner of the pod."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from podstead.storage.protocol import Store
from podstead.storage.records import TokenRecord, TokenRevocation


async def valid_tokens(store: Store, pod: str, *, now_s: int) -> Sequence[TokenRecord]:
    """The tokens of a pod that can be used now, newest first. Raises StorageError."""
    return [
        token
        for token in await store.list_tokens(pod=pod)
        if token.revoked_s is None and (token.expires_s is None or token.expires_s > now_s)
    ]


def revocations(tokens: Iterable[TokenRecord], *, now_s: int) -> Sequence[TokenRevocation]:
    """The records that revoke those tokens that are not revoked yet."""
    return [
        TokenRevocation(token.token_id, at_s=now_s) for token in tokens if token.revoked_s is None
    ]
