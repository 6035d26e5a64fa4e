"""``POST /.pods``: create a pod (A-30), or a pod with an account (A-90)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import msgspec

from podstead.core.errors import BadRequest, UnsupportedMediaType
from podstead.core.identity import Identity
from podstead.pods.provision import PodProvisioner
from podstead.storage.invitations import Admission
from podstead.web.json_bodies import MAX_JSON_BYTES, json_object
from podstead.web.registration import Registration
from podstead.web.request import Request
from podstead.web.response import NO_STORE, Response, json_content_response
from podstead.web.routes import Access, route


class CreatedPod(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What the response contains about a new pod."""

    name: str
    web_id: str = msgspec.field(name="webId")
    pod_uri: str = msgspec.field(name="podUri")
    token: str | None = None
    issuer: str | None = msgspec.field(name="idpIssuer", default=None)
    login_url: str | None = msgspec.field(name="loginUrl", default=None)


class PodMaker(Protocol):
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


class PodsAlone:
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

    def __init__(self, *, maker: PodMaker, registration: Registration) -> None:
        self._maker = maker
        self._registration = registration

    @route("/.pods", "POST", access=Access.PUBLIC)
    async def post(self, request: Request, _: Identity | None) -> Response:
        """Raises BadRequest, UnsupportedMediaType, RegistrationClosed, UnusableInvitation,
        RateLimited, Conflict."""
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
