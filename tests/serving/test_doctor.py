"""``podstead doctor`` finds what is wrong with a server, beside it, and says what to do."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from tests.support.listeners import CERTIFICATE, KEY
from tests.support.processes import clean_environment, run_process
from tests.support.proxies import ADDRESS, Place, nginx, running_proxy
from tests.support.server import DEADLINE_S, ServerProcess, running_server, server_fixture

pytestmark = pytest.mark.embedded

Findings = Mapping[str, Mapping[str, str]]


def diagnosed(
    server: ServerProcess, *options: str, environment: Mapping[str, str] = {}
) -> tuple[int, Findings]:
    """The exit code and the findings, by what was checked."""
    finished = run_process(
        [
            *(sys.executable, "-m", "podstead.cli", "doctor", "--json"),
            *("--root", str(server.root), "--port", str(server.port), *server.options, *options),
        ],
        environment={**clean_environment(), **environment},
        timeout_s=DEADLINE_S,
    )
    assert finished.stdout, finished.stderr
    listed = json.loads(finished.stdout)["findings"]
    for finding in listed:
        wants_remedy = finding["severity"] in ("warning", "problem")
        assert bool(finding["remedy"]) == wants_remedy, finding
    return finished.returncode, {finding["check"]: finding for finding in listed}


def severities(findings: Findings) -> dict[str, str]:
    return {check: finding["severity"] for check, finding in findings.items()}


server = server_fixture(("--idp",))


def test_a_server_that_is_well(server: ServerProcess) -> None:
    code, findings = diagnosed(server)
    assert code == 0
    assert severities(findings) == {
        **dict.fromkeys(
            ("root", "disk", "clock", "dns", "base-url", "proxy", "date", "issuer"), "good"
        ),
        **dict.fromkeys(("tls", "readiness"), "skipped"),
        "backup": "warning",
    }
    assert findings["base-url"]["detail"] == f"{server.base_url} leads to this server."


def test_what_is_printed_for_people(server: ServerProcess) -> None:
    finished = run_process(
        [
            *(sys.executable, "-m", "podstead.cli", "doctor", "--idp"),
            *("--root", str(server.root), "--port", str(server.port)),
        ],
        environment=clean_environment(),
        timeout_s=DEADLINE_S,
    )
    assert finished.returncode == 0
    lines = finished.stdout.splitlines()
    assert f"good     base-url: {server.base_url} leads to this server." in lines
    assert "         -> Run 'podstead backup' regularly, with a timer." in lines


def test_files_that_others_can_read(server: ServerProcess) -> None:
    server.root.chmod(0o755)
    key = next(path for path in (server.root / "keys").rglob("*") if path.is_file())
    mode = key.stat().st_mode & 0o777
    key.chmod(0o644)
    try:
        code, findings = diagnosed(server)
        assert (code, findings["root"]["severity"]) == (1, "problem")
        assert str(key) in findings["root"]["detail"]
        assert f"chmod 700 {server.root}" in findings["root"]["remedy"]
    finally:
        key.chmod(mode)
        server.root.chmod(0o700)
    assert diagnosed(server)[1]["root"]["severity"] == "good"


def test_a_full_disk(server: ServerProcess) -> None:
    code, findings = diagnosed(server, "--min-free-bytes", str(2**52))
    assert (code, findings["disk"]["severity"]) == (1, "problem")


def test_another_server_at_the_base_url(server: ServerProcess, tmp_path: Path) -> None:
    with running_server(ServerProcess(tmp_path / "other")) as other:
        code, findings = diagnosed(replace(server, port=other.port), "--no-idp")
    assert (code, findings["base-url"]["severity"]) == (1, "problem")
    assert "Another server answers" in findings["base-url"]["detail"]
    assert findings["proxy"]["severity"] == "skipped"


def test_no_server_at_all(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "root")
    with running_server(server):
        pass
    code, findings = diagnosed(server, "--admin-listen", "127.0.0.1:1")
    assert code == 1
    assert findings["base-url"]["severity"] == "problem"
    assert findings["readiness"]["severity"] == "warning"
    for check in ("tls", "proxy", "date", "issuer"):
        assert findings[check]["severity"] == "skipped"


def test_no_data_root(tmp_path: Path) -> None:
    code, findings = diagnosed(ServerProcess(tmp_path / "none", port=1))
    assert code == 1
    assert findings["root"]["severity"] == "problem"
    assert findings["store"]["severity"] == "problem"


def test_what_a_probe_shows_is_shown_to_nobody_else(server: ServerProcess) -> None:
    for key in ("0" * 32, "x", "probe"):
        assert server.get(f"/.probe/{key}").status == 404


# --- behind a proxy ----------------------------------------------------------------------------


def _careless(place: Place, *, field: str) -> list[str]:
    """Nginx with another line in place of that for X-Forwarded-For."""
    command = nginx(place)
    file = place.folder / "nginx.conf"
    right = "proxy_set_header X-Forwarded-For $remote_addr;"
    text = file.read_text()
    assert right in text
    file.write_text(text.replace(right, field))
    return command


@contextmanager
def behind(folder: Path, field: str, *options: str) -> Iterator[tuple[ServerProcess, Place]]:
    """A server behind nginx."""
    proxy = folder / "proxy"
    proxy.mkdir()
    configure = partial(_careless, field=field)
    with running_proxy(configure, proxy, certificate=CERTIFICATE, key=KEY) as place:
        base_url = f"https://localhost:{place.port}"
        server = ServerProcess(
            folder / "root", ("--base-url", base_url, *options), port=place.server_port
        )
        try:
            server.launch()
            server.wait_for_line(f"Podstead is ready at {base_url}/")
            yield server, place
        finally:
            server.close()


TRUSTED = {"SSL_CERT_FILE": str(CERTIFICATE)}
RIGHT = "proxy_set_header X-Forwarded-For $remote_addr;"


@pytest.mark.needs("nginx")
def test_a_proxy_that_is_not_trusted_and_then_is(tmp_path: Path) -> None:
    with behind(tmp_path, RIGHT) as (server, _):
        code, findings = diagnosed(server, environment=TRUSTED)
        assert (code, findings["proxy"]["severity"]) == (1, "problem")
        assert findings["proxy"]["remedy"] == f"Set --trusted-proxy {ADDRESS}."
        assert findings["tls"]["severity"] == "good"
        server.stop()
        server.options = (*server.options, "--trusted-proxy", ADDRESS)
        server.launch()
        server.wait_for_line("Podstead is ready")
        code, findings = diagnosed(server, environment=TRUSTED)
        assert (code, findings["proxy"]["severity"]) == (0, "good")
        # Without the authority of the certificate, as everybody else sees it.
        code, findings = diagnosed(server)
        assert (code, findings["tls"]["severity"]) == (1, "problem")


@pytest.mark.needs("nginx")
@pytest.mark.parametrize(
    ("field", "detail"),
    [
        ("proxy_set_header X-Forwarded-For $http_x_forwarded_for;", "no address of the client"),
        ("proxy_set_header Forwarded for=$remote_addr;", "sends Forwarded"),
        (f"{RIGHT} proxy_set_header X-Forwarded-Proto http;", "X-Forwarded-Proto is http"),
    ],
)
def test_a_proxy_that_is_set_up_wrongly(tmp_path: Path, field: str, detail: str) -> None:
    with behind(tmp_path, field, "--trusted-proxy", ADDRESS) as (server, _):
        _, findings = diagnosed(server, environment=TRUSTED)
    assert findings["proxy"]["severity"] in ("warning", "problem")
    assert detail in findings["proxy"]["detail"]
