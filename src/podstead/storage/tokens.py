"""Revoking pod tokens, for the operator and for the owner of the pod."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from podstead.storage.records import TokenRecord, TokenRevocation


def revocations(tokens: Iterable[TokenRecord], *, now_s: int) -> Sequence[TokenRevocation]:
    """The records that revoke those tokens that are not revoked yet."""
    return [
        TokenRevocation(token.token_id, at_s=now_s) for token in tokens if token.revoked_s is None
    ]
