"""What does each cache on the way of a GET save? The command `python -m bench.caches`.

The application runs in this process, without an HTTP server, and answers the same request many
times: with all caches, and with one of them turned off. The response cache hides the others, so
what those save is measured with the response cache turned off, as for a request that comes for the
first time. The figures are CPU time per response, of the fastest round.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import sys
import tempfile
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, TypeVar
from unittest.mock import patch

from bench.processes import NotStarted
from podstead.app.adapters.root import prepared_root
from podstead.app.services import build_application
from podstead.authn.authenticate import PodTokenVerifier
from podstead.config import Settings
from podstead.core.caches import BoundedCache
from podstead.resources.reading import RenderingCache
from podstead.storage.sqlite.reads import ReadConnection
from podstead.wac.effective import EffectiveAcls
from podstead.web.application import Application
from podstead.web.asgi import Message, Scope
from podstead.web.response_cache import ResponseCache

_HOST = "localhost:3000"
_BASE = f"http://{_HOST}"
_MEMBERS = 100
_CARD = {
    "@context": {"foaf": "http://xmlns.com/foaf/0.1/"},
    "@id": "#me",
    "foaf:name": "Alice",
    "foaf:knows": [{"@id": f"http://localhost:3000/alice/friend{n}#me"} for n in range(5)],
}
_RULES = """
@prefix acl: <http://www.w3.org/ns/auth/acl#>.
<#owner> a acl:Authorization; acl:agent <http://localhost:3000/alice/#me>;
    acl:accessTo <./>; acl:default <./>; acl:mode acl:Read, acl:Write, acl:Control.
"""
_PUBLIC = """
<#public> a acl:Authorization; acl:agentClass <http://xmlns.com/foaf/0.1/Agent>;
    acl:accessTo <./>; acl:default <./>; acl:mode acl:Read.
"""
_FRIEND = """
<#friend{n}> a acl:Authorization; acl:agent <http://localhost:3000/friend{n}/#me>;
    acl:accessTo <./>; acl:default <./>; acl:mode acl:Read.
"""
_SHARED = "".join(_FRIEND.format(n=n) for n in range(49))
_Kind = TypeVar("_Kind")


class _Forgetful(OrderedDict[Any, Any]):
    """A mapping that stays empty."""

    def __setitem__(self, key: object, value: object) -> None:
        """Store nothing."""

    def update(self, *_: Any, **__: Any) -> None:  # noqa: ANN401 - as that of a mapping
        """Store nothing."""


def _without_responses(stack: ExitStack) -> None:
    stack.enter_context(patch.object(ResponseCache, "key", lambda *_: None))


def _without_rows(stack: ExitStack) -> None:
    for reads in _instances(ReadConnection):
        for name in ("_metadata", "_pods", "_tokens"):
            stack.enter_context(patch.object(reads, name, _Forgetful()))
    # Rows that are not kept need not be compared with the newest commit, nor read in a transaction.
    stack.enter_context(patch.object(ReadConnection, "_refresh", lambda _: None))
    stack.enter_context(patch.object(ReadConnection, "_in_snapshot", lambda _, read: read()))


def _without_acls(stack: ExitStack) -> None:
    for acls in _instances(EffectiveAcls):
        stack.enter_context(patch.object(acls._acls, "_cache", BoundedCache(0)))


def _without_renderings(stack: ExitStack) -> None:
    stack.enter_context(patch.object(RenderingCache, "get", lambda *_: None))


def _without_tokens(stack: ExitStack) -> None:
    for tokens in _instances(PodTokenVerifier):
        stack.enter_context(patch.object(tokens, "_verified", _Forgetful()))


CACHES: Mapping[str, Callable[[ExitStack], None]] = {
    "database rows": _without_rows,
    "verified pod tokens": _without_tokens,
    "parsed ACLs": _without_acls,
    "renderings": _without_renderings,
}
"""The caches below the response cache, and what turns each off."""


def _instances(kind: type[_Kind]) -> list[_Kind]:
    gc.unfreeze()  # the lifespan has frozen these objects, which hides them from get_objects()
    found = [each for each in gc.get_objects() if type(each) is kind]
    if not found:
        raise NotStarted(f"There is no {kind.__name__} to turn off")
    return found


@contextmanager
def _turned_off(caches: Iterable[Callable[[ExitStack], None]]) -> Iterator[None]:
    with ExitStack() as stack:
        for turn_off in caches:
            turn_off(stack)
        yield


@dataclass(frozen=True, slots=True)
class Case:
    """One GET."""

    name: str
    path: str
    status: int = 200
    accept: str | None = None
    authorized: bool = False
    conditional: bool = False


CASES = (
    Case("public GET, 200 bytes", "/alice/public/note"),
    Case("private GET, pod token", "/alice/private/note", authorized=True),
    Case("the same, ACL of 50 rules", "/alice/shared/note", authorized=True),
    Case("public GET, 304", "/alice/public/note", status=304, conditional=True),
    Case("private GET, 304", "/alice/private/note", 304, authorized=True, conditional=True),
    Case("container of 100", "/alice/public/hundred/", accept="text/turtle"),
    Case("Turtle from JSON-LD", "/alice/public/card", accept="text/turtle"),
)


class _Caller:
    """Makes requests in this process."""

    def __init__(self, application: Application) -> None:
        self._application = application
        self.token = ""

    async def send(
        self, method: str, path: str, body: bytes = b"", **headers: str
    ) -> tuple[int, dict[bytes, bytes], bytes]:
        scope = self.scope(method, path, {**headers, "content-length": str(len(body))})
        return await self.ask(scope, body)

    def scope(self, method: str, path: str, headers: Mapping[str, str]) -> Scope:
        fields = {"host": _HOST, **headers}
        return {
            "type": "http",
            "http_version": "1.1",
            "method": method,
            "raw_path": path.encode(),
            "query_string": b"",
            "headers": [(k.replace("_", "-").encode(), v.encode()) for k, v in fields.items()],
            "client": ("127.0.0.1", 1),
            "extensions": {},
        }

    async def ask(self, scope: Scope, body: bytes = b"") -> tuple[int, dict[bytes, bytes], bytes]:
        sent: list[Message] = []

        async def receive() -> Message:
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: Message) -> None:
            sent.append(message)

        await self._application(scope, receive, send)
        content = b"".join(message.get("body", b"") for message in sent[1:])
        return sent[0]["status"], dict(sent[0]["headers"]), content

    async def store(self, path: str, body: str, content_type: str) -> None:
        headers = {"content_type": content_type, "authorization": self.token}
        status, _, answer = await self.send("PUT", path, body.encode(), **headers)
        if status not in (201, 204):
            raise NotStarted(f"PUT {path} was answered with {status}: {answer!r}")

    async def scope_of(self, case: Case) -> Scope:
        """The request of a case, whose response is looked at once."""
        headers = {"accept": case.accept} if case.accept else {}
        if case.authorized:
            headers["authorization"] = self.token
        if case.conditional:
            _, fields, _ = await self.ask(self.scope("GET", case.path, headers))
            headers["if-none-match"] = fields[b"etag"].decode()
        scope = self.scope("GET", case.path, headers)
        status, _, answer = await self.ask(scope)
        if status != case.status:
            raise NotStarted(f"{case.name} was answered with {status}: {answer!r}")
        return scope


async def _furnish(caller: _Caller) -> None:
    made = await caller.send("POST", "/.pods", b'{"name":"alice"}', content_type="application/json")
    caller.token = f"Bearer {json.loads(made[2])['token']}"
    for place, more in (("public", _PUBLIC), ("private", ""), ("shared", _SHARED)):
        await caller.store(f"/alice/{place}/note", "x" * 200, "text/plain")
        await caller.store(f"/alice/{place}/.acl", _RULES + more, "text/turtle")
    await caller.store("/alice/public/card", json.dumps(_CARD), "application/ld+json")
    for number in range(_MEMBERS):
        await caller.store(f"/alice/public/hundred/{number}", "x", "text/plain")


async def _microseconds(caller: _Caller, scope: Scope, requests: int) -> float:
    """The CPU time of one response."""
    await caller.ask(scope)
    began_s = time.process_time()
    for _ in range(requests):
        await caller.ask(scope)
    return (time.process_time() - began_s) / requests * 1e6


async def measure(options: argparse.Namespace) -> dict[str, dict[str, float]]:
    """The CPU time in microseconds of each case (rows), with the caches of the columns."""
    configurations: dict[str, list[Callable[[ExitStack], None]]] = {
        "all caches": [],
        "response cache off": [_without_responses],
        **{f"and {name} off": [_without_responses, off] for name, off in CACHES.items()},
        "all off": [_without_responses, *CACHES.values()],
    }
    never = dict.fromkeys(configurations, float("inf"))
    table = {case.name: dict(never) for case in CASES}
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        settings = Settings(root=Path(folder) / "root", base_url=_BASE, pod_creations_per_hour=0)
        stack.enter_context(prepared_root(settings))
        application = build_application(settings)
        await application.lifespan.start()
        try:
            caller = _Caller(application)
            await _furnish(caller)
            for case in CASES:
                scope, row = await caller.scope_of(case), table[case.name]
                for _, (name, caches) in product(range(options.rounds), configurations.items()):
                    with _turned_off(caches):
                        spent = await _microseconds(caller, scope, options.requests)
                    row[name] = min(row[name], spent)
        finally:
            await application.lifespan.stop()
    return table


def markdown(table: Mapping[str, Mapping[str, float]]) -> str:
    """The table as it stands in the decision on caches."""
    columns = list(next(iter(table.values())))
    lines = ["| CPU time in microseconds | " + " | ".join(columns) + " |"]
    lines.append("| --- |" + " ---: |" * len(columns))
    for case, row in table.items():
        lines.append(f"| {case} | " + " | ".join(f"{row[name]:.0f}" for name in columns) + " |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m bench.caches", description=__doc__)
    parser.add_argument("--requests", type=int, default=500, help="in each round")
    parser.add_argument("--rounds", type=int, default=5, help="of which the fastest is printed")
    sys.stdout.write(markdown(asyncio.run(measure(parser.parse_args(arguments)))) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
