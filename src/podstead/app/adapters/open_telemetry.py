"""Makes and sends traces; the only module that knows the library of OpenTelemetry."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.propagators.textmap import Getter
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from podstead import __version__
from podstead.idp.administration.audit_log import shown_path
from podstead.web.asgi import Message, Receive, Scope, Send
from podstead.web.request_ids import peer_of

_LOWEST_SERVER_ERROR: Final = 500


class _Fields(Getter[Scope]):
    """Reads header fields of a request."""

    def get(self, carrier: Scope, key: str) -> list[str] | None:
        wanted = key.lower().encode("latin-1")
        found = [value.decode("latin-1") for name, value in carrier["headers"] if name == wanted]
        return found or None

    def keys(self, carrier: Scope) -> list[str]:
        return [name.decode("latin-1") for name, _ in carrier["headers"]]


class Tracing:
    """Creates spans, and sends them."""

    def __init__(self) -> None:
        # The variable OTEL_SERVICE_NAME takes precedence.
        defaults = {SERVICE_NAME: "podstead", SERVICE_VERSION: __version__}
        resource = Resource(defaults).merge(Resource.create())
        if resource.attributes.get(SERVICE_NAME) == "unknown_service":
            resource = resource.merge(Resource(defaults))
        self._provider = TracerProvider(resource=resource)
        self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        self._tracer = self._provider.get_tracer("podstead", __version__)

    def wrap(self, span: str, part: object, method: str) -> None:
        """Have each call of an asynchronous method of the part be a span."""
        inner: Callable[..., Awaitable[object]] = getattr(part, method)

        async def call(*arguments: Any, **named: Any) -> object:  # noqa: ANN401 - handed through
            with self._tracer.start_as_current_span(span):
                return await inner(*arguments, **named)

        setattr(part, method, call)

    def application(
        self, make: Callable[..., Any], trusted: Callable[[str], bool]
    ) -> Callable[..., Any]:
        """``make``, whose application has a span around each request."""

        def traced(*arguments: Any, **parts: Any) -> TracedApplication:  # noqa: ANN401 - handed through
            made = make(*arguments, **parts)
            return TracedApplication(made, self._tracer, self._provider, trusted)

        return traced


class TracedApplication:
    """The application, with a span around each request. Everything else is that of the
    application."""

    def __init__(
        self,
        application: Any,  # noqa: ANN401 - see above
        tracer: trace.Tracer,
        provider: TracerProvider,
        trusted: Callable[[str], bool],
    ) -> None:
        self._application = application
        self._tracer = tracer
        self._provider = provider
        self._trusted = trusted
        self._propagator = TraceContextTextMapPropagator()

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - see above
        return getattr(self._application, name)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond to a request."""
        if scope["type"] == "lifespan":
            await self._application(scope, receive, send)
            await asyncio.to_thread(self._provider.shutdown)  # sends what is left
            return
        context = None
        # A stranger could otherwise add to the traces of others, and have everything recorded.
        if self._trusted(peer_of(scope)):
            context = self._propagator.extract(scope, getter=_Fields())
        method = scope.get("method", "GET")
        attributes = {
            "http.request.method": method,
            "url.path": shown_path(scope["path"]),
            "url.scheme": scope["scheme"],
        }
        with self._tracer.start_as_current_span(
            str(method), context, trace.SpanKind.SERVER, attributes
        ) as span:

            async def note_and_send(message: Message) -> None:
                status = message.get("status")
                if status is not None:
                    span.set_attribute("http.response.status_code", status)
                    if status >= _LOWEST_SERVER_ERROR:
                        span.set_status(trace.StatusCode.ERROR)
                await send(message)

            await self._application(scope, receive, note_and_send)
