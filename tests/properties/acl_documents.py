"""ACL documents of every kind, well-formed or not, for properties that hold for all of them."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from tests.support.wac_world import BASE, BOB, CAROL

CONTAINER = f"{BASE}/pod/c/"
ACL_URL = CONTAINER + ".acl"
GROUPS = {
    f"{CONTAINER}g#one": {BOB},
    f"{CONTAINER}g#two": {CAROL},
    f"{CONTAINER}g#none": set[str](),
}
ORIGINS = ["https://app.example", "https://other.example"]


def some(*choices: str, min_size: int = 0) -> st.SearchStrategy[tuple[str, ...]]:
    return st.lists(st.sampled_from(choices), unique=True, min_size=min_size, max_size=3).map(tuple)


@dataclass(frozen=True)
class Rule:
    """One authorization as it will be written, well-formed or not."""

    types: tuple[str, ...]
    agents: tuple[str, ...]
    classes: tuple[str, ...]
    groups: tuple[str, ...]
    origins: tuple[str, ...]
    access_to: tuple[str, ...]
    default: tuple[str, ...]
    modes: tuple[str, ...]

    def turtle(self, number: int) -> str:
        statements = [
            ("a", self.types),
            ("acl:agent", [f"<{agent}>" for agent in self.agents]),
            ("acl:agentClass", self.classes),
            ("acl:agentGroup", [f"<{group}>" for group in self.groups]),
            ("acl:origin", [f"<{origin}>" for origin in self.origins]),
            ("acl:accessTo", [f"<{target}>" for target in self.access_to]),
            ("acl:default", [f"<{target}>" for target in self.default]),
            ("acl:mode", self.modes),
        ]
        return "\n".join(
            f"<#rule{number}> {predicate} {', '.join(objects)}."
            for predicate, objects in statements
            if objects
        )


_TARGETS = ("./", "./", CONTAINER, "../c", "doc", "../")
_TYPES = [("acl:Authorization",)] * 4 + [("ex:Rule",), ("ex:Rule", "acl:Authorization")]
rules_strategy = st.builds(
    Rule,
    types=st.sampled_from(_TYPES),
    agents=some(BOB, CAROL, "https://nobody.example/#x"),
    classes=some("foaf:Agent", "acl:AuthenticatedAgent", "ex:Friends", "foaf:Person"),
    groups=some(*GROUPS),
    origins=st.one_of(st.just(()), some(*ORIGINS)),
    access_to=some(*_TARGETS),
    default=some(*_TARGETS),
    modes=some("acl:Read", "acl:Write", "acl:Append", "acl:Control", "ex:Fly", "acl:Share"),
)
documents = st.lists(rules_strategy, max_size=5)
requesters = st.sampled_from([{BOB}, {CAROL}, {BOB, CAROL}, {"https://stranger.example/#me"}])
origins = st.sampled_from([None, *ORIGINS, "https://third.example"])


def turtle(document: list[Rule]) -> str:
    return "\n".join(rule.turtle(number) for number, rule in enumerate(document))


PLAIN = Rule(("acl:Authorization",), (BOB,), (), (), (), ("./",), ("./",), ("acl:Write",))
