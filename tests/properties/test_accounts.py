"""Whatever happens to accounts, in any order, names and addresses lead to one of them or to none.

The oracle is a dictionary: what was done to it is done to the store, and the store must answer as
the dictionary does.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from podstead.core.errors import Conflict, NotFound
from podstead.idp.records import ACCOUNTS
from tests.support.accounts import Office, office

PASSWORD = "password123"
NAMES = ("alice", "Alice", "bob", "bo-b")
EMAILS = ("a@example.org", "A@Example.org", "b@example.org", None)


@dataclass(frozen=True)
class Known:
    """An account, as the dictionary has it."""

    account_id: str
    name: str
    email: str | None
    disabled: bool = False


@dataclass
class Model:
    """The dictionary: accounts by their folded names."""

    accounts: dict[str, Known] = field(default_factory=dict)
    former: set[str] = field(default_factory=set)
    """Names that were of pods that are gone."""

    def with_email(self, email: str | None) -> Known | None:
        folded = None if email is None else email.lower()
        found = [
            known
            for known in self.accounts.values()
            if known.email is not None and known.email.lower() == folded
        ]
        assert len(found) <= 1
        return found[0] if found else None


@dataclass(frozen=True)
class Step:
    """One thing that is done: to the account of a name, with an address."""

    action: str
    name: str
    email: str | None

    async def take(self, model: Model, desk: Office) -> None:
        known = model.accounts.get(self.name.lower())
        if self.action == "create":
            await self._create(model, desk)
        elif self.action == "free":
            await self._free(model, desk)
        elif known is not None:
            await _CHANGES[self.action](self, known, model, desk)

    async def _create(self, model: Model, desk: Office) -> None:
        name = self.name.lower()
        taken = name in model.accounts or name in model.former
        free = not taken and model.with_email(self.email) is None
        try:
            made = await desk.services.accounts.create(
                name=self.name, email=self.email, password=PASSWORD, needs_email=False
            )
        except Conflict:
            assert not free
            return
        assert free
        account_id = made.account.account_id
        model.accounts[self.name.lower()] = Known(account_id, self.name, self.email)

    async def _free(self, model: Model, desk: Office) -> None:
        former = self.name.lower() in model.former
        try:
            await desk.services.accounts.free_name(self.name)
        except NotFound:
            assert not former
            return
        assert former
        model.former.remove(self.name.lower())

    async def _set_email(self, known: Known, model: Model, desk: Office) -> None:
        if self.email is None:
            return
        holder = model.with_email(self.email)
        try:
            await desk.services.accounts.set_email(known.account_id, self.email)
        except Conflict:
            assert holder not in (None, known)
            return
        assert holder in (None, known)
        model.accounts[self.name.lower()] = replace(known, email=self.email)

    async def _switch(self, known: Known, model: Model, desk: Office) -> None:
        accounts = desk.services.accounts
        await (accounts.enable if known.disabled else accounts.disable)(known.account_id)
        model.accounts[self.name.lower()] = replace(known, disabled=not known.disabled)

    async def _delete(self, known: Known, model: Model, desk: Office) -> None:
        await desk.services.accounts.delete(known.account_id)
        del model.accounts[self.name.lower()]
        model.former.add(self.name.lower())


_CHANGES: dict[str, Callable[..., Awaitable[None]]] = {
    "set email": Step._set_email,
    "switch": Step._switch,
    "delete": Step._delete,
}

STEPS = st.lists(
    st.builds(
        Step,
        st.sampled_from(["create", "create", "free", *_CHANGES]),
        st.sampled_from(NAMES),
        st.sampled_from(EMAILS),
    ),
    max_size=14,
)


async def check(model: Model, desk: Office) -> None:
    """The store answers as the dictionary does."""
    accounts = desk.services.accounts
    for name in NAMES:
        known = model.accounts.get(name.lower())
        found = await accounts.find(name)
        assert (found is None) == (known is None)
        if found is not None and known is not None:
            value = found.value
            assert Known(value.account_id, value.pod, value.email, value.disabled) == known
        pod = await desk.store.read_pod(name)
        assert (None if pod is None else pod.name) == (None if known is None else known.name)
    for email in EMAILS:
        if email is not None:
            known = model.with_email(email)
            found = await accounts.find(email)
            assert (None if found is None else found.key) == (known and known.account_id)
    stored = [each async for each in accounts.records.each(ACCOUNTS)]
    assert len(stored) == len(model.accounts)


@settings(max_examples=25, deadline=None)
@given(STEPS)
def test_names_and_addresses_lead_where_the_dictionary_says(steps: list[Step]) -> None:
    """A-91, A-92, A-94, A-97"""

    async def run(folder: str) -> None:
        model = Model()
        async with office(Path(folder) / "root") as desk:
            bare = desk.rows()
            for step in steps:
                await step.take(model, desk)
                await check(model, desk)
            for known in model.accounts.values():
                await desk.services.accounts.delete(known.account_id)
            for name in {*model.accounts, *model.former}:
                await desk.services.accounts.free_name(name)
            assert desk.rows() == bare

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(run(folder))
