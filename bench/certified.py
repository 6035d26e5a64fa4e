"""How fast are reads by a client that presents a certificate of its WebID (WebID-TLS)?

wrk does not support client certificates, so `ab` generates this load: over persistent connections
with one handshake each, or with a handshake for each request.
"""

from __future__ import annotations

from dataclasses import dataclass

from bench.documents import Subject
from bench.exercises import require_statuses
from bench.load import Load, Outcome
from bench.messages import Answer, Request, WrongAnswer
from bench.site import Site


@dataclass(frozen=True, slots=True)
class ReadByCertificate:
    """GET of one subject that only the owner may read, who shows a certificate."""

    subject: Subject
    accept: str
    connection_each: bool = False

    def furnish(self, site: Site) -> None:
        """Store the subject."""
        self.subject.furnish(site)

    def load(self, site: Site, label: str) -> Load:
        """The same request each time."""
        del label
        self._judged(site)
        return Load(
            [self._request(site)],
            connection_each=self.connection_each,
            certificate=site.certificate,
        )

    def verify(self, site: Site, label: str, load: Load, outcome: Outcome) -> None:
        """Every answer had the same length as the right one, and a status of success."""
        del label, load
        require_statuses(outcome)
        size_bytes = len(self._judged(site).body)
        # Of an answer that the end of the round cuts off, `ab` adds what came to the content.
        cut_off = outcome.connections if self.connection_each else 0
        least, most = (
            answers * size_bytes for answers in (outcome.answered, outcome.answered + cut_off)
        )
        if not least <= outcome.received_bytes <= most:
            raise WrongAnswer(f"{outcome.received_bytes} bytes of content instead of {least}")

    def _request(self, site: Site) -> Request:
        return site.request("GET", self.subject.path, headers={"Accept": self.accept})

    def _judged(self, site: Site) -> Answer:
        site.get(self.subject.path, self.accept).require(401, 403)
        answer = site.certified().send(self._request(site)).require(200)
        self.subject.judge(site, answer, self.accept)
        return answer
