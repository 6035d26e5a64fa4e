"""A root that was written through the storage engine is one that the server serves."""

from __future__ import annotations

from pathlib import Path

from bench.documents import listed
from bench.growth import growth_row
from bench.inprocess import BASE, Asked, root_settings, running_worker
from bench.messages import JSON_LD, Answer
from bench.states import RESOURCES_OF_A_POD, Builder, rules_turtle
from podstead.app.adapters.root import prepared_root
from podstead.storage.sqlite import SqliteStore


async def test_pods_and_containers_are_served_to_their_owners(tmp_path: Path) -> None:
    settings = root_settings(tmp_path)
    with prepared_root(settings):
        store = SqliteStore(tmp_path)
        await store.open()
        builder = Builder(settings, store)
        pods = await builder.pods(10, asked=5)
        container = f"/{pods.names[3]}/data/"
        await builder.container(container, 25)
        await store.close()
        assert len(pods.names) == 5
        async with running_worker(settings) as worker:
            headers = {"authorization": f"Bearer {pods.tokens[3]}", "accept": JSON_LD}
            listing = await worker.ask(Asked("GET", container, headers))
            answer = Answer(200, {"content-type": JSON_LD}, listing.require(), None)
            members = listed(answer, f"{BASE}{container}")
            assert members == {f"{BASE}{container}m-{n:06d}.jsonld" for n in range(25)}
            stranger = {"authorization": f"Bearer {pods.tokens[2]}", "accept": JSON_LD}
            await worker.ask(Asked("GET", container, stranger, status=403))


async def test_a_pod_has_as_many_resources_as_the_report_says(tmp_path: Path) -> None:
    settings = root_settings(tmp_path)
    with prepared_root(settings):
        store = SqliteStore(tmp_path)
        await store.open()
        await Builder(settings, store).pods(1, asked=1)
        changes = await store.changes_after(0, limit=100)
        await store.close()
    assert len(changes) == RESOURCES_OF_A_POD


def test_the_owner_comes_behind_all_other_rules() -> None:
    rules = rules_turtle("/a/", "https://owner.example/#me", 3).splitlines()
    assert len(rules) == 1 + 3 + 1
    assert "owner.example" in rules[-1]


def test_a_request_that_costs_more_than_half_as_much_again_is_missed() -> None:
    assert growth_row("GET", [(10, 100.0), (1000, 150.0)]).is_met
    assert not growth_row("GET", [(10, 100.0), (1000, 151.0)]).is_met
