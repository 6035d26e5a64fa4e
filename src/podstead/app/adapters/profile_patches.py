"""Changes profiles for their owners, with requests of the server's own.

Such a request passes the same gate as any other, as the public or as the owner of an account, and
has the same permissions.
"""

from __future__ import annotations

from podstead.core import vocab
from podstead.core.errors import BadRequest, Conflict
from podstead.core.identifiers import ResourcePath, parse_path
from podstead.core.identity import AuthenticationMethod, Identity
from podstead.core.media_types import SPARQL_UPDATE
from podstead.core.operation import InMemoryBody, Operation
from podstead.idp.codes import IdpCodes
from podstead.resources.outcome import ResourceRequest
from podstead.resources.service import ResourceService


class AccountProfiles:
    """Changes the profiles of accounts: implements Profiles of :mod:`podstead.idp.nostr.links` and
    of :mod:`podstead.idp.certificates`."""

    def __init__(self, *, base_url: str, resources: ResourceService) -> None:
        self._base_url = base_url
        self._resources = resources

    async def add_name(self, web_id: str, name: str) -> None:
        """Add to the profile that the WebID is the same as ``name``. Raises RequestRefused,
        ServerTrouble."""
        await self.patch(web_id, f"INSERT DATA {{ {_same_as(web_id, name)} }}")

    async def remove_name(self, web_id: str, name: str) -> None:
        """Remove that statement from the profile. Raises RequestRefused, ServerTrouble."""
        await self.patch(web_id, f"DELETE DATA {{ {_same_as(web_id, name)} }}")

    async def patch(self, web_id: str, patch: str, media_type: str = SPARQL_UPDATE) -> None:
        """Patch the profile on behalf of its owner. Raises RequestRefused, ServerTrouble."""
        operation = Operation(
            "PATCH",
            self._path_of(web_id),
            InMemoryBody(patch.encode()),
            content_type=media_type,
        )
        owner = Identity(iri=web_id, method=AuthenticationMethod.SESSION, may_state_identity=True)
        await self._resources.handle(ResourceRequest(operation, owner))

    def _path_of(self, web_id: str) -> ResourcePath:
        url = web_id.partition("#")[0]
        if not url.startswith(f"{self._base_url}/"):
            raise Conflict(IdpCodes.PROFILE_ELSEWHERE)
        try:
            return parse_path(url[len(self._base_url) :].encode())
        except (BadRequest, UnicodeEncodeError) as error:
            raise Conflict(IdpCodes.PROFILE_ADDRESS_UNUSABLE) from error


def _same_as(web_id: str, name: str) -> str:
    return f"<{web_id}> <{vocab.OWL_SAME_AS}> <{name}>"
