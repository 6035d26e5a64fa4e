"""``podstead import``: interrupted, tried out, and with things that cannot be taken."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from podstead.core.identifiers import ResourcePath
from tests.support.engine import engine_environment, new_store
from tests.support.processes import clean_environment
from tests.support.server import DEADLINE_S, ServerProcess, run_command, running_server

MANY = 900
HASH = "$2b$10$oG45Y7X0DTxs9N8t29GyMe9Ibi5jQ5IyYWVoVnTY5Ks1vmRcWT8zO"
INTERRUPTED = """
import asyncio, os, signal, sys
from pathlib import Path
from podstead.features.importers.pods import move_in
from podstead.config import read_settings

def count(pod, done, total):
    if done >= 300:
        os.kill(os.getpid(), signal.SIGKILL)

settings = read_settings({"root": sys.argv[2]}, os.environ, folder=Path.cwd())
names = dict([sys.argv[4].split("=")]) if len(sys.argv) > 4 else {}
asyncio.run(move_in(settings, sys.argv[3], Path(sys.argv[1]), names=names, counting=count))
"""


def write(path: Path, content: str | bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)


def record(path: Path, payload: object) -> None:
    write(path, json.dumps({"key": path.name, "payload": payload}))


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a Community Solid Server stores; the formats are tested with what real ones wrote."""
    folder = tmp_path_factory.mktemp("css")
    base = "https://pods.example/"
    web_id = f"{base}alice/profile/card#me"
    record(folder / ".internal/setup/current-base-url$.json", base)
    account = {
        "**password**": {"p": {"email": "alice@example.com", "password": HASH, "verified": True}},
        "**webIdLink**": {"w": {"webId": web_id}},
        "**pod**": {"a": {"baseUrl": f"{base}alice/", "**owner**": {"o": {"webId": web_id}}}},
    }
    record(folder / ".internal/accounts/data/1$.json", account)
    write(
        folder / "alice/.acl",
        "@prefix acl: <http://www.w3.org/ns/auth/acl#>. <#o> a acl:Authorization; "
        f"acl:agent <{web_id}>; acl:accessTo <./>; acl:default <./>; acl:mode acl:Control, "
        "acl:Read, acl:Write.",
    )
    write(folder / "alice/profile/card$.ttl", f"<{web_id}> <#name> 'Alice'.")
    for number in range(MANY):
        write(folder / f"alice/many/{number}.txt", f"number {number}")
    return folder


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    with running_server(ServerProcess(tmp_path / "root", ("--idp",))) as running:
        yield running


def stored(root: Path) -> Mapping[str, Any]:
    """Every resource of the pod: what is there and since when."""
    return asyncio.run(_stored(root))


async def _stored(root: Path) -> Mapping[str, Any]:
    store = new_store(root)
    await store.open()
    try:
        path = ResourcePath("/alice/")
        found = await store.read_tree(path, also={path: None}, limit=10 * MANY)
        return {
            each.path: (
                each.kind,
                each.content_type,
                each.size_bytes,
                # The pod begins with rules of its own, which those that arrive replace now.
                None if each.path == "/alice/.acl" else each.modified_ms,
            )
            for each in found.values()
            if each is not None and not each.kind.is_container
        }
    finally:
        await store.close()


def import_into(root: Path, folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return run_command("import", "css", str(folder), "--root", str(root), *options)


def test_an_import_that_was_killed_ends_as_if_it_had_not_been(
    server: ServerProcess, files: Path, tmp_path: Path
) -> None:
    """Nothing is lost or doubled, and nobody sees half of a pod."""
    killed = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, str(files), str(server.root), "css"],
        env={**clean_environment(), **engine_environment(server.root)},
        timeout=DEADLINE_S,
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL
    half = stored(server.root)
    assert 300 <= len(half) < MANY
    assert server.get("/alice/many/1.txt").status == 401
    assert run_command("account", "list", "--root", str(server.root)).stdout.count("\n") == 1
    assert "import unfinished" in run_command("pod", "list", "--root", str(server.root)).stdout
    again = import_into(server.root, files)
    assert again.returncode == 0, again.stderr
    assert "unfinished" not in run_command("pod", "list", "--root", str(server.root)).stdout
    whole = stored(server.root)
    accounts = run_command("account", "list", "--root", str(server.root)).stdout
    assert accounts.count("alice@example.com") == 1
    with running_server(ServerProcess(tmp_path / "other")) as other:
        assert import_into(other.root, files).returncode == 0
        assert stored(other.root) == whole
    assert sum(path.startswith("/alice/many/") for path in whole) == MANY


def test_a_trial_stores_nothing_and_tells_all(server: ServerProcess, files: Path) -> None:
    tried = import_into(server.root, files, "--dry-run", "--json")
    assert tried.returncode == 0
    [pod] = json.loads(tried.stdout)["pods"]
    assert pod["documents"] == MANY + 1
    assert stored(server.root) == {}
    assert "alice" not in run_command("account", "list", "--root", str(server.root)).stdout


def test_what_cannot_be_taken_is_listed_and_the_rest_is_taken(
    server: ServerProcess, tmp_path: Path
) -> None:
    folder, base = tmp_path / "files", "https://pods.example/"
    owner = f"{base}bob/profile/card#me"
    record(folder / ".internal/setup/current-base-url$.json", base)
    account = {
        "**password**": {"p": {"email": "b@example.com", "password": "plain", "verified": True}},
        "**webIdLink**": {"w": {"webId": "https://elsewhere.example/bob#me"}},
        "**pod**": {
            "b": {
                "baseUrl": f"{base}bob/",
                "**owner**": {"o": {"webId": "https://elsewhere.example/bob#me"}},
            },
            "c": {"baseUrl": f"{base}admin/", "**owner**": {"o": {"webId": owner}}},
        },
    }
    record(folder / ".internal/accounts/data/1$.json", account)
    write(folder / "bob/broken.ttl", "<a> <b>")
    write(folder / "bob/good.ttl", "<a> <b> <c>.")
    write(folder / "bob/private/.acl", "this is no rule")
    write(folder / "bob/private/secret.txt", "secret")
    (folder / "bob/link").symlink_to("/etc/passwd")
    write(folder / "admin/.acl", "")
    ended = import_into(server.root, folder, "--json")
    assert ended.returncode == 1
    report = json.loads(ended.stdout)
    assert [pod["name"] for pod in report["pods"]] == ["bob"]
    assert report["pods"][0]["owner"] == "https://elsewhere.example/bob#me"
    assert {each["path"] for each in report["left_out"]} == {
        "admin", "bob/link", "/bob/broken.ttl", "/bob/private/.acl", "account of bob",
    }  # fmt: skip
    assert any("is elsewhere" in note for note in report["notes"])
    assert server.get("/bob/private/secret.txt").status == 401
    text = import_into(server.root, folder)
    assert text.returncode == 1
    assert "--as admin=NAME" in text.stderr
    renamed = import_into(server.root, folder, "--as", "admin=anna", "--json")
    assert [pod["name"] for pod in json.loads(renamed.stdout)["pods"]] == ["bob", "anna"]


@pytest.mark.parametrize("kind", ["css", "nss", "jss"])
def test_a_folder_of_something_else_is_refused(
    server: ServerProcess, tmp_path: Path, kind: str
) -> None:
    (tmp_path / "empty").mkdir()
    ended = run_command("import", kind, str(tmp_path / "empty"), "--root", str(server.root))
    assert ended.returncode == 1
    assert "Error: " in ended.stderr


CONTROL = """@prefix acl: <http://www.w3.org/ns/auth/acl#>.
<#owner> a acl:Authorization; acl:agent </profile/card#me>; acl:accessTo </>; acl:default </>;
    acl:mode acl:Read, acl:Write, acl:Control.
<#public> a acl:Authorization; acl:agentClass <http://xmlns.com/foaf/0.1/Agent>; acl:accessTo </>;
    acl:default </>; acl:mode acl:Read.
"""


def at_the_root(kind: str, folder: Path) -> None:
    """A server with one pod, at its root."""
    web_id = "https://me.example/profile/card#me"
    profile = f"<{web_id}> <#home> </>; <http://www.w3.org/ns/solid/terms#oidcIssuer> <https://me.example/>."
    if kind == "css":
        record(folder / ".internal/setup/current-base-url$.json", "https://me.example/")
        write(folder / ".meta", "<https://me.example/> a <http://www.w3.org/ns/pim/space#Storage>.")
        write(folder / ".acl", CONTROL)
        write(folder / "profile/card$.ttl", profile)
    elif kind == "nss":
        write(folder / "config.json", json.dumps({"serverUri": "https://me.example"}))
        write(folder / "data/.acl", CONTROL)
        write(folder / "data/profile/card$.ttl", profile)
        user = {"webId": web_id, "hashedPassword": HASH, "idp": "https://me.example"}
        write(folder / ".db/oidc/users/users/_key_me.json", json.dumps(user))
    else:
        write(folder / ".acl", CONTROL)
        page = json.dumps({"@id": web_id, "http://e.example/home": {"@id": "https://me.example/"}})
        write(
            folder / "profile/card",
            f'<!DOCTYPE html><script type="application/ld+json">{page}</script>',
        )
        account = {"username": "me", "webId": web_id, "podName": "me", "passwordHash": HASH}
        write(folder / ".idp/accounts/1.json", json.dumps(account))


@pytest.mark.parametrize("kind", ["css", "nss", "jss"])
def test_a_pod_at_the_root_gets_a_name(server: ServerProcess, tmp_path: Path, kind: str) -> None:
    """Its names follow, also those that began with a slash, and so does its owner."""
    folder = tmp_path / kind
    at_the_root(kind, folder)
    command = ("import", kind, str(folder), "--root", str(server.root), "--json")
    unnamed = run_command(*command)
    assert unnamed.returncode == 1
    assert "--as NAME" in unnamed.stdout
    named = run_command(*command, "--as", "anna")
    assert named.returncode == 0, named.stdout
    [pod] = json.loads(named.stdout)["pods"]
    assert pod["owner"] == f"{server.base_url}/anna/profile/card#me"
    assert pod["account"] is (kind != "css")
    answer = server.get("/anna/profile/card", {"Accept": "application/n-triples"})
    assert answer.status == 200
    assert f"<{server.base_url}/anna/>" in answer.text
    if kind != "jss":
        assert f"oidcIssuer> <{server.base_url}>" in answer.text
    assert "me.example" not in answer.text


@pytest.mark.parametrize("kind", ["nss", "jss"])
def test_every_reader_continues_after_an_interrupt(
    server: ServerProcess, tmp_path: Path, kind: str
) -> None:
    folder = tmp_path / kind
    at_the_root(kind, folder)
    for number in range(MANY):
        write(folder / ("data" if kind == "nss" else "") / f"many/{number}.txt", f"{number}")
    killed = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, str(folder), str(server.root), kind, "=anna"],
        env={**clean_environment(), **engine_environment(server.root)},
        timeout=DEADLINE_S,
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL
    assert server.get("/anna/many/1.txt").status == 401
    command = ("import", kind, str(folder), "--root", str(server.root), "--as", "anna", "--json")
    again = run_command(*command)
    assert again.returncode == 0, again.stdout
    [pod] = json.loads(again.stdout)["pods"]
    assert (pod["account"], pod["already_there"]) == (True, False)
    listed = server.get("/anna/many/", {"Accept": "text/turtle"}).text
    assert all(f"{number}.txt>" in listed for number in range(MANY))
    assert server.get(f"/anna/many/{MANY - 1}.txt").text == str(MANY - 1)
    accounts = json.loads(
        run_command("account", "list", "--json", "--root", str(server.root)).stdout
    )
    assert [each["pod"] for each in accounts] == ["anna"]


def account_file(kind: str, folder: Path) -> Path:
    """The account of the only person."""
    names = {
        "css": ".internal/accounts/data",
        "nss": ".db/oidc/users/users",
        "jss": ".idp/accounts",
    }
    [found] = (folder / names[kind]).glob("*.json")
    return found


def with_account(kind: str, folder: Path) -> Path:
    """A server with one pod and one account, whose file it is."""
    at_the_root(kind, folder)
    if kind == "css":
        web_id = "https://me.example/profile/card#me"
        payload = {
            "**password**": {"p": {"email": "me@me.example", "password": HASH, "verified": True}},
            "**webIdLink**": {"w": {"webId": web_id}},
            "**pod**": {
                "a": {"baseUrl": "https://me.example/", "**owner**": {"o": {"webId": web_id}}}
            },
        }
        record(folder / ".internal/accounts/data/1$.json", payload)
    return account_file(kind, folder)


@pytest.mark.parametrize("kind", ["css", "nss", "jss"])
@pytest.mark.parametrize("broken", ["{", "[" * 200_000])
def test_an_account_that_could_not_be_read_comes_with_a_later_run(
    server: ServerProcess, tmp_path: Path, kind: str, broken: str
) -> None:
    folder = tmp_path / kind
    file = with_account(kind, folder)
    whole = file.read_text()
    file.write_text(broken)
    command = ("import", kind, str(folder), "--root", str(server.root), "--as", "anna")
    options = ("--from-url", "https://me.example/")
    first = run_command(*command, *options)
    assert first.returncode == 1
    assert "Traceback" not in first.stderr
    assert str(file.relative_to(folder)) in first.stderr
    assert "'podstead account create anna --existing-pod' creates one" in first.stdout
    file.write_text(whole)
    assert "its account is here now" in run_command(*command, *options, "--dry-run").stdout
    second = run_command(*command, *options, "--json")
    assert second.returncode == 0, second.stdout
    [pod] = json.loads(second.stdout)["pods"]
    assert (pod["account"], pod["already_there"], pod["account_added"]) == (True, True, True)
    listed = run_command("account", "list", "--json", "--root", str(server.root))
    [account] = json.loads(listed.stdout)
    assert (account["pod"], account["web_id"]) == (
        "anna",
        f"{server.base_url}/anna/profile/card#me",
    )
    third = run_command(*command, *options)
    assert (third.returncode, third.stderr) == (0, "")


def test_a_trial_predicts_what_accounts_have_in_common(
    server: ServerProcess, tmp_path: Path
) -> None:
    folder, base = tmp_path / "files", "https://pods.example/"
    record(folder / ".internal/setup/current-base-url$.json", base)
    for name in ("alice", "bob"):
        web_id = f"{base}{name}/profile/card#me"
        secret = {"label": "the-same", "secret": "s", "webId": web_id}
        account = {
            "**password**": {"p": {"email": "Us@example.com", "password": HASH, "verified": True}},
            "**webIdLink**": {"w": {"webId": web_id}},
            "**pod**": {"a": {"baseUrl": f"{base}{name}/", "**owner**": {"o": {"webId": web_id}}}},
            "**clientCredentials**": {"c": secret},
        }
        record(folder / f".internal/accounts/data/{name}$.json", account)
        write(folder / name / "profile/card$.ttl", f"<{web_id}> <#name> '{name}'.")
    tried = import_into(server.root, folder, "--dry-run", "--json")
    assert "Importing" not in tried.stderr
    assert "Reading the pod 'alice'" in tried.stderr
    done = import_into(server.root, folder, "--json")
    assert tried.returncode == done.returncode == 1
    clashes = json.loads(done.stdout)["left_out"]
    assert json.loads(tried.stdout)["left_out"] == clashes
    assert {each["path"] for each in clashes} == {"account of bob"}
    assert len(clashes) == 2


def test_rules_of_a_node_server_keep_their_effect(server: ServerProcess, tmp_path: Path) -> None:
    """It knows the former name of acl:default, and does without a type (@solid/acl-check)."""
    folder = tmp_path / "nss"
    at_the_root("nss", folder)
    acl = (
        "@prefix acl: <http://www.w3.org/ns/auth/acl#>. @prefix foaf: <http://xmlns.com/foaf/0.1/>."
    )
    write(folder / "data/old/a.txt", "Café")
    write(folder / "data/old/page.html", "<!doctype html><title>A page</title>")
    write(folder / "data/old/data.json", "{}")
    write(
        folder / "data/old/.acl",
        f"{acl} <#p> acl:agentClass foaf:Agent; acl:accessTo <./>; acl:defaultForNew <./>; "
        "acl:mode acl:Read.",
    )
    write(folder / "data/apps/a.txt", "a")
    write(
        folder / "data/apps/.acl",
        f"{acl} <#p> a acl:Authorization; acl:agentClass foaf:Agent; acl:default <./>; "
        "acl:mode acl:Read; acl:origin <https://app.example>.",
    )
    command = ("import", "nss", str(folder), "--root", str(server.root), "--as", "anna", "--json")
    ended = run_command(*command)
    assert ended.returncode == 1
    assert [each["path"] for each in json.loads(ended.stdout)["left_out"]] == ["data/apps/.acl"]
    assert server.get("/anna/old/").status == 200
    assert server.get("/anna/old/a.txt").headers["content-type"] == "text/plain; charset=utf-8"
    assert server.get("/anna/old/page.html").headers["content-type"] == "text/html; charset=utf-8"
    assert server.get("/anna/old/data.json").headers["content-type"] == (
        "application/json; charset=utf-8"
    )


def test_what_a_community_server_ignored_in_rules_is_listed(
    server: ServerProcess, tmp_path: Path
) -> None:
    folder = tmp_path / "css"
    with_account("css", folder)
    write(folder / "apps/a.txt", "a")
    write(
        folder / "apps/.acl",
        CONTROL.replace("</>", "<./>").replace(
            "acl:agentClass", "acl:origin <https://app.example>; acl:agentClass"
        ),
    )
    command = ("import", "css", str(folder), "--root", str(server.root), "--as", "anna")
    ended = run_command(*command)
    assert ended.returncode == 1
    assert "apps/.acl: A rule had an effect with every application" in ended.stderr


HOSTILE = "\x1b[31mred\nError: forged\u202egpj.exe\x9b"


@pytest.mark.parametrize("kind", ["css", "nss", "jss", "folder"])
def test_names_reach_the_terminal_as_text(server: ServerProcess, tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "files"
    if kind != "folder":
        with_account(kind, folder)
    inner = folder / ("data" if kind == "nss" else "")
    inner.mkdir(exist_ok=True)
    (inner / HOSTILE).symlink_to("/etc/passwd")
    options = ("--as", "anna")
    if kind == "folder":
        assert run_command("pod", "create", "anna", "--root", str(server.root)).returncode == 0
        options = ("--into", "anna/")
    command = ("import", kind, str(folder), "--root", str(server.root), *options)
    for ended in (run_command(*command, "--dry-run"), run_command(*command, "--json")):
        assert ended.returncode == 1
        for line in (ended.stdout + ended.stderr).splitlines():
            assert line.isprintable(), line
        assert "\\u202egpj.exe" in ended.stdout + ended.stderr
    assert any(each["path"].endswith(HOSTILE) for each in json.loads(ended.stdout)["left_out"])
