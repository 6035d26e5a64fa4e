"""curl, the client that the README uses; it speaks HTTP/2 too."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

from tests.support.server import DEADLINE_S

_REPORT = "\n%{json}"


@dataclass(frozen=True, slots=True)
class CurlAnswer:
    """What curl reports of one exchange; ``status`` is 0 where there was no answer."""

    exit_code: int
    status: int
    http_version: str
    body: bytes


def curl(*arguments: str, sent: bytes | None = None) -> CurlAnswer:
    """Run curl; ``sent`` is its standard input, for ``--upload-file -``."""
    done = subprocess.run(
        [*curl_command(), "--write-out", _REPORT, *arguments],
        input=b"" if sent is None else sent,
        capture_output=True,
        timeout=DEADLINE_S,
        check=False,
    )
    body, _, report = done.stdout.rpartition(b"\n")
    facts = json.loads(report)
    return CurlAnswer(done.returncode, facts["http_code"], facts["http_version"], body)


def curl_command() -> Sequence[str]:
    """The command, reading no settings of the account and no proxy of the environment."""
    return ("curl", "--disable", "--silent", "--noproxy", "*", "--max-time", str(DEADLINE_S))


def sending(content_type: str) -> tuple[str, str]:
    """The option for a Content-Type."""
    return "--header", f"Content-Type: {content_type}"
