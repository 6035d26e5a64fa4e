"""Options, repositories and contents of the tests of git over HTTP."""

from __future__ import annotations

import random
from collections.abc import Callable

from tests.support.client import Pod
from tests.support.git import Git
from tests.support.server import ServerProcess

MIB = 1024 * 1024
OPTIONS = ("--git", "--pod-creations-per-hour", "0", "--invalid-credentials-per-minute", "0")
Start = Callable[..., ServerProcess]
"""Starts a server with further options."""


def noise(size_bytes: int) -> bytes:
    """What no compression makes smaller."""
    return random.Random(size_bytes).randbytes(size_bytes)


def new_work(git: Git, pod: Pod) -> Git:
    """A repository with one commit, and the credential of the pod's owner."""
    work = git.with_token(pod.token).new("work")
    work.commit("a", "1")
    return work
