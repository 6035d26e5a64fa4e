"""How fast are reads that are signed with a Nostr key (NIP-98)?

Each request has an event of its own, signed before the round. This module does not check that a
used event is refused, because javascript-solid-server accepts it again.
"""

from __future__ import annotations

import base64
import hashlib
import json
import time
from dataclasses import dataclass, field, replace

from coincurve import PrivateKey, PublicKeyXOnly

from bench.documents import Subject
from bench.exercises import require_bytes, require_statuses
from bench.load import Load, Outcome
from bench.messages import JSON_LD, PROOF, Answer, Request
from bench.site import Site, Stored

_ACL = "http://www.w3.org/ns/auth/acl#"
_FORBIDDEN = 403


class NostrKey:
    """A key that signs requests."""

    def __init__(self) -> None:
        """Make a new one."""
        self._private = PrivateKey()
        self.public = PublicKeyXOnly.from_secret(self._private.secret).format().hex()

    @property
    def did(self) -> str:
        """The agent that access rules name."""
        return f"did:nostr:{self.public}"

    def event(self, method: str, url: str) -> str:
        """Return the base64 of a fresh event, good for one request in the next minute."""
        now_s, kind, tags = int(time.time()), 27235, [["u", url], ["method", method]]
        said = [0, self.public, now_s, kind, tags, ""]
        event_id = hashlib.sha256(json.dumps(said, separators=(",", ":")).encode()).digest()
        event = {
            "id": event_id.hex(),
            "pubkey": self.public,
            "created_at": now_s,
            "kind": kind,
            "tags": tags,
            "content": "",
            "sig": self._private.sign_schnorr(event_id).hex(),
        }
        return base64.b64encode(json.dumps(event, separators=(",", ":")).encode()).decode()


@dataclass(frozen=True, slots=True)
class ReadSigned:
    """GET of one subject that an access rule opens to a key, with a fresh event each.

    `events_per_s` is more than any server answers: where they end, the round does.
    """

    subject: Subject
    accept: str
    events_per_s: int = 8000
    seconds: int = 3
    key: NostrKey = field(default_factory=NostrKey)

    def furnish(self, site: Site) -> None:
        """Store the subject and its rule, which leaves the owner out, once."""
        if site.get(self.subject.path, self.accept, authorized=True).status == _FORBIDDEN:
            return
        self.subject.furnish(site)
        rule = {
            "@context": {"acl": _ACL},  # javascript-solid-server knows the terms by this prefix
            "@id": "#key",
            "@type": "acl:Authorization",
            "acl:agent": {"@id": self.key.did},
            "acl:accessTo": {"@id": site.url(self.subject.path)},
            "acl:mode": [{"@id": f"acl:{mode}"} for mode in ("Read", "Write", "Control")],
        }
        site.store([Stored(f"{self.subject.path}.acl", JSON_LD, json.dumps(rule).encode())])

    def load(self, site: Site, label: str) -> Load:
        """The same request each time, with another event."""
        del label
        site.get(self.subject.path, self.accept).require(401, 403)
        headers = {"Accept": self.accept, "Authorization": f"Nostr {PROOF}"}
        request = site.request("GET", self.subject.path, headers=headers)
        self._judged(site, request)
        count = self.events_per_s * self.seconds
        events = [self.key.event("GET", site.url(self.subject.path)) for _ in range(count)]
        return Load([request], tally=True, proofs=events)

    def verify(self, site: Site, label: str, load: Load, outcome: Outcome) -> None:
        """Every answer was right."""
        del label
        require_statuses(outcome, 200)
        require_bytes(self._judged(site, load.requests[0]), outcome)

    def _judged(self, site: Site, request: Request) -> Answer:
        event = self.key.event("GET", site.url(self.subject.path))
        signed = {**request.headers, "Authorization": f"Nostr {event}"}
        answer = site.send(replace(request, headers=signed)).require(200)
        self.subject.judge(site, answer, self.accept)
        return answer
