"""Clients in Python: scripts that sign somebody in, and scripts that have client credentials."""

from __future__ import annotations

import json
import subprocess
from urllib.parse import urlsplit

import pytest

from tests.support.people import Person
from tests.support.python_clients import FOLDER, PYTHON, install_clients

CALLBACK = "http://127.0.0.1:9/callback"
"""Nobody listens there: the person's address bar is all that a script needs."""
DEADLINE_S = 60


@pytest.fixture(autouse=True)
def _clients() -> None:
    install_clients()


def test_a_script_signs_somebody_in(person: Person) -> None:
    """solid-oidc-client: it asks for no ``webid`` scope, and binds its tokens to a key."""
    issuer, document = person.account.provider.base_url, f"{person.account.pod_url}private/note"
    with subprocess.Popen(
        [PYTHON, FOLDER / "oidc_client.py", issuer, CALLBACK, document],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as script:
        assert script.stdout is not None
        came_back = person.connect(script.stdout.readline().strip())
        said, _ = script.communicate(f"{came_back}\n", timeout=DEADLINE_S)
    assert json.loads(said) == {
        "webId": person.account.web_id,
        "page": "/notes",
        "written": 201,
        "read": "my own words",
    }
    assert person.account.provider.get(urlsplit(document).path).status == 401


def test_a_script_uses_client_credentials(person: Person) -> None:
    """SolidClientCredentials, with those that the account page makes."""
    document = f"{person.account.pod_url}private/note"
    arguments = [person.account.provider.base_url, *person.make_credential(), document]
    said = subprocess.run(
        [PYTHON, FOLDER / "credentials_client.py", *arguments],
        check=True,
        stdout=subprocess.PIPE,
        timeout=DEADLINE_S,
    ).stdout
    assert json.loads(said) == {"written": 201, "read": "my own words"}
    assert person.account.provider.get(urlsplit(document).path).status == 401
