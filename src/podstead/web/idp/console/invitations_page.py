"""``/.pages/console/invitations``: who may register, and the invitations that let people do so."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from podstead.core.errors import BadRequest
from podstead.idp.administration.audit_log import Operator
from podstead.idp.administration.service import InvitationActions
from podstead.storage.invitations import MAX_DAYS, MAX_USES, invitation_url
from podstead.web.codes import WebCodes
from podstead.web.forms import FormSubmission
from podstead.web.idp.console import addresses
from podstead.web.idp.console.access import for_operators
from podstead.web.idp.console.addresses import INVITATIONS
from podstead.web.pages.cookies import Notice, Tone, add_notices
from podstead.web.pages.request import PageRequest
from podstead.web.pages.site import Site
from podstead.web.pages.texts import N_
from podstead.web.response import Response
from podstead.web.routes import route

DEFAULT_USES: Final = 1
DEFAULT_DAYS: Final = 7

add_notices(
    Tone.DONE,
    invitation_revoked=N_("The invitation is revoked. Whoever has used it keeps their account."),
)


@dataclass(frozen=True, slots=True)
class InvitationsPage:
    """Lists, creates and revokes invitations."""

    site: Site
    invitations: InvitationActions
    registration: str
    """The setting."""

    @route(INVITATIONS, "GET")
    @for_operators
    async def get(self, page: PageRequest, _operator: Operator) -> Response:
        """The list."""
        return self.site.page(
            page,
            "console/invitations.html",
            registration=self.registration,
            invitations=await self.invitations.list(),
            max_uses=MAX_USES,
            max_days=MAX_DAYS,
            default_uses=DEFAULT_USES,
            default_days=DEFAULT_DAYS,
            url=INVITATIONS,
        )

    @route(INVITATIONS, "POST")
    @for_operators
    async def create(self, page: PageRequest, operator: Operator) -> Response:
        """Create an invitation, and show its code. Raises BadRequest, Conflict, WrongFormToken."""
        sent = await page.form()
        uses, days = _number(sent, "uses"), _number(sent, "days")
        made = await self.invitations.create(uses=uses, days=days, by=operator)
        return self.site.page(
            page,
            "console/invitation_created.html",
            code=made.code,
            link=invitation_url(self.site.base_url, made.code),
            uses=uses,
            expires_ms=made.expires_ms,
            url=INVITATIONS,
        )

    @route(addresses.REVOKE, "POST")
    @for_operators
    async def revoke(self, page: PageRequest, operator: Operator) -> Response:
        """End an invitation. Raises NotFound, WrongFormToken."""
        await page.form()
        await self.invitations.revoke(page.path_segment(4), operator)
        return self.site.see_other(INVITATIONS, Notice("invitation-revoked"))


def _number(sent: FormSubmission, name: str) -> int:
    text = sent.text(name).strip()
    if not text.isascii() or not text.isdigit() or len(text) > 6:
        raise BadRequest(WebCodes.NO_WHOLE_NUMBERS)
    return int(text)
