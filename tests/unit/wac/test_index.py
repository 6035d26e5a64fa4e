"""When the index over access rules says that what somebody has ends."""

from __future__ import annotations

import random

from podstead.core import vocab
from podstead.core.date_times import write_time
from podstead.wac.sharing.index import indexed_acl
from tests.support.wac_world import graph_of

SUBJECT = "http://localhost:3000/alice/f/"
WHO = ("acl:agentClass foaf:Agent", "acl:agent <http://b.example/#me>")
PREFIXES = f"""@prefix acl: <{vocab.ACL}>.
@prefix access: <{vocab.ACCESS}>.
@prefix foaf: <http://xmlns.com/foaf/0.1/>.
@prefix xsd: <http://www.w3.org/2001/XMLSchema#>.
"""


def rule(who: str, ends_ms: tuple[int, ...], *, applies: bool) -> str:
    conditions = "".join(
        " acl:condition [ a access:PeriodCondition; "
        f'access:ends "{write_time(each)}"^^xsd:dateTime ];'
        for each in ends_ms
    )
    place = "acl:accessTo" if applies else "acl:other"
    return f"[] a acl:Authorization; {who}; {place} <{SUBJECT}>;{conditions} acl:mode acl:Read."


def test_access_ends_with_the_last_of_its_rules_and_a_rule_with_its_first_end() -> None:
    chosen = random.Random(26)
    for _ in range(200):
        rules = [
            (
                chosen.choice(WHO),
                tuple(chosen.randrange(1, 9) * 1000 for _ in range(chosen.randrange(3))),
                chosen.random() < 0.8,
            )
            for _ in range(chosen.randrange(1, 5))
        ]
        turtle = PREFIXES + "\n".join(rule(who, ends, applies=does) for who, ends, does in rules)
        found = indexed_acl(graph_of(turtle, f"{SUBJECT}.acl"), subject_url=SUBJECT)
        listed = {} if found is None else {each.kind: each.ends_ms for each in found.grantees}
        expected = {}
        for who, kind in zip(WHO, ("everyone", "agent"), strict=True):
            ends = [min(ends, default=None) for of, ends, does in rules if of == who and does]
            if ends:
                expected[kind] = None if None in ends else max(filter(None, ends))
        assert listed == expected, turtle
