"""Who may create a pod, and an account with it (A-96, A-181), and the endpoint that does it
(A-30, A-90)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol
from urllib.parse import quote

import msgspec

from podstead.core.errors import AccessDenied, BadRequest, RateLimited, UnsupportedMediaType
from podstead.core.identity import Identity
from podstead.pods.provision import PodProvisioner
from podstead.storage.invitations import Admission, Invitations, InvitationUse, UnusableInvitation
from podstead.web.codes import WebCodes
from podstead.web.forms import MAX_JSON_BYTES, json_object
from podstead.web.limits import InvitationGuessLimit, PodCreationLimit
from podstead.web.request import Request
from podstead.web.response import NO_STORE, Response, json_content_response
from podstead.web.routes import Access, route

_NOT_ESCAPED: Final = "@!$&'*+,-./:;=?_~%"

OPEN: Final = "open"
INVITED: Final = "invited"
CLOSED: Final = "closed"


@dataclass(frozen=True, slots=True)
class AboutOperator:
    """What pages say about the operator; each text may be empty."""

    name: str = ""
    contact: str = ""
    """An e-mail address or a URL."""
    terms_url: str = ""
    """Where the terms are to be read."""

    @property
    def contact_url(self) -> str:
        """The address of the link to the contact."""
        if self.contact.startswith(("https://", "http://")):
            return self.contact
        return f"mailto:{quote(self.contact, safe=_NOT_ESCAPED)}"


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

    read_mode: Callable[[], str]
    """Tells the present mode."""
    limit: PodCreationLimit
    invitations: Invitations
    wrong_codes: InvitationGuessLimit
    refused: Callable[[], None] | None
    """Is told of each wrong code."""
    read_about: Callable[[], AboutOperator]
    terms_hash: str = ""
    """The SHA-256 of the terms to accept; empty if there are none."""

    @property
    def mode(self) -> str:
        """``open``, ``invited`` or ``closed``."""
        return self.read_mode()

    @property
    def about(self) -> AboutOperator:
        """What pages say about the operator."""
        return self.read_about()

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

    async def note(self, code: str, address: str) -> str:
        """What the operator says to the person who has this code; empty for a wrong one, which
        counts as an attempt to guess one. Raises StorageError."""
        if not code.strip():
            return ""
        try:
            await self.wrong_codes.check(address)
            return (await self._using(code, address)).note
        except (UnusableInvitation, RateLimited):
            return ""

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


class CreatedPod(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What the response contains about a new pod."""

    name: str
    web_id: str = msgspec.field(name="webId")
    pod_uri: str = msgspec.field(name="podUri")
    token: str | None = None
    issuer: str | None = msgspec.field(name="idpIssuer", default=None)
    login_url: str | None = msgspec.field(name="loginUrl", default=None)


class PodCreator(Protocol):
    """Creates what a request describes."""

    async def make(
        self,
        sent: Mapping[str, object],
        request: Request,
        *,
        admitted: Admission | None,
        terms_hash: str,
    ) -> CreatedPod:
        """Create what a request describes, entirely or not at all. ``admitted`` is the invitation,
        if one is needed, and ``terms_hash`` that of the accepted terms, if there are any.

        Raises BadRequest for missing and invalid members, Conflict for names that are taken,
        UnusableInvitation, Overloaded and StorageError."""


class PodsWithoutAccounts:
    """Creates pods whose owners get a pod token."""

    def __init__(self, provisioner: PodProvisioner) -> None:
        self._provisioner = provisioner

    async def make(
        self,
        sent: Mapping[str, object],
        request: Request,  # noqa: ARG002 - for pods with accounts
        *,
        admitted: Admission | None,
        terms_hash: str,  # noqa: ARG002 - kept on accounts
    ) -> CreatedPod:
        """Create a pod with the name in the request."""
        pod = await self._provisioner.create(sent.get("name"), admitted)
        return CreatedPod(name=pod.name, web_id=pod.web_id, pod_uri=pod.pod_uri, token=pod.token)


class PodsEndpoint:
    """Creates pods for anyone, within the rate limit, unless registration is disabled."""

    def __init__(self, *, maker: PodCreator, registration: Registration) -> None:
        self._maker = maker
        self._registration = registration

    @route("/.pods", "POST", access=Access.PUBLIC)
    async def post(self, request: Request, _: Identity | None) -> Response:
        self._registration.check_open()
        content_type = request.fields.get(b"content-type")
        if content_type is None:
            raise BadRequest("The body must be a JSON object with Content-Type: application/json")
        if content_type.partition(";")[0].strip().lower() != "application/json":
            raise UnsupportedMediaType(
                "The body must be a JSON object with Content-Type: application/json"
            )
        sent = json_object(await request.body.read(limit_bytes=MAX_JSON_BYTES))
        registration, address = self._registration, request.client_address
        registration.check_terms(accepted=sent.get("acceptTerms") is True)
        admitted = await registration.admission(sent.get("invitation"), address)
        await registration.count(address)
        pod = await self._maker.make(
            sent, request, admitted=admitted, terms_hash=registration.terms_hash
        )
        headers = [(b"location", pod.pod_uri.encode("ascii")), NO_STORE]
        return json_content_response(pod, status=201, headers=headers)
