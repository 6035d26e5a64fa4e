"""A push whose sender loses the right to write while it arrives changes no reference."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.features.git.test_trouble import HELD_BACK, OpenPush, half_pushed, is_coming_in
from tests.support.client import Pod, create_pod
from tests.support.git import Git, only_repository, publish, push_of, put_acl, url_of
from tests.support.git_requests import MIB, OPTIONS, new_work, noise
from tests.support.server import ServerProcess, running_server
from tests.support.waiting import wait_until

pytestmark = pytest.mark.needs("git")

NAME = "private/notes"


@pytest.fixture
def pod(tmp_path: Path) -> Iterator[Pod]:
    """A pod on a server of this test's own."""
    with running_server(ServerProcess(tmp_path / "root", OPTIONS)) as running:
        yield create_pod(running)


def everybody_may_push(pod: Pod) -> None:
    publish(pod, f"{NAME}/", "Read", "Write")


def nobody_else_may_push(pod: Pod) -> None:
    with pod.owner() as client:
        put_acl(client, pod, f"{pod.root}{NAME}/", "Read")


def container_is_made_anew(pod: Pod) -> None:
    with pod.owner() as client:
        assert client.delete(f"{pod.root}{NAME}/").status == 204
    everybody_may_push(pod)


def pushed_by_another(pod: Pod, git: Git) -> tuple[OpenPush, bytes, str]:
    """Somebody else's push but for its last bytes; those, and the commit that it would replace."""
    everybody_may_push(pod)
    work = new_work(git, pod)
    work("push", "--quiet", url_of(pod, NAME), "main")
    before = work.tip()
    work.commit("large", noise(2 * MIB))
    other = create_pod(pod.server)
    push = half_pushed(pod, NAME, work, old=before, token=other.token)
    return push, push_of(work, old=before)[-HELD_BACK:], before


@pytest.mark.parametrize(
    ("meanwhile", "status"), [(nobody_else_may_push, 403), (container_is_made_anew, 409)]
)
def test_a_push_is_refused_if_the_right_to_write_ends_while_it_arrives(
    pod: Pod, git: Git, meanwhile: Callable[[Pod], None], status: int
) -> None:
    push, rest, before = pushed_by_another(pod, git)
    repository = only_repository(pod.server.root)
    meanwhile(pod)
    assert push.finish(rest) == status
    wait_until(lambda: not is_coming_in(repository), "the removal of what came in")
    if repository.exists():
        assert Git(repository).tip("refs/heads/main") == before


def test_a_push_whose_sender_keeps_the_right_to_write_is_taken(pod: Pod, git: Git) -> None:
    push, rest, before = pushed_by_another(pod, git)
    assert push.finish(rest) == 200
    assert Git(only_repository(pod.server.root)).tip("refs/heads/main") != before
