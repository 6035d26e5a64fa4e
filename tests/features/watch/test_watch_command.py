"""What ``podstead watch`` refuses before it asks anybody, and how a change is shown."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from podstead.cli import main
from podstead.features.watch.changes import ReceivedChange, read_json
from podstead.features.watch.command import _as_json, _as_text

CONTAINER = "https://pods.example/alice/notes/"


@pytest.fixture(autouse=True)
def _no_token_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PODSTEAD_TOKEN", raising=False)


def refusal(*arguments: str) -> tuple[int, str]:
    """The exit code, and the last line on standard error."""
    result = CliRunner().invoke(main, ["watch", *arguments])
    assert result.stdout == ""
    return result.exit_code, result.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    "url",
    [
        "pods.example/alice/",
        "http://pods.example/alice/",
        "https://alice:secret@pods.example/",
        "ftp://pods.example/",
        "https://pods.example:99999/",
        "https:///alice/",
        "https://pods.example/a b",
        "",
    ],
)
def test_what_is_no_address_of_a_resource_ends_with_2(url: str) -> None:
    code, sentence = refusal(url)
    assert code == 2
    assert sentence.startswith(f"Error: Cannot watch '{url}': it must be the absolute URL")


@pytest.mark.parametrize("token", ["two words", "line\nbreak", "ü", ""])
def test_what_no_token_can_be_is_refused_before_anything_is_sent(token: str) -> None:
    code, sentence = refusal("http://localhost:1/x", "--token", token)
    assert code == 2
    assert sentence.startswith("Error: The token is not valid")


@pytest.mark.parametrize("count", ["0", "-1", "many"])
def test_an_invalid_count_is_refused(count: str) -> None:
    assert refusal("http://localhost:1/x", "--count", count)[0] == 2


def change(activity: str, resource: str, published: str = "2026-11-21T10:00:00Z") -> ReceivedChange:
    said = {"type": activity, "object": resource, "published": published}
    return read_json(json.dumps(said).encode())


@pytest.mark.parametrize(
    ("watched", "resource", "shown"),
    [
        (CONTAINER, f"{CONTAINER}a.ttl", "a.ttl"),
        (CONTAINER, f"{CONTAINER}box/", "box/"),
        (CONTAINER, CONTAINER, "./"),
        (f"{CONTAINER}a.ttl", f"{CONTAINER}a.ttl", "a.ttl"),
        (f"{CONTAINER}a.ttl", f"{CONTAINER}b.ttl", f"{CONTAINER}b.ttl"),
        (CONTAINER, "https://other.example/x", "https://other.example/x"),
    ],
)
def test_a_resource_is_shown_as_it_is_seen_from_what_is_watched(
    watched: str, resource: str, shown: str
) -> None:
    assert _as_text(change("Update", resource), watched).split("  ")[-1] == shown


def test_a_server_cannot_steer_the_terminal() -> None:
    hostile = change("Up\x1b[2Jdate", "https://pods.example/\x1b]0;title\x07\n\x9bx")
    for line in (_as_text(hostile, CONTAINER), _as_json(hostile, CONTAINER)):
        assert line.isprintable()
        assert "\\x1b" in line or "\\u001b" in line


def test_json_is_one_line_that_says_what_the_message_said() -> None:
    said = {
        "type": "Update",
        "object": CONTAINER,
        "note": "line\nbreak\u2028ü",
        "n": [1, {"a": None}],
    }
    line = _as_json(read_json(json.dumps(said, indent=2).encode()), CONTAINER)
    assert line.splitlines() == [line]
    assert json.loads(line) == said
