"""Does an identity that was proven a while ago still count? (N-30, A-32)

Who listens has shown a credential once, when they subscribed. That a token expires ends nothing: it
came in time. What somebody ends on purpose does: a token that is revoked, a pod that is gone, an
account that is disabled.
"""

from __future__ import annotations

from typing import Protocol

from podstead.core.agents import AuthenticationMethod, Identity
from podstead.core.errors import BadRequest
from podstead.core.identifiers import ResourcePath, parse_path, storage_root
from podstead.storage.protocol import TokenRegistry


class Accounts(Protocol):
    """Knows whom the operator has shut out."""

    async def is_disabled(self, storage: ResourcePath) -> bool:
        """Whether the account of a storage is disabled. Raises StorageError."""


class StandingIdentities:
    """Looks at identities again."""

    def __init__(
        self, *, base_url: str, tokens: TokenRegistry, accounts: Accounts | None = None
    ) -> None:
        """``accounts`` is ``None`` where storages have none."""
        self._base_url = base_url
        self._tokens = tokens
        self._accounts = accounts

    async def counts(self, identity: Identity, *, before_deletion: bool = False) -> bool:
        """Whether nobody has ended the identity's credential or its account.

        ``before_deletion`` asks how it was before something was deleted, be it the pod of a simple
        token and the token with it (N-18). Raises StorageError.
        """
        if identity.method is AuthenticationMethod.SIMPLE:
            revoked = await self._is_revoked(identity.token_id)
            if revoked or (revoked is None and not before_deletion):
                return False
        storage = self._storage_of(identity.agent)
        if self._accounts is None or storage is None:
            return True
        return not await self._accounts.is_disabled(storage)

    async def _is_revoked(self, token_id: str | None) -> bool | None:
        """``None`` if there is no such token (any more): tokens go with their pod."""
        record = None if token_id is None else await self._tokens.read_token(token_id)
        return None if record is None else record.revoked_s is not None

    def _storage_of(self, agent: str) -> ResourcePath | None:
        """The storage of this server in which the document of a WebID is."""
        if not agent.startswith(f"{self._base_url}/"):
            return None
        try:
            path = agent[len(self._base_url) :].partition("#")[0].partition("?")[0]
            return storage_root(parse_path(path.encode()))
        except (BadRequest, UnicodeEncodeError):
            return None
