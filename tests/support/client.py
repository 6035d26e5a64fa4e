"""Clients of a server process: each is one agent on one kept connection.

Sending and receiving are two steps, so one thread can have many requests under way at once.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import re
import socket
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from tests.support.server import Answer, ServerProcess

_names = itertools.count()
_CONTAINS = re.compile(
    r"^<([^>]*)> <http://www\.w3\.org/ns/ldp#contains> <([^>]*)> \.$", re.MULTILINE
)


class Client:
    """One connection to the server, with the credential of one agent or of nobody."""

    def __init__(self, server: ServerProcess, *, token: str | None = None) -> None:
        self._connection = server.connect()
        self._connection.connect()
        self.token = token

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def local_port(self) -> int:
        """The port at this end, by which the connection is known on the machine."""
        port: int = self._connection.sock.getsockname()[1]
        return port

    @property
    def socket(self) -> socket.socket:
        """To see whether an answer has begun to arrive."""
        return self._connection.sock

    def send(
        self,
        method: str,
        target: str,
        body: bytes | str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """Send a request and wait for nothing. Raises OSError and HTTPException."""
        fields = dict(headers or {})
        if self.token is not None:
            fields.setdefault("Authorization", f"Bearer {self.token}")
        content = body.encode() if isinstance(body, str) else body
        self._connection.request(method, target, body=content, headers=fields)

    def receive(self) -> Answer:
        """The whole answer to the request sent. Raises OSError and HTTPException."""
        response = self._connection.getresponse()
        content = response.read()
        return Answer(
            response.status,
            {name.lower(): value for name, value in response.getheaders()},
            content,
        )

    def request(
        self,
        method: str,
        target: str,
        body: bytes | str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Send a request and receive its answer."""
        self.send(method, target, body, headers)
        return self.receive()

    def get(self, target: str, **headers: str) -> Answer:
        return self.request("GET", target, headers=_fields(headers))

    def head(self, target: str) -> Answer:
        return self.request("HEAD", target)

    def put(
        self,
        target: str,
        body: bytes | str,
        content_type: str = "text/plain",
        **headers: str,
    ) -> Answer:
        fields = {"Content-Type": content_type, **_fields(headers)}
        return self.request("PUT", target, body, fields)

    def delete(self, target: str, **headers: str) -> Answer:
        return self.request("DELETE", target, headers=_fields(headers))

    def members(self, container: str) -> set[str]:
        """The paths of a container's members, by its listing as N-Triples."""
        answer = self.get(container, Accept="application/n-triples")
        assert answer.status == 200, answer.text
        listed = _CONTAINS.findall(answer.text)
        paths = [_path(member) for _, member in listed]
        assert {_path(subject) for subject, _ in listed} <= {container}
        assert len(paths) == len(set(paths)), "a member is listed twice"
        return set(paths)

    def close(self) -> None:
        self._connection.close()


@dataclass(frozen=True, slots=True)
class Pod:
    """One pod of a server process."""

    server: ServerProcess
    name: str
    token: str
    web_id: str

    @property
    def root(self) -> str:
        """The path of the root container."""
        return f"/{self.name}/"

    @contextlib.contextmanager
    def owner(self) -> Iterator[Client]:
        """The owner, on a new connection."""
        with Client(self.server, token=self.token) as client:
            yield client

    def acl(self, subject: str, *, public: Sequence[str] = ()) -> str:
        """An ACL in Turtle for ``subject``: all for the owner, the ``public`` modes for all."""
        rules = [self._rule("owner", f"acl:agent <{self.web_id}>", ACL_ALL, subject)]
        if public:
            rules.append(self._rule("public", "acl:agentClass foaf:Agent", public, subject))
        return ACL_PREFIXES + "\n".join(rules)

    def _rule(self, node: str, who: str, modes: Sequence[str], subject: str) -> str:
        url = f"{self.server.base_url}{subject}"
        default = f" acl:default <{url}>;" if subject.endswith("/") else ""
        granted = ", ".join(f"acl:{mode}" for mode in modes)
        return (
            f"<#{node}> a acl:Authorization; {who}; acl:accessTo <{url}>;{default} "
            f"acl:mode {granted}."
        )


ACL_ALL = ("Read", "Write", "Control")
ACL_PREFIXES = (
    "@prefix acl: <http://www.w3.org/ns/auth/acl#>.\n@prefix foaf: <http://xmlns.com/foaf/0.1/>.\n"
)


def create_pod(server: ServerProcess) -> Pod:
    """A pod with a name of its own."""
    name = f"pod{next(_names)}"
    answer = server.request(
        "POST", "/.pods", json.dumps({"name": name}), {"Content-Type": "application/json"}
    )
    assert answer.status == 201, answer.text
    created = json.loads(answer.body)
    return Pod(server, created["name"], created["token"], created["webId"])


def _fields(headers: Mapping[str, str]) -> dict[str, str]:
    """Keyword arguments as header names: ``If_Match`` is ``If-Match``."""
    return {name.replace("_", "-"): value for name, value in headers.items()}


def _path(url: str) -> str:
    scheme, _, rest = url.partition("://")
    assert scheme in {"http", "https"}
    return "/" + rest.partition("/")[2]
