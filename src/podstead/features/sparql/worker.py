"""SPARQL 1.1 Query over HTTP, as SPARQL 1.1 Protocol says.

Containers take queries by the QUERY method. By GET and POST, they are sent to
``/.sparql/query{container}``, which without a query describes itself (SPARQL 1.1 Service
Description). Either way, whoever may read the container gets an answer over those documents at or
below it that they may read.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Hashable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final

from podstead.core import errors
from podstead.core.identifiers import ResourcePath, is_container, storage_root
from podstead.core.identity import Identity
from podstead.core.media_types import choose, essence
from podstead.core.operation import Operation
from podstead.core.request_context import limit_key
from podstead.features import WorkerFeature
from podstead.features.sparql.answers import answer_state
from podstead.features.sparql.description import described_service
from podstead.features.sparql.evaluation import StoredDocument
from podstead.features.sparql.processes import QueryProcesses, WarmProcess
from podstead.features.sparql.views import QueryView, Views
from podstead.notifications.answers import AnswerSource, AnswerState, AskedQuery
from podstead.rdf import codecs, sparql_query
from podstead.resources.outcome import ResourceRequest
from podstead.storage.open_body import whole_body
from podstead.storage.records import Version
from podstead.web import forms
from podstead.web import routes as web_routes
from podstead.web.request import Request
from podstead.web.resource_responses import SANDBOX
from podstead.web.response import NO_STORE, Response, content_response

if TYPE_CHECKING:
    from podstead.app.services import Services

QUERY_SERVICE: Final = "/.sparql/query"
MAX_DOCUMENTS: Final = 100_000
MAX_BYTES: Final = 256 * 1024 * 1024
_MAX_REQUEST_BYTES: Final = 1024 * 1024
_WATCHED_TYPE: Final = "text/tab-separated-values"
_MAX_WATCHED_BYTES: Final = 1024 * 1024
_READ_AT_ONCE: Final = 200
_ATTEMPTS: Final = 8


class SparqlEndpoint:
    """Answers queries in one worker."""

    address = QUERY_SERVICE
    """Of live queries."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._base_url = services.base_url
        self._views = Views(services.store, services.gate)
        self.processes = QueryProcesses()

    @web_routes.route(
        QUERY_SERVICE + web_routes.REST, "GET", "HEAD", access=web_routes.Access.PUBLIC
    )
    async def get(self, request: Request, agent: Identity | None) -> Response:
        """The answer to the query in the parameters, or the description of the service."""
        container = await self._container(request, agent)
        fields = forms.read_query(request)
        if "query" not in fields:
            return self._described(request, container)
        return await self._answer(request, agent, container, fields)

    @web_routes.route(QUERY_SERVICE + web_routes.REST, "POST", access=web_routes.Access.PUBLIC)
    async def post(self, request: Request, agent: Identity | None) -> Response:
        """The answer to a query as the content, or in a form."""
        container = await self._container(request, agent)
        stated = essence(request.fields.get(b"content-type") or "")
        if stated == sparql_query.SPARQL_QUERY:
            return await self.query(request, agent, container)
        if stated != forms.FORM_TYPE:
            accepted = f"{sparql_query.SPARQL_QUERY} or {forms.FORM_TYPE}"
            raise errors.UnsupportedMediaType(f"The Content-Type of a query is {accepted}")
        fields = await forms.read_form(request, max_bytes=_MAX_REQUEST_BYTES)
        if "update" in fields:
            raise errors.BadRequest("There are only queries here; PATCH a document to update it")
        return await self._answer(request, agent, container, fields)

    async def query(
        self, request: Request, agent: Identity | None, container: ResourcePath | None = None
    ) -> Response:
        """The answer to a query as the content; without ``container``, to that container."""
        content = await request.body.read(limit_bytes=_MAX_REQUEST_BYTES)
        try:
            text = content.decode()
        except UnicodeDecodeError as error:
            raise errors.BadRequest("The query is not UTF-8") from error
        fields = {**forms.read_query(request), "query": [text]}
        return await self._answer(request, agent, container or request.path, fields)

    async def _container(self, request: Request, agent: Identity | None) -> ResourcePath:
        """The container that a request to the service is about, whose sender may read it."""
        path = web_routes.rest_of_path(request.path)
        if storage_root(path) is None or web_routes.is_reserved(path) or not is_container(path):
            raise errors.NotFound
        origin = request.fields.get(b"origin")
        operation = Operation("HEAD", path, origin=origin)
        await self._services.resources.handle(ResourceRequest(operation, agent))
        return path

    async def _answer(
        self,
        request: Request,
        agent: Identity | None,
        container: ResourcePath,
        fields: Mapping[str, list[str]],
    ) -> Response:
        """Raises BadRequest, Unprocessable, NotAcceptable, RateLimited and Overloaded."""
        query = self._query(fields, container)
        types = query.form.types
        media_type = choose(request.fields.get(b"accept"), types)
        if media_type is None:
            raise errors.NotAcceptable(f"The results of {query.form.value} are {', '.join(types)}")
        self._services.resources.note_read(agent, container)
        pieces = None
        if request.method != "HEAD":
            asked = self._asked(agent, request.fields.get(b"origin"), container)
            pieces = await self._result(asked, query, media_type)
        charset = "; charset=utf-8" if media_type.startswith("text/") else ""
        headers = [NO_STORE, SANDBOX]
        return content_response(
            pieces, media_type + charset, method=request.method, headers=headers
        )

    def _query(self, fields: forms.Fields, container: ResourcePath) -> sparql_query.SparqlQuery:
        text = forms.only(fields, "query")
        if text is None:
            raise errors.BadRequest("The parameter query is missing")
        return sparql_query.parse_query(
            text,
            base_iri=self._base_url + container,
            default_graphs=fields.get("default-graph-uri", ()),
            named_graphs=fields.get("named-graph-uri", ()),
        )

    def _asked(self, agent: Identity | None, origin: str | None, container: ResourcePath) -> _Asked:
        return _Asked(self._services, self._views, agent, origin, container)

    async def _result(
        self, asked: _Asked, query: sparql_query.SparqlQuery, media_type: str
    ) -> AsyncIterator[bytes]:
        return await self.processes.answer(
            asked,
            query,
            media_type,
            requester=limit_key(asked.agent, base_url=self._base_url),
            pod=storage_root(asked.container) or "",
        )

    async def answer(self, watched: AskedQuery, known: AnswerState | None) -> AnswerState:
        """The answer to a live query; the one that is known if the documents that its
        reader may read are the same."""
        container = watched.container
        query = self._query(forms.parse_fields(watched.query.encode()), container)
        if query.form not in (sparql_query.QueryForm.SELECT, sparql_query.QueryForm.ASK):
            raise errors.Unprocessable("Only SELECT and ASK can be watched")
        asked = self._asked(watched.agent, watched.origin, container)
        basis = await asked.basis()
        if known is not None and known.basis == basis:
            return known
        pieces, content = await self._result(asked, query, _WATCHED_TYPE), bytearray()
        async for piece in pieces:
            content += piece
            if len(content) > _MAX_WATCHED_BYTES:
                await pieces.aclose()  # type: ignore[attr-defined]
                raise errors.Unprocessable("The result is too large to be watched: 1 MiB at most")
        state = await asyncio.to_thread(answer_state, bytes(content), is_ordered=query.is_ordered)
        return AnswerState(state, basis)

    def _described(self, request: Request, container: ResourcePath) -> Response:
        media_type = choose(request.fields.get(b"accept"), sparql_query.GRAPH_TYPES)
        if media_type is None:
            raise errors.NotAcceptable(f"The description is {', '.join(sparql_query.GRAPH_TYPES)}")
        graph = described_service(f"{self._base_url}{QUERY_SERVICE}{container}")
        content = codecs.serialize(graph, media_type)
        return content_response(content, media_type, method=request.method, headers=[NO_STORE])


class _Asked:
    """One query: what its sender may read, and how a process gets it."""

    def __init__(
        self,
        services: Services,
        views: Views,
        agent: Identity | None,
        origin: str | None,
        container: ResourcePath,
    ) -> None:
        self._store = services.store
        self._base_url = services.base_url
        self._views = views
        self.agent = agent
        self._origin = origin
        self.container = container
        self._view: QueryView | None = None

    async def look(self) -> tuple[Hashable, Hashable]:
        """As :class:`podstead.features.sparql.processes.QueriedDocuments` does."""
        view = self._view = await self._views.of(self.agent, self._origin, self.container)
        return view.key, view.asker

    async def basis(self) -> Hashable:
        """What the answer depends on: equal for the same documents."""
        view = await self._views.of(self.agent, self._origin, self.container)
        return hash(frozenset(view.documents().items()))

    async def fill(self, process: WarmProcess) -> None:
        """Bring the documents of a process up to date. Raises Unprocessable if there are too many,
        and Overloaded if they change all the time."""
        for _ in range(_ATTEMPTS):
            view = self._view
            if view is not None and (
                process.state == view.state or await self._bring(process, view)
            ):
                process.state = view.state
                return
            await self.look()
        raise errors.Overloaded("The container is changing too fast to be queried; try again")

    async def _bring(self, process: WarmProcess, view: QueryView) -> bool:
        """Whether it has exactly the documents of the view now."""
        process.state = None
        wanted = view.documents()
        if len(wanted) > MAX_DOCUMENTS:
            raise errors.Unprocessable(
                f"A query is about {MAX_DOCUMENTS} documents at most; ask a container further below"
            )
        change = process.change_to(wanted)
        for path in change.gone:
            await process.remove(path, self._base_url + path)
        new = list(change.new)
        for start in range(0, len(new), _READ_AT_ONCE):
            some = new[start : start + _READ_AT_ONCE]
            documents: dict[ResourcePath, tuple[Version, StoredDocument]] = {}
            size_bytes = process.size_bytes
            for path, metadata in (await self._store.read_metadata(some)).items():
                version: Version = change.new[path]
                if metadata is None or metadata.version != version:
                    return False
                body = await self._store.open_body(metadata)
                if body is None:
                    return False
                content = await whole_body(body)
                size_bytes += len(content)
                if size_bytes > MAX_BYTES:
                    raise errors.Unprocessable(
                        f"A query is about {MAX_BYTES // 1024 // 1024} MiB of documents at most; "
                        "ask a container further below"
                    )
                document = StoredDocument(self._base_url + path, metadata.content_type, content)
                documents[path] = version, document
            await process.put(documents)
        return True


class SparqlInWorker(WorkerFeature):
    """The endpoint of one worker."""

    storage_links = (("sparqlEndpoint", "http://rdfs.org/ns/void#sparqlEndpoint", QUERY_SERVICE),)

    def __init__(self, services: Services) -> None:
        self._services = services

    @cached_property
    def _endpoint(self) -> SparqlEndpoint:
        return SparqlEndpoint(self._services)

    @cached_property
    def routes(self) -> Sequence[web_routes.Route]:  # type: ignore[override]
        return web_routes.plain_routes(self._endpoint)

    @cached_property
    def queries(self) -> Mapping[str, web_routes.Endpoint]:  # type: ignore[override]
        return {sparql_query.SPARQL_QUERY: self._endpoint.query}

    @cached_property
    def live_queries(self) -> Sequence[AnswerSource]:  # type: ignore[override]
        return (self._endpoint,)

    async def stop(self) -> None:
        await self._endpoint.processes.close()
