"""How are simple tokens revoked? One write, for the operator and for the owner of their pod."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from podstead.core.clock import Randomness
from podstead.storage.protocol import ResourceStore
from podstead.storage.records import Record, TokenRecord, TokenRevocation
from podstead.storage.writing import commit_entries


async def revoke_tokens(
    store: ResourceStore,
    tokens: Iterable[TokenRecord],
    *,
    further: Sequence[Record] = (),
    now_ms: int,
    randomness: Randomness,
) -> bool:
    """Revoke those that are not revoked yet; ``further`` records join the write. False if it could
    not be done. Raises StorageError, Overloaded."""
    revocations = [
        TokenRevocation(token.token_id, at_s=now_ms // 1000)
        for token in tokens
        if token.revoked_s is None
    ]
    return await commit_entries(
        store, [*revocations, *further], now_ms=now_ms, randomness=randomness
    )
