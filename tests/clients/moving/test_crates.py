"""The archive of a pod is an RO-Crate, as the validator of the RO-Crate community sees it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.support.client import create_pod
from tests.support.git import Git, url_of
from tests.support.git_requests import OPTIONS, new_work
from tests.support.python_clients import FOLDER, PYTHON, install_clients
from tests.support.server import ServerProcess, run_command, running_server

DEADLINE_S = 120
NOT_FOLLOWED = {
    "Data Entity: RECOMMENDED `description` property": "people have not described their files",
    "License entity: SHOULD have absolute URL @id": "an export gives no license",
    "Organization: SHOULD have ROR identifier": "a server is not a research organization",
    "Person: SHOULD have ORCID identifier": "a person is known by a WebID here",
    "Organization: RECOMMENDED contactPoint references ContactPoint entity": "none is known",
    "Root Data Entity: at least one author/publisher SHOULD have contactPoint": "none is known",
    "Script or Workflow: RECOMMENDED `programmingLanguage` property": "a repository has several",
    "Root Data Entity: identifier SHOULD use PropertyValue approach": "it is a name of this server",
    "Entity properties SHOULD use single values rather than singleton arrays": "members are a list",
    "Dataset Data Entity: RECOMMENDED `hasPart` property": "a folder may be empty",
}
"""Recommendations, and why the archive does not follow them."""


@pytest.mark.parametrize("options", [(), ("--versions",)])
def test_an_archive_is_what_the_specification_requires(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    install_clients()
    with running_server(ServerProcess(tmp_path / "root", OPTIONS)) as server:
        pod = create_pod(server)
        with pod.owner() as owner:
            for name, content, content_type in (
                ("private/caf%C3%A9%20%22x%22%20%25%23%5B%5D", b"text", "text/plain"),
                ("private/photo.jpg", bytes(range(256)), "image/jpeg"),
                ("private/data", b"<> <#p> 1.", "text/turtle"),
                ("private/empty/", b"", "text/turtle"),
            ):
                assert owner.put(f"{pod.root}{name}", content, content_type).status == 201
            replaced = owner.put(f"{pod.root}private/data", b"<> <#p> 2.", "text/turtle")
            assert replaced.status in {204, 205}
            described = owner.put(f"{pod.root}private/.meta", "<> <#p> 1.", "text/turtle")
            assert described.status in {201, 204}
        work = new_work(Git(tmp_path), pod)
        work("push", "--quiet", url_of(pod, "private/notes"), "main")
        file, root = str(tmp_path / "pod.zip"), ("--root", str(server.root))
        assert run_command("pod", "export", pod.name, file, *options, *root).returncode == 0
    said = subprocess.run(
        [PYTHON, FOLDER / "validate_crate.py", file],
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert said.returncode == 0, said.stderr
    found = json.loads(said.stdout.splitlines()[-1])
    assert found, "nobody has an ORCID here, so there is always something"
    unexpected = [each for each in found if each[0] != "RECOMMENDED" or each[1] not in NOT_FOLLOWED]
    assert unexpected == [], "\n".join(map(str, unexpected))
