"""Git repositories leave with a pod and come back, and follow when the pod gets another name.

The judge is git itself: branches, tags and commits are the same, and it finds nothing wrong.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.client import Client, Pod, create_pod
from tests.support.git import Git, url_of
from tests.support.git_requests import Start, new_work, noise
from tests.support.server import ServerProcess, run_command

BUNDLE = "repository.bundle"
MANIFEST = "ro-crate-metadata.json"


def run(
    server: ServerProcess, *arguments: str, exit_code: int = 0
) -> subprocess.CompletedProcess[str]:
    ended = run_command(*arguments, "--root", str(server.root))
    assert ended.returncode == exit_code, ended.stderr
    return ended


def exported(pod: Pod, folder: Path) -> Path:
    file = folder / "pod.zip"
    file.unlink(missing_ok=True)
    run(pod.server, "pod", "export", pod.name, str(file))
    return file


def imported(pod: Pod, file: Path, name: str, **options: int) -> Git:
    """The pod, and git with a token of the new one."""
    run(pod.server, "pod", "import", str(file), "--as", name, **options)
    token = run(pod.server, "token", "create", name).stdout.strip()
    return Git(file.parent).with_token(token)


def at(server: ServerProcess, path: str) -> str:
    return f"{server.base_url}/{path}"


def named(pod: Pod, suffix: str) -> str:
    return f"{pod.name}-{suffix}"


# --- whatever is in a repository ----------------------------------------------------------------

BRANCHES = ("main", "master", "topic", "a/b")
Commit = tuple[str, str | None, bytes, bool]
"""The branch, a branch that is merged into it, the content of a file, and whether it is tagged."""
COMMITS = st.lists(
    st.tuples(
        st.sampled_from(BRANCHES),
        st.none() | st.sampled_from(BRANCHES),
        st.binary(max_size=200),
        st.booleans(),
    ),
    min_size=1,
    max_size=8,
)


def history(commits: Sequence[Commit]) -> bytes:
    """The commits, as git fast-import reads them."""
    stream, there = b"", set[str]()
    for number, (branch, merged, few, is_tagged) in enumerate(commits):
        content = few * (1000 if number % 4 == 1 else 1)
        who = f"A <a@example.org> {1_700_000_000 + number} +0100\n"
        stream += f"commit refs/heads/{branch}\nmark :{number + 1}\ncommitter {who}".encode()
        stream += b"data 1\nx\n"
        if merged in there and merged != branch and branch in there:
            stream += f"merge refs/heads/{merged}\n".encode()
        mode = "100755" if number % 2 else "100644"
        stream += f"M {mode} inline file-{number % 3}\ndata {len(content)}\n".encode()
        stream += content + b"\n"
        if is_tagged:
            stream += f"tag v{number}\nfrom :{number + 1}\ntagger {who}data 1\nt\n".encode()
        there.add(branch)
    return stream


@given(commits=COMMITS)
@settings(
    max_examples=3,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_whatever_is_in_a_repository_leaves_and_comes_back(
    commits: Sequence[Commit], server: ServerProcess, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder, pod = tmp_path_factory.mktemp("moving"), create_pod(server)
    git = Git(folder).with_token(pod.token)
    work = git.new("work")
    work("fast-import", "--quiet", input_bytes=history(commits))
    name = "private/notes"
    work("push", "--quiet", url_of(pod, name), "refs/*:refs/*")
    before = git.branches(url_of(pod, name))
    file = exported(pod, folder)
    subprocess.run(["unzip", "-q", str(file)], cwd=folder, check=True)
    bundle = folder / pod.name / name / BUNDLE
    git.cloned(str(bundle), "bundled", "--mirror")
    assert git.branches(str(folder / "bundled")) == before
    copy = named(pod, "copy")
    there = imported(pod, file, copy)
    url = at(pod.server, f"{copy}/{name}")
    assert there.branches(url) == before
    clone = there.cloned(url, "mirror", "--mirror")
    clone("fsck", "--full", "--strict")


# --- the archive --------------------------------------------------------------------------------


@pytest.fixture
def pushed(pod: Pod, git: Git) -> Git:
    work = new_work(git, pod)
    work("push", "--quiet", url_of(pod, "private/notes"), "main")
    return work


def test_people_go_on_pushing_to_what_was_imported(pod: Pod, pushed: Git, tmp_path: Path) -> None:
    copy = named(pod, "copy")
    there = imported(pod, exported(pod, tmp_path), copy).at("work")
    tip = there.commit("b", "2")
    url = at(pod.server, f"{copy}/private/notes")
    there("push", "--quiet", url, "main")
    assert there.branches(url)["HEAD"] == tip
    assert pushed.branches(url_of(pod, "private/notes"))["HEAD"] != tip
    assert run(pod.server, "check").stdout.startswith("0 findings.\n")


def test_a_repository_in_which_nothing_is_does_not_disturb(
    pod: Pod, pushed: Git, tmp_path: Path
) -> None:
    pushed("push", "--quiet", url_of(pod, "private/notes"), ":main")
    file = exported(pod, tmp_path)
    assert not [name for name in zipfile.ZipFile(file).namelist() if name.endswith(BUNDLE)]
    imported(pod, file, named(pod, "copy"))


def changed(file: Path, change: Callable[[bytes], bytes], *, hashed: bool = True) -> Path:
    """The archive with another bundle, which has the hash that the manifest says."""
    other = file.with_name("changed.zip")
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(other, "w") as new:
        contents = {name: old.read(name) for name in old.namelist()}
        (name,) = (each for each in contents if each.endswith(BUNDLE))
        contents[name] = change(contents[name])
        manifest = json.loads(contents[MANIFEST])
        for each in manifest["@graph"]:
            if each["@id"] == name and hashed:
                each["sha256"] = hashlib.sha256(contents[name]).hexdigest()
                each["contentSize"] = str(len(contents[name]))
        contents[MANIFEST] = json.dumps(manifest).encode()
        for each, content in contents.items():
            new.writestr(each, content)
    return other


def directories(server: ServerProcess) -> set[str]:
    return {path.name for path in (server.root / "git").iterdir()}


@pytest.mark.parametrize(
    ("change", "hashed"),
    [
        (lambda _: b"# v2 git bundle\n", True),
        (lambda bundle: bundle[:-30], True),
        (lambda bundle: bundle[:-30] + b"x" * 30, True),
        (lambda bundle: bundle[:-1] + b"x", False),
        (lambda bundle: bundle.replace(b" refs/heads/main\n", b" refs/../../x/y\n"), True),
    ],
    ids=["without a pack", "truncated", "damaged", "with another hash", "with an odd reference"],
)
def test_a_bundle_that_git_refuses_is_reported_and_the_rest_is_imported(
    pod: Pod, pushed: Git, tmp_path: Path, change: Callable[[bytes], bytes], hashed: bool
) -> None:
    file = changed(exported(pod, tmp_path), change, hashed=hashed)
    before, copy = directories(pod.server), named(pod, "copy")
    ended = run(pod.server, "pod", "import", str(file), "--as", copy, exit_code=1)
    assert f"Not imported: /{copy}/private/notes/: Its git repository was not" in ended.stderr
    assert directories(pod.server) == before
    token = run(pod.server, "token", "create", copy).stdout.strip()
    with Client(pod.server, token=token) as owner:
        assert owner.get(f"/{copy}/private/notes/").status == 200


def test_an_import_that_fails_leaves_no_repository_and_can_be_repeated(
    pod: Pod, pushed: Git, tmp_path: Path
) -> None:
    file, copy = exported(pod, tmp_path), named(pod, "copy")
    before = directories(pod.server)
    config = tmp_path / "podstead.toml"
    config.write_text("quota-bytes = 1\n")
    command = ("pod", "import", str(file), "--as", copy, "--config", str(config))
    assert "quota" in run(pod.server, *command, exit_code=1).stderr
    assert directories(pod.server) == before
    there = imported(pod, file, copy)
    tips = pushed.branches(url_of(pod, "private/notes"))
    assert there.branches(at(pod.server, f"{copy}/private/notes")) == tips


# --- another name -------------------------------------------------------------------------------


def test_repositories_follow_when_a_pod_gets_another_name(start: Start, git: Git) -> None:
    server = start()
    pod = create_pod(server)
    work = new_work(git, pod)
    work.commit("noise", noise(100_000))
    work("push", "--quiet", url_of(pod, "private/notes"), "main")
    tips = work.branches(url_of(pod, "private/notes"))
    before = json.loads(run(server, "pod", "size", pod.name, "--json").stdout)
    renamed = named(pod, "renamed")
    run(server, "pod", "rename", pod.name, renamed, "--yes")
    after = json.loads(run(server, "pod", "size", renamed, "--json").stdout)
    assert abs(after["used_bytes"] - before["used_bytes"]) < 10_000, "it is charged as before"
    token = run(server, "token", "create", renamed).stdout.strip()
    owner, url = Git(work.place).with_token(token), at(server, f"{renamed}/private/notes")
    assert owner.branches(url) == tips
    server.restart()  # which sweeps what belongs to no container
    assert owner.branches(url) == tips
    tip = owner.commit("b", "2")
    owner("push", "--quiet", url, "main")
    assert owner.branches(url)["HEAD"] == tip
    assert run(server, "check").stdout.startswith("0 findings.\n")
    assert owner.ends("ls-remote", url_of(pod, "private/notes")).code != 0
