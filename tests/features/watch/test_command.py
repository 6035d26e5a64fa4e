"""``podstead watch``: the command, against a server process. Changes are made by HTTP."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.client import Pod, create_pod
from tests.support.listeners import CERTIFICATE, KEY
from tests.support.processes import REPOSITORY
from tests.support.server import (
    DEADLINE_S,
    ServerProcess,
    run_command,
    running_server,
    server_fixture,
)
from tests.support.watching import LOST, watching

CONTEXT = "https://www.w3.org/ns/solid/notification/v1"
JSON_LD = "application/ld+json"
MAX_CHANNELS = 2
LINE = re.compile(r"(\d{4}-\d{2}-\d{2} \d{2}:\d{2}:\d{2})  (\S+) +(\S+)")


server = server_fixture(["--channels-per-agent", str(MAX_CHANNELS)])


@pytest.fixture
def pod(server: ServerProcess) -> Pod:
    return create_pod(server)


def url_of(pod: Pod, path: str) -> str:
    return f"{pod.server.base_url}{pod.root}{path}"


def put(pod: Pod, path: str, content: str) -> None:
    with pod.owner() as owner:
        assert owner.put(f"{pod.root}{path}", content).status in {201, 204}


def delete(pod: Pod, path: str) -> None:
    with pod.owner() as owner:
        assert owner.delete(f"{pod.root}{path}").status == 204


def told(line: str | None) -> tuple[str, str]:
    """Activity and object of a line for people."""
    assert line is not None
    matched = LINE.fullmatch(line)
    assert matched is not None, line
    return matched[2], matched[3]


def assert_no_channels_are_left(pod: Pod) -> None:
    """N-10, N-31: the pod's owner may have as many at a time as can be made now."""
    service = "/.notifications/WebSocketChannel2023/"
    wanted = {"@context": CONTEXT, "type": "WebSocketChannel2023", "topic": url_of(pod, "")}
    with pod.owner() as owner:
        statuses = [
            owner.request("POST", service, json.dumps(wanted), {"Content-Type": JSON_LD}).status
            for _ in range(MAX_CHANNELS + 1)
        ]
    assert statuses == [*[200] * MAX_CHANNELS, 429]


def test_each_change_of_a_container_is_a_line_with_the_name_of_the_member(pod: Pod) -> None:
    """N-17: one line for each member that comes or goes, seen from the container."""
    with watching(url_of(pod, "private/"), token=pod.token) as watch:
        put(pod, "private/new.txt", "one")
        put(pod, "private/box/inner.txt", "two")
        delete(pod, "private/new.txt")
        lines = [told(watch.lines.next()) for _ in range(3)]
    assert lines == [("Add", "new.txt"), ("Add", "box/"), ("Remove", "new.txt")]


def test_each_change_of_a_resource_is_a_line_with_its_name(pod: Pod) -> None:
    put(pod, "private/doc.txt", "one")
    with watching(url_of(pod, "private/doc.txt"), token=pod.token) as watch:
        put(pod, "private/doc.txt", "two")
        delete(pod, "private/doc.txt")
        put(pod, "private/doc.txt", "three")
        lines = [told(watch.lines.next()) for _ in range(3)]
    assert lines == [("Update", "doc.txt"), ("Delete", "doc.txt"), ("Create", "doc.txt")]


def test_times_are_those_of_the_place_where_it_runs(pod: Pod) -> None:
    url = url_of(pod, "private/")
    with (
        watching(url, token=pod.token, environment={"TZ": "XXX-10:00"}) as east,
        watching(url, "--json", token=pod.token) as exact,
    ):
        put(pod, "private/new.txt", "one")
        message = json.loads(exact.lines.next() or "")
        shown = LINE.fullmatch(east.lines.next() or "")
    assert shown is not None
    hour = (int(message["published"][11:13]) + 10) % 24
    assert shown[1][11:] == f"{hour:02}{message['published'][13:19]}"


def test_programs_get_each_message_as_an_object_on_a_line(pod: Pod) -> None:
    url = url_of(pod, "private/")
    with watching(url, "--json", "--count", "2", token=pod.token) as watch:
        put(pod, "private/new.txt", "one")
        delete(pod, "private/new.txt")
        messages = [json.loads(line) for line in watch.lines.rest()]
        assert watch.wait() == 0
    assert [message["type"] for message in messages] == ["Add", "Remove"]
    assert {message["object"] for message in messages} == {f"{url}new.txt"}
    assert {message["target"] for message in messages} == {url}
    assert all(message["id"].startswith("urn:uuid:") for message in messages)


def test_it_ends_with_0_after_so_many_changes(pod: Pod) -> None:
    with watching(url_of(pod, "private/"), "--count", "2", token=pod.token) as watch:
        for name in "abc":
            put(pod, f"private/{name}", name)
        assert [told(line) for line in watch.lines.rest()] == [("Add", "a"), ("Add", "b")]
        assert watch.wait() == 0
        assert watch.notes.rest() == []
    assert_no_channels_are_left(pod)


def test_changes_while_the_server_is_away_are_sent_once_and_in_order(pod: Pod) -> None:
    """N-23: it comes back with the id of the last event."""
    with watching(url_of(pod, "private/"), token=pod.token) as watch:
        put(pod, "private/before", "x")
        assert told(watch.lines.next()) == ("Add", "before")
        pod.server.restart()
        for number in range(20):
            put(pod, f"private/after-{number}", "x")
        delete(pod, "private/before")
        lines = [told(watch.lines.next()) for _ in range(21)]
        assert watch.notes.next() == LOST
        assert watch.notes.next() == "Connected again."
        put(pod, "private/last", "x")
        assert told(watch.lines.next()) == ("Add", "last")
    assert lines == [
        *(("Add", f"after-{number}") for number in range(20)),
        ("Remove", "before"),
    ]


def test_a_server_that_is_killed_loses_nothing(pod: Pod) -> None:
    with watching(url_of(pod, "private/"), token=pod.token) as watch:
        put(pod, "private/before", "x")
        pod.server.kill()
        pod.server.start()
        put(pod, "private/after", "x")
        assert [told(watch.lines.next()) for _ in range(2)] == [("Add", "before"), ("Add", "after")]


def test_it_ends_with_a_sentence_when_it_may_not_be_read_any_more(pod: Pod) -> None:
    """N-30."""
    url = url_of(pod, "public/")
    with watching(url) as watch:
        put(pod, "public/one", "x")
        assert told(watch.lines.next()) == ("Add", "one")
        with pod.owner() as owner:
            rules = pod.acl(f"{pod.root}public/")
            assert owner.put(f"{pod.root}public/.acl", rules, "text/turtle").status in {201, 204}
        put(pod, "public/secret", "x")
        assert watch.wait() == 1
        assert watch.lines.rest() == []
        expected = f"Error: You may no longer read {url}: access was revoked"
        assert watch.notes.until("Error").startswith(expected)


@pytest.mark.parametrize(("number", "exit_code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_it_without_a_word(pod: Pod, number: signal.Signals, exit_code: int) -> None:
    with watching(url_of(pod, "private/"), token=pod.token) as watch:
        watch.signal(number)
        assert watch.wait() == exit_code
        assert watch.lines.rest() == []
        assert watch.notes.rest() == []
    assert_no_channels_are_left(pod)


def test_a_signal_ends_it_also_while_the_server_is_away(pod: Pod) -> None:
    with watching(url_of(pod, "private/"), token=pod.token) as watch:
        pod.server.stop()
        watch.notes.until(LOST)
        watch.signal(signal.SIGINT)
        assert watch.wait() == 130
        pod.server.start()


def test_it_ends_when_nobody_reads_its_output_any_more(pod: Pod) -> None:
    """Nothing has to change for that: it notices that the pipe is closed."""
    url = url_of(pod, "private/")
    command = [sys.executable, "-m", "podstead.cli", "watch", url, "--token", pod.token]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=REPOSITORY
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stderr.readline().startswith("Watching ")
        process.stdout.close()
        assert process.wait(DEADLINE_S) == 0
        assert process.stderr.read() == ""
        assert_no_channels_are_left(pod)


def test_it_ends_when_what_it_writes_to_is_closed_and_no_pipe(pod: Pod) -> None:
    """That is noticed with the next change."""
    url = url_of(pod, "private/")
    command = [sys.executable, "-m", "podstead.cli", "watch", url, "--token", pod.token]
    ours, theirs = socket.socketpair()
    with (
        theirs,
        subprocess.Popen(
            command, stdout=theirs.fileno(), stderr=subprocess.PIPE, text=True, cwd=REPOSITORY
        ) as process,
    ):
        assert process.stderr is not None
        assert process.stderr.readline().startswith("Watching ")
        ours.close()
        put(pod, "private/new", "x")
        assert process.wait(DEADLINE_S) == 0
        assert process.stderr.read() == ""
    assert_no_channels_are_left(pod)


def test_lines_come_one_by_one_also_through_a_pipe(pod: Pod) -> None:
    """`| head -n 1` prints the first change when it happens, and then both end."""
    command = f"{sys.executable} -m podstead.cli watch {url_of(pod, 'private/')} | head -n 1"
    with subprocess.Popen(
        ["bash", "-o", "pipefail", "-c", command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=REPOSITORY,
        env={**os.environ, "PODSTEAD_TOKEN": pod.token},
    ) as shell:
        assert shell.stdout is not None
        assert shell.stderr is not None
        assert shell.stderr.readline().startswith("Watching ")
        put(pod, "private/first", "x")
        assert told(shell.stdout.read().rstrip("\n")) == ("Add", "first")
        assert shell.wait(DEADLINE_S) == 0
        assert shell.stderr.read() == ""
    assert_no_channels_are_left(pod)


def refusal(*arguments: str, token: str | None = None) -> tuple[int, str]:
    """The exit code, and the last line on standard error."""
    variables = {} if token is None else {"PODSTEAD_TOKEN": token}
    ended = run_command("watch", *arguments, environment=variables)
    assert ended.stdout == ""
    assert "Traceback" not in ended.stderr
    return ended.returncode, ended.stderr.splitlines()[-1]


def test_without_a_token_what_is_private_is_refused_with_advice(pod: Pod) -> None:
    url = url_of(pod, "private/")
    expected = f"Error: {url} is not public. Supply a token with --token or in PODSTEAD_TOKEN."
    assert refusal(url) == (1, expected)


def test_a_rejected_token_is_distinguished_from_none(pod: Pod) -> None:
    url = url_of(pod, "private/")
    code, sentence = refusal(url, token="x" * 20)
    assert code == 1
    assert sentence == f"Error: The server rejected the token for {url}. It may have expired."


def test_a_token_without_read_access_is_distinguished_too(pod: Pod) -> None:
    url = url_of(pod, "private/")
    other = create_pod(pod.server)
    assert refusal(url, token=other.token) == (
        1,
        f"Error: The agent of the token may not read {url}.",
    )


def test_a_missing_resource_is_reported_with_advice(pod: Pod) -> None:
    url = url_of(pod, "private/nothing")
    code, sentence = refusal(url, token=pod.token)
    assert code == 1
    assert sentence.startswith(f"Error: There is nothing at {url}. Check its spelling")


def test_a_server_that_is_down_or_unknown_is_named() -> None:
    assert refusal("http://localhost:1/x") == (1, "Error: No server is listening at localhost:1.")
    code, sentence = refusal("https://pods.invalid/x")
    assert code == 1
    assert sentence.startswith("Error: Cannot resolve pods.invalid: ")


def test_a_server_without_tls_is_recognized(pod: Pod) -> None:
    url = url_of(pod, "private/").replace("http:", "https:")
    code, sentence = refusal(url)
    assert code == 1
    assert "does not speak TLS on that port" in sentence


def test_a_certificate_is_checked_and_an_own_authority_can_be_named(tmp_path: Path) -> None:
    options = ["--ssl-cert", str(CERTIFICATE), "--ssl-key", str(KEY)]
    tls = ssl.create_default_context(cafile=str(CERTIFICATE))
    with running_server(ServerProcess(tmp_path / "root", options, tls=tls)) as server:
        pod = create_pod(server)
        url = url_of(pod, "private/")
        code, sentence = refusal(url, token=pod.token)
        assert code == 1
        assert sentence.startswith(f"Error: The certificate of localhost:{server.port} is not tru")
        trusted = {"SSL_CERT_FILE": str(CERTIFICATE)}
        with watching(url, token=pod.token, environment=trusted) as watch:
            put(pod, "private/new", "x")
            assert told(watch.lines.next()) == ("Add", "new")
