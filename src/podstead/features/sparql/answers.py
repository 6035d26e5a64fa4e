"""The state of an answer: equal for answers that say the same. Pure."""

from collections import defaultdict
from hashlib import sha256
from typing import Final

_ROUNDS: Final = 8


def answer_state(content: bytes, *, is_ordered: bool) -> str:
    """The state of a result as text/tab-separated-values.

    Without an order, the rows may come in any. Blank nodes have other labels each time, so each is
    told from the others by the rows that it is in, as far as some rounds of that tell.
    """
    head, *rows = (line.split(b"\t") for line in content.removesuffix(b"\n").split(b"\n"))
    names = {cell: b"_:" for row in rows for cell in row if cell.startswith(b"_:")}
    for _ in range(_ROUNDS if names else 0):
        found: dict[bytes, list[bytes]] = defaultdict(list)
        for number, row in enumerate(rows):
            shown = _digest([names.get(cell, cell) for cell in row])
            for column, cell in enumerate(row):
                if cell in names:
                    place = b"%d %d" % (column, number if is_ordered else 0)
                    found[cell].append(_digest([place, shown]))
        refined = {cell: b"_:" + _digest(sorted(places)) for cell, places in found.items()}
        if len(set(refined.values())) == len(set(names.values())):
            break
        names = refined
    lines = [b"\t".join(names.get(cell, cell) for cell in row) for row in rows]
    return _digest([*head, *(lines if is_ordered else sorted(lines))]).decode()


def _digest(parts: list[bytes]) -> bytes:
    return sha256(b"\n".join(parts)).hexdigest()[:32].encode()
