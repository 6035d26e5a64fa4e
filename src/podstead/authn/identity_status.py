"""Does an identity that was proven a while ago still count? (N-30, A-32)

Who listens has shown a credential once, when they subscribed. That a token expires ends nothing: it
came in time. What somebody ends on purpose does: a token that is revoked, a pod that is gone, an
account that is disabled.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from podstead.core.errors import BadRequest
from podstead.core.identifiers import ResourcePath, parse_path, storage_root
from podstead.core.identity import AuthenticationMethod, Identity
from podstead.storage.protocol import TokenRegistry


class AccountStatus(Protocol):
    """Knows whom the operator has shut out."""

    async def is_disabled(self, storage: ResourcePath) -> bool:
        """Whether the account of a storage is disabled. Raises StorageError."""


@dataclass(frozen=True, slots=True)
class LocalWebIds:
    """The WebIDs of this server, whose documents lie in the storages of accounts.

    ``accounts`` is ``None`` where storages have none.
    """

    base_url: str
    accounts: AccountStatus | None = None

    def holds(self, web_id: str) -> bool:
        """Whether the document of a WebID is one of this server."""
        return web_id.startswith(f"{self.base_url}/")

    async def is_disabled(self, web_id: str) -> bool:
        """Whether a WebID is one of this server and its account is disabled. Raises
        StorageError."""
        if self.accounts is None or not self.holds(web_id):
            return False
        path = self.path_of(web_id)
        storage = None if path is None else storage_root(path)
        return storage is not None and await self.accounts.is_disabled(storage)

    def path_of(self, web_id: str) -> ResourcePath | None:
        """The path of the document of a WebID of this server; ``None`` if it names none."""
        path = web_id[len(self.base_url) :].partition("#")[0].partition("?")[0]
        try:
            return parse_path(path.encode())
        except (BadRequest, UnicodeEncodeError):
            return None


class IdentityStatus:
    """Looks at identities again."""

    def __init__(self, *, tokens: TokenRegistry, web_ids: LocalWebIds) -> None:
        self._tokens = tokens
        self._web_ids = web_ids

    async def is_still_valid(self, identity: Identity, *, before_deletion: bool = False) -> bool:
        """Whether nobody has ended the identity's credential or its account.

        ``before_deletion`` asks how it was before something was deleted, be it the pod of a simple
        token and the token with it (N-18). Raises StorageError.
        """
        if identity.method is AuthenticationMethod.SIMPLE:
            revoked = await self._is_revoked(identity.token_id)
            if revoked or (revoked is None and not before_deletion):
                return False
        return not await self._web_ids.is_disabled(identity.iri)

    async def _is_revoked(self, token_id: str | None) -> bool | None:
        """``None`` if there is no such token (any more): tokens go with their pod."""
        record = None if token_id is None else await self._tokens.read_token(token_id)
        return None if record is None else record.revoked_s is not None
