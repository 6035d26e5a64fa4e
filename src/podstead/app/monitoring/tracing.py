"""Makes traces if the extra ``otel`` is installed and a collector is named.

The variables are those of OpenTelemetry. Without them, nothing of it is loaded or called: parts
are wrapped when they are created, or not at all.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final, TypeVar

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
