"""One request for a page: who makes it, in which language, and what it is about."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from podstead.core.errors import NotAuthenticated
from podstead.core.identifiers import ResourcePath
from podstead.core.identity import Identity
from podstead.core.operation import InMemoryBody, Operation, RequestBody
from podstead.resources.outcome import ResourceRequest
from podstead.web.browsers import check_form_token
from podstead.web.codes import WebCodes
from podstead.web.forms import (
    MAX_FORM_BYTES,
    Fields,
    FormSubmission,
    only,
    read_query,
    read_submission,
)
from podstead.web.limits import address_key
from podstead.web.pod_pages.addresses import target_of
from podstead.web.pod_pages.notices import Notice
from podstead.web.pod_pages.people import Person, SignedInBy
from podstead.web.pod_pages.texts import Texts
from podstead.web.request import Request

_SAFE = frozenset({"GET", "HEAD"})


class UncheckedRequest(Exception):
    """A handler used the person of a changing request without checking the request's token."""


_MAX_USER_AGENT_CHARACTERS: Final = 300


@dataclass(slots=True)
class PageRequest:
    """A request to one of the pages.

    A changing request acts for the person only once its token has been checked: by :meth:`form`,
    or for a body that is not a small form by :meth:`check_token`.
    """

    request: Request
    person: Person | None
    texts: Texts
    notice: Notice | None
    wants_page: bool
    """Whether the response is for a person; scripts get JSON."""
    waiting: int = 0
    """How many requests for access wait for the person, if a page is shown."""
    _checked: bool = field(default=False)

    @property
    def identity(self) -> Identity | None:
        """The identity for the gate; ``None`` for the public. Raises UncheckedRequest."""
        if self.person is None:
            return None
        if self.request.method not in _SAFE and not self._checked:
            raise UncheckedRequest
        return self.person.identity

    @property
    def requester(self) -> str:
        """The key for limits on costly work: a person of this server, or the network.

        Whoever runs a provider elsewhere can sign in with any number of WebIDs, so they all share
        what their network may do.
        """
        person = self.person
        if person is None or person.signed_in_by is SignedInBy.ELSEWHERE:
            return address_key(self.request.client_address)
        return person.web_id

    @property
    def target(self) -> ResourcePath:
        """The resource that the page is about. Raises NotFound."""
        return target_of(self.request)

    @property
    def query(self) -> Fields:
        """The fields of the query. Raises BadRequest."""
        return read_query(self.request)

    @property
    def address(self) -> str:
        """The address of this page, to come back to."""
        query = self.request.query.decode("latin-1")
        return self.request.path + (f"?{query}" if query else "")

    def query_text(self, name: str) -> str:
        """A field of the query, empty if it is missing. Raises BadRequest."""
        return only(self.query, name) or ""

    @property
    def user_agent(self) -> str:
        """What the browser calls itself, to name its session."""
        return (self.request.fields.get(b"user-agent") or "")[:_MAX_USER_AGENT_CHARACTERS]

    def signed_in(self) -> Person:
        """The person. Raises NotAuthenticated, which leads browsers to the sign-in."""
        if self.person is None:
            raise NotAuthenticated(WebCodes.SIGN_IN_FIRST)
        return self.person

    async def form(self, *, max_bytes: int = MAX_FORM_BYTES) -> FormSubmission:
        """A small form or JSON object, whose token has been checked. Raises WrongFormToken, and
        what :func:`read_submission` raises."""
        sent = await read_submission(self.request, max_bytes=max_bytes)
        token = sent.fields.get("csrf_token")
        self.check_token(token if isinstance(token, str) else None)
        return sent

    def check_token(self, token: str | None) -> None:
        """Check the token of a changing request: that of the ``X-CSRF-Token`` field or, without
        one, ``token``. The public has none. Raises WrongFormToken."""
        if self.person is not None:
            sent = self.request.fields.get(b"x-csrf-token") or token
            check_form_token(sent, expected=self.person.csrf_token)
        self._checked = True

    def operation(
        self,
        method: str,
        target: ResourcePath,
        *,
        body: RequestBody | None = None,
        accept: str | None = None,
        content_type: str | None = None,
    ) -> ResourceRequest:
        """An operation on a resource, for :meth:`ResourceService.handle`, by the person. Raises
        UncheckedRequest."""
        operation = Operation(
            method, target, body or InMemoryBody(), accept=accept, content_type=content_type
        )
        return ResourceRequest(operation, self.identity)
