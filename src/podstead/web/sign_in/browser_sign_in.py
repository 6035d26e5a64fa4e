"""Signs browsers in to accounts: a factor is verified, and a session begins (A-58, A-61)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from podstead.core import errors, identifiers, identity
from podstead.core.clock import Clock
from podstead.idp import sign_in
from podstead.idp.audit import Audit, AuditEvent
from podstead.idp.codes import IdpCodes
from podstead.idp.mail_queue import MailQueue
from podstead.idp.passwords import is_common
from podstead.idp.records import Account, BrowserSession
from podstead.idp.sessions import LASTING_S, OpenSession, Sessions
from podstead.idp.sign_in_methods import SecondStep
from podstead.storage.protocol import RateCounters
from podstead.storage.record_store import Versioned
from podstead.web.browsers import browser_name, json_response, see_other
from podstead.web.forms import FormSubmission
from podstead.web.limits import address_key, take
from podstead.web.pages import addresses, rendering, texts
from podstead.web.pages.cookies import (
    KNOWN,
    SESSION,
    Cookies,
    Tone,
    add_flash_messages,
    add_refusals,
)
from podstead.web.pages.notifier import NEW_BROWSER, Notifier, PersonNotice
from podstead.web.pages.request import PageRequest, Person, SignedInBy
from podstead.web.pages.site import Site
from podstead.web.request import Request
from podstead.web.response import HeaderField, Response
from podstead.web.sign_in.people import PodSessions, end_browser_session

PASSWORD: Final = "password"  # noqa: S105 - the name of a factor
_FIRST_DAY_S: Final = 86_400


add_flash_messages(
    Tone.DONE,
    sign_in_method_removed=texts.N_(
        "What you signed in with has been removed, so this browser is signed out as well."
    ),
)
add_refusals(IdpCodes.SIGN_IN_FAILED, IdpCodes.ACCOUNT_DISABLED)


class SecondFactorNeeded(errors.NotAuthenticated):
    """The password is right, and the account needs a second factor as well."""

    def __init__(self, path: str) -> None:
        """``path`` is where the sign-in continues."""
        super().__init__("The account needs a second factor besides the password")
        self.path = path


class PasswordRecovery:
    """A way to a new password for people who have lost theirs."""

    address: str
    """Where it begins."""
    title: str
    """What the page "Forgotten your password?" calls it."""
    template: str
    """What the page for new people says about it."""

    async def facts(self, owner: OpenSession) -> Mapping[str, object]:  # noqa: ARG002
        """What the template shows, by name. Raises StorageError."""
        return {}

    async def is_ready(self, owner: OpenSession) -> bool:  # noqa: ARG002
        """Whether the person has what this way needs. Raises StorageError."""
        return False


class SignInForm:
    """A way to sign in besides the password, as the pages offer it."""

    template: str
    """Its part of the sign-in form, below the password. It gets the values of the page, such as
    ``uid`` of an interaction, and stands on the page of the second step if it ``is_second_factor``;
    there ``second_step`` is defined."""
    autocomplete: str = ""
    """What the field for the name gets in its attribute ``autocomplete``."""
    is_second_factor: bool = False
    """Whether it can also follow the password."""
    is_folded: bool = False
    """Whether it stands below "Other ways to sign in", because few people need it."""

    async def hint(self, account: Account) -> str | None:  # noqa: ARG002
        """The template of a hint at this way, on the page of consent. Raises StorageError."""
        return None


@dataclass(frozen=True, slots=True)
class SignedInHere:
    """A session that began with this request, and the headers that store it in the browser."""

    session: BrowserSession
    cookies: tuple[HeaderField, ...]


@dataclass(frozen=True, slots=True)
class BrowserSignIn:
    """Verifies the password in a form, and begins sessions."""

    site: Site
    passwords: sign_in.PasswordSignIn
    known_browsers: sign_in.KnownBrowsers
    sessions: Sessions
    queue: MailQueue
    step: SecondStep | None
    notifier: Notifier

    async def by_password(
        self, page: PageRequest, sent: FormSubmission, *, path: str, uid: str = ""
    ) -> SignedInHere:
        """Sign in with the name and password in a form, to continue at ``path``, or in the
        interaction ``uid``. Raises SignInFailed, SecondFactorNeeded, RateLimited, BadRequest."""
        account = await self._verified(
            page, typed_login(sent), sent.text("password"), AuditEvent.SIGNED_IN
        )
        password, lasting = sent.text("password"), sent.ticked("remember")
        await self.check_second_factor(
            account,
            browser=page.browser,
            lasting=lasting,
            path=path,
            uid=uid,
            password=password,
        )
        return await self.begin(page, account, lasting=lasting, password=password)

    async def check_second_factor(
        self,
        account: Versioned[Account],
        *,
        browser: str,
        path: str,
        lasting: bool = False,
        uid: str = "",
        password: str = "",
    ) -> None:
        """Before a session begins for somebody who has given the right password. Raises
        SecondFactorNeeded, and then the browser continues the sign-in at its address."""
        if self.step is None:
            return
        continues_at = await self.step.begin(
            account.value,
            browser=browser,
            lasting=lasting,
            path=path,
            uid=uid,
            common_password=is_common(password),
        )
        if continues_at is not None:
            raise SecondFactorNeeded(continues_at)

    def second_step(self, page: PageRequest, needed: SecondFactorNeeded) -> Response:
        """For browsers, a redirect to the page of the second step; for programs, its URL."""
        if page.wants_page:
            return see_other(needed.path)
        body = {
            "error": "second_factor_required",
            "error_description": str(needed),
            "location": self.site.base_url + needed.path,
        }
        return json_response(401, body)

    async def confirm(self, page: PageRequest, owner: OpenSession, password: str) -> None:
        """Verify that the person who is signed in knows the password. Raises SignInFailed,
        RateLimited."""
        await self._verified(
            page,
            owner.account.pod,
            password,
            AuditEvent.PASSWORD_CONFIRMED,
            owner.session,
        )

    async def begin(
        self,
        page: PageRequest,
        account: Versioned[Account],
        *,
        lasting: bool,
        factor: str = PASSWORD,
        amr: tuple[str, ...] | None = None,
        restricted: bool = False,
        sign_in_method: str = "",
        password: str = "",
        common_password: bool = False,
    ) -> SignedInHere:
        """Begin a session for an account whose factor was just verified, or just chosen.

        For a factor other than a password, ``amr`` is what tokens say about it, and
        ``sign_in_method`` its entry (:mod:`podstead.idp.sign_in_methods`); it is ``restricted`` if
        it is a weaker one (A-130). ``password`` is the password as typed. A person who has asked to
        stay signed in stays so when they sign in again."""
        before = page.open_session
        goes_on = before is not None and before.session.account_id == account.value.account_id
        lasting = lasting or (goes_on and before is not None and before.session.lasting)
        begun = await self.sessions.begin(
            account,
            factor=factor,
            amr=amr or (sign_in.PASSWORD if factor == PASSWORD else ()),
            lasting=lasting,
            user_agent=page.user_agent,
            instead_of=page.open_session,
            restricted=restricted,
            sign_in_method=sign_in_method,
            common_password=common_password or is_common(password),
        )
        cookies = [self.site.cookies.set(SESSION, begun.secret, LASTING_S if lasting else None)]
        marked = self.site.cookies.marks(page.request)
        if not goes_on and self.known_browsers.device(marked, account.value) is None:
            await self.queue.new_browser(account.value, page.source)
            await self._tell_of_new_browser(page, account.value, begun.session)
        marks = self.known_browsers.signed_in(marked, account.value)
        if marks is not None and not restricted:
            cookies.append(self.site.cookies.set(KNOWN, marks, sign_in.MARK_S))
        return SignedInHere(begun.session, tuple(cookies))

    async def _tell_of_new_browser(
        self, page: PageRequest, account: Account, session: BrowserSession
    ) -> None:
        """On the first day of an account, every browser is new."""
        if session.created_s - account.created_s > _FIRST_DAY_S:
            name = browser_name(page.user_agent)
            notice = PersonNotice(NEW_BROWSER, f"{addresses.SECURITY}?view=browsers", name)
            await self.notifier.tell(account.web_id, notice)

    def succeeded(self, page: PageRequest, signed_in: SignedInHere, *, path: str) -> Response:
        """For browsers, a redirect to a page; for programs, its URL (A-58)."""
        if page.wants_page:
            return see_other(path, *signed_in.cookies)
        location = self.site.base_url + path
        header = (b"location", location.encode("ascii"))
        return json_response(200, {"location": location}, header, *signed_in.cookies)

    def failed(
        self,
        page: PageRequest,
        sent: FormSubmission,
        error: sign_in.SignInFailed,
        *,
        path: str,
    ) -> Response:
        """The form that was sent, again; the name that was typed is still there."""
        if page.wants_page:
            return self.site.see_other(path, rendering.refusal_message(error, typed_login(sent)))
        description = (
            str(error)
            if isinstance(error, sign_in.AccountDisabled)
            else "Invalid username or password"
        )
        return json_response(401, {"error": "invalid_grant", "error_description": description})

    async def _verified(
        self,
        page: PageRequest,
        login: str,
        password: str,
        noted_as: AuditEvent,
        session: BrowserSession | None = None,
    ) -> Versioned[Account]:
        signed_in = await self.passwords.verify(
            login,
            password,
            address=page.source.network,
            marks=self.site.cookies.marks(page.request),
            session=session,
            noted_as=noted_as,
        )
        return signed_in.stored


def typed_login(sent: FormSubmission) -> str:
    """The name that a person typed; clients use either of two names for the field (A-58)."""
    return sent.text("username") or sent.text("email")


@dataclass(frozen=True, slots=True)
class PeopleByAccount:
    """Finds the owners of accounts by their sessions.

    ``terms_hash`` is that of the present terms, if there are any.
    """

    sessions: Sessions
    pod_sessions: PodSessions
    issuer: str
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
            identity=identity.Identity(
                iri=found.account.web_id,
                method=identity.AuthenticationMethod.SESSION,
                may_state_identity=not found.session.restricted,
            ),
            name=found.account.pod,
            csrf_token=found.session.csrf_token,
            signed_in_by=SignedInBy.ACCOUNT,
            pods=(identifiers.ResourcePath(f"/{found.account.pod}/"),),
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
            await end_browser_session(
                found,
                self.issuer,
                sessions=self.sessions,
                pod_sessions=self.pod_sessions,
                audit=self.audit,
            )
        return [self.cookies.clear(SESSION)]


@dataclass(frozen=True, slots=True)
class RequestLimit:
    """Counts the requests of an address for one purpose; a limit of 0 is off."""

    kind: str
    counters: RateCounters
    clock: Clock
    per_minute: int

    async def count(self, page: PageRequest) -> None:
        """Count one request. Raises RateLimited."""
        await take(
            self.counters,
            f"{self.kind}:{address_key(page.request.client_address)}",
            capacity=self.per_minute,
            period_s=60,
            clock=self.clock,
        )
