"""The access log, and traces of requests.

The access log goes to standard output, with one write for each line. Traces are made if the extra
``otel`` is installed and a collector is named, with the variables of OpenTelemetry. Without them,
nothing of it is loaded or called: parts are wrapped when they are created, or not at all.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping
from functools import cache, partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final, TypeVar

from podstead.config import Settings
from podstead.core.clock import Clock
from podstead.web.access_log import AccessLog, LoggedApplication
from podstead.web.application import Application
from podstead.web.request_ids import FIELD

if TYPE_CHECKING:
    from podstead.app.adapters.open_telemetry import Tracing


T = TypeVar("T")

MODULE: Final = "podstead.app.adapters.open_telemetry"
TRACE_FIELDS: Final = frozenset({b"traceparent", b"tracestate"})
"""The fields of W3C Trace Context."""
_ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")


def tracing_is_wanted(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether the operator has named a collector, and the libraries are installed."""
    if environment.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return False
    if not any(environment.get(name) for name in _ENDPOINTS):
        return False
    return find_spec("opentelemetry") is not None and find_spec("opentelemetry.sdk") is not None


@cache
def tracing() -> Tracing | None:
    """What creates the spans of this worker; ``None`` if traces are not wanted."""
    if not tracing_is_wanted():
        return None
    from podstead.app.adapters.open_telemetry import Tracing

    return Tracing()


def traced(span: str, part: T, *methods: str) -> T:
    """The part, with a span around each call of these methods if traces are wanted."""
    found = tracing()
    if found is not None:
        for method in methods:
            found.wrap(span, part, method)
    return part


def traced_application(make: Callable[..., T], trusted: Callable[[str], bool]) -> Callable[..., T]:
    """``make``, whose application has a span around each request if traces are wanted. ``trusted``
    tells whose trace context is taken, by address."""
    found = tracing()
    return make if found is None else found.application(make, trusted)


_STANDARD_OUTPUT: Final = 1
_OFF: Final = "off"


def application_class(settings: Settings, clock: Clock) -> Callable[..., Application]:
    """What makes the application of a worker from its parts, with an access log if it is on."""
    if settings.access_log == _OFF:
        return Application
    log = AccessLog(
        _write, clock=clock, form=settings.access_log, percent=settings.access_log_percent
    )
    return partial(LoggedApplication, log)


def ignored_fields(settings: Settings) -> frozenset[bytes]:
    """The header fields that the response cache leaves out of account: what proxies that are
    trusted, or that are expected by an access log or by traces, add to every request."""
    traces = TRACE_FIELDS if tracing_is_wanted() else frozenset()
    if settings.access_log == _OFF and not settings.trusted_proxies:
        return traces
    return traces | {FIELD}


def _write(line: bytes) -> None:
    # Whoever reads the log may be gone, or its disk be full; the server goes on.
    with contextlib.suppress(OSError):
        os.write(_STANDARD_OUTPUT, line)
