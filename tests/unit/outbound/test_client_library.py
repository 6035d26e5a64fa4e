"""How the HTTP client library is loaded, in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.certificates import holder
from tests.support.processes import REPOSITORY
from tests.support.server import DEADLINE_S

_PROGRAM = """
import os, ssl, sys
read = []

def note(name):
    genuine = getattr(ssl.SSLContext, name)
    def reading(context, *arguments):
        genuine(context, *arguments)
        read.append(context.cert_store_stats()["x509"])
    setattr(ssl.SSLContext, name, reading)

note("load_default_certs")
note("set_default_verify_paths")
from podstead.outbound.fetch import trusted_certificates
print(sum(read), trusted_certificates().cert_store_stats()["x509"], os.environ.get("SSL_CERT_FILE"))
"""


@pytest.mark.parametrize("is_set", [True, False])
def test_authorities_are_read_for_our_own_connections_only(tmp_path: Path, *, is_set: bool) -> None:
    """Reading them again, for connections that nobody opens, takes longer than a start may."""
    certificate, _key = holder("https://pod.example/card#me").write(tmp_path)
    environment = {key: text for key, text in os.environ.items() if key != "SSL_CERT_FILE"}
    if is_set:
        environment["SSL_CERT_FILE"] = str(certificate)
    said = subprocess.run(
        [sys.executable, "-c", _PROGRAM],
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=True,
        cwd=REPOSITORY,
        env=environment,
    )
    of_the_library, of_ours, variable = said.stdout.split()
    assert of_the_library == "0"
    if is_set:
        assert (of_ours, variable) == ("1", str(certificate))
    else:
        assert variable == "None"
