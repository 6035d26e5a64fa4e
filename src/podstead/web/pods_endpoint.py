"""``POST /.pods``: make a pod (A-30, A-90)."""

from __future__ import annotations

import msgspec

from podstead.core.agents import Agent
from podstead.core.errors import BadRequest, UnsupportedMediaType
from podstead.pods.provision import PlannedPod, PodProvisioner
from podstead.web.limits import PodCreationLimit
from podstead.web.request import Request
from podstead.web.response import Response


class _Created(msgspec.Struct, omit_defaults=True):
    name: str
    web_id: str = msgspec.field(name="webId")
    pod_uri: str = msgspec.field(name="podUri")
    token: str | None = None


class PodsEndpoint:
    """Creates pods for whoever asks, within the rate limit."""

    def __init__(
        self, *, provisioner: PodProvisioner, limit: PodCreationLimit, max_body_bytes: int
    ) -> None:
        self._provisioner = provisioner
        self._limit = limit
        self._max_body_bytes = max_body_bytes

    async def post(self, request: Request, _: Agent) -> Response:
        """Raises BadRequest, UnsupportedMediaType, RateLimited, and PodNameTaken."""
        content_type = request.fields.get(b"content-type")
        if content_type is None:
            raise BadRequest("Send a JSON object with Content-Type: application/json")
        if content_type.partition(";")[0].strip().lower() != "application/json":
            raise UnsupportedMediaType("Send a JSON object with Content-Type: application/json")
        content = await request.body.read(limit_bytes=self._max_body_bytes)
        name = _name_in(content)
        await self._limit.count(request.client_address)
        return _created(await self._provisioner.create(name))


def _name_in(content: bytes) -> object:
    try:
        sent = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadRequest("The body is not valid JSON") from error
    if not isinstance(sent, dict):
        raise BadRequest("The body must be a JSON object")
    return sent.get("name")


def _created(pod: PlannedPod) -> Response:
    body = msgspec.json.encode(_Created(pod.name, pod.web_id, pod.pod_uri, pod.token))
    return Response(
        201,
        [
            (b"location", pod.pod_uri.encode("ascii")),
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode("ascii")),
            (b"cache-control", b"no-store"),
        ],
        body,
    )
