"""A server of two workers sends mail: through a real mail server, and into files."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.support import mail
from tests.support.commands import invoke
from tests.support.engine import engine_environment
from tests.support.mail import MailServer, Received, running_mail_server
from tests.support.peer import TLS_FOLDER
from tests.support.processes import clean_environment, run_process
from tests.support.server import DEADLINE_S, ServerProcess, running_server
from tests.support.waiting import wait_until

JSON = {"Content-Type": "application/json"}
PASSWORD = "a few words in a row"


@pytest.fixture
def mail_server() -> Iterator[MailServer]:
    with running_mail_server(TLS_FOLDER / "certificate.pem", TLS_FOLDER / "key.pem") as server:
        yield server


def server_with(root: Path, destination: str) -> ServerProcess:
    trusted = str(TLS_FOLDER / "authority.pem")
    environment = {"PODSTEAD_MAIL": destination, "SSL_CERT_FILE": trusted}
    return ServerProcess(root, options=["--idp", "--workers", "2"], environment=environment)


def smtp_url(port: int) -> str:
    user = f"{mail.USER}:{quote(mail.PASSWORD, safe='')}"
    return f"smtp://{user}@localhost:{port}?from={mail.SENDER}"


def register(server: ServerProcess, name: str) -> None:
    sent = {"name": name, "email": f"{name}@example.org", "password": PASSWORD}
    assert server.request("POST", "/.pods", json.dumps(sent), JSON).status == 201


def test_each_message_is_sent_once_and_its_link_works(
    tmp_path: Path, mail_server: MailServer
) -> None:
    with running_server(server_with(tmp_path / "root", smtp_url(mail_server.port))) as server:
        names = [f"person-{number}" for number in range(5)]
        for name in names:
            register(server, name)
        received = [mail_server.next() for _ in names]
        assert sorted(each.recipient for each in received) == [
            f"{name}@example.org" for name in names
        ]
        assert mail_server.was_encrypted == [True] * len(names)
        page = server.get(received[0].link, {"Accept": "text/html"})
        assert received[0].recipient in page.text
        assert mail.PASSWORD not in server.errors
    assert mail_server.arrived.empty()


def test_what_was_queued_while_no_server_ran_is_sent_when_one_does(tmp_path: Path) -> None:
    """The queue is in the data root."""
    folder, root = tmp_path / "mail", tmp_path / "root"
    with running_server(server_with(root, f"file:{folder}")) as server:
        port = server.port
    made = invoke(
        *(root, "account", "create", "alice", "--email", "alice@example.org"),
        typed=f"{PASSWORD}\n",
        PODSTEAD_MAIL="console",
        PODSTEAD_IDP="true",
    )
    assert made.exit_code == 0, made.output
    assert not folder.exists()
    again = server_with(root, f"file:{folder}")
    again.port = port
    with running_server(again):
        wait_until(lambda: any(folder.glob("*.eml")), "the message")


def test_a_folder_gets_a_file_for_each_message(tmp_path: Path) -> None:
    folder = tmp_path / "mail"
    with running_server(server_with(tmp_path / "root", f"file:{folder}")) as server:
        register(server, "alice")
        wait_until(lambda: any(folder.glob("*.eml")), "the message")
        [path] = folder.glob("*.eml")
        assert path.stat().st_mode & 0o777 == 0o600
        parsed = message_from_bytes(path.read_bytes(), policy=policy.default)
        assert isinstance(parsed, EmailMessage)
        assert Received("alice@example.org", parsed).link.startswith("/.pages/verify/")


def test_the_console_gets_the_text(tmp_path: Path) -> None:
    with running_server(server_with(tmp_path / "root", "console")) as server:
        register(server, "alice")
        wait_until(lambda: "/.pages/verify/" in server.errors, "the message")
        assert "--- Mail to alice@example.org: Confirm your e-mail address" in server.errors


def test_doctor_says_whether_the_mail_server_takes_messages(
    tmp_path: Path, mail_server: MailServer
) -> None:
    trusted = str(TLS_FOLDER / "authority.pem")
    with running_server(server_with(tmp_path / "root", "console")) as server:
        found = [
            diagnosed(server, smtp_url(mail_server.port), trusted),
            diagnosed(server, smtp_url(mail_server.port), ""),
            diagnosed(server, smtp_url(mail_server.port).replace(":p%40ss", ":wrong"), trusted),
            diagnosed(server, f"file:{tmp_path / 'mail'}", trusted),
        ]
    assert [each["severity"] for each in found] == ["good", "problem", "problem", "warning"]
    assert "TLS" in found[1]["detail"]
    assert "wrong" not in found[2]["detail"]
    assert mail_server.arrived.empty()


def diagnosed(server: ServerProcess, destination: str, trusted: str) -> dict[str, str]:
    """What doctor says about a destination."""
    environment = {
        **engine_environment(server.root),
        "PODSTEAD_MAIL": destination,
        "SSL_CERT_FILE": trusted,
    }
    finished = run_process(
        [
            *(sys.executable, "-m", "podstead.cli", "doctor", "--json", "--idp"),
            *("--root", str(server.root), "--port", str(server.port)),
        ],
        environment={**clean_environment(), **environment},
        timeout_s=DEADLINE_S,
    )
    findings = json.loads(finished.stdout)["findings"]
    [finding] = [each for each in findings if each["check"] == "mail"]
    return dict(finding)
