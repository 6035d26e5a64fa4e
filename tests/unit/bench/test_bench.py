"""A change of the number of instructions is noticed, and one of the machine's is not."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from bench import counting, walks
from bench.cases import CASES, Case
from bench.counting import Count, compared, per_request, read_recorded, recorded_text
from bench.documents import listed
from bench.exercises import good_answers
from bench.growth import growth_row
from bench.inprocess import BASE, Asked, root_settings, running_worker
from bench.load import Outcome
from bench.messages import JSON_LD, Answer, WrongAnswer
from bench.peers import SERVERS
from bench.processes import cpu_s_of
from bench.report import place_of
from bench.requests import COUNTED
from bench.rounds import Entry, Figure
from bench.servers import Feature
from bench.states import RESOURCES_OF_A_POD, Builder, rules_turtle
from bench.targets import targets
from bench.watching import WATCHINGS, Delays, Watched
from bench.workers import EXERCISES, Figures, generator_cores, pinned, report, server_cores
from podstead.app.adapters.root import prepared_root
from podstead.storage.sqlite import SqliteStore

_KEY = COUNTED[0].key


def _every(instructions: int) -> dict[str, Count]:
    return {counted.key: Count(instructions, 10) for counted in COUNTED}


def test_there_are_ten_and_each_is_recorded() -> None:
    _, recorded = read_recorded(counting.RECORDED)
    assert len(COUNTED) == 10
    assert recorded.keys() == {counted.key for counted in COUNTED}


@pytest.mark.parametrize(
    ("now", "is_notable"), [(1029, False), (1031, True), (971, False), (969, True)]
)
def test_more_than_three_per_cent_either_way_is_notable(now: int, *, is_notable: bool) -> None:
    rows = compared({_KEY: Count(now, 10)}, {_KEY: Count(1000, 10)})
    assert [row.is_notable for row in rows] == [is_notable]


def test_a_request_without_a_record_is_notable() -> None:
    assert [row.is_notable for row in compared({_KEY: Count(1, 1)}, {})] == [True]


def test_what_belongs_to_no_request_is_left_out() -> None:
    start, request = 7_000_000, 1_234
    totals = [
        start + length * counted.times * request for counted in COUNTED for length in counting._RUNS
    ]
    assert per_request(totals) == [request] * len(COUNTED)


def test_one_run_that_was_disturbed_changes_nothing() -> None:
    totals = [length * counted.times * 1_000 for counted in COUNTED for length in counting._RUNS]
    totals[2] += 350_000
    assert per_request(totals) == [1_000] * len(COUNTED)


def test_a_notable_change_fails_and_asks_for_a_line_in_the_change_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    record = tmp_path / "counts.json"
    record.write_text(recorded_text(_every(1000)), encoding="utf-8")
    monkeypatch.setattr(counting, "RECORDED", record)
    monkeypatch.setattr(counting, "measured", lambda _keep: _every(1029))
    assert counting.main([]) == 0
    monkeypatch.setattr(counting, "measured", lambda _keep: _every(1031))
    assert counting.main([]) == 1
    assert "CHANGELOG.md" in capsys.readouterr().out


def test_recording_keeps_what_was_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record = tmp_path / "counts.json"
    monkeypatch.setattr(counting, "RECORDED", record)
    monkeypatch.setattr(counting, "measured", lambda _keep: _every(42))
    assert counting.main(["--record"]) == 0
    assert read_recorded(record)[1] == _every(42)
    assert json.loads(record.read_text())["environment"].startswith("Python ")


# --- processor time ----------------------------------------------------------------------------
#
# The processor time of a server is that of its processes, all threads and ended children
# included.


_BURN = "sum(i * i for i in range(2_000_000))"


def _stat(name: str) -> str:
    # proc_pid_stat(5): pid, (comm), state, then the fields from 4 to 13, and utime, stime, cutime
    # and cstime as the fields 14 to 17.
    between = " ".join(str(number) for number in range(4, 14))
    return f"4711 ({name}) S {between} 100 20 3000 400 20 0 1 0"


@pytest.mark.parametrize("name", ["podstead", "a (b) c", "1 2 3) 4 5"])
def test_the_four_times_are_added_whatever_the_program_is_called(name: str) -> None:
    assert cpu_s_of(_stat(name)) == 3520 / os.sysconf("SC_CLK_TCK")


def test_children_that_were_waited_for_are_included() -> None:
    subprocess.run([sys.executable, "-c", _BURN], check=True)
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    own = resource.getrusage(resource.RUSAGE_SELF)
    used_s = sum(each.ru_utime + each.ru_stime for each in (children, own))
    told_s = cpu_s_of(Path("/proc/self/stat").read_text("utf-8"))
    # Both come from the kernel; the one in /proc is in hundredths of a second, each part cut off.
    assert told_s == pytest.approx(used_s, abs=4 / os.sysconf("SC_CLK_TCK") + 0.05)


# --- Which server takes part in which case, and whose wrong statuses are left out --------------


def _columns(key: str) -> list[str]:
    case = next(case for case in CASES if case.key == key)
    taking = (kind.column for kind in SERVERS if kind.asked_only_for <= case.needs <= kind.features)
    return list(dict.fromkeys(taking))


def test_two_workers_and_the_peer_with_its_quota_are_measured_in_writes_only() -> None:
    assert _columns("put-create") == ["podstead", "podstead-2", "jss", "jss-quota", "css"]
    assert _columns("n3-insert") == ["podstead", "podstead-2", "jss", "jss-quota", "css"]
    for key in ("public-get", "private-get", "tls-get"):
        assert {"podstead-2", "jss-quota"}.isdisjoint(_columns(key))


def test_only_the_peer_with_its_quota_is_excused() -> None:
    assert {kind.column for kind in SERVERS if kind.is_excused} == {"jss-quota"}
    assert all(Feature.WRITES in kind.features for kind in SERVERS if kind.is_excused)


def _outcome(statuses: dict[int, int], errors: dict[str, int]) -> Outcome:
    answered = sum(statuses.values())
    return Outcome(answered, 1.0, 0, 0.0, 0.0, errors, statuses, answered, [], 32)


def test_of_an_excused_server_only_answers_of_success_are_figures() -> None:
    effect = good_answers(_outcome({201: 70, 500: 30}, {"status": 30}))
    assert (effect.answered, effect.present) == (100, 70)
    assert not effect.is_whole


def test_an_excused_server_must_keep_its_connections() -> None:
    with pytest.raises(WrongAnswer):
        good_answers(_outcome({201: 70}, {"read": 1}))


# --- A root that was written through the storage engine is one that the server serves ----------


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


# --- The report says which targets are missed, in answers and in processor time ----------------


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


def test_a_run_of_two_workers_leaves_the_record_with_other_servers_alone() -> None:
    page, section = place_of(["podstead", "podstead-2"])
    assert f"<!-- {section}: begin -->" in page.read_text(encoding="utf-8")
    assert (page, section) != place_of(["podstead", "podstead-2", "jss"])


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


# --- The functions that a request enters are counted once for each call ------------------------


async def _waits() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def test_a_coroutine_that_goes_on_is_not_entered_again() -> None:
    walk = walks._Walk()
    walk.is_on = True

    async def counted() -> None:
        sys.setprofile(walk.note)
        await _waits()
        sys.setprofile(None)

    asyncio.run(counted())
    assert walk.entered[_waits.__code__] == 1


def test_every_request_is_answered_as_expected_and_writes_go_further_than_kept_responses(
    tmp_path: Path,
) -> None:
    entered = walks.functions_entered(tmp_path)
    assert entered.keys() == {counted.key for counted in COUNTED}
    assert 0 < entered["get-public"] < entered["get-private"] < entered["put-replace"]


# --- workers -----------------------------------------------------------------------------------
#
# The table of workers compares each number with one worker, and names the goal of two.


def _table(two_per_s: float) -> dict[str, dict[int, Figures]]:
    figures = {1: Figures([100], [50]), 2: Figures([two_per_s], [55]), 4: Figures([200], [60])}
    return {title: figures for title, _, _ in EXERCISES}


def test_two_workers_are_compared_with_their_goal() -> None:
    reads, writes = report(_table(169), 4).splitlines()[4:6]
    assert "169 (1.69); 55 µs" in reads
    assert "**missed**" in reads
    assert "**missed**" not in writes
    assert "**missed**" not in report(_table(170), 4)


def test_the_generator_has_a_processor_of_its_own_where_there_are_three() -> None:
    cores = sorted(os.sched_getaffinity(0))
    assert generator_cores() == cores[-1:]
    assert (set(server_cores()) & set(generator_cores()) == set()) == (len(cores) >= 3)
    assert pinned([0, 2]) == ["taskset", "--cpu-list", "0,2"]
