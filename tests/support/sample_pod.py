"""Pods that look lived in, for pictures of the pages: three people, their photos and notes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

from tests.support.client import Client
from tests.support.people import PASSWORD
from tests.support.sample_photos import LANDSCAPES, photo, portrait
from tests.support.server import ServerProcess

OWNER: Final = "mara"
FRIEND: Final = "jonas"
SISTER: Final = "lena"
PEOPLE: Final = (OWNER, FRIEND, SISTER)

_JSON = {"Content-Type": "application/json"}
_PORTRAITS = {
    OWNER: portrait((150, 190, 200), (238, 200, 176), (92, 52, 36), (36, 92, 110)),
    SISTER: portrait((206, 186, 214), (236, 196, 170), (176, 120, 62), (92, 62, 122)),
}
_LENA = """@prefix vcard: <http://www.w3.org/2006/vcard/ns#> .
@prefix foaf: <http://xmlns.com/foaf/0.1/> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .

<#lena>
    a vcard:Individual ;
    vcard:fn "Lena Lind" ;
    vcard:hasPhoto <lena.jpg> ;
    vcard:role "Boat builder" ;
    vcard:bday "1991-04-17"^^xsd:date ;
    vcard:hasEmail <mailto:lena@lind.example> ;
    vcard:hasTelephone <tel:+46-8-555-0123> ;
    vcard:hasAddress <#home> ;
    vcard:url <https://lind.example/> ;
    vcard:note "Has the key to the boathouse."@en ;
    foaf:knows <jonas.ttl#jonas> .

<#home>
    a vcard:Home ;
    vcard:street-address "Hamngatan 12" ;
    vcard:postal-code "185 31" ;
    vcard:locality "Vaxholm" .
"""
_JONAS = """@prefix vcard: <http://www.w3.org/2006/vcard/ns#> .

<#jonas>
    a vcard:Individual ;
    vcard:fn "Jonas Brandt" ;
    vcard:hasEmail <mailto:jonas@brandt.example> .
"""
_PACKING = """# Packing list

- [x] Tent, pegs, the *small* hammer
- [x] Stove and two cans of gas
- [ ] Rain jackets
- [ ] Lena's harmonica

We meet at **7:40** under the clock.
"""
_COSTS = "day;what;euro\nFriday;train;84.00\nFriday;groceries;46.20\nSaturday;canoe;60.00\n"
_ROUTE = """{
  "type": "LineString",
  "coordinates": [[18.30, 59.40], [18.42, 59.44], [18.55, 59.47]]
}
"""


@dataclass(frozen=True, slots=True)
class SamplePods:
    """The pods of ``PEOPLE`` at a provider."""

    provider: ServerProcess

    def create(self) -> None:
        """All accounts, and what they store."""
        for name in PEOPLE:
            sent = {"name": name, "email": f"{name}@example.org", "password": PASSWORD}
            answer = self.provider.request("POST", "/.pods", json.dumps(sent), _JSON)
            assert answer.status == 201, answer.text
        with self.owner() as owner:
            for path, media_type, content in _documents():
                answer = owner.put(path, content, media_type)
                assert answer.status == 201, f"{path}: {answer.text}"
            for folder, rules in (
                ("photos/", [("Read", f"acl:agent {self._web_id(SISTER)}")]),
                ("recipes/", [("Read", "acl:agentClass foaf:Agent")]),
                (
                    "trip to the archipelago/",
                    [
                        ("Read, acl:Write", f"acl:agent {self._web_id(FRIEND)}"),
                        ("Read", f"acl:agent {self._web_id(SISTER)}"),
                    ],
                ),
            ):
                self._set_rules(owner, _path(folder), rules)
        with self.owner(FRIEND) as friend:
            changed = friend.put(
                _path("trip to the archipelago/costs.csv"),
                f"{_COSTS}Sunday;ferry;31.50\n",
                "text/csv",
            )
            assert changed.status == 204, changed.text

    @contextmanager
    def owner(self, name: str = OWNER) -> Iterator[Client]:
        """A client of one of the people."""
        sent = json.dumps({"username": name, "password": PASSWORD})
        answer = self.provider.request("POST", "/idp/credentials", sent, _JSON)
        assert answer.status == 200, answer.text
        with Client(self.provider, token=json.loads(answer.body)["access_token"]) as client:
            yield client

    @staticmethod
    def picture_of_owner() -> bytes:
        """For the profile."""
        return _PORTRAITS[OWNER]

    def _set_rules(self, owner: Client, folder: str, rules: list[tuple[str, str]]) -> None:
        everyone = [("Read, acl:Write, acl:Control", f"acl:agent {self._web_id(OWNER)}"), *rules]
        lines = [
            f"<#{number}> a acl:Authorization; {who}; acl:accessTo <./>; acl:default <./>; "
            f"acl:mode acl:{modes}."
            for number, (modes, who) in enumerate(everyone)
        ]
        prefixes = (
            "@prefix acl: <http://www.w3.org/ns/auth/acl#>.\n"
            "@prefix foaf: <http://xmlns.com/foaf/0.1/>.\n"
        )
        answer = owner.put(f"{folder}.acl", prefixes + "\n".join(lines), "text/turtle")
        assert answer.status == 201, answer.text

    def _web_id(self, name: str) -> str:
        return f"<{self.provider.base_url}/{name}/#me>"


def _documents() -> Iterator[tuple[str, str, bytes]]:
    for name in LANDSCAPES:
        yield _path(f"photos/{name}.jpg"), "image/jpeg", photo(name)
    for path, media_type, text in (
        ("contacts/lena.ttl", "text/turtle", _LENA),
        ("contacts/jonas.ttl", "text/turtle", _JONAS),
        ("recipes/cardamom buns.md", "text/markdown", "# Cardamom buns\n\n500 g flour …\n"),
        ("trip to the archipelago/packing list.md", "text/markdown", _PACKING),
        ("trip to the archipelago/costs.csv", "text/csv", _COSTS),
        ("trip to the archipelago/route.json", "application/json", _ROUTE),
        ("trip to the archipelago/ferry.ics", "text/calendar", "BEGIN:VCALENDAR\n" * 40),
        ("letter to the landlord.txt", "text/plain", "Dear Mr Holm,\n" * 20),
        ("books.jsonld", "application/ld+json", '{"@id": "#books"}'),
    ):
        yield _path(path), media_type, text.encode()
    yield _path("contacts/lena.jpg"), "image/jpeg", _PORTRAITS[SISTER]
    yield (
        _path("trip to the archipelago/island at dawn.jpg"),
        "image/jpeg",
        photo("Sunrise"),
    )
    yield _path("rowing.mp4"), "video/mp4", bytes(3_400_000)
    yield _path("lease.pdf"), "application/pdf", b"%PDF-1.4\n" + bytes(182_000)


def _path(name: str) -> str:
    return f"/{OWNER}/{quote(name)}"
