"""The report says which targets are missed, in answers and in processor time."""

from __future__ import annotations

from bench.cases import CASES, Case
from bench.rounds import Entry, Figure
from bench.targets import targets
from bench.watching import WATCHINGS, Delays, Watched


def _case(key: str) -> Case:
    return next(case for case in CASES if case.key == key)


def _entry(key: str, column: str, rate_per_s: float, cpu_us: float) -> Entry:
    return Entry(_case(key), column, None, Figure([rate_per_s], [cpu_us]))


def _missed(entries: list[Entry], watched: list[Watched] | None = None) -> list[str]:
    return [target.title for target in targets(entries, watched or []) if not target.is_met]


def test_a_rate_below_its_goal_is_missed() -> None:
    peer = _entry("put-replace", "jss", 1000, 500)
    assert _missed([_entry("put-replace", "podstead", 1499, 400), peer]) == [
        "PUT, replacing, answers/s to jss"
    ]
    assert _missed([_entry("put-replace", "podstead", 1500, 400), peer]) == []


def test_as_much_processor_time_as_the_peer_is_missed() -> None:
    peer = _entry("put-replace", "jss", 1000, 500)
    assert _missed([_entry("put-replace", "podstead", 2000, 500), peer]) == [
        "PUT, replacing, processor time to jss"
    ]


def test_processor_time_is_compared_where_there_is_no_goal_for_the_rate() -> None:
    entries = [_entry("tls-get", "podstead", 1, 900), _entry("tls-get", "jss", 1, 800)]
    assert _missed(entries) == ["GET, public, over TLS, processor time to jss"]


def test_tls_is_compared_with_plain_http() -> None:
    plain = _entry("public-get", "podstead", 1000, 50)
    assert len(_missed([plain, _entry("tls-get", "podstead", 849, 50)])) == 1
    assert len(_missed([plain, _entry("tls-get", "podstead", 850, 60)])) == 1
    assert _missed([plain, _entry("tls-get", "podstead", 850, 50)]) == []


def test_a_page_has_a_rate_of_its_own_to_reach() -> None:
    assert len(_missed([_entry("container-page", "podstead", 1999, 500)])) == 1
    assert _missed([_entry("container-page", "podstead", 2000, 500)]) == []


def test_two_workers_are_not_much_slower_or_dearer_than_one() -> None:
    one = _entry("put-one", "podstead", 1000, 400)
    assert _missed([one, _entry("put-one", "podstead-2", 950, 420)]) == []
    assert len(_missed([one, _entry("put-one", "podstead-2", 949, 421)])) == 2
    assert _missed([one]) == []


def test_void_figures_meet_no_target_and_miss_none() -> None:
    void = Entry(_case("put-replace"), "jss", None, Figure([1000], [500], void="500"))
    assert targets([_entry("put-replace", "podstead", 1, 900), void], []) == []


def test_watchers_are_compared_in_delay_and_in_processor_time_and_bounded_in_memory() -> None:
    one = next(watching for watching in WATCHINGS if watching.key == "legacy-one")
    heard = [
        Watched(one, "podstead", Delays([9.0, 9.0], 41 * 1024, 30)),
        Watched(one, "jss", Delays([8.0, 8.0], 10, 20)),
    ]
    assert len(_missed([], heard)) == 3
    heard[0] = Watched(one, "podstead", Delays([8.0, 8.0], 40 * 1024, 19))
    assert _missed([], heard) == []


def test_memory_that_others_left_behind_is_not_that_of_a_watcher() -> None:
    many = next(watching for watching in WATCHINGS if watching.key == "legacy-many")
    told = targets([], [Watched(many, "podstead", Delays([1.0, 1.0]))])
    assert not any("memory" in target.title for target in told)
