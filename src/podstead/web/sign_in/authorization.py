"""``/idp/auth`` and ``/idp/interaction``: the authorization of an application by a person (A-52 to
A-59).

An authorization request begins an interaction, in which the person signs in and consents unless
they did so before. Both pages name the application, where it is, and the URL that the person is
sent to afterwards. The response goes through the browser: in the query or the fragment of the
redirect URI, or with a form that the browser posts to it (OAuth 2.0 Form Post Response Mode).
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol
from urllib.parse import SplitResult, urlencode, urljoin, urlsplit

from markupsafe import Markup

from podstead.core.clock import Clock
from podstead.core.errors import AccessDenied
from podstead.core.identity import IDENTITY_SCOPE
from podstead.idp import authorizations as idp_authorizations
from podstead.idp import client_metadata
from podstead.idp.accounts import Accounts, issue_time_s
from podstead.idp.audit import Audit, AuditEvent
from podstead.idp.grants import ConnectedClient, Stage, signing_in_consents
from podstead.idp.oauth.authorization import UnusableClient
from podstead.idp.records import Account, Client, ClientCredential, VerifiedFactor
from podstead.idp.sign_in import SignInFailed
from podstead.idp.token_issuing import AUTHORIZATION_PATH
from podstead.storage import protocol, record_store
from podstead.storage.records import Record, TokenRecord
from podstead.web.browsers import json_response, see_other
from podstead.web.codes import WebCodes
from podstead.web.forms import FormSubmission, read_form, read_query, read_submission
from podstead.web.limits import address_key, take
from podstead.web.pages.addresses import APPS, CALLBACK, other_ways_url
from podstead.web.pages.guard import Rule
from podstead.web.pages.notifier import LET_IN, Notifier, PersonNotice
from podstead.web.pages.rendering import PageRenderer
from podstead.web.pages.request import PageRequest, Person
from podstead.web.pages.site import Site
from podstead.web.response import Response
from podstead.web.routes import route
from podstead.web.sign_in.browser_sign_in import BrowserSignIn, SecondFactorNeeded, SignInForm
from podstead.web.sign_in.login import LoginPage

INTERACTION_PATH = "/idp/interaction"


def next_response(
    page: PageRequest, following: idp_authorizations.Next, renderer: PageRenderer
) -> Response:
    """The response that continues an authorization: a page of the provider, or the application."""
    if isinstance(following, idp_authorizations.InteractionRequired):
        return see_other(f"{INTERACTION_PATH}/{following.uid}")
    if following.response_mode == "form_post":
        return renderer.sign_in_page(
            page,
            "sign_in/form_post.html",
            form_targets=[following.redirect_uri],
            action=following.redirect_uri,
            parameters=following.parameters,
        )
    return see_other(reply_url(following))


def reply_url(reply: idp_authorizations.AuthorizationReply) -> str:
    """The redirect URI with the response in it."""
    encoded = urlencode(reply.parameters)
    if reply.response_mode == "fragment":
        return f"{reply.redirect_uri}#{encoded}"
    joined = "&" if "?" in reply.redirect_uri else "?"
    return f"{reply.redirect_uri}{joined}{encoded}"


_ESCAPED_DOT: Final = re.compile(r"%2e", re.IGNORECASE)
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class ClientDisplay:
    """The description of an application on a page. The application chooses its name."""

    name: str
    host: str | None
    """The place of the application's document; ``None`` for one that registered itself."""
    redirect_host: str
    """The place that the person is sent to afterwards."""
    on_this_device: bool = False
    """Whether this is a program on the person's own device."""


def client_display(client: Client, redirect_uri: str, *, base_url: str) -> ClientDisplay:
    """How a page of the server at ``base_url`` describes an application that redirects to a URL."""
    host = None if client.registered else place_of(client.client_id, base_url=base_url)
    onward = place_of(redirect_uri, base_url=base_url)
    return ClientDisplay(
        client.client_name or host or onward,
        host,
        onward,
        client_metadata.is_on_this_device(redirect_uri),
    )


def places_of(client: ConnectedClient, *, base_url: str) -> Sequence[str]:
    """The places of a connected application on the account page: that of its document, if it has
    one, and those that the person was sent to. A host that all pods of this server share does not
    identify an application, so for one in a pod the pod is shown."""
    redirect_hosts = {client_metadata.redirect_host(each) for each in client.redirect_uris}
    named = [place_of(each, base_url=base_url) for each in client.redirect_uris]
    named += [_ascii_host(h.lower()) for h in client.hosts if h not in redirect_hosts]
    hosts = list(dict.fromkeys(named))
    if not client_metadata.is_document_url(client.client_id):
        return hosts
    place = place_of(client.client_id, base_url=base_url)
    shared = place_of(base_url, base_url=base_url)
    in_a_pod = place.startswith(f"{shared}/")
    onward = [host for host in hosts if not (in_a_pod and host == shared)]
    return tuple(dict.fromkeys((place, *onward)))


def place_of(url: str, *, base_url: str) -> str:
    """The place of a URL as people read it: its host; on this server the pod, too; for a private
    scheme the scheme."""
    parts = urlsplit(url)
    if not parts.netloc:
        return f"{parts.scheme}:"
    host = _ascii_host(parts.netloc.lower())
    pod = _first_segment(url) if _origin(parts) == _origin(urlsplit(base_url)) else ""
    return f"{host}/{pod}" if pod else host


def _ascii_host(authority: str) -> str:
    try:
        return authority.encode("idna").decode("ascii")
    except UnicodeError:
        return authority.encode("ascii", errors="backslashreplace").decode("ascii")


def _origin(parts: SplitResult) -> tuple[str, str | None, int | None]:
    return parts.scheme, parts.hostname, parts.port or _DEFAULT_PORTS.get(parts.scheme)


def _first_segment(url: str) -> str:
    """The pod of a path as browsers resolve it: they go up at each ``..``, encoded or not."""
    path = _ESCAPED_DOT.sub(".", urlsplit(url).path)
    return urlsplit(urljoin(url, f"/{path.lstrip('/')}")).path.lstrip("/").partition("/")[0]


BEGUN_PER_MINUTE: Final = 600
"""How many authorizations an address may begin, since each is stored for a while."""


@dataclass(frozen=True, slots=True)
class AuthorizationEndpoint:
    """Begins authorizations, and continues them after each step."""

    site: Site
    authorizations: idp_authorizations.Authorizations
    login: LoginPage
    counters: protocol.RateCounters
    clock: Clock

    @route(AUTHORIZATION_PATH, "GET", rule=Rule.ANYWHERE, needs_terms=False, is_shown_again=False)
    async def get(self, page: PageRequest) -> Response:
        """Begin an authorization or, without parameters, show the sign-in page. Raises
        RateLimited."""
        parameters = read_query(page.request)
        if "client_id" not in parameters:
            return await self.login.get(page)
        await self._count(page)
        session = page.open_session.session if page.open_session else None
        try:
            following = await self.authorizations.begin(
                parameters, session=session, browser=page.browser
            )
        except UnusableClient as error:
            return self.site.renderer.refusal(page, error, 400, unusable_client=True)
        if (
            isinstance(following, idp_authorizations.AuthorizationReply)
            and following.stranger
            and self._leads_away(page, following)
        ):
            return self._leaving_page(page, following, following.stranger)
        return next_response(page, following, self.site.renderer)

    def _leads_away(self, page: PageRequest, reply: idp_authorizations.AuthorizationReply) -> bool:
        """Whether a redirect would take a person to a site that they have not just come from. It
        does not if a program sent the request, if it comes from a frame in which an application
        asks whether somebody is signed in (Fetch Metadata section 2.1), or if it leads back to the
        site that the person came from."""
        destination = page.request.fields.get(b"sec-fetch-dest")
        if not page.wants_page or destination not in (None, "document"):
            return False
        came_from = client_metadata.redirect_origin(page.request.fields.get(b"referer") or "")
        # The pods of this server share an origin, but belong to different people.
        known = came_from is not None and came_from not in {self.site.base_url, self.site.pods_url}
        return not (known and came_from == client_metadata.redirect_origin(reply.redirect_uri))

    def _leaving_page(
        self, page: PageRequest, reply: idp_authorizations.AuthorizationReply, client: Client
    ) -> Response:
        """The page shown before an error is sent to a site that nobody has agreed to be sent to."""
        by_form = reply.response_mode == "form_post"
        return self.site.sign_in_page(
            page,
            "sign_in/leaving_to_application.html",
            form_targets=[reply.redirect_uri] if by_form else [],
            client=client_display(client, reply.redirect_uri, base_url=self.site.pods_url),
            error=reply.parameters["error"],
            url=reply.redirect_uri if by_form else reply_url(reply),
            parameters=reply.parameters if by_form else None,
        )

    async def _count(self, page: PageRequest) -> None:
        await take(
            self.counters,
            f"authorization:{address_key(page.request.client_address)}",
            capacity=BEGUN_PER_MINUTE,
            period_s=60,
            clock=self.clock,
        )

    @route(AUTHORIZATION_PATH, "POST", rule=Rule.ANYWHERE, needs_terms=False, is_shown_again=False)
    async def post(self, page: PageRequest) -> Response:
        """The same with a form, whose fields become a query. Browsers do not send the necessary
        cookies with a form of another site, but they do with the request after a redirect."""
        form = await read_form(page.request)
        return see_other(f"{AUTHORIZATION_PATH}?{urlencode(form, doseq=True)}")

    @route(AUTHORIZATION_PATH + "/{uid}", "GET", is_shown_again=False)
    async def resume(self, page: PageRequest) -> Response:
        """Continue the authorization with this uid. Raises NotFound, AccessDenied, BadRequest."""
        pending = await self.authorizations.pending(page.segment, browser=page.browser)
        session = page.open_session.session if page.open_session else None
        return next_response(
            page, await self.authorizations.proceed(pending, session), self.site.renderer
        )


class ClientTerms(NamedTuple):
    """What pages show about a client that acts for a person."""

    text: Markup
    are_limited: bool = False
    """Whether the client may do less than the person."""


class ConsentExtension(idp_authorizations.AuthorizationExtension, Protocol):
    """Adds to the consent page what the person decides about besides the scopes."""

    async def fields(
        self, page: PageRequest, pending: idp_authorizations.PendingAuthorization
    ) -> Markup:
        """Further fields of the form with the id ``allow``."""

    async def records(
        self,
        page: PageRequest,
        pending: idp_authorizations.PendingAuthorization,
        sent: FormSubmission,
    ) -> Sequence[Record]:
        """What is stored with the consent. Raises BadRequest for what the form cannot hold."""

    async def credential_fields(self, account: Account) -> Markup:
        """Further fields of the form with the id ``new-credential``, with which a person creates
        client credentials or a token. Raises StorageError."""

    async def credential_records(
        self, account: Account, credential: ClientCredential | TokenRecord, sent: FormSubmission
    ) -> Sequence[Record]:
        """What is stored with new client credentials, or a new token. Raises BadRequest."""

    async def shown(
        self, person: Person, client_ids: Iterable[str], token_ids: Iterable[str] = ()
    ) -> Mapping[str, ClientTerms]:
        """What pages show about each of these clients and tokens of a person, by its id, and with
        the id ``""`` below all clients. Raises StorageError."""


UID_SEGMENT: Final = 3


@dataclass(frozen=True, slots=True)
class InteractionPages:
    """Shows the next step, and accepts the person's answers."""

    site: Site
    authorizations: idp_authorizations.Authorizations
    sign_in: BrowserSignIn
    audit: Audit
    forms: Sequence[SignInForm]
    notifier: Notifier
    consent: ConsentExtension | None = None

    @route(INTERACTION_PATH + "/{uid}", "GET")
    async def get(self, page: PageRequest) -> Response:
        """The page of the next step. Raises NotFound, AccessDenied, BadRequest."""
        pending = await self._pending(page)
        if pending.stage is Stage.SIGN_IN or not _is_theirs(pending, page):
            return self._sign_in_page(page, pending)
        if "switch" in read_query(page.request):
            return self._sign_in_page(page, pending)
        if pending.stage is Stage.CONSENT:
            return await self._consent_page(page, pending)
        return see_other(resumption(pending))

    @route(INTERACTION_PATH + "/{uid}", "POST")
    @route(INTERACTION_PATH + "/{uid}/login", "POST")
    async def login(self, page: PageRequest) -> Response:
        """Sign in, in this interaction. Raises RateLimited, BadRequest, NotFound, AccessDenied."""
        pending = await self._pending(page)
        sent = await read_submission(page.request)
        try:
            signed_in = await self.sign_in.by_password(
                page, sent, path=resumption(pending), uid=pending.uid
            )
        except SecondFactorNeeded as needed:
            return self.sign_in.second_step(page, needed)
        except SignInFailed as error:
            back = f"{INTERACTION_PATH}/{pending.uid}"
            return self.sign_in.failed(page, sent, error, path=back)
        await self.authorizations.signed_in(pending, signed_in.session)
        return self.sign_in.succeeded(page, signed_in, path=resumption(pending))

    @route(INTERACTION_PATH + "/{uid}/confirm", "POST")
    async def confirm(self, page: PageRequest) -> Response:
        """The person consents. Raises AccessDenied, BadRequest, NotFound."""
        pending = await self._pending(page)
        sent = await read_submission(page.request)
        if not _is_theirs(pending, page):
            raise AccessDenied(WebCodes.OTHER_ACCOUNT_SIGNED_IN)
        interaction = pending.interaction
        may_state_identity = IDENTITY_SCOPE in interaction.request.scopes and sent.ticked(
            IDENTITY_SCOPE
        )
        records: Sequence[Record] = ()
        if self.consent is not None:
            records = await self.consent.records(page, pending, sent)
        await self.authorizations.consented(
            pending, may_state_identity=may_state_identity, records=records
        )
        self.audit.note(
            AuditEvent.CONSENT_GIVEN,
            account_id=interaction.account_id,
            client_id=interaction.request.client_id,
            **({"also": IDENTITY_SCOPE} if may_state_identity else {}),
        )
        name = pending.client.client_name or pending.redirect_host
        web_id = page.owner().account.web_id
        await self.notifier.tell(web_id, PersonNotice(LET_IN, APPS, name))
        path = resumption(pending)
        if page.wants_page:
            return see_other(path)
        return json_response(200, {"location": self.site.base_url + path})

    @route(INTERACTION_PATH + "/{uid}/abort", "POST")
    async def abort(self, page: PageRequest) -> Response:
        """The person declines (A-59). Raises AccessDenied, BadRequest, NotFound."""
        pending = await self._pending(page)
        return next_response(page, await self.authorizations.aborted(pending), self.site.renderer)

    async def _pending(self, page: PageRequest) -> idp_authorizations.PendingAuthorization:
        uid = page.path_segment(UID_SEGMENT)
        return await self.authorizations.pending(uid, browser=page.browser)

    def _sign_in_page(
        self, page: PageRequest, pending: idp_authorizations.PendingAuthorization
    ) -> Response:
        session = page.open_session
        typed = page.flash_message.subject if page.flash_message else ""
        hint = pending.interaction.request.login_hint or (session.account.pod if session else "")
        return self.site.sign_in_page(
            page,
            "sign_in/login.html",
            form_targets=[pending.interaction.request.redirect_uri],
            typed=typed or hint,
            action=f"{INTERACTION_PATH}/{pending.uid}",
            again=None,
            reason=None,
            client=self._client_display(pending),
            permissions=client_metadata.permissions(pending.interaction.request.scopes),
            consents=signing_in_consents(pending.interaction)
            and pending.interaction.request.details is None,
            registration=not self.site.registration.is_closed,
            uid=pending.uid,
            forms=self.forms,
            other_ways=self._other_ways(pending),
            afterwards=None,
        )

    def _other_ways(self, pending: idp_authorizations.PendingAuthorization) -> str | None:
        """Where people sign in without an account, if the pages of this server's pods at another
        origin have led here."""
        own, redirect_uri = self.site.pods_url, pending.interaction.request.redirect_uri
        is_ours = own != self.site.base_url and redirect_uri.startswith(own + CALLBACK)
        return own + other_ways_url(None) if is_ours else None

    async def _consent_page(
        self, page: PageRequest, pending: idp_authorizations.PendingAuthorization
    ) -> Response:
        account = page.owner().account
        return self.site.sign_in_page(
            page,
            "sign_in/consent.html",
            form_targets=[pending.interaction.request.redirect_uri],
            client=self._client_display(pending),
            scopes=pending.interaction.request.scopes,
            permissions=client_metadata.permissions(pending.interaction.request.scopes),
            identity_scope=IDENTITY_SCOPE,
            account=account,
            uid=pending.uid,
            hints=[hint for each in self.forms if (hint := await each.hint(account))],
            further=None if self.consent is None else await self.consent.fields(page, pending),
        )

    def _client_display(self, pending: idp_authorizations.PendingAuthorization) -> ClientDisplay:
        redirect_uri = pending.interaction.request.redirect_uri
        return client_display(pending.client, redirect_uri, base_url=self.site.pods_url)


def _is_theirs(pending: idp_authorizations.PendingAuthorization, page: PageRequest) -> bool:
    """Whether the account of the interaction is signed in to in this browser."""
    session = page.open_session
    return session is not None and session.account.account_id == pending.interaction.account_id


def resumption(pending: idp_authorizations.PendingAuthorization) -> str:
    """The URL at which an interaction continues after a step."""
    return f"{AUTHORIZATION_PATH}/{pending.uid}"


@dataclass(frozen=True, slots=True)
class VerifiedSignIn:
    """Records what was verified and reads it again."""

    accounts: Accounts
    authorizations: idp_authorizations.Authorizations
    sign_in: BrowserSignIn
    clock: Clock

    async def note(
        self,
        pending: idp_authorizations.PendingAuthorization,
        account: record_store.Versioned[Account],
        *,
        factor: str,
        lasting: bool,
        amr: tuple[str, ...] = (),
        restricted: bool = False,
        sign_in_method: str,
    ) -> None:
        """Record it in the interaction; ``amr`` is what tokens say about it. Raises Overloaded,
        StorageError."""
        verified = VerifiedFactor(
            account.value.account_id,
            issue_time_s(account.value, self.clock.now_ms() // 1000),
            lasting=lasting,
            factor=factor,
            amr=amr,
            restricted=restricted,
            sign_in_method=sign_in_method,
        )
        await self.authorizations.factor_verified(pending, verified)

    async def complete(self, page: PageRequest, *, factor: str) -> Response:
        """Continue the interaction of the URL, in which a factor of this browser was verified.
        Raises AccessDenied without that, NotFound, BadRequest."""
        uid = page.path_segment(UID_SEGMENT)
        verified = await self.authorizations.use_verified(
            await self.authorizations.pending(uid, browser=page.browser), factor
        )
        account = await self.accounts.read(verified.account_id)
        if (
            account is None
            or account.value.disabled
            or verified.verified_s < account.value.valid_after_s
        ):
            raise AccessDenied(WebCodes.ACCOUNT_CHANGED)
        signed_in = await self.sign_in.begin(
            page,
            account,
            lasting=verified.lasting,
            factor=factor,
            amr=verified.amr,
            restricted=verified.restricted,
            sign_in_method=verified.sign_in_method,
        )
        pending = await self.authorizations.pending(uid, browser=page.browser)
        await self.authorizations.signed_in(pending, signed_in.session)
        return see_other(resumption(pending), *signed_in.cookies)
