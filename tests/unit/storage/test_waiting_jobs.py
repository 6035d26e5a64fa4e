"""Who floods one storage with writes delays the others by a fair share."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podstead.core.errors import Overloaded
from podstead.storage.waiting_jobs import WaitingJobs

_storages = st.lists(st.sampled_from(["", "/a/", "/b/", "/c/"]), max_size=60)


def test_half_of_the_room_is_left_to_other_storages() -> None:
    waiting: WaitingJobs[int] = WaitingJobs(6)
    for number in range(3):
        waiting.add(number, "/busy/")
    with pytest.raises(Overloaded, match="of this storage"):
        waiting.add(3, "/busy/")
    for number in range(3):
        waiting.add(number, "")
    with pytest.raises(Overloaded, match="Too many changes are"):
        waiting.add(3, "/other/")
    waiting.take(6)
    waiting.add(3, "/busy/")


def test_one_write_of_another_storage_is_in_the_next_batch() -> None:
    waiting: WaitingJobs[str] = WaitingJobs(100)
    for number in range(50):
        waiting.add(f"busy {number}", "/busy/")
    waiting.add("other", "/other/")
    assert waiting.take(4) == ["busy 0", "busy 1", "busy 2", "other"]
    assert waiting.take(2) == ["busy 3", "busy 4"]
    assert len(waiting) == 45


@given(_storages, st.integers(1, 20))
def test_each_storage_keeps_its_order_and_nothing_is_lost(storages: list[str], limit: int) -> None:
    waiting: WaitingJobs[tuple[str, int]] = WaitingJobs(200)
    jobs = [(storage, number) for number, storage in enumerate(storages)]
    for job in jobs:
        waiting.add(job, job[0])
    taken: list[tuple[str, int]] = []
    while len(waiting):
        batch = waiting.take(limit)
        assert len(batch) == min(limit, len(jobs) - len(taken))
        taken += batch
    for storage in storages:
        assert [job for job in taken if job[0] == storage] == [
            job for job in jobs if job[0] == storage
        ]


def test_the_room_of_a_storage_is_that_of_what_still_waits() -> None:
    waiting: WaitingJobs[int] = WaitingJobs(8)
    for number in range(4):
        waiting.add(number, "/busy/")
    waiting.add(4, "/other/")
    waiting.take(2)
    waiting.add(5, "/busy/")
    with pytest.raises(Overloaded):
        waiting.add(6, "/busy/")
