"""Features stand on their own: a server without one, and a feature of an installed package."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import podstead
from podstead.core.errors import StartRefused
from podstead.features import SHIPPED, features, only_offer
from tests.support.client import create_pod
from tests.support.server import ServerProcess, run_command, running_server

SOURCES = Path(podstead.__file__).parent
PRESENT = [name for name in SHIPPED if (SOURCES / "features" / name / "__init__.py").is_file()]
"""Those whose folders have not been deleted."""
EXAMPLE = Path(__file__).parents[2] / "docs/build/example-feature"
SETTINGS = {
    "acme": ("acme-port", "8080"),
    "app_list": ("apps", "apps.toml"),
    "git": ("git-processes", "4"),
    "history": ("keep-deleted", "4"),
    "legacy_notifications": ("legacy-notifications-open", "true"),
    "links": ("sharing-link-max-days", "4"),
    "nostr": ("nostr-basic", "any"),
    "passkeys": ("passkey-requests-per-minute", "4"),
    "read_log": ("read-log-days", "4"),
    "search": ("search", "false"),
    "sparql": ("sparql", "false"),
    "two_factor": ("require-two-factor", "true"),
    "webid_tls": ("client-cert-format", "pem"),
    "mail": ("mail", "console"),
}
"""A setting of each feature that has some, with a value."""
ADDRESSES = {
    "access_limits": ["/.pages/apps/limits"],
    "git": ["/{pod}/public/notes/info/refs?service=git-upload-pack"],
    "personal_data": ["/.pages/collections"],
    "photos": ["/.pages/photos"],
    "previews": ["/.pages/thumbnail/{pod}/picture.png"],
    "history": ["/.history/trash/{pod}/"],
    "installable": ["/.pages/manifest.webmanifest", "/.pages/service-worker.js"],
    "legacy_notifications": ["/.notifications"],
    "links": ["/.links/open/none"],
    "notices": ["/.pages/notices"],
    "search": ["/.search/in/{pod}/"],
    "sparql": ["/.sparql/query/{pod}/"],
    "starred": ["/.pages/starred"],
    "uploads": ["/.uploads/"],
    "web_push": ["/.pages/push"],
    "webhooks": ["/.notifications/WebhookChannel2023/", "/.notifications/sender"],
}
"""Addresses that only the feature answers."""
OF_THE_PROVIDER = {
    "nostr": ("/idp/account/nostr", "/idp/login", "data-nostr"),
    "passkeys": ("/idp/account/passkeys", "/idp/login", "data-passkeys"),
    "two_factor": ("/idp/account/two-factor", "/.pages/forgot", "/idp/recover"),
}
"""The same for features of the identity provider, with a page and what only the feature adds to
it."""
COMMANDS = {"importers": "import", "watch": "watch", "webid_tls": "cert"}


@pytest.fixture(params=PRESENT)
def left_out(request: pytest.FixtureRequest) -> str:
    """The name of a feature."""
    name: str = request.param
    return name


@pytest.fixture
def environment(left_out: str, tmp_path: Path) -> dict[str, str]:
    """For a Podstead whose folder of the feature has been deleted."""
    package = tmp_path / "sources/podstead"
    (package / "features").mkdir(parents=True)
    for entry in SOURCES.iterdir():
        if entry.name != "features":
            (package / entry.name).symlink_to(entry)
    for entry in (SOURCES / "features").iterdir():
        if entry.name != left_out:
            (package / "features" / entry.name).symlink_to(entry)
    return {"PYTHONPATH": str(package.parent)}


def test_each_feature_that_ships_is_there() -> None:
    assert len(features()) >= len(PRESENT)
    assert {*SETTINGS, *ADDRESSES, *OF_THE_PROVIDER, *COMMANDS} == set(SHIPPED)


def test_a_server_without_a_feature_does_not_know_it(
    left_out: str, environment: dict[str, str], tmp_path: Path
) -> None:
    options = ["--workers", "1", "--pod-creations-per-hour", "0"]
    if left_out in OF_THE_PROVIDER:
        options.append("--idp")
    server = ServerProcess(tmp_path / "root", options, environment=environment)
    with running_server(server):
        if left_out in OF_THE_PROVIDER:
            address, place, part = OF_THE_PROVIDER[left_out]
            assert server.request("GET", address).status == 404
            page = server.request("GET", place, headers={"Accept": "text/html"})
            assert page.status == 200
            assert part.encode() not in page.body
            return
        pod = create_pod(server)
        for address in ADDRESSES.get(left_out, ()):
            place = address.format(pod=pod.name)
            with pod.owner() as owner:
                assert owner.get(place).status == 404


def test_settings_and_commands_of_a_feature_that_is_not_there_are_refused(
    left_out: str, environment: dict[str, str], tmp_path: Path
) -> None:
    if left_out in COMMANDS:
        refused = run_command(COMMANDS[left_out], environment=environment)
        assert refused.returncode == 2
        assert f"No such command '{COMMANDS[left_out]}'" in refused.stderr
    if left_out not in SETTINGS:
        return
    name, value = SETTINGS[left_out]
    refused = run_command("start", f"--{name}", value, environment=environment)
    assert refused.returncode == 2
    assert f"No such option '--{name}'" in refused.stderr
    file = tmp_path / "podstead.toml"
    file.write_text(f'{name} = "{value}"\n')
    refused = run_command("start", "--config", str(file), environment=environment)
    assert refused.returncode == 2
    assert f"has the key '{name}', which is not a setting" in refused.stderr


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment in which the example of the documentation is installed."""
    folder = tmp_path_factory.mktemp("site")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=EXAMPLE, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as opened:
        opened.extractall(folder)
    return {"PYTHONPATH": str(folder), "PODSTEAD_GREETING": "Good day"}


def test_an_installed_package_adds_a_feature(installed: dict[str, str], tmp_path: Path) -> None:
    """A setting, a command, a route and a page, in under a hundred lines."""
    files = [path for path in EXAMPLE.rglob("*") if path.is_file() and "cache" not in str(path)]
    lines = [line for path in files for line in path.read_text().splitlines() if line.strip()]
    assert len(lines) < 100
    printed = run_command("greet", environment=installed)
    assert (printed.returncode, printed.stdout) == (0, "Good day\n")
    server = ServerProcess(tmp_path / "root", ("--workers", "1"), environment=installed)
    with running_server(server):
        answer = server.request("GET", "/.greeting")
        assert (answer.status, json.loads(answer.body)) == (200, {"greeting": "Good day"})
        page = server.request("GET", "/.pages/greeting", headers={"Accept": "text/html"})
        assert page.status == 303
        assert page.headers["location"].startswith("/.pages/sign-in")


def test_a_feature_that_is_off_answers_nothing(installed: dict[str, str], tmp_path: Path) -> None:
    environment = {**installed, "PODSTEAD_GREETING": ""}
    server = ServerProcess(tmp_path / "root", ("--workers", "1"), environment=environment)
    with running_server(server):
        assert server.request("GET", "/.greeting").status == 404


def test_a_feature_can_be_left_out_by_the_environment() -> None:
    script = "from podstead.features import features; print(len(features()))"
    counts = [
        int(
            subprocess.run(
                [sys.executable, "-c", script],
                env={**os.environ, "PODSTEAD_WITHOUT_FEATURES": names},
                check=True,
                capture_output=True,
                text=True,
            ).stdout
        )
        for names in ("", ",".join(SHIPPED))
    ]
    assert counts == [len(PRESENT), 0]


def test_what_only_one_feature_can_offer_is_refused_from_two() -> None:
    assert only_offer([None, None]) is None
    assert only_offer([None, EXAMPLE]) is EXAMPLE
    with pytest.raises(StartRefused, match="pathlib, pathlib"):
        only_offer([EXAMPLE, None, SOURCES])
