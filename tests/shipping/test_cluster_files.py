"""The examples for many machines are valid, and their parts work together as processes.

No container is started: three servers get the settings of the nodes of the compose file, with the
addresses of this machine, and HAProxy gets its configuration.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml
from check_jsonschema.builtin_schemas import get_builtin_schema

from podstead.config.settings import settings_table
from tests.support.postgresql import new_database
from tests.support.processes import REPOSITORY
from tests.support.proxies import free_port, program
from tests.support.seaweedfs import s3_environment, shared_s3_server
from tests.support.server import DEADLINE_S, ServerProcess, request_to
from tests.support.waiting import wait_until

FOLDER = REPOSITORY / "deploy/cluster"
KUBERNETES = FOLDER / "kubernetes"
VARIABLES = {row.variable for row in settings_table()}
NODES = ("node-1", "node-2", "node-3")
KUBERNETES_VERSIONS = ("1.31", "1.34")


def compose() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((FOLDER / "compose.yaml").read_text(encoding="utf-8"))
    return loaded


def manifests() -> Iterator[dict[str, Any]]:
    kustomization = yaml.safe_load((KUBERNETES / "kustomization.yaml").read_text(encoding="utf-8"))
    for name in kustomization["resources"]:
        yield from yaml.safe_load_all((KUBERNETES / name).read_text(encoding="utf-8"))


def deployment() -> dict[str, Any]:
    [found] = [each for each in manifests() if each["kind"] == "Deployment"]
    return found


def configuration() -> Mapping[str, str]:
    lines = (KUBERNETES / "configuration.env").read_text(encoding="utf-8").splitlines()
    return dict(line.split("=", 1) for line in lines)


def test_the_compose_file_is_one() -> None:
    jsonschema.validate(compose(), get_builtin_schema("vendor.compose-spec"))


@pytest.mark.parametrize("version", KUBERNETES_VERSIONS)
def test_every_manifest_is_one(version: str) -> None:
    found = list(manifests())
    assert {each["kind"] for each in found} >= {"Deployment", "Service", "Ingress"}
    for manifest in found:
        kubernetes_validate.validate(manifest, version, strict=True)


def test_a_manifest_with_a_wrong_name_is_found() -> None:
    wrong = deployment()
    wrong["spec"]["replica"] = 3
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, KUBERNETES_VERSIONS[-1], strict=True)


def test_every_setting_of_the_examples_is_one() -> None:
    named = {
        *(name for node in NODES for name in compose()["services"][node]["environment"]),
        *configuration(),
        *re.findall(r"PODSTEAD_\w+", (KUBERNETES / "kustomization.yaml").read_text("utf-8")),
    }
    settings = {name for name in named if name.startswith("PODSTEAD_")}
    assert {"PODSTEAD_DATABASE", "PODSTEAD_BODIES", "PODSTEAD_BASE_URL"} <= settings
    assert settings <= VARIABLES


def test_what_manifests_refer_to_exists() -> None:
    ports = {
        port["name"]: port["containerPort"]
        for port in deployment()["spec"]["template"]["spec"]["containers"][0]["ports"]
    }
    private = configuration()["PODSTEAD_ADMIN_LISTEN"].rpartition(":")[2]
    dockerfile = (REPOSITORY / "deploy/docker/Dockerfile").read_text(encoding="utf-8")
    assert f"PODSTEAD_PORT={ports['http']}" in dockerfile
    assert private == str(ports["private"])
    labels = deployment()["spec"]["template"]["metadata"]["labels"]
    for manifest in manifests():
        spec = manifest.get("spec", {})
        if manifest["kind"] == "Service":
            assert spec["selector"] == labels
            assert {port["targetPort"] for port in spec["ports"]} <= set(ports)
        elif manifest["kind"] in {"PodDisruptionBudget", "Deployment"}:
            assert spec["selector"]["matchLabels"] == labels
        elif manifest["kind"] == "NetworkPolicy":
            assert spec["podSelector"]["matchLabels"] == labels


@pytest.mark.needs("kubernetes-client")
def test_kustomize_puts_the_manifests_together(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(KUBERNETES, tmp_path / "kubernetes"))
    (folder / "secrets.env").write_text("PODSTEAD_DATABASE=postgresql://db.example/podstead\n")
    built = subprocess.run(
        ["kubectl", "kustomize", str(folder)], capture_output=True, text=True, check=True
    )
    found = list(yaml.safe_load_all(built.stdout))
    for manifest in found:
        kubernetes_validate.validate(manifest, KUBERNETES_VERSIONS[-1], strict=True)
    assert {"ConfigMap", "Secret"} <= {each["kind"] for each in found}


def node_environment(*, database: str, bodies: str, admin_port: int, url: str) -> dict[str, str]:
    """The settings of a node of the compose file, with the addresses of this machine."""
    environment = dict(compose()["services"]["node-1"]["environment"])
    environment |= {
        "PODSTEAD_BASE_URL": url,
        "PODSTEAD_DATABASE": database,
        "PODSTEAD_BODIES": bodies,
        "PODSTEAD_TRUSTED_PROXY": "127.0.0.1",
        "PODSTEAD_ADMIN_LISTEN": f"127.0.0.1:{admin_port}",
    }
    del environment["AWS_ACCESS_KEY_ID"], environment["AWS_SECRET_ACCESS_KEY"]
    return {**environment, **s3_environment()}


def balancer_configuration(port: int, nodes: Mapping[str, tuple[int, int]]) -> str:
    """That of the example, with the ports of this machine."""
    text = (FOLDER / "haproxy.cfg").read_text(encoding="utf-8")
    changes = {"bind :3000": f"bind 127.0.0.1:{port}", " port 9090": "", " resolvers docker": ""}
    changes |= {"inter 2s": "inter 100ms"}
    for name, (node_port, admin_port) in nodes.items():
        changes[f"{name}:3000"] = f"127.0.0.1:{node_port} check port {admin_port}"
    for before, after in changes.items():
        assert before in text, before
        text = text.replace(before, after)
    return re.sub(r"(?m)^resolvers docker\n(    .*\n)+", "", text)


@pytest.mark.needs("haproxy")
def test_three_nodes_behind_the_balancer_are_one_server(tmp_path: Path) -> None:
    balancer_port = free_port()
    url = f"http://localhost:{balancer_port}"
    bodies = shared_s3_server().new_location()
    with ExitStack() as stack:
        database = stack.enter_context(new_database())
        ports = {name: (free_port(), free_port()) for name in NODES}
        nodes = {
            name: ServerProcess(
                tmp_path / name,
                port=port,
                environment=node_environment(
                    database=database, bodies=bodies, admin_port=admin_port, url=url
                ),
            )
            for name, (port, admin_port) in ports.items()
        }
        for node in nodes.values():
            stack.callback(node.close)
            node.launch()
        for node in nodes.values():
            node.wait_for_line(f"Podstead is ready at {url}/")
        configuration_file = tmp_path / "haproxy.cfg"
        configuration_file.write_text(balancer_configuration(balancer_port, ports))
        balancer = subprocess.Popen([program("haproxy"), "-db", "-q", "-f", configuration_file])
        stack.callback(balancer.wait, DEADLINE_S)
        stack.callback(balancer.kill)

        def is_up() -> bool:
            try:
                return request_to("GET", f"{url}/").status < 500
            except OSError:
                return False

        wait_until(is_up, "the balancer sends requests to a node")
        form = {"Content-Type": "application/json"}
        account = {"name": "alice", "email": "a@example.org", "password": "a long enough password"}
        created = request_to("POST", f"{url}/.pods", json.dumps(account), form)
        assert created.status == 201, created.text
        signed_in = request_to("POST", f"{url}/idp/credentials", json.dumps(account), form)
        assert signed_in.status == 200, signed_in.text
        fields = {"Authorization": f"Bearer {json.loads(signed_in.body)['access_token']}"}
        large, place = b"x" * 200_000, f"{url}/alice/large.bin"
        assert request_to("PUT", place, large, {**fields, "Content-Type": "a/b"}).status == 201
        nodes["node-1"].kill()
        for _ in NODES:
            found = request_to("GET", place, None, fields)
            assert (found.status, found.body) == (200, large)
