"""The versions of documents over HTTP: Memento (RFC 7089), pattern 2.1.

A document links to its timegate, ``/.history/timegate`` followed by its path, and to its timemap,
``/.history/timemap`` likewise. The timegate negotiates a time with ``Accept-Datetime`` and leads to
the version of then, ``/.history/version{path}?version={version}``. The present version has such
an address as well, and keeps it when it becomes a former one.

Every response depends on the agent: the versions that it could not read by then do not exist for
it. What the document itself would answer to the agent, such as 404, all of these answer.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from podstead.core.conditional import parse_http_date
from podstead.core.errors import BadRequest, NotFound
from podstead.core.header_fields import link_header
from podstead.core.identifiers import ResourcePath, storage_root
from podstead.core.identity import Identity
from podstead.core.media_types import JSON_LD, choose
from podstead.core.operation import Operation
from podstead.features.history.past import FormerStateService
from podstead.resources.outcome import ResourceRequest
from podstead.resources.service import ResourceService
from podstead.storage.former_states import REPLACED, FormerState
from podstead.storage.open_body import OpenBody
from podstead.storage.records import Metadata, ResourceKind
from podstead.wac.modes import Mode
from podstead.web import forms, response
from podstead.web.pages.formats import iso_time
from podstead.web.request import Request
from podstead.web.resource_responses import SANDBOX, http_date
from podstead.web.routes import REST, Access, is_reserved, rest_of_path, route

TIMEGATE: Final = "/.history/timegate"
TIMEMAP: Final = "/.history/timemap"
VERSION: Final = "/.history/version"
LINK_FORMAT: Final = "application/link-format"
_VARY: Final = response.VARY + b", Accept-Datetime"
_CONTEXT: Final = {
    "@vocab": "http://mementoweb.org/ns#",
    "dateTime": {"@id": "http://purl.org/dc/terms/date", "@type": "xsd:dateTime"},
    "xsd": "http://www.w3.org/2001/XMLSchema#",
    **{name: {"@type": "@id"} for name in ("original", "timegate", "memento")},
}


@dataclass(frozen=True, slots=True)
class Version:
    """One version of a document. ``former`` is how it is kept, ``None`` for the present one.
    ``agent`` and ``client`` made it; ``None`` if they are not known."""

    metadata: Metadata
    former: FormerState | None
    agent: str | None = None
    client: str | None = None

    @property
    def at_ms(self) -> int:
        """When it was written."""
        return self.metadata.modified_ms


@dataclass(frozen=True, slots=True)
class Versions:
    """The versions of documents."""

    past: FormerStateService
    resources: ResourceService

    async def of(
        self, agent: Identity | None, origin: str | None, path: ResourcePath
    ) -> Sequence[Version]:
        """Those of the document that the agent may read, the oldest first; the last one is the
        present one. Raises what a HEAD raises, and NotFound for what is no document."""
        root = storage_root(path)
        request = ResourceRequest(Operation("HEAD", path, origin=origin), agent)
        outcome = await self.resources.handle(request)
        present = outcome.metadata
        if root is None or present is None or present.kind is not ResourceKind.DOCUMENT:
            raise NotFound
        controls = request.grant is not None and request.grant.allows(Mode.CONTROL)
        states = await self.past.select(root, "path = %s ORDER BY modified_ms, version", path)
        found: list[Version] = []
        last: FormerState | None = None
        for state in states:
            # The others are of what was deleted here before.
            if state.deleted != REPLACED or state.created_ms != present.created_ms:
                continue
            if await self.past.could(agent, origin, state, Mode.READ):
                found.append(_version(state.metadata, state, last, agent, controls=controls))
            last = state
        return [*found, _version(present, None, last, agent, controls=controls)]

    async def open(self, version: Version) -> OpenBody:
        """The body of a version. Raises NotFound if it is gone by now, StorageError."""
        if version.former is not None:
            return await self.past.open(version.former)
        body = await self.past.records.store.open_body(version.metadata)
        if body is None:
            raise NotFound
        return body


def _version(
    metadata: Metadata,
    former: FormerState | None,
    before: FormerState | None,
    viewer: Identity | None,
    *,
    controls: bool,
) -> Version:
    """A version after the state before it, whose end is the write that made it, if none between
    the two was removed. Who that was, those with Control and the agent itself may know."""
    if before is None or before.ended_version != metadata.version:
        return Version(metadata, former)
    if not controls and (viewer is None or before.agent != viewer.iri):
        return Version(metadata, former)
    return Version(metadata, former, before.agent, before.client)


class MementoEndpoint:
    """Answers Memento clients."""

    def __init__(self, versions: Versions, base_url: str) -> None:
        self._versions = versions
        self._base_url = base_url

    @route(TIMEGATE + REST, "GET", "HEAD", access=Access.PUBLIC)
    async def timegate(self, request: Request, agent: Identity | None) -> response.Response:
        """Lead to the version of a time. Raises NotFound, BadRequest for a malformed time."""
        path, versions = await self._found(request, agent)
        wanted = request.fields.get(b"accept-datetime")
        chosen = versions[-1]
        if wanted is not None:
            until_s = parse_http_date(wanted)
            if until_s is None:
                raise BadRequest("Accept-Datetime is not an HTTP date")
            before = [each for each in versions if each.at_ms // 1000 <= until_s]
            chosen = before[-1] if before else versions[0]
        links = self._links(path)
        location = (b"location", self._url(path, chosen).encode("ascii"))
        return response.empty_response(302, [location, links, response.NO_STORE], vary=_VARY)

    @route(TIMEMAP + REST, "GET", "HEAD", access=Access.PUBLIC)
    async def timemap(self, request: Request, agent: Identity | None) -> response.Response:
        """List the versions, as links or as JSON-LD. Raises NotFound, NotAcceptable."""
        path, versions = await self._found(request, agent)
        media_type = choose(request.fields.get(b"accept"), (LINK_FORMAT, JSON_LD))
        if media_type == JSON_LD:
            content = msgspec.json.encode(self._json_ld(path, versions))
        else:
            content = self._link_format(path, versions).encode("ascii")
        return response.content_response(
            content, media_type or LINK_FORMAT, method=request.method, headers=[response.NO_STORE]
        )

    @route(VERSION + REST, "GET", "HEAD", access=Access.PUBLIC)
    async def version(self, request: Request, agent: Identity | None) -> response.Response:
        """Send a version. Raises NotFound."""
        path, versions = await self._found(request, agent)
        wanted = forms.only(forms.read_query(request), "version")
        for each in versions:
            if each.metadata.version == wanted:
                body = await self._versions.open(each)
                self._versions.resources.note_read(agent, path)
                headers: list[response.HeaderField] = [
                    (b"memento-datetime", http_date(each.at_ms // 1000)),
                    self._links(path),
                    SANDBOX,
                    response.NO_STORE,
                ]
                return response.content_response(
                    body,
                    each.metadata.content_type,
                    method=request.method,
                    headers=headers,
                    size_bytes=each.metadata.size_bytes,
                )
        raise NotFound

    async def _found(
        self, request: Request, agent: Identity | None
    ) -> tuple[ResourcePath, Sequence[Version]]:
        path = rest_of_path(request.path)
        if is_reserved(path):
            raise NotFound
        origin = request.fields.get(b"origin")
        return path, await self._versions.of(agent, origin, path)

    def _url(self, path: ResourcePath, version: Version) -> str:
        return f"{self._base_url}{VERSION}{path}?version={version.metadata.version}"

    def _links(self, path: ResourcePath) -> response.HeaderField:
        base = self._base_url
        links = [(base + path, "original"), (f"{base}{TIMEGATE}{path}", "timegate")]
        first = f'<{base}{TIMEMAP}{path}>; rel="timemap"; type="{LINK_FORMAT}"'
        return b"link", f"{link_header(links)}, {first}".encode("ascii")

    def _link_format(self, path: ResourcePath, versions: Sequence[Version]) -> str:
        base = self._base_url
        first, last = versions[0], versions[-1]
        span = f'from="{_date(first)}"; until="{_date(last)}"'
        lines = [
            f'<{base}{path}>; rel="original"',
            f'<{base}{TIMEMAP}{path}>; rel="self"; type="{LINK_FORMAT}"; {span}',
            f'<{base}{TIMEGATE}{path}>; rel="timegate"',
        ]
        for each in versions:
            places = "".join(
                word for word, end in (("first ", first), ("last ", last)) if each is end
            )
            lines.append(
                f'<{self._url(path, each)}>; rel="{places}memento"; datetime="{_date(each)}"'
            )
        return ",\n".join(lines) + "\n"

    def _json_ld(self, path: ResourcePath, versions: Sequence[Version]) -> dict[str, Any]:
        base = self._base_url
        return {
            "@context": _CONTEXT,
            "@id": f"{base}{TIMEMAP}{path}",
            "@type": "TimeMap",
            "original": base + path,
            "timegate": f"{base}{TIMEGATE}{path}",
            "memento": [
                {"@id": self._url(path, each), "@type": "Memento", "dateTime": _iso(each)}
                for each in versions
            ],
        }


def _iso(version: Version) -> str:
    return iso_time(version.at_ms)


def _date(version: Version) -> str:
    return http_date(version.at_ms // 1000).decode("ascii")
