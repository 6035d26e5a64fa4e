"""Reading and writing RDF in a process of its own, which may die of it.

The RDF library is native code: where it panics, no exception is raised, the process ends. Run as
a program, this reads documents as JSON-LD from its input, a JSON string on each line, and
answers each by a line that tells what became of it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Self

from podstead.app.adapters.bundled_contexts import bundled_contexts
from podstead.core.errors import RequestRefused
from podstead.core.media_types import JSON_LD, N_QUADS, RDF_TYPES, TURTLE
from podstead.rdf.codecs import parse, serialize
from podstead.rdf.errors import NotExpressible
from podstead.rdf.limits import RdfLimits
from tests.support.processes import becomes_readable
from tests.support.server import DEADLINE_S

BASE = "http://example.org/folder/document"
LIMITS = RdfLimits(max_bytes=1_000_000, max_triples=10_000)
_REPOSITORY = Path(__file__).resolve().parents[2]


class RdfProcess:
    """The process that reads documents; when it died, the next document gets another one."""

    def __init__(self, *command: str) -> None:
        """``command`` starts another program than this one."""
        self._command = command or (sys.executable, "-m", __name__)
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def outcome(self, document: str) -> str:
        """``read`` or ``refused``, or the name of an error that should not be.

        Raises AssertionError, with the document, if the process died of it or hangs.
        """
        process = self._process or self._start()
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(document).encode() + b"\n")
        ready = becomes_readable(process.stdout, DEADLINE_S)
        line = process.stdout.readline() if ready else b""
        if line:
            return line.decode().strip()
        what = f"ended with {process.wait()}" if ready else "does not answer"
        self._end()
        raise AssertionError(f"The process that read this {what}: {document}")

    def _start(self) -> subprocess.Popen[bytes]:
        self._process = subprocess.Popen(
            self._command,
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=_REPOSITORY,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        return self._process

    def _end(self) -> None:
        if self._process is not None:
            with self._process:
                self._process.kill()
            self._process = None


def _outcome(content: bytes) -> str:
    contexts = bundled_contexts()
    try:
        document = parse(content, JSON_LD, base_iri=BASE, contexts=contexts, limits=LIMITS)
    except RequestRefused:
        return "refused"
    for media_type in RDF_TYPES:
        try:
            written = serialize(document, media_type, base_iri=BASE)
        except NotExpressible:
            continue
        if media_type in (JSON_LD, TURTLE, N_QUADS):
            parse(written, media_type, base_iri=BASE, contexts=contexts)
    return "read"


def _main() -> None:
    for line in sys.stdin.buffer:
        try:
            outcome = _outcome(json.loads(line).encode())
        except Exception as error:  # noqa: BLE001 - whatever it is, the test shall see it
            outcome = f"{type(error).__name__}: {error}".replace("\n", " ")
        sys.stdout.write(f"{outcome}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    _main()
