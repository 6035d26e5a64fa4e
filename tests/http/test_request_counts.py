"""Requests are counted by route, and nothing that clients choose becomes a label."""

from __future__ import annotations

from tests.support.application import Server


def counts(server: Server) -> dict[tuple[str, str, int], int]:
    tallies = server.application.requests.tallies()
    return {key: tally.made + tally.cached for key, tally in tallies}


async def test_each_response_is_counted_once(server: Server) -> None:
    before = counts(server)
    await server.alice.put("/alice/a.txt", b"x", content_type="text/plain")
    for _ in range(3):
        assert (await server.alice.get("/alice/a.txt")).status == 200
    assert (await server.public.get("/alice/a.txt")).status == 401
    after = counts(server)
    more = {key: count - before.get(key, 0) for key, count in after.items()}
    assert {key: count for key, count in more.items() if count} == {
        ("resources", "PUT", 201): 1,
        ("resources", "GET", 200): 3,
        ("resources", "GET", 401): 1,
    }
    tallies = dict(server.application.requests.tallies())
    assert tallies["resources", "GET", 200].cached == 2
    durations = {key: sum(buckets) for key, buckets, _ in server.application.requests.durations()}
    assert durations["resources", "GET"] == sum(
        count
        for (route, method, _), count in after.items()
        if (route, method) == ("resources", "GET")
    )


async def test_paths_and_methods_of_clients_are_no_labels(server: Server) -> None:
    paths = [f"/alice/{number}" for number in range(20)]
    paths += [f"/.env{number}" for number in range(20)]
    paths += [f"/p{number}/.well-known/solid-storage" for number in range(20)]
    paths += [f"/.notifications/{number}" for number in range(20)]
    paths += ["/%", "//", "/a/../b", "/.pages/files/" + "x" * 50]
    for path in paths:
        await server.public.request("GET", path)
    for method in ("BREW", "SECRET", "X" * 30):
        await server.public.request(method, "/alice/")
    await server.public.request("GET", "/", headers={"Host": "elsewhere.example"})
    known = {route.label for route in server.application.routes.services}
    known |= {"resources", "storage description", "unreadable"}
    seen = counts(server)
    assert {route for route, _, _ in seen} <= known
    assert {method for _, method, _ in seen} <= {"GET", "PUT", "POST", "other"}
    assert len(seen) < 20
