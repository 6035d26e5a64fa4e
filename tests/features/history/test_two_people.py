"""Two people and a stranger over the same documents: what they see never tells what they may not
read."""

from __future__ import annotations

from dataclasses import dataclass, field
from email.utils import formatdate

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from podstead.core.date_times import write_time
from tests.features.history.test_trash import delete, items, put, remove, restore
from tests.features.history.world import World
from tests.support.application import BASE
from tests.support.asgi import Answer
from tests.support.browser import Browser
from tests.support.pod_pages import sign_in_by_token

acts = st.lists(
    st.tuples(
        st.sampled_from(["write", "write", "open", "close", "delete", "restore"]),
        st.integers(0, 1),
        st.integers(0, 3),
    ),
    max_size=14,
)


@dataclass
class State:
    """A state of a document; whether Bob could read it is known from its end on."""

    content: str
    begun_ms: int
    bob_could: bool = False


@dataclass
class Document:
    """The states of a document, the last one present or in the trash."""

    name: str
    states: list[State] = field(default_factory=list)


class Example:
    """Alice writes and decides what Bob may read in a folder, and Bob looks everywhere."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.server = world.server
        self.folder = world.new_folder()
        self.bob_may = False
        self.present: dict[int, Document] = {}
        self.trash: list[Document] = []
        self.names = 0

    async def prepare(self) -> None:
        """Let Bob read nothing in the folder at first."""
        await put(self.server.alice, f"{self.folder}first", "x")
        await self._rule()

    async def act(self, kind: str, which: int, choice: int) -> None:
        self.world.clock.advance(2)
        alice = self.server.alice
        document = self.present.get(which)
        if kind == "write":
            if document is None:
                self.names += 1
                document = self.present[which] = Document(f"secret-name-{self.names}")
            else:
                document.states[-1].bob_could = self.bob_may
            content = f"secret-content-{len(document.states)}-of-{document.name}."
            await put(alice, self.folder + document.name, content)
            document.states.append(State(content, self.world.clock.now_ms()))
        elif kind in {"open", "close"}:
            self.bob_may = kind == "open"
            await self._rule()
        elif kind == "delete" and document is not None:
            document.states[-1].bob_could = self.bob_may
            await delete(alice, self.folder + document.name)
            self.trash.append(self.present.pop(which))
        elif kind == "restore" and self.trash and which not in self.present:
            document = self.trash.pop(choice % len(self.trash))
            found = await items(alice, self.folder)
            [item] = [each for each in found if each["resource"].endswith(f"/{document.name}")]
            assert (await restore(alice, item)).status == 201
            self.present[which] = document

    async def _rule(self) -> None:
        bob = f"acl:agent <{self.server.bob_web_id}>"
        rules = [(bob, "+Read")] if self.bob_may else []
        assert (await self.server.put_acl(self.folder, *rules)).status in {201, 204, 205}

    async def look(self, browser: Browser) -> None:
        """What Bob gets of everything is what he may, and nothing in it tells of anything else."""
        bob = self.server.bob
        everything = f"/.history/trash{self.folder}"
        listed = await bob.get(everything)
        self._tells_nothing(listed, names=True)
        visible = [each for each in self.trash if self.bob_may and each.states[-1].bob_could]
        assert sorted(each["resource"] for each in listed.json()["items"]) == sorted(
            BASE + self.folder + each.name for each in visible
        )
        assert await items(self.server.public, self.folder) == []
        for each in await items(self.server.alice, self.folder):
            assert (await restore(self.server.public, each)).status == 404
            assert (await remove(self.server.public, each)).status == 404
            is_visible = each["resource"] in {BASE + self.folder + seen.name for seen in visible}
            refused = 403 if is_visible else 404
            assert (await restore(bob, each)).status == refused
            assert (await remove(bob, each)).status == refused
        for document in (*self.present.values(), *self.trash):
            await self._look_at(document, browser)

    async def _look_at(self, document: Document, browser: Browser) -> None:
        bob, path = self.server.bob, self.folder + document.name
        plain = (await bob.get(path)).status
        is_present = document in self.present.values()
        assert plain == (403 if not self.bob_may else 200 if is_present else 404)
        for place in ("timegate", "timemap", "version"):
            answer = await self.server.public.get(f"/.history/{place}{path}")
            assert answer.status == 401
        for accept in ("application/link-format", "application/ld+json"):
            answer = await bob.get(f"/.history/timemap{path}", accept=accept)
            assert answer.status == plain
            self._tells_nothing(answer)
        for state in document.states:
            fields = {"Accept-Datetime": formatdate(state.begun_ms / 1000, usegmt=True)}
            answer = await bob.request("GET", f"/.history/timegate{path}", headers=fields)
            assert answer.status == (302 if plain == 200 else plain)
            self._tells_nothing(answer)
        for kind in ("versions", "files"):
            page = await browser.get(f"/.pages/{kind}{path}")
            self._tells_nothing(page.answer)
        if plain == 200:
            may_read = [each.content for each in document.states[:-1] if each.bob_could]
            answer = await bob.get(f"/.history/timemap{path}", accept="application/ld+json")
            found = [each["@id"].removeprefix(BASE) for each in answer.json()["memento"]]
            texts = [(await bob.get(each)).text for each in found]
            assert texts == [*may_read, document.states[-1].content]
            await self._guess(document, set(found), browser)

    async def _guess(self, document: Document, own: set[str], browser: Browser) -> None:
        """Bob has the addresses of all versions from somebody else."""
        path = self.folder + document.name
        answer = await self.server.alice.get(
            f"/.history/timemap{path}", accept="application/ld+json"
        )
        every = [each["@id"].removeprefix(BASE) for each in answer.json()["memento"]]
        assert len(every) == len(document.states)
        for each in every:
            version = each.partition("?")[2]
            expected = 200 if each in own else 404
            assert (await self.server.bob.get(each)).status == expected
            for kind in ("version", "compare"):
                page = await browser.get(f"/.pages/{kind}{path}?{version}")
                assert page.status == expected
                self._tells_nothing(page.answer)

    def _tells_nothing(self, answer: Answer, *, names: bool = False) -> None:
        """Neither contents, times nor, where Bob has not named them, names that he may not know."""
        everything = answer.text + repr(answer.headers)
        for document in (*self.present.values(), *self.trash):
            is_present = document in self.present.values()
            for state in document.states:
                is_last = state is document.states[-1]
                could = state.bob_could or (is_last and is_present)
                if self.bob_may and could:
                    continue
                assert state.content not in everything
                assert write_time(state.begun_ms)[:19] not in everything
                assert formatdate(state.begun_ms / 1000, usegmt=True) not in everything
            if names and not (self.bob_may and document.states[-1].bob_could):
                assert document.name + '"' not in everything


@settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(acts)
def test_what_one_person_sees_tells_nothing_of_the_rest(
    world: World, drawn: list[tuple[str, int, int]]
) -> None:
    async def run() -> None:
        browser = await sign_in_by_token(world.server, world.server.bob)
        example = Example(world)
        await example.prepare()
        for kind, which, choice in drawn:
            await example.act(kind, which, choice)
        await example.look(browser)
        for kind in ("open", "close"):
            await example.act(kind, 0, 0)
            await example.look(browser)

    world.runner.run(run())
