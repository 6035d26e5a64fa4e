"""Git as people have it: the real program, with nothing of this machine's configuration."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.support.client import Client, Pod
from tests.support.nostr import NostrKey
from tests.support.processes import REPOSITORY
from tests.support.server import DEADLINE_S

NOTHING = "0" * 40
"""The name of no commit."""

HELPER = "tests.support.git_credential_nostr"
"""A module, and not a script: as that it would take its neighbours for the standard library."""


@dataclass(frozen=True)
class GitEnded:
    """How a command ended, and what it said."""

    code: int
    output: str
    errors: str

    @property
    def refused_with(self) -> str:
        """The errors of a command that failed."""
        assert self.code != 0, self.output + self.errors
        return self.errors


@dataclass(frozen=True)
class Git:
    """Runs git in one place; ``settings`` are given to each command."""

    place: Path
    settings: Sequence[str] = ()

    def ends(self, *arguments: str, input_bytes: bytes | None = None) -> GitEnded:
        """Run a command, however it ends."""
        ended = subprocess.run(
            self.command(*arguments),
            cwd=self.place,
            env=environment(),
            input=input_bytes,
            stdin=subprocess.DEVNULL if input_bytes is None else None,
            capture_output=True,
            timeout=DEADLINE_S,
            check=False,
        )
        return GitEnded(ended.returncode, ended.stdout.decode(), ended.stderr.decode())

    def __call__(self, *arguments: str, input_bytes: bytes | None = None) -> str:
        """Run a command that succeeds; its output."""
        ended = self.ends(*arguments, input_bytes=input_bytes)
        assert ended.code == 0, ended.output + ended.errors
        return ended.output.strip()

    def traced(self, trace: str, setting: str, *arguments: str) -> str:
        """What a command with one more setting says of itself, by a variable of git's."""
        ended = subprocess.run(
            Git(self.place, (*self.settings, setting)).command(*arguments),
            cwd=self.place,
            env={**environment(), trace: "1"},
            capture_output=True,
            timeout=DEADLINE_S,
            check=True,
        )
        return ended.stderr.decode()

    def bytes_of(self, *arguments: str, input_bytes: bytes) -> bytes:
        """The output of a command that is no text."""
        return subprocess.run(
            self.command(*arguments),
            cwd=self.place,
            env=environment(),
            input=input_bytes,
            capture_output=True,
            timeout=DEADLINE_S,
            check=True,
        ).stdout

    def command(self, *arguments: str) -> list[str]:
        pairs = [part for setting in self.settings for part in ("-c", setting)]
        return ["git", *pairs, *arguments]

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        """Start a command and wait for nothing."""
        return subprocess.Popen(
            self.command(*arguments),
            cwd=self.place,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    # --- what tests do often ------------------------------------------------------------------

    def at(self, name: str) -> Git:
        """Git in a directory of this one."""
        return Git(self.place / name, self.settings)

    def new(self, name: str, *, branch: str = "main") -> Git:
        """A new repository with nothing in it."""
        self("init", "--quiet", f"--initial-branch={branch}", name)
        return self.at(name)

    def cloned(self, url: str, name: str, *options: str) -> Git:
        self("clone", "--quiet", *options, url, name)
        return self.at(name)

    def commit(self, name: str, content: str | bytes = "", *, message: str = "") -> str:
        """Commit one document; the commit's name."""
        path = self.place / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        self("add", name)
        self("commit", "--quiet", "--message", message or f"Change {name}")
        return self.tip()

    def tip(self, name: str = "HEAD") -> str:
        return self("rev-parse", name)

    def branches(self, url: str) -> dict[str, str]:
        """The branches and tags that a repository says it has, with what HEAD is."""
        lines = self("ls-remote", "--symref", url).splitlines()
        pairs = [line.split("\t") for line in lines if not line.startswith("ref: ")]
        return {name: value for value, name in pairs}

    def with_token(self, token: str) -> Git:
        """With the credential in every request."""
        return Git(self.place, (*self.settings, f"http.extraHeader=Authorization: Bearer {token}"))

    def with_helper(self, key: NostrKey, *, use_path: bool) -> Git:
        """With the credential that a helper makes when it is asked."""
        helper = f"!{sys.executable} -m {HELPER} {key.secret:064x}"
        words = "true" if use_path else "false"
        return Git(
            self.place,
            (*self.settings, f"credential.helper={helper}", f"credential.useHttpPath={words}"),
        )


def push_of(work: Git, *, old: str, ref: str = "refs/heads/main") -> bytes:
    """What git sends to make a branch what it is here (gitprotocol-pack)."""
    new = work.tip()
    command = f"{old} {new} {ref}\0 report-status side-band-64k agent=test".encode()
    revisions = new if old == NOTHING else f"{new}\n^{old}"
    packed = work.bytes_of("pack-objects", "--revs", "--stdout", input_bytes=revisions.encode())
    return packet(command) + b"0000" + packed


def packet(content: bytes) -> bytes:
    """A line of the protocol (gitprotocol-common, pkt-line)."""
    return b"%04x%s" % (len(content) + 4, content)


def environment() -> dict[str, str]:
    """What git sees of this machine, and the author of all commits."""
    return {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(REPOSITORY),
        "HOME": "/nonexistent",
        "LC_ALL": "C",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_AUTHOR_NAME": "A",
        "GIT_AUTHOR_EMAIL": "a@example.org",
        "GIT_COMMITTER_NAME": "A",
        "GIT_COMMITTER_EMAIL": "a@example.org",
    }


def url_of(pod: Pod, name: str) -> str:
    """The URL of a container of a pod, as people give it to git."""
    return f"{pod.server.base_url}{pod.root}{name}"


def publish(pod: Pod, name: str, *modes: str) -> None:
    """Let everybody do so much with a container of a pod, which is made if it is missing."""
    container = f"{pod.root}{name}"
    with pod.owner() as owner:
        link = '<http://www.w3.org/ns/ldp#BasicContainer>; rel="type"'
        assert owner.request("PUT", container, None, {"Link": link}).status in {201, 204}
        put_acl(owner, pod, container, *modes)


def put_acl(owner: Client, pod: Pod, container: str, *modes: str) -> None:
    rules = pod.acl(container, public=modes)
    assert owner.put(f"{container}.acl", rules, "text/turtle").status in {201, 204}


def repositories(root: Path) -> list[Path]:
    """The repositories of containers below a data root."""
    return [path for path in (root / "git").glob("*.git") if path.name != "empty.git"]


def only_repository(root: Path) -> Path:
    [repository] = repositories(root)
    return repository
