"""Which server takes part in which case, and whose wrong statuses are left out."""

from __future__ import annotations

import pytest

from bench.cases import CASES
from bench.exercises import good_answers
from bench.load import Outcome
from bench.messages import WrongAnswer
from bench.peers import SERVERS
from bench.servers import Feature


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
