"""``/idp/register``: a person makes themselves an account and a pod (A-95, A-96)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from podstead.core.errors import BadRequest, NotFound, PodsteadError
from podstead.idp.accounts import Accounts, NewAccount
from podstead.idp.authorizations import Authorizations, Pending
from podstead.idp.names import EmailTaken, UnusableEmail
from podstead.idp.passwords import UnusablePassword, check_password
from podstead.pods.names import PodNameTaken, UnusablePodName
from podstead.web.errors import status_of
from podstead.web.idp.browser_sign_in import BrowserSignIn
from podstead.web.idp.forms import only, read_query
from podstead.web.idp.rendering import Renderer, json_answer, see_other
from podstead.web.idp.replies import INTERACTION_PATH
from podstead.web.idp.shown_clients import shown_client
from podstead.web.idp.submissions import Submission, read_submission
from podstead.web.idp.visits import ACCOUNT_PATH, Visit
from podstead.web.registration import Registration
from podstead.web.response import Response

REGISTRATION_PATH: Final = "/idp/register"
_USERNAME: Final = re.compile(r"[a-z0-9]{3,64}")


class PasswordsDiffer(BadRequest):
    """The password was not repeated."""

    def __init__(self) -> None:
        super().__init__("The two passwords differ: type the same one twice")


_FIELDS: Final[Mapping[type[PodsteadError], str]] = {
    UnusablePodName: "username",
    PodNameTaken: "username",
    UnusableEmail: "email",
    EmailTaken: "email",
    UnusablePassword: "password",
    PasswordsDiffer: "confirmPassword",
}
"""At which field of the form an error is shown."""


class RegistrationPages:
    """Shows the form and takes it."""

    def __init__(
        self,
        *,
        accounts: Accounts,
        authorizations: Authorizations,
        sign_in: BrowserSignIn,
        registration: Registration,
        renderer: Renderer,
        base_url: str,
    ) -> None:
        self._accounts = accounts
        self._authorizations = authorizations
        self._sign_in = sign_in
        self._registration = registration
        self._renderer = renderer
        self._base_url = base_url

    async def get(self, visit: Visit) -> Response:
        """The form; where only the operator makes accounts, a page that says so."""
        if not self._registration.is_open:
            return self._renderer.page("registration_closed.html", status=403)
        pending = await self._pending(visit, only(read_query(visit.request), "uid"))
        return self._form(pending, Submission({}), errors={})

    async def post(self, visit: Visit) -> Response:
        """Make the account and sign in to it.

        Raises RegistrationClosed, RateLimited, and for programs all that making an account does.
        """
        self._registration.check_open()
        sent = await read_submission(visit.request)
        pending = await self._pending(visit, sent.text("uid") or None)
        try:
            created = await self._create(visit, sent)
        except tuple(_FIELDS) as error:
            if not visit.wants_page:
                raise
            field = next(name for kind, name in _FIELDS.items() if isinstance(error, kind))
            status, _ = status_of(error)
            return self._form(pending, sent, errors={field: str(error)}, status=status)
        return await self._created(visit, created, pending)

    async def _create(self, visit: Visit, sent: Submission) -> NewAccount:
        username = sent.text("username")
        if not _USERNAME.fullmatch(username):
            raise UnusablePodName(
                "Invalid pod name. Use alphanumeric, dash, or underscore only.",
                "A name has 3 to 64 characters, which are letters from a to z or digits",
            )
        password = check_password(sent.text("password"))
        if sent.text("confirmPassword") != sent.text("password"):
            raise PasswordsDiffer
        await self._registration.count(visit.request.client_address)
        return await self._accounts.create(
            name=username,
            email=sent.text("email") or None,
            password=password,
            needs_email=False,
        )

    async def _created(
        self, visit: Visit, created: NewAccount, pending: Pending | None
    ) -> Response:
        kept = await self._accounts.read(created.account.account_id)
        if kept is None:
            raise NotFound("The account is gone again")
        signed_in = await self._sign_in.begin(visit, kept, lasting=False)
        path = ACCOUNT_PATH
        if pending is not None:
            await self._authorizations.signed_in(pending, signed_in.session)
            path = f"{INTERACTION_PATH}/{pending.uid}"
        if visit.wants_page:
            return see_other(path, signed_in.cookie)
        body = {
            "webId": created.account.web_id,
            "podUri": created.pod_uri,
            "location": self._base_url + path,
        }
        location = (b"location", created.pod_uri.encode("ascii"))
        return json_answer(201, body, location, signed_in.cookie)

    async def _pending(self, visit: Visit, uid: str | None) -> Pending | None:
        """The interaction to return to. Raises NotFound, AccessDenied, BadRequest."""
        if uid is None:
            return None
        return await self._authorizations.pending(uid, browser=visit.browser)

    def _form(
        self,
        pending: Pending | None,
        sent: Submission,
        *,
        errors: Mapping[str, str],
        status: int = 200,
    ) -> Response:
        targets = [] if pending is None else [pending.interaction.request.redirect_uri]
        return self._renderer.page(
            "register.html",
            status=status,
            form_targets=targets,
            errors=errors,
            username=sent.text("username"),
            email=sent.text("email"),
            client=None if pending is None else shown_client(pending, base_url=self._base_url),
            uid=None if pending is None else pending.uid,
            base_url=self._base_url,
        )
