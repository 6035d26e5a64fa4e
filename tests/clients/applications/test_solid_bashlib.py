"""solid-bashlib, a command line for pods, with the client credentials of the account page."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import pytest

from tests.clients.applications.sites import PACKAGES
from tests.support.client import Client
from tests.support.node import APPLICATIONS, NODE, install_packages
from tests.support.people import Account, Person

PROGRAM = PACKAGES / "solid-bashlib/bin/solid.js"
DEADLINE_S = 120


@dataclass(frozen=True, slots=True)
class Shell:
    """The program for one person, who has a home directory."""

    home: Path
    account: Account

    def url(self, name: str) -> str:
        """Of a resource in the private part of the pod."""
        return f"{self.account.pod_url}private/{name}"

    def run(self, *arguments: str | Path) -> str:
        """What a command prints. Raises CalledProcessError when it fails."""
        done = subprocess.run(
            [NODE, PROGRAM, *arguments],
            check=True,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=DEADLINE_S,
            env=self._environment(),
        )
        assert done.stderr == ""
        return done.stdout

    def store_credentials(self, client_id: str, secret: str) -> None:
        """Answer the two questions of the command that stores client credentials."""
        with subprocess.Popen(
            [NODE, PROGRAM, "auth", "create-token-ess", "-w", self.account.web_id],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=self._environment(),
        ) as program:
            assert program.stdin is not None
            assert program.stdout is not None
            for question, answer in (("? id", client_id), ("? secret", secret)):
                _read_until(program.stdout, question.encode())
                program.stdin.write(f"{answer}\n".encode())
                program.stdin.flush()
            said, _ = program.communicate(timeout=DEADLINE_S)
        assert b"Successfully created new token" in said

    def _environment(self) -> dict[str, str]:
        return {**os.environ, "HOME": str(self.home), "NO_COLOR": "1"}


def _read_until(stream: IO[bytes], text: bytes) -> None:
    said = b""
    while text not in said:
        more = os.read(stream.fileno(), 4096)
        assert more, said
        said += more


@pytest.fixture
def shell(account: Account, tmp_path: Path) -> Shell:
    """With client credentials, for the person's WebID."""
    install_packages(APPLICATIONS)
    shell = Shell(tmp_path / "home", account)
    shell.home.mkdir()
    shell.store_credentials(*Person(account).make_credential())
    shell.run("auth", "set", account.web_id)
    return shell


def test_folders_and_documents_are_kept_and_shared_from_a_shell(
    shell: Shell, owner: Client, tmp_path: Path
) -> None:
    roses = tmp_path / "roses.ttl"
    roses.write_text('<#it> <http://xmlns.com/foaf/0.1/name> "Rosa" .')
    private = f"/{shell.account.name}/private/"
    shell.run("cp", roses, shell.url("garden/"))
    assert owner.get(f"{private}garden/roses.ttl").text == roses.read_text()
    query = "SELECT ?name WHERE { ?it <http://xmlns.com/foaf/0.1/name> ?name }"
    assert "Rosa" in shell.run("query", shell.url("garden/roses.ttl"), query)
    shell.run("mv", shell.url("garden/roses.ttl"), shell.url("moved.ttl"))
    assert owner.members(private) == {f"{private}garden/", f"{private}moved.ttl"}
    assert shell.account.provider.get(f"{private}moved.ttl").status == 401
    shell.run("access", "set", shell.url("moved.ttl"), "p=r")
    assert shell.account.provider.get(f"{private}moved.ttl").status == 200
    shell.run("rm", "-r", shell.url("garden/"))
    assert shell.run("ls", shell.url("")).split() == ["moved.ttl"]
