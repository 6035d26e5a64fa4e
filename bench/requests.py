"""Ten requests through which most of the hot path goes, as values for `bench.inprocess`.

Each sending of a request that creates, deletes or must not find a kept response has a resource of
its own, so each takes `number`, which counts the sendings. `store` creates what they need.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from bench.documents import card
from bench.inprocess import POD, Asked, Worker
from bench.messages import JSON_LD, N3, SEQUENCE, SPARQL_UPDATE, TURTLE, sequence_text
from bench.patches import N3_INSERT, SPARQL_INSERT
from bench.patches import card as turtle_card

MEMBERS: Final = 100
_REPLACED: Final = 64


@dataclass(frozen=True, slots=True)
class Counted:
    """One of the ten. `ask` makes the request of a number; `store` what must be there before it."""

    key: str
    title: str
    ask: Callable[[Worker, int], Asked]
    store: Callable[[Worker, int], Iterable[Asked]]
    times: int = 1
    """How many times as often as others it is sent, because it takes so little."""


def _put(worker: Worker, path: str, mark: str, status: int = 201) -> Asked:
    headers = worker.authorized({"content-type": JSON_LD})
    return Asked("PUT", POD + path, headers, card(mark).encode(), status)


def _store_public(worker: Worker, number: int) -> Iterator[Asked]:
    if number == 0:
        yield _put(worker, "public/card.jsonld", sequence_text(0))


def _get_public(_worker: Worker, _number: int) -> Asked:
    return Asked("GET", f"{POD}public/card.jsonld", {"accept": JSON_LD})


def _store_private(worker: Worker, number: int) -> Iterator[Asked]:
    yield _put(worker, f"private/read/{number}.jsonld", sequence_text(number))


def _get_private(worker: Worker, number: int) -> Asked:
    path = f"{POD}private/read/{number}.jsonld"
    return Asked("GET", path, worker.authorized({"accept": JSON_LD}))


def _store_unchanged(worker: Worker, number: int) -> Iterator[Asked]:
    if number == 0:
        yield _put(worker, "public/unchanged.jsonld", sequence_text(0))


def _not_modified(_worker: Worker, _number: int) -> Asked:
    headers = {"accept": JSON_LD, "if-none-match": "*"}
    return Asked("GET", f"{POD}public/unchanged.jsonld", headers, status=304)


def _store_container(worker: Worker, number: int) -> Iterator[Asked]:
    for member in range(MEMBERS):
        yield _put(worker, f"public/listed-{number}/m-{member}.jsonld", sequence_text(member))


def _list(_worker: Worker, number: int) -> Asked:
    return Asked("GET", f"{POD}public/listed-{number}/", {"accept": JSON_LD})


def _store_replaced(worker: Worker, number: int) -> Iterator[Asked]:
    if number < _REPLACED:
        yield _put(worker, f"private/replaced/{number}.jsonld", sequence_text(0))


def _replace(worker: Worker, number: int) -> Asked:
    path = f"private/replaced/{number % _REPLACED}.jsonld"
    return _put(worker, path, sequence_text(number + 1), 204)


def _store_created(worker: Worker, number: int) -> Iterator[Asked]:
    if number == 0:
        yield _put(worker, "private/created/first.jsonld", sequence_text(0))


def _create(worker: Worker, number: int) -> Asked:
    return _put(worker, f"private/created/{number}.jsonld", sequence_text(number))


def _store_first(worker: Worker, number: int) -> Iterator[Asked]:
    if number == 0:
        yield _put(worker, "private/posted/first.jsonld", sequence_text(0))


def _post(worker: Worker, number: int) -> Asked:
    headers = worker.authorized({"content-type": JSON_LD, "slug": f"n-{number}.jsonld"})
    body = card(sequence_text(number)).encode()
    return Asked("POST", f"{POD}private/posted/", headers, body, 201)


def _store_patched(folder: str) -> Callable[[Worker, int], Iterator[Asked]]:
    def stored(worker: Worker, number: int) -> Iterator[Asked]:
        headers = worker.authorized({"content-type": TURTLE})
        path = f"{POD}private/{folder}/{number}.ttl"
        yield Asked("PUT", path, headers, turtle_card().encode(), 201)

    return stored


def _n3(worker: Worker, number: int) -> Asked:
    body = N3_INSERT.text.replace(SEQUENCE, sequence_text(number)).encode()
    headers = worker.authorized({"content-type": N3})
    return Asked("PATCH", f"{POD}private/n3/{number}.ttl", headers, body, 204)


def _sparql(worker: Worker, number: int) -> Asked:
    body = SPARQL_INSERT.text.replace(SEQUENCE, sequence_text(number)).encode()
    headers = worker.authorized({"content-type": SPARQL_UPDATE})
    return Asked("PATCH", f"{POD}private/sparql/{number}.ttl", headers, body, 204)


def _store_deleted(worker: Worker, number: int) -> Iterator[Asked]:
    yield _put(worker, f"private/deleted/{number}.jsonld", sequence_text(number))


def _delete(worker: Worker, number: int) -> Asked:
    return Asked("DELETE", f"{POD}private/deleted/{number}.jsonld", worker.authorized(), status=204)


COUNTED: Final = (
    Counted("get-public", "GET, public, kept response", _get_public, _store_public, 16),
    Counted("get-private", "GET, private, first of its kind", _get_private, _store_private),
    Counted("not-modified", "GET, 304, kept response", _not_modified, _store_unchanged, 16),
    Counted("container-100", f"GET, container of {MEMBERS}, first", _list, _store_container),
    Counted("put-replace", "PUT, replacing", _replace, _store_replaced),
    Counted("put-create", "PUT, creating", _create, _store_created),
    Counted("post-create", "POST, creating", _post, _store_first),
    Counted("n3-insert", "PATCH, N3, inserting", _n3, _store_patched("n3")),
    Counted("sparql-insert", "PATCH, SPARQL, inserting", _sparql, _store_patched("sparql")),
    Counted("delete", "DELETE", _delete, _store_deleted),
)
