"""Lays out linked data as a drawing: what a document is about, and around it what that refers to.

The layout is radial and deterministic: each node gets a sector of the circle by the number of
leaves below it, and a ring by its distance from the center. Pure.
"""

import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from podstead.core import vocab
from podstead.features.previews.cards import read_cards
from podstead.features.previews.labels import name_in, name_of_iri, shortened
from podstead.rdf.graph import BlankNode, Graph, Iri, Literal, Object, Subject
from podstead.web.pages.links import Address, Links

MAX_NODES: Final = 36
MAX_EDGES: Final = 60
_RING: Final = 170
_MARGIN: Final = 100
_STRETCH: Final = 1.6
_NAME_CHARACTERS: Final = 22
_TYPE: Final = Iri(vocab.RDF_TYPE)

Node = Object


@dataclass(frozen=True, slots=True)
class DrawnNode:
    """A node at its place. ``shape`` is ``thing``, ``blank`` or ``literal``."""

    x: float
    y: float
    name: str
    full_name: str
    shape: str
    link: Address | None


@dataclass(frozen=True, slots=True)
class DrawnEdge:
    """A line between two nodes, with the position of its name."""

    x1: float
    y1: float
    x2: float
    y2: float
    name: str

    @property
    def middle(self) -> tuple[float, float]:
        return round((self.x1 + self.x2) / 2, 1), round((self.y1 + self.y2) / 2, 1)


@dataclass(frozen=True, slots=True)
class Drawing:
    """A drawing of the given size; ``more`` nodes did not fit."""

    width: int
    height: int
    nodes: tuple[DrawnNode, ...]
    edges: tuple[DrawnEdge, ...]
    more: int


def draw(graph: Graph, links: Links, language: str = "en") -> Drawing:
    """The drawing of a graph."""
    edges = [(s, p, o) for s, p, o in graph if p != _TYPE]
    nodes = list(dict.fromkeys([*graph.subjects(), *(o for _, _, o in edges)]))
    neighbours: dict[Node, list[Node]] = {node: [] for node in nodes}
    for subject, _, value in edges:
        neighbours[subject].append(value)
        neighbours[value].append(subject)
    tree = _Tree(_roots(graph, links), neighbours)
    places, width, height = _fitted(tree.places())
    drawn_edges = [
        DrawnEdge(
            *places[s],
            *places[o],
            shortened(name_of_iri(p.value, language), _NAME_CHARACTERS),
        )
        for s, p, o in edges
        if s in places and o in places
    ][:MAX_EDGES]
    drawn_nodes = [_drawn(node, place, graph, links, language) for node, place in places.items()]
    return Drawing(width, height, tuple(drawn_nodes), tuple(drawn_edges), len(nodes) - len(places))


def _roots(graph: Graph, links: Links) -> list[Subject]:
    """The subjects by importance, in the order of the cards."""
    named = [Iri(card.iri) for card in read_cards(graph, links).cards if card.iri is not None]
    return list(dict.fromkeys([*named, *graph.subjects()]))


class _Tree:
    """A breadth-first tree of the graph, up to the number of nodes that are drawn."""

    def __init__(self, roots: Sequence[Subject], neighbours: Mapping[Node, Sequence[Node]]) -> None:
        self.depth: dict[Node, int] = {}
        self._children: dict[Node, list[Node]] = {}
        self._roots: list[Node] = []
        for root in roots:
            if root not in self.depth and len(self.depth) < MAX_NODES:
                self._grow(root, neighbours)
        # Several roots share the first ring around an empty middle.
        if len(self._roots) > 1:
            for node in self.depth:
                self.depth[node] += 1

    def _grow(self, root: Node, neighbours: Mapping[Node, Sequence[Node]]) -> None:
        self._roots.append(root)
        self.depth[root] = 0
        waiting = deque([root])
        while waiting:
            node = waiting.popleft()
            children = self._children[node] = []
            for neighbour in neighbours[node]:
                if neighbour not in self.depth and len(self.depth) < MAX_NODES:
                    self.depth[neighbour] = self.depth[node] + 1
                    children.append(neighbour)
                    waiting.append(neighbour)

    def places(self) -> dict[Node, tuple[float, float]]:
        """Each node's place relative to the middle."""
        # Children come after their parents, so the leaves are counted in reverse order.
        leaves: dict[Node, int] = {}
        for node in reversed(self.depth):
            leaves[node] = sum(leaves[child] for child in self._children[node]) or 1
        places: dict[Node, tuple[float, float]] = {}
        total = sum(leaves[root] for root in self._roots)
        sectors: deque[tuple[Node, float, float]] = deque()
        start = -math.pi / 2
        for root in self._roots:
            width = 2 * math.pi * leaves[root] / total
            sectors.append((root, start, width))
            start += width
        while sectors:
            node, start, width = sectors.popleft()
            angle = start + width / 2
            radius = _RING * self.depth[node]
            places[node] = (radius * math.cos(angle), radius * math.sin(angle))
            at = start
            for child in self._children[node]:
                share = width * leaves[child] / leaves[node]
                sectors.append((child, at, share))
                at += share
        return places


def _fitted(
    places: Mapping[Node, tuple[float, float]],
) -> tuple[dict[Node, tuple[float, float]], int, int]:
    """The positions in a drawing that is as small as possible, and its width and height.

    The rings are wider than high, as the nodes with their names are.
    """
    if not places:
        return {}, 2 * _MARGIN, 2 * _MARGIN
    stretched = {node: (x * _STRETCH, y) for node, (x, y) in places.items()}
    left = min(x for x, _ in stretched.values()) - _MARGIN
    top = min(y for _, y in stretched.values()) - _MARGIN / 2
    fitted = {node: (round(x - left, 1), round(y - top, 1)) for node, (x, y) in stretched.items()}
    width = max(x for x, _ in fitted.values()) + _MARGIN
    height = max(y for _, y in fitted.values()) + _MARGIN / 2
    return fitted, round(width), round(height)


def _drawn(
    node: Node, place: tuple[float, float], graph: Graph, links: Links, language: str
) -> DrawnNode:
    if isinstance(node, Literal):
        text = " ".join(node.value.split())
        name = shortened(text, _NAME_CHARACTERS)
        return DrawnNode(*place, name, shortened(text, 200), "literal", None)
    named = name_in(graph, node, language)
    if isinstance(node, BlankNode):
        return DrawnNode(
            *place, shortened(named or "", _NAME_CHARACTERS), named or "", "blank", None
        )
    name = shortened(named or name_of_iri(node.value, language), _NAME_CHARACTERS)
    return DrawnNode(*place, name, node.value, "thing", links.of(node.value))
