"""The Dockerfile and the compose file are right, and the image is built where that is possible.

Where no Docker daemon runs, the settings and the health check of the image are tried on a server
of this machine.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from podstead.config.settings import settings_table
from tests.support.processes import REPOSITORY
from tests.support.proxies import free_port
from tests.support.server import DEADLINE_S, ServerProcess
from tests.support.waiting import wait_until

FOLDER = REPOSITORY / "deploy/docker"
VARIABLES = {row.variable for row in settings_table()}


def instructions() -> list[tuple[str, str]]:
    """The instructions of the Dockerfile, each on one line."""
    text = (FOLDER / "Dockerfile").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    return [(line.split(" ", 1)[0], line.split(" ", 1)[1]) for line in joined.splitlines() if line]


def values(name: str) -> list[str]:
    return [value for instruction, value in instructions() if instruction == name]


def environment() -> Mapping[str, str]:
    return dict(each.split("=", 1) for value in values("ENV") for each in value.split())


def has_docker() -> bool:
    if shutil.which("docker") is None:
        return False
    asked = subprocess.run(["docker", "info"], capture_output=True, timeout=DEADLINE_S, check=False)
    return asked.returncode == 0


def test_the_image_is_not_root_and_has_what_a_platform_needs() -> None:
    assert values("USER") == ["10001:10001"]
    assert values("VOLUME") == ["/data"] == [environment()["PODSTEAD_ROOT"]]
    assert values("EXPOSE") == [environment()["PODSTEAD_PORT"]]
    assert [json.loads(value) for value in (*values("ENTRYPOINT"), *values("CMD"))] == [
        ["podstead"],
        ["start"],
    ]
    assert all(re.search(r":[\d.]+-", image) for image in values("FROM")), "a fixed version"


def test_every_file_that_is_copied_exists_and_is_not_ignored() -> None:
    ignored = (FOLDER / "Dockerfile.dockerignore").read_text(encoding="utf-8").splitlines()
    for value in values("COPY"):
        if value.startswith("--from="):
            continue
        for name in value.split()[:-1]:
            assert (REPOSITORY / name).exists(), name
            assert f"!{name}" in ignored, name


def test_every_setting_of_the_image_and_of_compose_is_one() -> None:
    compose = (FOLDER / "compose.yaml").read_text(encoding="utf-8")
    named = set(re.findall(r"^      (PODSTEAD_\w+):", compose, re.MULTILINE))
    assert named
    assert {name for name in environment() if name.startswith("PODSTEAD_")} | named <= VARIABLES
    for line in ("read_only: true", "no-new-privileges:true", "- ALL", "data:/data"):
        assert line in compose


def test_the_backup_that_the_page_shows_has_a_volume_of_its_own() -> None:
    """A backup inside of the data root is refused, and the rest of the file system is read-only."""
    page = (REPOSITORY / "docs/operate/run-in-a-container.md").read_text(encoding="utf-8")
    [target] = re.findall(r"podstead backup (\S+)", page)
    folder = f"/{Path(target).parts[1]}"
    compose = (FOLDER / "compose.yaml").read_text(encoding="utf-8")
    assert folder in re.findall(r"^      - \w+:(/\w+)$", compose, re.MULTILINE)
    assert folder != environment()["PODSTEAD_ROOT"]
    [created] = [line for line in values("RUN") if "install -d -o podstead" in line]
    assert folder in created.split()


def test_the_health_check_tells_whether_the_server_is_ready(tmp_path: Path) -> None:
    """With the settings of the image, on other ports."""
    [check] = values("HEALTHCHECK")
    port = str(free_port())
    command = [word.replace(":9090", f":{port}") for word in json.loads(check.partition("CMD ")[2])]
    command[0] = shutil.which("python3") or command[0]
    settings = {
        name: value for name, value in environment().items() if name.startswith("PODSTEAD_")
    }
    settings |= {"PODSTEAD_ADMIN_LISTEN": f"127.0.0.1:{port}", "PODSTEAD_HOST": "127.0.0.1"}
    settings |= {"PODSTEAD_BASE_URL": "https://pods.example", "PODSTEAD_WORKERS": "1"}
    del settings["PODSTEAD_PORT"], settings["PODSTEAD_ROOT"]

    def health() -> int:
        done = subprocess.run(
            command, env={"PATH": os.defpath}, capture_output=True, timeout=DEADLINE_S, check=False
        )
        return done.returncode

    server = ServerProcess(tmp_path / "root", environment=settings, port=free_port())
    try:
        server.launch()
        server.wait_for_line("Podstead is ready at https://pods.example/")
        assert health() == 0
        server.stop()
        assert health() != 0
    finally:
        server.close()


@pytest.mark.timeout(900)
def test_the_image_runs_with_nothing_but_its_volume_to_write_to() -> None:
    """Built and run with the restrictions of the compose file."""
    if not has_docker():
        pytest.skip("no Docker daemon runs here")

    def docker(*arguments: str) -> str:
        done = subprocess.run(
            ["docker", *arguments], capture_output=True, text=True, timeout=600, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    docker("build", "--file", str(FOLDER / "Dockerfile"), "--tag", "podstead-test", str(REPOSITORY))
    container = docker(
        *("run", "--detach", "--read-only", "--cap-drop", "ALL", "--tmpfs", "/tmp"),
        *("--env", "PODSTEAD_BASE_URL=https://pods.example", "podstead-test"),
    )
    try:
        asked = ("inspect", "--format", "{{.State.Health.Status}}", container)
        wait_until(lambda: docker(*asked) != "starting", "the first health check")
        assert docker(*asked) == "healthy", docker("logs", container)
    finally:
        docker("rm", "--force", container)
