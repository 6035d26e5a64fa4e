"""The operator lists pods and deletes those that have no account, beside a running server."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import Result

from tests.support.client import Client, Pod, create_pod
from tests.support.commands import invoke
from tests.support.server import ServerProcess, running_server

PASSWORD = "correct horse battery staple"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    with running_server(ServerProcess(tmp_path / "root")) as server:
        yield server


@pytest.fixture
def pod(server: ServerProcess) -> Pod:
    return create_pod(server)


def run(server: ServerProcess, *arguments: str, typed: str = "") -> Result:
    return invoke(server.root, *arguments, typed=typed)


def listed(server: ServerProcess, *options: str) -> dict[str, tuple[str, str]]:
    """The owner of each pod, and whether it has an account."""
    result = run(server, "pod", "list", *options)
    assert (result.exit_code, result.stderr) == (0, ""), result.output
    head, *lines = [re.split(" {2,}", line) for line in result.stdout.splitlines()]
    assert head == ["POD", "OWNER", "CREATED", "SIZE", "LAST USE", "ACCOUNT"]
    return {name: (owner, account) for name, owner, _, _, _, account in lines}


def with_account(server: ServerProcess, name: str) -> None:
    result = run(server, "account", "create", name, typed=f"{PASSWORD}\n")
    assert result.exit_code == 0, result.output


def test_pods_are_listed_with_and_without_accounts(server: ServerProcess, pod: Pod) -> None:
    with_account(server, "alice")
    alice = (f"{server.base_url}/alice/#me", "yes")
    assert listed(server) == {"alice": alice, pod.name: (pod.web_id, "no")}
    assert listed(server, "--without-account") == {pod.name: (pod.web_id, "no")}


def test_the_list_says_how_large_a_pod_is_and_when_it_was_used(
    server: ServerProcess, pod: Pod
) -> None:
    with pod.owner() as owner:
        assert owner.put(f"{pod.root}private/a", "x" * 3_000_000).status == 201
    [line] = [each for each in run(server, "pod", "list").stdout.splitlines() if pod.name in each]
    assert re.search(r" 2\.9 MiB  -  ", line)
    [shown] = json.loads(run(server, "pod", "list", "--json").stdout)
    assert shown["used_bytes"] > 3_000_000
    assert shown["last_use"] is None


def test_a_command_takes_several_pods_and_none_if_one_is_wrong(server: ServerProcess) -> None:
    names = [create_pod(server).name for _ in range(3)]
    assert run(server, "pod", "delete", *names, "missing", "--yes").exit_code == 1
    assert set(listed(server)) == {*names}
    result = run(server, "pod", "quota", *names, "2G")
    assert result.exit_code == 0, result.output
    sizes = json.loads(run(server, "pod", "size", *names, "--json").stdout)
    assert [(each["name"], each["quota_bytes"]) for each in sizes] == [(n, 2 << 30) for n in names]
    assert run(server, "pod", "delete", *names[:2], "--yes").stdout.splitlines() == [
        f"Deleted the pod '{name}'." for name in names[:2]
    ]
    assert set(listed(server)) == {names[2]}


def test_a_deleted_pod_is_gone_at_once_and_nobody_gets_its_name(
    server: ServerProcess, pod: Pod
) -> None:
    with pod.owner() as owner:
        assert owner.put(f"{pod.root}private/a", "text").status == 201
        result = run(server, "pod", "delete", pod.name, "--yes")
        assert (result.exit_code, result.stdout) == (0, f"Deleted the pod '{pod.name}'.\n")
        assert owner.get(f"{pod.root}private/a").status == 401
    assert listed(server) == {}
    body, typed = json.dumps({"name": pod.name}), {"Content-Type": "application/json"}
    assert server.request("POST", "/.pods", body, typed).status == 409
    assert run(server, "account", "free-name", pod.name).exit_code == 0
    assert server.request("POST", "/.pods", body, typed).status == 201


def test_a_pod_is_deleted_only_if_the_operator_says_so(server: ServerProcess, pod: Pod) -> None:
    result = run(server, "pod", "delete", pod.name, typed="n\n")
    assert result.exit_code == 1
    assert "Permanently delete" in result.output
    assert set(listed(server)) == {pod.name}


def test_a_pod_with_an_account_goes_with_its_account_only(server: ServerProcess) -> None:
    with_account(server, "alice")
    result = run(server, "pod", "delete", "Alice", "--yes")
    assert result.exit_code == 1
    assert "podstead account delete alice" in result.stderr
    assert set(listed(server)) == {"alice"}


@pytest.mark.parametrize("name", ["a b", "x" * 65, "idp"])
def test_a_command_says_of_a_name_what_the_server_says(server: ServerProcess, name: str) -> None:
    """One rule for pages, programs and commands."""
    body, typed = json.dumps({"name": name}), {"Content-Type": "application/json"}
    message = json.loads(server.request("POST", "/.pods", body, typed).body)["message"]
    result = run(server, "account", "create", name, typed=f"{PASSWORD}\n")
    assert (result.exit_code, result.stderr) == (2, f"Error: {message}\n")


def test_a_pod_that_is_not_there_is_not_deleted(server: ServerProcess) -> None:
    result = run(server, "pod", "delete", "nobody", "--yes")
    assert (result.exit_code, result.stderr) == (1, "Error: There is no pod 'nobody'.\n")


def test_a_quota_set_by_command_applies_to_the_next_write(server: ServerProcess, pod: Pod) -> None:
    with pod.owner() as owner:
        assert run(server, "pod", "quota", pod.name, "1").exit_code == 0
        assert owner.put(f"{pod.root}private/a", "text").status == 507
        assert run(server, "pod", "quota", pod.name, "default").exit_code == 0
        assert owner.put(f"{pod.root}private/a", "text").status == 201
    assert run(server, "pod", "quota", pod.name, "much").exit_code == 2
    assert run(server, "pod", "quota", "nobody", "none").exit_code == 1


def test_an_operator_is_made_and_unmade_by_command(server: ServerProcess) -> None:
    for name in ("alice", "bob"):
        with_account(server, name)
        assert run(server, "account", "promote", name).exit_code == 0
    assert "in use" not in run(server, "account", "list").stdout
    assert run(server, "account", "demote", "alice").exit_code == 0
    assert "in use" in run(server, "account", "list").stdout
    for command in (("demote", "bob"), ("disable", "bob"), ("delete", "bob", "--yes")):
        refused = run(server, "account", *command)
        assert refused.exit_code == 1
        assert "the only operator" in refused.stderr
    link = run(server, "account", "sign-in-link", "alice").stdout
    assert link.startswith(f"{server.base_url}/.pages/link/")
    assert run(server, "account", "sign-out", "alice").exit_code == 0


def test_pods_are_created_measured_and_renamed(server: ServerProcess, pod: Pod) -> None:
    created = json.loads(run(server, "pod", "create", "carol", "--json").stdout)
    assert created["web_id"] == f"{server.base_url}/carol/#me"
    with Client(server, token=created["token"]) as carol:
        assert carol.put("/carol/private/a", "text").status == 201
    size = json.loads(run(server, "pod", "size", "carol", "--json").stdout)
    assert (size["documents"], size["containers"], size["quota_bytes"]) == (5, 6, 0)
    result = run(server, "pod", "rename", "carol", "caroline", "--yes", "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["former_url"] == f"{server.base_url}/carol/"
    rows = json.loads(run(server, "pod", "list", "--json").stdout)
    assert {each["name"] for each in rows} == {pod.name, "caroline"}
    result = run(server, "pod", "rename", "carol", "other", "--yes")
    assert (result.exit_code, "no pod 'carol'" in result.stderr) == (1, True)


def test_an_account_goes_with_its_pod(server: ServerProcess) -> None:
    with_account(server, "alice")
    assert run(server, "pod", "rename", "alice", "alicia", "--yes").exit_code == 0
    assert listed(server) == {"alicia": (f"{server.base_url}/alicia/#me", "yes")}
    accounts = run(server, "account", "list").stdout
    assert "alicia" in accounts
    assert f"{server.base_url}/alice/#me" not in accounts
    assert run(server, "pod", "delete", "alicia", "--yes").exit_code == 1
    assert run(server, "pod", "delete", "alicia", "--yes", "--with-account").exit_code == 0
    assert listed(server) == {}


def test_a_pod_is_exported_and_imported(server: ServerProcess, pod: Pod, tmp_path: Path) -> None:
    with pod.owner() as owner:
        assert owner.put(f"{pod.root}private/a", "text").status == 201
    file = str(tmp_path / "pod.zip")
    exported = run(server, "pod", "export", pod.name, file, "--json")
    assert exported.exit_code == 0, exported.output
    assert json.loads(exported.stdout)["size_bytes"] == Path(file).stat().st_size
    assert run(server, "pod", "export", pod.name, file).exit_code == 1
    assert run(server, "pod", "import", file).exit_code == 1
    dry = run(server, "pod", "import", file, "--as", "copy", "--dry-run", "--json")
    assert "copy" not in listed(server)
    result = run(server, "pod", "import", file, "--as", "copy", "--json")
    assert result.exit_code == 0, result.output
    assert {**json.loads(dry.stdout), "dry_run": False} == json.loads(result.stdout)
    token = run(server, "token", "create", "copy").stdout.strip()
    with Client(server, token=token) as owner:
        assert owner.get("/copy/private/a").text == "text"
