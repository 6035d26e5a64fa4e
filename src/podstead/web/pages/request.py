"""One request for a page: who makes it, in which language, and what it is about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol
from urllib.parse import unquote

from podstead.core.errors import AccessDenied, BadRequest, NotAuthenticated
from podstead.core.identifiers import ResourcePath
from podstead.core.identity import Identity
from podstead.core.operation import NO_BODY, Operation, RequestBody
from podstead.idp.audit import RequestSource
from podstead.resources.outcome import ResourceRequest
from podstead.web import browsers, forms, limits, response
from podstead.web.codes import WebCodes
from podstead.web.pages.addresses import PROVIDER, again_url, local_address, target_of
from podstead.web.pages.cookies import FlashMessage
from podstead.web.pages.texts import Texts, current_texts
from podstead.web.request import Request

if TYPE_CHECKING:
    from podstead.idp.sessions import OpenSession

SAFE: Final = frozenset({"GET", "HEAD"})
_MAX_USER_AGENT_CHARACTERS: Final = 300


class UncheckedRequest(Exception):
    """A handler used the person of a changing request without checking the request's token."""


class SignInAgain(AccessDenied):
    """The person has not signed in recently enough for this (A-86)."""

    known_text = "Sign in again"

    def __init__(self, again_at: str | None = None) -> None:
        """``again_at`` is the path where a person can sign in again, instead of being refused."""
        super().__init__(WebCodes.SIGN_IN_AGAIN)
        self.again_at = again_at


class SignedInBy(Enum):
    """What a session of a person began with."""

    ACCOUNT = "account"
    """Signed in to an account of the provider at this origin."""
    POD_TOKEN = "pod-token"  # noqa: S105 - the name of a kind
    ELSEWHERE = "elsewhere"
    """Signed in at another provider."""


@dataclass(frozen=True, slots=True)
class Person:
    """A person who is signed in. ``identity`` is what the gate decides about."""

    identity: Identity
    name: str
    """How the pages call the person."""
    csrf_token: str
    signed_in_by: SignedInBy
    pods: Sequence[ResourcePath] = ()
    """The root containers of the person's own pods on this server."""
    session: OpenSession | None = None
    """The session of an account, if the person is signed in to one."""
    is_operator: bool = False
    """Whether the person may use the operator's console."""
    has_new_terms: bool = False
    """Whether the person has not accepted the present terms of this server."""
    signed_in_recently: bool = False
    """Whether the person has signed in to the account within the last minutes."""

    @property
    def web_id(self) -> str:
        return self.identity.iri

    @property
    def account_id(self) -> str | None:
        return None if self.session is None else self.session.account.account_id


class People(Protocol):
    """Finds the person that a request comes from by one kind of session, and ends that session."""

    async def person(self, request: Request) -> Person | None:
        """The person, ``None`` without a valid session of this kind. Raises StorageError,
        Overloaded."""

    async def sign_out(self, request: Request) -> Sequence[response.HeaderField]:
        """End the session, if there is one; the headers remove its cookies. Raises StorageError,
        Overloaded."""


@dataclass(frozen=True, slots=True)
class PeopleByAnySession:
    """Finds people by several kinds of sessions; the first that is valid applies."""

    kinds: Sequence[People]

    async def person(self, request: Request) -> Person | None:
        """The person, ``None`` without any valid session. Raises StorageError, Overloaded."""
        if request.fields.get_raw(b"cookie") is None:
            return None
        for kind in self.kinds:
            found = await kind.person(request)
            if found is not None:
                return found
        return None

    async def sign_out(self, request: Request) -> Sequence[response.HeaderField]:
        """End every session of the browser. Raises StorageError, Overloaded."""
        return [header for kind in self.kinds for header in await kind.sign_out(request)]


def request_source(request: Request) -> RequestSource:
    """The source of a request; its address is the one that trusted proxies report."""
    address = request.client_address
    return RequestSource(
        address,
        limits.address_key(address),
        (request.fields.get(b"user-agent") or "")[:_MAX_USER_AGENT_CHARACTERS],
        language=current_texts().language,
    )


class Waiting(NamedTuple):
    """What waits for a person: requests for access, notices about access that ends, and what the
    person was told (:mod:`podstead.web.pages.notifier`) and has not read."""

    requests: int = 0
    reminders: int = 0
    unread: int = 0


NOTHING_WAITS: Final = Waiting()


@dataclass(slots=True)
class PageRequest:
    """A request to one of the pages.

    A changing request acts for the person only once its token has been checked: by :meth:`form`,
    or for a body that is not a small form by :meth:`check_token`.
    """

    request: Request
    person: Person | None
    texts: Texts
    flash_message: FlashMessage | None
    wants_page: bool
    """Whether the response is for a person; scripts get JSON."""
    waiting: Waiting = NOTHING_WAITS
    """What waits for the person, if a page is shown."""
    browser: str = ""
    """The secret of the browser at the provider; a new one if it had none."""
    is_shown_again: bool = True
    """Whether the page can be shown again, such as after the choice of another language."""
    _checked: bool = field(default=False)

    # Who it comes from

    @property
    def identity(self) -> Identity | None:
        """The identity for the gate; ``None`` for the public. Raises UncheckedRequest."""
        if self.person is None:
            return None
        if self.request.method not in SAFE and not self._checked:
            raise UncheckedRequest
        return self.person.identity

    def signed_in(self) -> Person:
        """The person. Raises NotAuthenticated, which leads browsers to the sign-in."""
        if self.person is None:
            raise NotAuthenticated(WebCodes.SIGN_IN_FIRST)
        return self.person

    @property
    def open_session(self) -> OpenSession | None:
        """The session of an account, if the person is signed in to one."""
        return None if self.person is None else self.person.session

    def owner(self) -> OpenSession:
        """The session of an account. Raises NotAuthenticated."""
        if self.open_session is None:
            raise NotAuthenticated(WebCodes.SIGN_IN_FIRST)
        return self.open_session

    def recent_owner(self, purpose: str | None = None) -> OpenSession:
        """The session of somebody who has signed in recently. For a ``purpose`` of signing in
        again, browsers are led there. Raises NotAuthenticated, SignInAgain."""
        owner = self.owner()
        if not self.signed_in().signed_in_recently:
            raise SignInAgain(None if purpose is None else again_url(purpose, self.back))
        return owner

    @property
    def requester(self) -> str:
        """The key for limits on costly work: a person of this server, or the network.

        Whoever runs a provider elsewhere can sign in with any number of WebIDs, so they all share
        what their network may do.
        """
        person = self.person
        if person is None or person.signed_in_by is SignedInBy.ELSEWHERE:
            return limits.address_key(self.request.client_address)
        return person.web_id

    @property
    def user_agent(self) -> str:
        """What the browser calls itself, to name its session."""
        return self.source.user_agent

    @property
    def source(self) -> RequestSource:
        """The source of the request, recorded with what it changes."""
        return request_source(self.request)

    # What it is about

    @property
    def is_of_provider(self) -> bool:
        """Whether it is about one of the provider's own pages."""
        return self.request.path.startswith(PROVIDER)

    @property
    def target(self) -> ResourcePath:
        """The resource that the page is about. Raises NotFound."""
        return target_of(self.request)

    @property
    def address(self) -> str:
        """The address of this page, to come back to."""
        query = self.request.query.decode("latin-1")
        return self.request.path + (f"?{query}" if query else "")

    @property
    def segment(self) -> str:
        """The last segment of the path."""
        return self.request.path.rpartition("/")[2]

    def path_segment(self, index: int) -> str:
        """A segment of the path, counted from 1. Raises BadRequest."""
        segments = self.request.path.split("/")
        if index >= len(segments):
            raise BadRequest(WebCodes.ADDRESS_TOO_SHORT)
        return unquote(segments[index])

    @property
    def query(self) -> forms.Fields:
        """The fields of the query. Raises BadRequest."""
        return forms.read_query(self.request)

    def query_text(self, name: str) -> str:
        """A field of the query, empty if it is missing. Raises BadRequest."""
        return forms.only(self.query, name) or ""

    @property
    def back(self) -> str | None:
        """The page whose form this request comes from, if it names one. Raises BadRequest."""
        return local_address(forms.only(self.query, "next"))

    # What was sent

    async def form(self, *, max_bytes: int = forms.MAX_FORM_BYTES) -> forms.FormSubmission:
        """A small form or JSON object, whose token has been checked. Raises WrongFormToken, and
        what :func:`read_submission` raises."""
        sent = await forms.read_submission(self.request, max_bytes=max_bytes)
        token = sent.fields.get("csrf_token")
        self.check_token(token if isinstance(token, str) else None)
        return sent

    async def submission(self) -> forms.FormSubmission:
        """The same of a person who is signed in to an account. Raises NotAuthenticated,
        WrongFormToken, and what :func:`read_submission` raises."""
        self.owner()
        return await self.form()

    def check_token(self, token: str | None) -> None:
        """Check the token of a changing request: that of the ``X-CSRF-Token`` field or, without
        one, ``token``. The public has none. Raises WrongFormToken."""
        if self.person is not None:
            sent = self.request.fields.get(b"x-csrf-token") or token
            browsers.check_form_token(sent, expected=self.person.csrf_token)
        self._checked = True

    def operation(
        self,
        method: str,
        target: ResourcePath,
        *,
        body: RequestBody = NO_BODY,
        accept: str | None = None,
        content_type: str | None = None,
    ) -> ResourceRequest:
        """An operation on a resource, for :meth:`ResourceService.handle`, by the person. Raises
        UncheckedRequest."""
        operation = Operation(method, target, body, accept=accept, content_type=content_type)
        return ResourceRequest(operation, self.identity)
