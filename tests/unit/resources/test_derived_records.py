"""What is derived from a write is added to it."""

from __future__ import annotations

import pytest

from podstead.core.identifiers import ResourcePath
from podstead.resources.planning import DerivedRecords
from podstead.storage.records import Absent, NoPod, PodRecord, Precondition, Record, Version, Write

POD = PodRecord("alice", ResourcePath("/alice/"), "https://alice.example/#me", 0)
FREE = Absent(ResourcePath("/alice/a"))


@pytest.mark.parametrize("records", [(), (POD,)], ids=["no records", "a record"])
@pytest.mark.parametrize("preconditions", [(), (FREE,)], ids=["no precondition", "a precondition"])
def test_records_and_preconditions_are_added_each_without_the_other(
    records: tuple[Record, ...], preconditions: tuple[Precondition, ...]
) -> None:
    write = Write(Version("0" * 16), 0, preconditions=(NoPod("bob"),))
    added = DerivedRecords(records, preconditions).added_to(write)
    assert added.records == records
    assert added.preconditions == (NoPod("bob"), *preconditions)
