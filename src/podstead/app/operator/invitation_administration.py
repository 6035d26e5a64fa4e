"""What can the operator do with invitations, beside a running server?"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from podstead.app.adapters.engine import key_storage
from podstead.app.adapters.operator_audit import operator_audit
from podstead.app.adapters.provider_keys import KeyFolder
from podstead.app.adapters.root import remembered_issuer
from podstead.app.adapters.system import SystemClock
from podstead.app.operator.data_root import opened_records
from podstead.config import Settings
from podstead.idp.administration.invitations import InvitationActions
from podstead.storage.invitations import invitation_url


@dataclass(frozen=True, slots=True)
class ListedInvitation:
    """An invitation as commands print it; the code is known only of a new one."""

    invitation_id: str
    uses: int
    uses_left: int
    created_s: int
    expires_s: int
    code: str = ""
    link: str = ""


@dataclass(frozen=True, slots=True)
class InvitationAdministration:
    """Creates, lists and revokes invitations. Every method raises StorageError and Overloaded."""

    issuer: str | None
    """``None`` if the root has never had an identity provider, and so no page to register on."""
    actions: InvitationActions

    async def create(self, uses: int, days: int) -> ListedInvitation:
        """Create an invitation. Raises Conflict."""
        made = await self.actions.create(uses=uses, days=days)
        return ListedInvitation(
            invitation_id=made.invitation.invitation_id,
            uses=uses,
            uses_left=uses,
            created_s=made.invitation.created_ms // 1000,
            expires_s=made.expires_ms // 1000,
            code=made.code,
            link=invitation_url(self.issuer, made.code) if self.issuer else "",
        )

    async def list(self) -> Sequence[ListedInvitation]:
        """Those that have not ended, the newest first."""
        return [
            ListedInvitation(
                invitation_id=each.value.invitation_id,
                uses=each.value.uses,
                uses_left=each.value.uses_left,
                created_s=each.value.created_ms // 1000,
                expires_s=(each.expires_ms or 0) // 1000,
            )
            for each in await self.actions.list()
        ]

    async def revoke(self, invitation_id: str) -> None:
        """End an invitation. Raises NotFound."""
        await self.actions.revoke(invitation_id)


@asynccontextmanager
async def open_invitation_administration(
    settings: Settings,
) -> AsyncIterator[InvitationAdministration]:
    """Open the store of an existing data root. Raises RootUnusable, StorageError."""
    async with opened_records(settings) as records, operator_audit(records) as audit:
        has_provider = KeyFolder(key_storage(settings), SystemClock()).exists()
        issuer = remembered_issuer(settings) if has_provider else None
        yield InvitationAdministration(issuer, InvitationActions(records, audit))
