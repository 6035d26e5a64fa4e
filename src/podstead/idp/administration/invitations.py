"""Creates, lists and revokes invitations, in the console and by command.

``by`` is the operator who acts in the console, ``None`` for a command; see
:mod:`podstead.idp.administration.service`.
"""

from __future__ import annotations

from collections.abc import Sequence

from podstead.core.errors import BadRequest, Conflict
from podstead.idp.administration.acting import Operator
from podstead.idp.administration.audit_log import Actions
from podstead.idp.audit import Audit, AuditEvent
from podstead.idp.codes import IdpCodes
from podstead.storage.invitations import (
    INVITATIONS,
    MAX_DAYS,
    MAX_INVITATIONS,
    MAX_USES,
    Invitation,
    Invitations,
    NewInvitation,
)
from podstead.storage.record_store import RecordStore, Versioned


class InvitationActions(Actions):
    """Creates, lists and revokes invitations. Every method raises Overloaded and StorageError."""

    def __init__(self, records: RecordStore, audit: Audit) -> None:
        super().__init__(records, audit)
        self._invitations = Invitations(records)

    async def create(self, *, uses: int, days: int, by: Operator | None = None) -> NewInvitation:
        """Create an invitation, whose code is known only now. Raises BadRequest for numbers out of
        bounds, and Conflict if there are too many invitations."""
        if not 1 <= uses <= MAX_USES:
            raise BadRequest(IdpCodes.INVITATION_USES, number=MAX_USES)
        if not 1 <= days <= MAX_DAYS:
            raise BadRequest(IdpCodes.INVITATION_DAYS, number=MAX_DAYS)
        if len(await self._invitations.all()) >= MAX_INVITATIONS:
            raise Conflict(IdpCodes.TOO_MANY_INVITATIONS)
        made = self._invitations.new(uses=uses, days=days)
        facts = {"invitation": made.invitation.invitation_id, "uses": str(uses), "days": str(days)}
        event = AuditEvent.INVITATION_CREATED
        await self._records.commit([made.record, *self._log.action(event, by, **facts)])
        self._note(event, by, **facts)
        return made

    async def list(self) -> Sequence[Versioned[Invitation]]:
        """The invitations that have not ended, the newest first."""
        return await self._invitations.all()

    async def revoke(self, invitation_id: str, by: Operator | None = None) -> None:
        """End an invitation. Accounts that were created with it remain. Raises NotFound."""
        stored = await self._invitations.find(invitation_id)
        event, facts = AuditEvent.INVITATION_REVOKED, {"invitation": invitation_id}
        acted = self._log.action(event, by, **facts)
        await self._records.commit([INVITATIONS.drop(stored.key), *acted])
        self._note(event, by, **facts)
