"""How does an ASGI scope become a request that the rest can trust the form of? (pipeline step 1)"""

from __future__ import annotations

import msgspec

from podstead.core.conditional import UNCONDITIONAL, Conditions
from podstead.core.errors import BadRequest, TargetTooLong
from podstead.core.identifiers import MAX_TARGET_BYTES, ResourcePath, parse_path
from podstead.core.identity import Identity
from podstead.core.links import type_links
from podstead.core.operation import Operation, RequestBody
from podstead.core.prefer import parse_prefer
from podstead.web.asgi import Receive, Scope
from podstead.web.authority import Authorities
from podstead.web.body import AsgiBody, BodyPace
from podstead.web.certificate_forms import ShownCertificate
from podstead.web.client_certificates import ClientCertificates
from podstead.web.fields import HeaderFields

METHODS_WITH_BODY = frozenset({"PUT", "POST", "PATCH"})
_CONDITIONAL = frozenset(
    {b"if-match", b"if-none-match", b"if-modified-since", b"if-unmodified-since"}
)


class Request(msgspec.Struct, frozen=True):
    """One HTTP request: its target in canonical form, its fields, and its body to come."""

    method: str
    path: ResourcePath
    fields: HeaderFields
    body: RequestBody
    client_address: str
    host: str
    """The name under which the server was asked, one of its own."""
    raw_path: bytes
    """The target as sent, which is what proofs are about; without its query."""
    query: bytes
    certificate: ShownCertificate | None = None
    """The client certificate, where one may speak for the request."""

    @property
    def is_of_server(self) -> bool:
        """Whether it is ``OPTIONS *``, which asks about the server; its path is then the root."""
        return _is_of_server(self.method, self.raw_path)


async def read_request(
    scope: Scope,
    receive: Receive,
    *,
    body_pace: BodyPace,
    authorities: Authorities,
    certificates: ClientCertificates | None = None,
) -> Request:
    """Read the request line and the fields, and nothing of the body. Without ``certificates`` none
    is looked for.

    Raises TargetTooLong, BadRequest (malformed target or fields) and Misdirected.
    """
    raw_path: bytes = scope["raw_path"]
    query: bytes = scope["query_string"]
    if len(raw_path) + len(query) + (1 if query else 0) > MAX_TARGET_BYTES:
        raise TargetTooLong(f"The request target can have at most {MAX_TARGET_BYTES} bytes")
    fields = HeaderFields(scope["headers"])
    peer: str = (scope.get("client") or ("",))[0]
    host = authorities.check_host(fields, peer=peer)
    method: str = scope["method"]
    body = AsgiBody(receive, fields, pace=body_pace)
    if body.size_bytes is None and scope["http_version"] == "2" and method in METHODS_WITH_BODY:
        await body.look_ahead()
    certificate = None
    if certificates is not None:
        certificate = certificates.of(scope, fields, peer=peer, host=host)
    return Request(
        method=method,
        path=parse_path(b"/" if _is_of_server(method, raw_path) else _path_of(raw_path)),
        fields=fields,
        body=body,
        client_address=authorities.client_address(fields, peer=peer),
        host=host,
        raw_path=raw_path,
        query=query,
        certificate=certificate,
    )


def _is_of_server(method: str, raw_path: bytes) -> bool:
    """Whether the request is about no resource (RFC 9112 section 3.2.4: asterisk-form)."""
    return method == "OPTIONS" and raw_path == b"*"


def _path_of(raw_path: bytes) -> bytes:
    """The path of the other forms of targets (RFC 9112 section 3.2), without query and fragment."""
    if raw_path.startswith(b"/"):
        return raw_path.partition(b"?")[0].partition(b"#")[0]
    _, separator, rest = raw_path.partition(b"://")
    if not separator:
        raise BadRequest("The request target must be an absolute path")
    return b"/" + rest.partition(b"?")[0].partition(b"#")[0].partition(b"/")[2]


def operation_of(request: Request, agent: Identity | None) -> Operation:
    """What the request asks of a resource; ``agent`` is who its credential showed it to be of."""
    fields = request.fields
    get = fields.get
    link = get(b"link")
    return Operation(
        method=request.method,
        target=request.path,
        body=request.body,
        conditions=_conditions(fields),
        accept=get(b"accept"),
        content_type=get(b"content-type"),
        range=get(b"range"),
        if_range=get(b"if-range"),
        slug=fields.get_raw(b"slug"),
        link_types=() if link is None else type_links([link]),
        origin=get(b"origin"),
        preferences=parse_prefer(get(b"prefer")),
        signed_url=bool(fields.proofs) or (agent is not None and agent.method.is_bound_to_url),
    )


def _conditions(fields: HeaderFields) -> Conditions:
    if not fields.has_any(_CONDITIONAL):
        return UNCONDITIONAL
    conditions = Conditions(
        if_match=fields.get(b"if-match"),
        if_none_match=fields.get(b"if-none-match"),
        if_modified_since=fields.get(b"if-modified-since"),
        if_unmodified_since=fields.get(b"if-unmodified-since"),
    )
    return conditions if conditions.any_given else UNCONDITIONAL
