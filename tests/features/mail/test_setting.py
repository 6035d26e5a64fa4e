"""The mail server as operators set it in the console, and a message to try it."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from podstead.config import Settings
from podstead.core.errors import BadRequest
from podstead.features.mail.destination import MailSecurity, parse_mail_destination
from podstead.features.mail.worker import MailForm
from podstead.web.forms import FormSubmission
from tests.support import mail
from tests.support.application import Server, Start
from tests.support.browser import Browser, Page
from tests.support.commands import invoke
from tests.support.console import sign_in_operator
from tests.support.mail import MailServer, running_mail_server
from tests.support.peer import TLS_FOLDER
from tests.support.server import ServerProcess, running_server
from tests.support.waiting import wait_until

SETTINGS = "/.pages/console/settings"
MAIL = f"{SETTINGS}/mail"
SENT = {
    "host": "mail.example",
    "port": "587",
    "security": "starttls",
    "user": "pods@example",
    "password": "p@ss:w/rd?&=",
    "sender": "pods@mail.example",
}


@pytest.fixture
def mail_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[MailServer]:
    monkeypatch.setenv("SSL_CERT_FILE", str(TLS_FOLDER / "authority.pem"))
    with running_mail_server(TLS_FOLDER / "certificate.pem", TLS_FOLDER / "key.pem") as server:
        yield server


@pytest.fixture
async def operator(start: Start, settings: Settings) -> Browser:
    server: Server = await start(idp=True)
    return await sign_in_operator(server, settings)


def text_of(stored: str = "", **changed: str) -> str:
    return MailForm().text(FormSubmission({**SENT, **changed}), stored)


def test_the_fields_are_what_is_stored() -> None:
    found = parse_mail_destination(text_of())
    assert (found.host, found.port, found.security) == ("mail.example", 587, MailSecurity.STARTTLS)
    assert (found.user, found.password) == (SENT["user"], SENT["password"])
    assert found.sender == SENT["sender"]
    odd = parse_mail_destination(text_of(sender="a@b&tls=none"))
    assert odd.security is MailSecurity.STARTTLS
    assert parse_mail_destination(text_of(host="::1", security="none")).host == "::1"


@pytest.mark.parametrize(
    "changed",
    [
        {"host": "mail.example/x"},
        {"host": "a@mail.example"},
        {"host": "mail.example?from=b@c"},
        {"host": "mail example"},
        {"host": ""},
        {"port": "0"},
        {"port": "70000"},
        {"port": "5432"},
        {"host": "192.168.0.1", "port": "22"},
        {"port": "25\r\nX"},
        {"security": "none"},
        {"security": "some"},
        {"sender": "nobody"},
        {"sender": "a@b\r\nBcc: c@d"},
        {"password": ""},
    ],
)
def test_what_is_no_mail_server_is_refused(changed: dict[str, str]) -> None:
    with pytest.raises(BadRequest):
        text_of(**changed)


def test_a_password_is_kept_only_for_the_server_that_it_is_for() -> None:
    stored = text_of()
    kept = parse_mail_destination(text_of(stored, password="", sender="new@mail.example"))
    assert (kept.password, kept.sender) == (SENT["password"], "new@mail.example")
    for other in ({"host": "evil.example"}, {"port": "26"}, {"user": "x"}, {"security": "tls"}):
        with pytest.raises(BadRequest):
            text_of(stored, password="", **other)
    assert parse_mail_destination(text_of(stored, user="", password="")).password is None


async def test_the_password_is_never_shown(operator: Browser) -> None:
    page = await operator.send(await operator.get(MAIL), MAIL, **SENT)
    assert "The setting has been changed" in page.text
    texts = [page.text, (await operator.get(MAIL)).text]
    texts.append((await operator.get("/.pages/console/log")).text)
    for text in texts:
        assert SENT["password"] not in text
        assert quote(SENT["password"], safe="") not in text
        assert "rd?" not in text
    assert "mail.example" in texts[1]


async def test_a_message_tries_it_and_people_can_get_mail_at_once(
    operator: Browser, mail_server: MailServer
) -> None:
    assert "No mail server is set" in (await tried(operator)).text
    forgot = "/.pages/forgot"
    other = Browser(operator.application)
    assert 'name="login"' not in (await other.get(forgot)).text
    here = {"host": "localhost", "port": str(mail_server.port), "sender": mail.SENDER}
    login = {"user": mail.USER, "password": "wrong"}
    page = await operator.send(await operator.get(MAIL), MAIL, **{**SENT, **here, **login})
    assert "does not accept the name or the password" in (await tried(operator)).text
    login["password"] = mail.PASSWORD
    page = await operator.send(await operator.get(MAIL), MAIL, **{**SENT, **here, **login})
    assert page.status == 200
    assert "has taken the message" in (await tried(operator)).text
    assert mail_server.next().recipient == "alice@example.org"
    assert 'name="login"' in (await other.get(forgot)).text
    page = await operator.send(await operator.get(MAIL), MAIL, change="default")
    assert 'name="login"' not in (await other.get(forgot)).text


async def test_what_is_tried_says_only_what_kind_of_trouble_it_is(
    operator: Browser, mail_server: MailServer
) -> None:
    here = {"host": "localhost", "sender": mail.SENDER, "user": "", "password": ""}
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # and nothing listens
        for port, security, said in (
            (closed.getsockname()[1], "starttls", "could not be reached"),
            (mail_server.port, "tls", "no encrypted connection"),
        ):
            sent = {**SENT, **here, "port": str(port), "security": security}
            assert (await operator.send(await operator.get(MAIL), MAIL, **sent)).status == 200
            text = (await tried(operator)).text
            assert said in text
            for reason in ("Error", "refused", "Errno", "TLS:"):
                assert reason not in text.split("could not be sent")[1][:200]


def test_what_can_no_longer_be_read_is_an_empty_form_that_says_so() -> None:
    facts = MailForm().facts("smtp://mail.example?from=nobody")
    assert (facts["mail"], facts["is_unreadable"]) == (None, True)
    assert not MailForm().facts(text_of())["is_unreadable"]


async def tried(operator: Browser) -> Page:
    page = await operator.get(MAIL)
    return await operator.send(page, f"{MAIL}/trial")


async def test_only_some_messages_are_sent_to_try(
    operator: Browser, mail_server: MailServer
) -> None:
    here = {"host": "localhost", "port": str(mail_server.port), "sender": mail.SENDER}
    login = {"user": mail.USER, "password": mail.PASSWORD}
    await operator.send(await operator.get(MAIL), MAIL, **{**SENT, **here, **login})
    answers = [(await tried(operator)).text for _ in range(11)]
    assert "many messages" in answers[-1]
    assert sum("has taken" in each for each in answers) == 10


def test_two_workers_send_what_waits_once_a_command_names_a_mail_server(
    tmp_path: Path, mail_server: MailServer
) -> None:
    environment = {"SSL_CERT_FILE": str(TLS_FOLDER / "authority.pem")}
    server = ServerProcess(
        tmp_path / "root", options=["--idp", "--workers", "2"], environment=environment
    )
    folder = tmp_path / "mail"
    with running_server(server):
        for place in (f"file:{folder}", smtp_url(mail_server)):
            if mails(server, any):
                made = invoke(server.root, "settings", "unset", "mail")
                assert made.exit_code == 0, made.output
                wait_until(lambda: not mails(server, any), "both workers to forget the file")
            made = invoke(server.root, "settings", "set", "mail", typed=f"{place}\n")
            assert made.exit_code == 0, made.output
            wait_until(lambda: mails(server, all), "both workers to follow")
            name = "anna" if place.startswith("file") else "ben"
            made = invoke(
                *(server.root, "account", "create", name, "--email", f"{name}@example.org"),
                typed="a few words in a row\n",
            )
            assert made.exit_code == 0, made.output
            if name == "anna":
                wait_until(lambda: any(folder.glob("*.eml")), "the message in a file")
        assert mail_server.next().recipient == "ben@example.org"
    assert mail_server.arrived.empty()
    assert mail.PASSWORD not in server.errors


def smtp_url(mail_server: MailServer) -> str:
    user = f"{mail.USER}:{quote(mail.PASSWORD, safe='')}"
    return f"smtp://{user}@localhost:{mail_server.port}?from={mail.SENDER}"


def mails(server: ServerProcess, quantifier: Callable[[Iterable[bool]], bool]) -> bool:
    pages = [server.get("/.pages/forgot", {"Accept": "text/html"}).text for _ in range(20)]
    return quantifier('name="login"' in page for page in pages)
