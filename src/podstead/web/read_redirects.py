"""Which reads are answered with a redirect to where the content is stored?

The content of a public resource can be fetched from S3 by its readers, with a URL that is signed
for a short time, so that large bodies do not pass through the server. What is not public never is,
since whoever has the URL can use it.

The server answers itself where the redirect would be wrong or of no use:

- requests with credentials, which S3 would refuse, and conditional ones, because S3 has other
  entity tags and dates;
- pages that a browser opens, whose address would be one that expires;
- requests of its own pages, whose policy allows no other origin;
- types in which browsers run something: all pods share the origin of the bucket, and the policy
  that keeps content from acting for its origin is missing there.
"""

from __future__ import annotations

from typing import Final

from podstead.core.media_types import is_passive
from podstead.resources.outcome import Outcome, ResourceRequest, Result
from podstead.storage.open_body import AddressedBody
from podstead.web.request import Request

FROM_BYTES: Final = 1024 * 1024
"""The size from which a redirect costs less than it saves."""

LASTS_S: Final = 300
"""How long the URL is valid: so long content can be read after it has ceased to be public."""

_READ: Final = frozenset({Result.REPRESENTED, Result.PARTIAL})


async def redirect_of(
    request: Request, resource_request: ResourceRequest, outcome: Outcome
) -> str | None:
    """The URL to which the sender of an authorized read is sent; ``None`` if the server answers
    itself. Raises StorageError."""
    operation, grant = resource_request.operation, resource_request.grant
    if (
        operation.method != "GET"
        or outcome.result not in _READ
        or resource_request.agent is not None
        or request.fields.authorization
        or grant is None
        or not grant.public_may_read
        or operation.conditions.any_given
        or operation.if_range is not None
        or request.fields.get(b"sec-fetch-site") == "same-origin"
        or request.fields.get(b"sec-fetch-mode") == "navigate"
    ):
        return None
    representation = outcome.representation
    if representation is None or not isinstance(representation.body, AddressedBody):
        return None
    body, content_type = representation.body, representation.content_type
    if body.size_bytes < FROM_BYTES or not is_passive(content_type):
        return None
    return await body.address(content_type, lasts_s=LASTS_S)
