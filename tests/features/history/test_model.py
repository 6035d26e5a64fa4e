"""What people can see of the past is what a plain model says: lists of states."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from email.utils import formatdate

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from podstead.core.date_times import read_time
from tests.features.history.test_trash import items, remove, restore
from tests.features.history.world import World
from tests.support.application import BASE
from tests.support.rdf import TURTLE

NAMES = ("a.ttl", "b.ttl")
State = frozenset[int]
"""The numbers that a document has in one state."""

Act = tuple[str, str, int]
acts = st.tuples(
    st.sampled_from(
        [
            *("put", "put", "put large", "patch", "patch", "delete", "delete", "move", "move"),
            *("restore", "restore", "remove", "empty", "restore version"),
        ]
    ),
    st.sampled_from(NAMES),
    st.integers(0, 5),
)


@dataclass
class Model:
    """The states of each document, the last one present, and of what is in the trash."""

    present: dict[str, list[State]] = field(default_factory=dict)
    trash: list[tuple[str, list[State]]] = field(default_factory=list)


class Example:
    """Does the same to the server and to the model."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.alice = world.server.alice
        self.folder = world.new_folder()
        self.model = Model()

    async def act(self, what: str, name: str, choice: int) -> None:
        """Do one thing, if it can be done."""
        self.world.clock.advance(2)
        present, path = self.model.present, self.folder + name
        number = next(self.world.numbers)
        if what.startswith("put"):
            padding = "# padding\n" * 10_000 if what == "put large" else ""
            await self._write(name, f'{padding}<#s> <#p> "{number}" .', {number})
        elif what == "empty":
            answer = await self.alice.request("DELETE", f"/.history/trash{self.folder}")
            assert answer.status == 204, answer.text
            self.model.trash.clear()
        elif what in {"restore", "remove"}:
            await self._leave_trash(what, choice)
        elif name not in present:
            assert (await self.alice.get(path)).status == 404
        elif what == "patch":
            await self._patch(name, number, choice)
        elif what == "restore version":
            states = present[name]
            versions = await self._mementos(name)
            chosen = versions[choice % len(versions)]
            content = (await self.alice.get(chosen[0])).text
            await self._write(name, content, states[choice % len(states)])
        elif what == "move":
            other = NAMES[1 - NAMES.index(name)]
            headers = {"Destination": BASE + self.folder + other, "Overwrite": "F"}
            answer = await self.alice.request("MOVE", path, headers=headers)
            assert answer.status == (412 if other in present else 201), answer.text
            if other not in present:
                present[other] = present.pop(name)
        else:
            assert (await self.alice.delete(path)).status in {200, 204, 205}
            self.model.trash.append((name, present.pop(name)))

    async def _write(self, name: str, content: str, state: set[int] | State) -> None:
        answer = await self.alice.put(self.folder + name, content, TURTLE)
        assert answer.status in {201, 204, 205}, answer.text
        self.model.present.setdefault(name, []).append(frozenset(state))

    async def _patch(self, name: str, number: int, choice: int) -> None:
        states = self.model.present[name]
        update, state = f'INSERT DATA {{ <#s> <#p> "{number}" }}', states[-1] | {number}
        if choice % 2:
            gone = min(states[-1])
            update = f'DELETE DATA {{ <#s> <#p> "{gone}" }}; {update}'
            state -= {gone}
        headers = {"Content-Type": "application/sparql-update"}
        answer = await self.alice.request(
            "PATCH", self.folder + name, headers=headers, body=update.encode()
        )
        assert answer.status in {200, 204, 205}, answer.text
        states.append(state)

    async def _leave_trash(self, what: str, choice: int) -> None:
        """Restore an item in its place, or remove it for good."""
        if not self.model.trash:
            return
        # The newest come first in the list.
        index = choice % len(self.model.trash)
        item = (await items(self.alice, self.folder))[-1 - index]
        name, states = self.model.trash[index]
        assert item["resource"] == BASE + self.folder + name
        if what == "remove":
            assert (await remove(self.alice, item)).status == 204
            del self.model.trash[index]
            return
        answer = await restore(self.alice, item, self.folder + name)
        assert answer.status == (409 if name in self.model.present else 201), answer.text
        if name not in self.model.present:
            self.model.present[name] = states
            del self.model.trash[index]

    async def _mementos(self, name: str) -> list[tuple[str, str]]:
        """The addresses and times of the versions."""
        answer = await self.alice.get(
            f"/.history/timemap{self.folder}{name}", accept="application/ld+json"
        )
        assert answer.status == 200, answer.text
        listed = answer.json()["memento"]
        return [(each["@id"].removeprefix(BASE), each["dateTime"]) for each in listed]

    async def compare(self) -> None:
        """What is read is what the model says."""
        for name in NAMES:
            path = self.folder + name
            states = self.model.present.get(name)
            if states is None:
                assert (await self.alice.get(path)).status == 404
                assert (await self.alice.get(f"/.history/timemap{path}")).status == 404
                continue
            assert _numbers((await self.alice.get(path)).text) == states[-1]
            found = await self._mementos(name)
            assert [_numbers((await self.alice.get(url)).text) for url, _ in found] == states
            assert sorted({at for _, at in found}) == [at for _, at in found]
            for url, at in found:
                wanted = formatdate(read_time(at) / 1000, usegmt=True)
                gate = await self.alice.request(
                    "GET", f"/.history/timegate{path}", headers={"Accept-Datetime": wanted}
                )
                assert gate.header("location") == BASE + url
        listed = Counter(each["resource"] for each in await items(self.alice, self.folder))
        assert listed == Counter(BASE + self.folder + name for name, _ in self.model.trash)


def _numbers(text: str) -> State:
    return frozenset(map(int, re.findall(r'"(\d+)"', text)))


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(acts, max_size=14))
def test_the_past_is_what_the_model_says(world: World, drawn: list[Act]) -> None:
    async def run() -> None:
        example = Example(world)
        for what, name, choice in drawn:
            await example.act(what, name, choice)
            await example.compare()
        # All that is in the trash comes back with its versions, one after the other.
        for _ in tuple(example.model.trash):
            for name in tuple(example.model.present):
                await example.act("delete", name, 0)
            await example.act("restore", "", 0)
            await example.compare()

    world.runner.run(run())
