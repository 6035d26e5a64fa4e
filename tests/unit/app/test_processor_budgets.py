"""How much processor time a requester may use, and when it may use more."""

from __future__ import annotations

from podstead.app.adapters.rdf_processes import BUDGET_S, WINDOW_S, ProcessorBudgets


class Clock:
    now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


def test_whoever_has_used_up_its_budget_waits_and_nobody_else() -> None:
    clock = Clock()
    budgets = ProcessorBudgets(now_s=clock)
    budgets.spend("a", BUDGET_S)
    assert budgets.wait_s("a") == 0, "it may use up all of it"
    budgets.spend("a", BUDGET_S / 2)
    assert budgets.wait_s("a") == WINDOW_S / 2
    assert budgets.wait_s("b") == 0
    clock.now_s += WINDOW_S / 2
    assert budgets.wait_s("a") == 0
    budgets.spend("a", BUDGET_S)
    assert budgets.wait_s("a") == WINDOW_S


def test_a_budget_is_full_again_after_a_pause() -> None:
    clock = Clock()
    budgets = ProcessorBudgets(now_s=clock)
    budgets.spend("a", BUDGET_S)
    clock.now_s += WINDOW_S
    budgets.spend("a", BUDGET_S)
    assert budgets.wait_s("a") == 0


def test_those_who_pause_take_no_memory() -> None:
    clock = Clock()
    budgets = ProcessorBudgets(now_s=clock)
    for number in range(25_000):
        budgets.spend(str(number), 0.001)
        clock.now_s += 0.01
    assert len(budgets._used) <= 10_000
