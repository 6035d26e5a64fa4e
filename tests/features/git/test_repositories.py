"""Where repositories are stored, how long they exist, and that they run no code."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support.client import Pod, create_pod
from tests.support.git import Git, only_repository, repositories, url_of
from tests.support.git_requests import OPTIONS
from tests.support.server import ServerProcess, run_command, running_server
from tests.support.waiting import wait_until

pytestmark = pytest.mark.needs("git")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    """A server for one test."""
    with running_server(ServerProcess(tmp_path / "root", OPTIONS)) as running:
        yield running


@pytest.fixture
def work(owner: Git) -> Git:
    """A repository with one commit."""
    made = owner.new("work")
    made.commit("a", "1")
    return made


def delete(pod: Pod, name: str) -> None:
    with pod.owner() as client:
        assert client.delete(f"{pod.root}{name}").status == 204


def is_empty(owner: Git, url: str, name: str) -> bool:
    """Whether a clone has no commits."""
    clone = owner.cloned(url, name)
    return clone.ends("rev-parse", "HEAD^{commit}").code != 0


def test_a_repository_lives_as_long_as_its_container(
    owner: Git, work: Git, pod: Pod, server: ServerProcess
) -> None:
    url = url_of(pod, "private/notes/")
    work("push", "--quiet", url, "main")
    repository = only_repository(server.root)
    server.restart()
    assert owner.cloned(url, "clone").tip() == work.tip()
    delete(pod, "private/notes/")
    assert "not found" in owner.ends("clone", url, "gone").refused_with
    wait_until(lambda: not repository.exists(), "the removal of the repository")
    assert repositories(server.root) == []


def test_a_container_of_the_same_name_has_another_repository(
    owner: Git, work: Git, pod: Pod, server: ServerProcess
) -> None:
    url = url_of(pod, "private/notes/")
    work("push", "--quiet", url, "main")
    delete(pod, "private/notes/")
    with pod.owner() as client:
        link = '<http://www.w3.org/ns/ldp#BasicContainer>; rel="type"'
        assert (
            client.request("PUT", f"{pod.root}private/notes/", None, {"Link": link}).status == 201
        )
    assert is_empty(owner, url, "again")
    work("push", "--quiet", url, "main:other")
    assert owner.branches(url).keys() == {"HEAD", "refs/heads/other"}


def test_a_crash_brings_no_deleted_repository_back(
    owner: Git, work: Git, pod: Pod, server: ServerProcess, tmp_path: Path
) -> None:
    """As if the server had died after the container went and before its repository did."""
    url = url_of(pod, "private/notes/")
    work("push", "--quiet", url, "main")
    repository = only_repository(server.root)
    shutil.copytree(repository, tmp_path / "copy")
    delete(pod, "private/notes/")
    server.kill()
    shutil.rmtree(repository, ignore_errors=True)
    shutil.copytree(tmp_path / "copy", repository)
    server.start()
    with pod.owner() as client:
        assert client.put(f"{pod.root}private/notes/x", "1").status == 201
    assert is_empty(owner, url, "again")
    wait_until(lambda: not repository.exists(), "the removal of the repository")
    work("push", "--quiet", url, "main:other")
    assert owner.branches(url).keys() == {"HEAD", "refs/heads/other"}


def test_deleting_works_the_same_while_git_is_not_answered(
    owner: Git, work: Git, pod: Pod, server: ServerProcess
) -> None:
    url = url_of(pod, "private/notes/")
    work("push", "--quiet", url, "main")
    repository = only_repository(server.root)
    server.stop()
    server.options = ()
    server.start()
    assert repository.exists()
    delete(pod, "private/notes/")
    wait_until(lambda: not repository.exists(), "the removal of the repository")
    server.stop()
    server.options = OPTIONS
    server.start()
    work("push", "--quiet", url, "main:other")
    assert owner.branches(url).keys() == {"HEAD", "refs/heads/other"}


def test_only_empty_containers_are_deleted_and_others_keep_their_repository(
    owner: Git, work: Git, pod: Pod
) -> None:
    url = url_of(pod, "private/notes/")
    work("push", "--quiet", url, "main")
    with pod.owner() as client:
        assert client.put(f"{pod.root}private/notes/x", "1").status == 201
        assert client.delete(f"{pod.root}private/notes/").status == 409
    assert owner.cloned(url, "clone").tip() == work.tip()


def test_pushing_changes_no_resource(owner: Git, work: Git, pod: Pod) -> None:
    url = url_of(pod, "private/notes/")
    with pod.owner() as client:
        assert client.put(f"{pod.root}private/notes/x", "1").status == 201
        place = f"{pod.root}private/notes/"
        before = client.get(place)
        work("push", "--quiet", url, "main")
        after = client.get(place)
        assert (after.body, after.headers["etag"]) == (before.body, before.headers["etag"])
        assert client.get(f"{place}a").status == 404


def registered(server: ServerProcess, name: str) -> str:
    """An access token of a new account with a pod."""
    account = {"email": f"{name}@example.org", "password": "a long password"}
    typed = {"Content-Type": "application/json"}
    made = server.request("POST", "/.pods", json.dumps({"name": name, **account}), typed)
    assert made.status == 201, made.text
    answer = server.request("POST", "/idp/credentials", json.dumps(account), typed)
    assert answer.status == 200, answer.text
    return str(json.loads(answer.body)["access_token"])


def test_a_removed_pod_takes_its_repositories_along(tmp_path: Path, git: Git) -> None:
    options = (*OPTIONS, "--idp")
    with running_server(ServerProcess(tmp_path / "idp", options)) as server:
        for name in ("alice", "bob"):
            work = git.with_token(registered(server, name)).new(name)
            work.commit("a", name)
            work("push", "--quiet", f"{server.base_url}/{name}/private/notes", "main")
        removed = run_command("account", "delete", "alice", "--yes", "--root", str(server.root))
        assert removed.returncode == 0, removed.stderr
        server.restart()
        wait_until(lambda: len(repositories(server.root)) == 1, "the removal of alice's repository")
        left = only_repository(server.root)
        assert (left / "description").read_text() == "/bob/private/notes/\n"


def test_no_hook_runs(
    owner: Git, work: Git, pod: Pod, server: ServerProcess, tmp_path: Path
) -> None:
    """Whatever lies in a repository, and whatever it says where hooks are."""
    url = url_of(pod, "private/notes/")
    work("push", "--quiet", url, "main")
    repository = only_repository(server.root)
    mark = tmp_path / "ran"
    hooks = repository / "hooks"
    hooks.mkdir()
    for name in (
        *("pre-receive", "update", "post-receive", "post-update", "proc-receive"),
        *("reference-transaction", "pre-auto-gc", "push-to-checkout"),
    ):
        hook = hooks / name
        hook.write_text(f"#!/bin/sh\necho {name} >> {mark}\n")
        hook.chmod(0o755)
    with (repository / "config").open("a") as config:
        config.write(f"[core]\n\thooksPath = {hooks}\n")
    work.commit("b", "2")
    work("push", "--quiet", url, "main", "main:topic")
    work("push", "--quiet", url, ":topic")
    owner.cloned(url, "clone")
    assert not mark.exists()


def test_settings_of_this_machine_do_not_count(tmp_path: Path, git: Git) -> None:
    """Those of the account and of the system, and variables of the environment."""
    (tmp_path / ".gitconfig").write_text("[http]\n\treceivepack = false\n\tuploadpack = false\n")
    environment = {
        "HOME": str(tmp_path),
        "GIT_CONFIG_SYSTEM": str(tmp_path / ".gitconfig"),
        "GIT_CONFIG_PARAMETERS": "'http.receivepack'='false'",
        "GIT_DIR": str(tmp_path),
    }
    with running_server(
        ServerProcess(tmp_path / "root", OPTIONS, environment=environment)
    ) as server:
        pod = create_pod(server)
        work = git.with_token(pod.token).new("work")
        work.commit("a", "1")
        work("push", "--quiet", url_of(pod, "private/notes"), "main")


@pytest.mark.parametrize("pushes", [2, 6])
def test_first_pushes_at_once_make_one_repository(tmp_path: Path, git: Git, pushes: int) -> None:
    options = (*OPTIONS, "--workers", "2")
    with running_server(ServerProcess(tmp_path / "root", options)) as server:
        pod = create_pod(server)
        url = url_of(pod, "private/a/b/notes")
        owner = git.with_token(pod.token)
        works = [owner.new(f"work{number}") for number in range(pushes)]
        for number, work in enumerate(works):
            work.commit("a", str(number))
        with ThreadPoolExecutor(pushes) as threads:
            ended = threads.map(
                lambda pair: pair[1]("push", "--quiet", url, f"main:b{pair[0]}"), enumerate(works)
            )
            assert list(ended) == [""] * pushes
        said = owner.branches(url)
        assert {said[f"refs/heads/b{number}"] for number in range(pushes)} == {
            work.tip() for work in works
        }
        wait_until(lambda: len(repositories(server.root)) == 1, "the removal of what lost")
        assert said["HEAD"] in {work.tip() for work in works}
        Git(only_repository(server.root))("fsck", "--full", "--strict")


def test_of_two_concurrent_pushes_to_one_branch_one_succeeds(
    owner: Git, work: Git, pod: Pod
) -> None:
    url = url_of(pod, "private/notes/")
    work("push", "--quiet", url, "main")
    clones = [owner.cloned(url, f"clone{number}") for number in range(4)]
    for number, clone in enumerate(clones):
        clone.commit("a", f"mine {number}")
    with ThreadPoolExecutor(4) as threads:
        codes = list(threads.map(lambda clone: clone.ends("push").code, clones))
    assert codes.count(0) == 1
    assert owner.branches(url)["refs/heads/main"] == clones[codes.index(0)].tip()


def test_the_directories_are_for_this_account_only(
    work: Git, pod: Pod, server: ServerProcess
) -> None:
    work("push", "--quiet", url_of(pod, "private/notes/"), "main")
    place = server.root / "git"
    modes = [path.stat().st_mode & 0o777 for path in (place, only_repository(server.root))]
    assert modes == [0o700, 0o700]
    with contextlib.suppress(FileNotFoundError):
        assert not list((only_repository(server.root) / "hooks").iterdir())


def test_many_pushes_leave_few_packs(work: Git, pod: Pod, server: ServerProcess) -> None:
    """gc.autoPackLimit: they are joined in the background once there are more than fifty."""
    url = url_of(pod, "private/notes/")
    work("push", "--quiet", url, "main")
    repository = only_repository(server.root)
    held = Git(repository)
    for number in range(60):
        blob = held("hash-object", "-w", "--stdin", input_bytes=str(number).encode())
        packed = held("pack-objects", "objects/pack/pack", input_bytes=f"{blob}\n".encode())
        held("update-ref", f"refs/tags/t{number}", blob)
        held("prune-packed", "--quiet")
        assert packed
    assert len(list(repository.glob("objects/pack/*.pack"))) > 50
    work.commit("b", "2")
    work("push", "--quiet", url, "main")
    wait_until(lambda: len(list(repository.glob("objects/pack/*.pack"))) < 5, "one pack")


def test_a_push_states_nothing_about_a_webid(owner: Git, pod: Pod, work: Git) -> None:
    """What git stores is no resource, so that a pushed profile is nobody's, whatever its name."""
    stated = "<#me> <http://www.w3.org/ns/solid/terms#oidcIssuer> <https://evil.example/>."
    profile = owner.new("profile")
    for name in (".meta", ".acl", "index.ttl", "card"):
        profile.commit(name, stated)

    def state() -> list[tuple[int, bytes]]:
        with pod.owner() as client:
            targets = ("", ".meta", ".acl", "index.ttl", "card", "profile/card", "profile/.meta")
            answers = [client.get(f"{pod.root}{target}") for target in targets]
        return [(answer.status, answer.body) for answer in answers]

    before = state()
    for container in ("", "profile/"):
        profile("push", "--quiet", url_of(pod, container), "main")
    assert state() == before
    new = url_of(pod, "new/")
    profile("push", "--quiet", new, "main")
    with pod.owner() as client:
        assert b"evil.example" not in client.get(f"{pod.root}new/").body
