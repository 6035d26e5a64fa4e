"""May somebody create a pod, and an account with it? (A-96, A-181)"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from podstead.core.errors import AccessDenied, BadRequest
from podstead.storage.invitations import Admission, Invitations, InvitationUse, UnusableInvitation
from podstead.web.about_operator import AboutOperator
from podstead.web.codes import WebCodes
from podstead.web.limits import InvitationGuessLimit, PodCreationLimit

OPEN: Final = "open"
INVITED: Final = "invited"
CLOSED: Final = "closed"


class RegistrationClosed(AccessDenied):
    """Only the operator creates the pods of this server (A-96)."""

    known_text = "Registration disabled"

    code = WebCodes.REGISTRATION_CLOSED


class TermsNotAccepted(BadRequest):
    """The person has not accepted the terms of the server."""

    known_text = "Terms not accepted"

    code = WebCodes.TERMS_NOT_ACCEPTED


@dataclass(frozen=True, slots=True)
class Registration:
    """Who may register, how often, and on which terms."""

    mode: str
    """``open``, ``invited`` or ``closed``."""
    limit: PodCreationLimit
    invitations: Invitations
    wrong_codes: InvitationGuessLimit
    refused: Callable[[], None] | None
    """Is told of each wrong code."""
    about: AboutOperator
    terms_hash: str = ""
    """The SHA-256 of the terms to accept; empty if there are none."""

    @property
    def is_closed(self) -> bool:
        """Whether only the operator creates pods and accounts."""
        return self.mode == CLOSED

    @property
    def by_invitation(self) -> bool:
        """Whether a person needs an invitation."""
        return self.mode == INVITED

    def check_open(self) -> None:
        """Raises RegistrationClosed."""
        if self.is_closed:
            raise RegistrationClosed

    def check_terms(self, *, accepted: bool) -> None:
        """Raises TermsNotAccepted."""
        if self.terms_hash and not accepted:
            raise TermsNotAccepted

    async def admission(self, code: object, address: str) -> Admission | None:
        """What the creation needs if people register by invitation; ``None`` where anybody may.
        A code that is sent needlessly is not used.

        Raises BadRequest, UnusableInvitation, RateLimited, StorageError.
        """
        if not self.by_invitation:
            return None
        if code is not None and not isinstance(code, str):
            raise BadRequest("The code of the invitation must be a string")
        await self.wrong_codes.check(address)
        admitted = partial(self._using, code or "", address)
        await admitted()
        return admitted

    async def _using(self, code: str, address: str) -> InvitationUse:
        try:
            return await self.invitations.using(code)
        except UnusableInvitation:
            if code.strip():
                await self.wrong_codes.count(address)
                if self.refused is not None:
                    self.refused()
            raise

    async def count(self, address: str) -> None:
        """Count one attempt from an address. Raises RateLimited, StorageError."""
        await self.limit.count(address)
