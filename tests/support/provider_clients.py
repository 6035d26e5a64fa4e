"""Applications at a provider that runs as a process, and requests with their tokens."""

from __future__ import annotations

import json
import secrets
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol
from urllib.parse import urlencode

from tests.support.browser import FORM
from tests.support.client import ACL_PREFIXES
from tests.support.oauth import authorization_parameters, basic
from tests.support.people import PASSWORD, Account, Person, answered
from tests.support.server import Answer, ServerProcess
from tests.support.signing import Json, Signer, proof_claims

CALLBACK = "https://app.example/callback"
JSON = {"Content-Type": "application/json"}
GARBAGE = "e30.e30.e30"
"""What looks like a token and is none."""


class StartServer(Protocol):
    """Starts a server of its own, which ends with the test."""

    def __call__(self, *options: str) -> ServerProcess: ...


@dataclass(frozen=True)
class App:
    """An application at the provider, which has a key."""

    server: ServerProcess
    client_id: str
    secret: str | None = None
    redirect_uri: str = CALLBACK
    key: Signer = field(default_factory=Signer.new)
    verifier: str = field(default_factory=lambda: secrets.token_urlsafe(48))

    def address(self, **changes: str) -> str:
        """Where the application leads a browser."""
        parameters = authorization_parameters(
            self.client_id, self.redirect_uri, self.verifier, **changes
        )
        return f"{self.server.base_url}/idp/auth?{urlencode(parameters)}"

    def tokens(self, person: Person, *, bound: bool = True) -> Json:
        """What the application gets when the person lets it act for them; ``bound`` to its key."""
        code = answered(person.connect(self.address()))["code"]
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self.redirect_uri,
            "code_verifier": self.verifier,
        }
        answer = self.ask("/idp/token", form, **(self.proof("/idp/token") if bound else {}))
        assert answer.status == 200, answer.text
        tokens: Json = json.loads(answer.body)
        return tokens

    def ask(self, path: str, form: dict[str, str], **headers: str) -> Answer:
        """Send a form as this client."""
        fields = {"Content-Type": FORM, **headers}
        if self.secret is None:
            form = {"client_id": self.client_id, **form}
        else:
            fields |= basic(self.client_id, self.secret)
        return self.server.request("POST", path, urlencode(form), fields)

    def proof(self, path: str, method: str = "POST", url: str | None = None) -> dict[str, str]:
        """The header that shows that the application has its key."""
        claims = proof_claims(method, url or self.server.base_url + path, now_s())
        return {"DPoP": self.key.proof(claims)}

    def get(self, path: str, token: str, *, url: str | None = None, **headers: str) -> Answer:
        """GET with a token that is bound to the key."""
        fields = {"Authorization": f"DPoP {token}", **self.proof(path, "GET", url), **headers}
        return self.server.get(path, fields)


def now_s() -> int:
    return int(time.time())


def register(server: ServerProcess, **metadata: object) -> App:
    """An application that has just registered itself."""
    sent = {"redirect_uris": [CALLBACK], "client_name": "Notes", **metadata}
    answer = server.request("POST", "/idp/reg", json.dumps(sent), JSON)
    assert answer.status == 201, answer.text
    made = json.loads(answer.body)
    return App(server, made["client_id"], made.get("client_secret"))


def script_token(account: Account, **headers: str) -> str:
    """An access token for the account, by its password."""
    answer = sign_in_script(account.provider, account.name, PASSWORD, **headers)
    assert answer.status == 200, answer.text
    return str(json.loads(answer.body)["access_token"])


def sign_in_script(server: ServerProcess, login: str, password: str, **headers: str) -> Answer:
    body = json.dumps({"username": login, "password": password})
    return server.request("POST", "/idp/credentials", body, {**JSON, **headers})


def private(account: Account) -> str:
    """A path that only the account's owner may read."""
    return f"/{account.name}/private/"


def public(account: Account) -> str:
    """A path that everybody may read."""
    return f"/{account.name}/"


def acl(subject: str, *rules: str) -> str:
    """Access rules for a resource, each given as what stands between agent and mode."""
    return ACL_PREFIXES + "\n".join(
        f"[] a acl:Authorization; acl:accessTo <{subject}>; {rule}." for rule in rules
    )


@contextmanager
def listening() -> Iterator[tuple[int, list[str]]]:
    """A port of this machine, and who has connected to it in the end."""
    connections: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        ended = threading.Event()

        def accept() -> None:
            while True:
                connection, address = listener.accept()
                connection.close()
                if ended.is_set():
                    return
                connections.append(str(address))

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield listener.getsockname()[1], connections
        ended.set()
        socket.create_connection(listener.getsockname()).close()
        thread.join()
