"""Who is signed in to the pages of pods by a session of the provider at the same origin?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from podstead.core.identifiers import ResourcePath
from podstead.core.identity import AuthenticationMethod, Identity
from podstead.idp.audit import Audit, AuditEvent
from podstead.idp.sessions import Sessions
from podstead.web.pages.cookies import SESSION, Cookies
from podstead.web.pages.request import Person, SignedInBy
from podstead.web.request import Request
from podstead.web.response import HeaderField


@dataclass(frozen=True, slots=True)
class PeopleByAccount:
    """Finds the owners of accounts by their sessions.

    ``terms_hash`` is that of the present terms, if there are any.
    """

    sessions: Sessions
    cookies: Cookies
    audit: Audit
    terms_hash: str = ""

    async def person(self, request: Request) -> Person | None:
        """The owner of the session's account, ``None`` without a valid session. Raises
        StorageError, Overloaded.

        The session is a credential of one's own, unless it began with a factor that anyone who can
        write the profile can give themselves: that one must not decide who can act as the WebID.
        """
        found = await self.sessions.read(self.cookies.secret(request, SESSION))
        if found is None:
            return None
        return Person(
            identity=Identity(
                iri=found.account.web_id,
                method=AuthenticationMethod.SESSION,
                may_state_identity=not found.session.restricted,
            ),
            name=found.account.pod,
            csrf_token=found.session.csrf_token,
            signed_in_by=SignedInBy.ACCOUNT,
            pods=(ResourcePath(f"/{found.account.pod}/"),),
            session=found,
            is_operator=found.account.operator and not found.session.restricted,
            has_new_terms=self.terms_hash not in ("", found.account.terms_hash),
            signed_in_recently=self.sessions.is_recent(found),
        )

    async def sign_out(self, request: Request) -> Sequence[HeaderField]:
        """End the session. Raises StorageError, Overloaded."""
        secret = self.cookies.secret(request, SESSION)
        if secret is None:
            return []
        found = await self.sessions.read(secret)
        if found is not None:
            await self.sessions.end(found.stored)
            self.audit.note(AuditEvent.SIGNED_OUT, account_id=found.account.account_id)
        return [self.cookies.clear(SESSION)]
