"""Traces of a server, as a collector receives them."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from podstead.app.monitoring.observability import tracing_is_wanted
from tests.support.http_servers import Handler, serving
from tests.support.processes import clean_environment, run_process
from tests.support.server import DEADLINE_S, ServerProcess

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = "b7ad6b7169203331"
TRACEPARENT = {"traceparent": f"00-{TRACE}-{PARENT}-01"}
"""The example of the W3C recommendation Trace Context."""


class Collector:
    """An OTLP collector, which keeps the spans that it gets."""

    def __init__(self) -> None:
        self.spans: list[Any] = []
        self.url = ""

    def of_trace(self, trace: str) -> list[Any]:
        return [span for span in self.spans if span.trace_id.hex() == trace]


@pytest.fixture
def collector() -> Iterator[Collector]:
    collector = Collector()

    class Collecting(Handler):
        def respond(self) -> None:
            request = ExportTraceServiceRequest.FromString(self.body())
            for resource in request.resource_spans:
                for scope in resource.scope_spans:
                    collector.spans.extend(scope.spans)
            self.answer(200)

    with serving(Collecting) as port:
        collector.url = f"http://127.0.0.1:{port}"
        yield collector


def traced_server(root: Path, collector: Collector, *options: str) -> ServerProcess:
    variables = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url}
    return ServerProcess(root, options, environment=variables)


def attributes(span: Any) -> dict[str, Any]:  # noqa: ANN401 - without types
    return {each.key: each.value.string_value or each.value.int_value for each in span.attributes}


def test_a_write_is_a_trace_of_the_one_that_a_trusted_proxy_began(
    tmp_path: Path, collector: Collector
) -> None:
    server = traced_server(tmp_path / "root", collector, "--trusted-proxy", "127.0.0.1")
    server.start()
    try:
        made = server.request(
            "POST", "/.pods", '{"name": "alice"}', {"Content-Type": "application/json"}
        )
        owner = {"Authorization": f"Bearer {json.loads(made.body)['token']}"}
        put = server.request(
            "PUT", "/alice/a.txt?x=1", "x", {**owner, **TRACEPARENT, "Content-Type": "text/plain"}
        )
        assert put.status == 201
        assert server.stop() == 0  # sends what is left
    finally:
        server.close()
    spans = {span.name: span for span in collector.of_trace(TRACE)}
    assert spans.keys() == {"PUT", "decision", "commit"}
    assert spans["PUT"].parent_span_id.hex() == PARENT
    assert attributes(spans["PUT"]) == {
        "http.request.method": "PUT",
        "url.path": "/alice/a.txt",
        "url.scheme": "http",
        "http.response.status_code": 201,
    }
    for name in ("decision", "commit"):
        assert spans[name].parent_span_id == spans["PUT"].span_id


def test_the_trace_of_a_stranger_is_not_taken(tmp_path: Path, collector: Collector) -> None:
    server = traced_server(tmp_path / "root", collector)
    server.start()
    try:
        server.get("/", TRACEPARENT)
        assert server.stop() == 0
    finally:
        server.close()
    assert not collector.of_trace(TRACE)
    assert "GET" in {span.name for span in collector.spans}


def test_nothing_is_loaded_unless_a_collector_is_named() -> None:
    assert not tracing_is_wanted({})
    assert tracing_is_wanted({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://localhost:4318"})
    assert not tracing_is_wanted(
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://localhost:4318", "OTEL_SDK_DISABLED": "true"}
    )
    program = (
        "import sys, podstead.app.services; from podstead.app.process.preload import preload;"
        " from podstead.config import Settings; preload(Settings());"
        " print(any(name.startswith('opentelemetry') for name in sys.modules))"
    )
    finished = run_process(
        [sys.executable, "-c", program], environment=clean_environment(), timeout_s=DEADLINE_S
    )
    assert finished.stdout == "False\n", finished.stderr
