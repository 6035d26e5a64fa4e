"""How is load made whose client shows a certificate? By `ab`, since wrk cannot show one."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Final

from bench.load import GRACE_S, Intensity, Outcome
from bench.messages import Request, WrongAnswer

# More than are answered in any round; `ab` takes memory for each.
_MOST_REQUESTS: Final = 500_000
_PERCENTILE: Final = r"^ +{percent}% +(\d+)"


def run(request: Request, certificate: Path, port: int, intensity: Intensity) -> Outcome:
    """Send one request over and over, on connections that are kept.

    Of the answers only the content is counted in `received_bytes`. They are HTTP/1.0 answers, so
    their headers differ a little from those of single questions.

    Raises:
        WrongAnswer: ab itself failed or did not come to an end.
    """
    headers = [f"{name}: {value}" for name, value in request.headers.items() if name != "Host"]
    command = [
        *("ab", "-k", "-q", "-t", str(intensity.seconds), "-n", str(_MOST_REQUESTS)),
        *("-c", str(intensity.connections), "-E", str(certificate)),
        *(part for header in headers for part in ("-H", header)),
        f"https://localhost:{port}{request.path}",
    ]
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=intensity.seconds + GRACE_S,
            check=False,
        )
    except subprocess.TimeoutExpired as late:
        raise WrongAnswer(f"the load did not end within {late.timeout} s") from late
    if done.returncode:
        raise WrongAnswer(f"ab failed: {done.stderr.strip()[-300:] or done.stdout.strip()}")
    return _outcome(done.stdout, intensity.connections)


def _outcome(text: str, connections: int) -> Outcome:
    answered = int(_number(text, "Complete requests"))
    return Outcome(
        answered=answered,
        duration_s=_number(text, "Time taken for tests"),
        received_bytes=int(_number(text, "HTML transferred")),
        p50_ms=_percentile(text, 50),
        p99_ms=_percentile(text, 99),
        errors={
            "failed": int(_number(text, "Failed requests")),
            "status": int(_number(text, "Non-2xx responses", absent=0)),
            "without keep-alive": answered - int(_number(text, "Keep-Alive requests")),
        },
        statuses={},
        sent=answered,
        locations=[],
        connections=connections,
    )


def _number(text: str, name: str, absent: float | None = None) -> float:
    found = re.search(rf"^{name}: +([0-9.]+)", text, re.MULTILINE)
    if found is None:
        if absent is None:
            raise WrongAnswer(f"ab told no {name}: {text[-300:]}")
        return absent
    return float(found[1])


def _percentile(text: str, percent: int) -> float:
    found = re.search(_PERCENTILE.format(percent=percent), text, re.MULTILINE)
    return float(found[1]) if found else 0.0
