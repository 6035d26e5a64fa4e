"""Weaknesses of client certificates: whose is one, and who makes the browser send it?"""

from __future__ import annotations

import contextlib
import http.client
from pathlib import Path

import pytest

from tests.support.certificates import Holder, holder, key_turtle, rsa_key
from tests.support.client import Pod, create_pod
from tests.support.listeners import CERTIFICATE, LISTENERS, client_tls
from tests.support.server import DEADLINE_S, ServerProcess, running_server

pytestmark = pytest.mark.feature("webid_tls")

_OPTIONS = (*LISTENERS["webid-tls"], "--invalid-credentials-per-minute", "0")


def test_w_26_a_certificate_is_its_webids_alone_and_no_other_sites_page_uses_it(
    tmp_path: Path,
) -> None:
    """A-162, A-163, A-166, A-167, A-168, A-170. The certificate of the server is self-signed, and
    it never asks itself for a profile."""
    with running_server(ServerProcess(tmp_path / "root", _OPTIONS, tls=client_tls())) as server:
        pod = create_pod(server)
        doc = f"{pod.root}private/doc"
        with pod.owner() as owner:
            assert owner.put(doc, "text").status == 201

        def status(shown: Holder, **headers: str) -> int:
            fields = {name.replace("_", "-"): value for name, value in headers.items()}
            return _get(server, doc, shown.write(tmp_path), fields)

        own = holder(pod.web_id)
        _state(pod, "<> a <#x>.")
        assert status(own) == 401
        # A key that was just added counts, whatever was found out a moment ago.
        _state(pod, key_turtle(rsa_key()))
        assert status(own) == 200
        # Not the first name only.
        assert status(holder("urn:x", f"{server.base_url}/missing#me", pod.web_id)) == 200
        # Not anybody's key who is called #me.
        _state(pod, key_turtle(rsa_key(), "https://elsewhere.example/#me"))
        assert status(own) == 401
        _state(pod, key_turtle(rsa_key()))
        # Not before its time, nor after it.
        assert status(holder(pod.web_id, starts_s=-7200, ends_s=-3600)) == 401
        assert status(holder(pod.web_id, starts_s=3600, ends_s=7200)) == 401
        # Not for a page of another site, in whose requests browsers send it along.
        assert status(own, Origin="https://evil.example") == 401
        assert status(own, Sec_Fetch_Site="cross-site") == 401
        assert status(own, Origin=server.base_url, Sec_Fetch_Site="same-origin") == 200
        _state(pod, "<> a <#x>.")
        assert status(own) == 401


def _state(pod: Pod, turtle: str) -> None:
    with pod.owner() as owner:
        assert owner.put(pod.root, turtle, "text/turtle").status == 204


def _get(
    server: ServerProcess, path: str, shown: tuple[Path, Path], headers: dict[str, str]
) -> int:
    assert server.port is not None
    tls = client_tls(CERTIFICATE)
    tls.load_cert_chain(*shown)
    connection = http.client.HTTPSConnection(
        "localhost", server.port, timeout=DEADLINE_S, context=tls
    )
    with contextlib.closing(connection):
        connection.request("GET", path, headers=headers)
        response = connection.getresponse()
        response.read()
        return response.status
