"""States of answers, on results that are relabelled, reordered and changed."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from podstead.features.sparql.answers import answer_state

HEAD = "?s\t?o"
ROWS = [
    ("_:a", '"one"'),
    ("_:a", "_:b"),
    ("_:b", '"two _:a"'),
    ("<http://example.org/x>", "_:c"),
    ("<http://example.org/x>", ""),
]


def tsv(rows: Sequence[tuple[str, ...]], head: str = HEAD) -> bytes:
    return "".join(f"{line}\n" for line in (head, *map("\t".join, rows))).encode()


def state(rows: Sequence[tuple[str, ...]], *, is_ordered: bool = False, head: str = HEAD) -> str:
    return answer_state(tsv(rows, head), is_ordered=is_ordered)


@pytest.mark.parametrize("seed", range(20))
def test_neither_labels_nor_an_order_that_nobody_asked_for_count(seed: int) -> None:
    chosen = random.Random(seed)
    labels = dict(zip(("_:a", "_:b", "_:c"), chosen.sample(["_:x", "_:y", "_:z"], 3), strict=True))
    relabelled = [tuple(labels.get(cell, cell) for cell in row) for row in ROWS]
    assert state(relabelled, is_ordered=True) == state(ROWS, is_ordered=True)
    chosen.shuffle(relabelled)
    assert state(relabelled) == state(ROWS)


def test_whatever_is_another_answer_has_another_state() -> None:
    others = [
        ROWS[1:],
        [*ROWS, ROWS[0]],
        [("_:c", ROWS[0][1]), *ROWS[1:]],  # which blank node it is
        [("_:a", '"one"'), ("_:b", "_:a"), *ROWS[2:]],
        [(ROWS[0][1], ROWS[0][0]), *ROWS[1:]],
        [],
    ]
    states = {state(each) for each in (ROWS, *others)}
    states.add(state(ROWS, head="?s\t?p"))
    assert len(states) == len(others) + 2
    assert state(ROWS[::-1], is_ordered=True) != state(ROWS, is_ordered=True)


def test_blank_nodes_are_told_apart_by_those_of_others() -> None:
    """Two chains of four, and one of eight: each row looks like another one by itself."""
    one = [(f"_:{n}", f"_:{n + 1}") for n in range(8)]
    two = [(f"_:{n}", f"_:{n + 1}") for n in range(9) if n != 4]
    assert len(one) == len(two)
    assert state(one) != state(two)
