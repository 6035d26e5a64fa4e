"""Which servers are compared, and how is each started so that it performs best?

There is one class for each server: ours here, the others in `peers`, with the list of all. A server
declares the features it supports, and a case those it needs; a server that lacks one is left out of
that case, with the reason. Two servers may share a column: the first that supports what the case
needs is used, so javascript-solid-server runs without content negotiation wherever that is enough.
"""

from __future__ import annotations

import json
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Any, ClassVar, Final
from urllib.parse import urlsplit

from bench.certificates import ClientCertificate, ServerCertificate
from bench.messages import Request
from bench.processes import RunningServer, free_port
from bench.provider import Provider
from bench.site import LOOPBACK, Headers, Site, Stored, TlsClient

POD: Final = "alice"
JSON: Final = "application/json"
N3: Final = "text/n3"
CERT: Final = "http://www.w3.org/ns/auth/cert#"


class Feature(Enum):
    """What a case may need of a server; the value completes "does not support …"."""

    CREDENTIALS = "access control"
    CONTAINERS = "containers"
    CONVERSION = "conversion of RDF"
    WRITES = "writing"
    PROOFS = "tokens from the benchmark's provider"
    SIGNATURES = "requests signed with a Nostr key"
    LEGACY_SOCKETS = "the protocol solid-0.1"
    CHANNELS = "the Solid Notifications Protocol"
    TLS = "TLS"
    CERTIFICATES = "client certificates"
    PAGES = "pages for people"


OF_PODSTEAD: Final = frozenset(Feature) - {Feature.TLS, Feature.CERTIFICATES}
WITHOUT_TLS: Final = OF_PODSTEAD - {Feature.PAGES}


class Server(ABC):
    """One server to be measured: started in a folder of its own, stopped by its process id."""

    column: ClassVar[str]
    features: frozenset[Feature] = frozenset(Feature)
    asked_only_for: frozenset[Feature] = frozenset()
    """It takes part only in the cases that need all of these."""
    is_excused: ClassVar[bool] = False
    """Whether wrong statuses are left out of its figures, where others' figures become void."""

    def __init__(self, folder: Path, provider: Provider) -> None:
        """Nothing is started; `folder` takes data and log."""
        folder.mkdir(parents=True)
        self.folder = folder
        self.provider = provider
        self.port = free_port()
        self._running: RunningServer | None = None
        self._site: Site | None = None

    def start(self) -> None:
        """Start the server and make its pod.

        Raises:
            NotStarted: the process did not come up.
            Missing: its program is not there.
            WrongAnswer: it did not make the pod.
        """
        command, environment = self.command()
        log = self.folder / "server.log"
        self._running = RunningServer(command, port=self.port, log=log, environment=environment)
        self._site = self.open_site()

    def stop(self) -> None:
        """End its processes; does nothing when it was not started."""
        if self._running is not None:
            self._running.stop()
            self._running = None

    @property
    def site(self) -> Site:
        """The started server as its clients see it."""
        assert self._site is not None, "not started"
        return self._site

    def rss_bytes(self) -> int:
        """Return the resident memory of the started server's process tree."""
        return self.running.rss_bytes()

    def cpu_s(self) -> float:
        """Return the processor time that the started server's process tree has taken so far."""
        return self.running.cpu_s()

    def takes_part(self, needs: frozenset[Feature]) -> bool:
        """Whether it is measured in a case with these needs."""
        return self.asked_only_for <= needs <= self.features

    @property
    def running(self) -> RunningServer:
        """The processes of the started server."""
        assert self._running is not None, "not started"
        return self._running

    @abstractmethod
    def command(self) -> tuple[list[str], Headers]:
        """Return the command line and the environment variables to add."""

    @abstractmethod
    def open_site(self) -> Site:
        """Make the pod of the started server and return the site with its credentials."""


class Podstead(Server):
    """This server, with one worker and otherwise as `podstead start` runs it by default."""

    column = "podstead"
    features = OF_PODSTEAD
    scheme = "http"
    workers = 1

    def command(self) -> tuple[list[str], Headers]:
        program = str(Path(sys.executable).with_name("podstead"))
        where = ["--host", LOOPBACK, "--port", str(self.port), "--root", str(self.folder / "data")]
        base = ["--base-url", f"{self.scheme}://localhost:{self.port}"]
        # All who watch are at one address here.
        limits = ["--sockets-per-address", "0", "--channels-per-agent", "0"]
        workers = ["--workers", str(self.workers)]
        return [program, "start", *where, *base, *limits, *workers, "--quiet"], {}

    def open_site(self) -> Site:
        site = pod_with_token(self.port, {})
        named = f"<#me> <http://www.w3.org/ns/solid/terms#oidcIssuer> <{self.provider.issuer}>."
        site.store([Stored("", "text/turtle", named.encode())])
        site.application = self.provider.application(site.url("#me"))
        return site


class PodsteadWithTwoWorkers(Podstead):
    """The same with two workers, asked only for writes: what do workers cost each other there?"""

    column = "podstead-2"
    asked_only_for = frozenset({Feature.WRITES})
    workers = 2


class PodsteadWithSocketsPort(Podstead):
    """The same with a port for WebSockets, asked only where somebody watches."""

    column = "podstead-sockets"
    features = frozenset({Feature.LEGACY_SOCKETS, Feature.CHANNELS})
    asked_only_for = features

    def command(self) -> tuple[list[str], Headers]:
        command, environment = super().command()
        return [*command, "--sockets-port", str(free_port())], environment


class PodsteadWithTls(Podstead):
    """The same over its ordinary TLS listener."""

    features = frozenset({Feature.TLS})
    scheme = "https"
    asking: ClassVar[tuple[str, ...]] = ()

    def command(self) -> tuple[list[str], Headers]:
        command, environment = super().command()
        files = ServerCertificate(self.folder)
        files.make()
        tls = ["--ssl-cert", str(files.certificate), "--ssl-key", str(files.key), *self.asking]
        return [*command, *tls], environment

    def open_site(self) -> Site:
        return pod_with_token(self.port, {}, TlsClient(ServerCertificate(self.folder).certificate))


class PodsteadWithCertificates(PodsteadWithTls):
    """The same over the listener that asks for client certificates."""

    features = frozenset({Feature.CREDENTIALS, Feature.CERTIFICATES})
    asking = ("--webid-tls",)

    def open_site(self) -> Site:
        site = super().open_site()
        owner = ClientCertificate(site.url("#me"))
        key = owner.statement
        inserted = (
            f"<#me> <{CERT}key> [ <{CERT}modulus> "
            f'"{key["cert:modulus"]}"; <{CERT}exponent> {key["cert:exponent"]} ].'
        )
        patch = (
            "@prefix solid: <http://www.w3.org/ns/solid/terms#>.\n"
            f"_:patch a solid:InsertDeletePatch; solid:inserts {{ {inserted} }}."
        )
        request = site.request(
            *("PATCH", ""), headers={"Content-Type": N3}, body=patch, authorized=True
        )
        site.send(request).require(200, 204)
        site.certificate = owner.write(self.folder)
        return site


def pod_with_token(port: int, write_headers: Headers, tls: TlsClient | None = None) -> Site:
    """Make a pod by POST /.pods and return the site opened by the token in the answer."""
    site = Site(port, write_headers=write_headers, tls=tls)
    made = created_pod(site, {"name": POD})
    owner = {"Authorization": f"Bearer {made['token']}"}
    return Site(port, urlsplit(made["podUri"]).path, lambda: owner, write_headers, tls=tls)


def created_pod(site: Site, asked: Mapping[str, str]) -> dict[str, Any]:
    """Make a pod by POST /.pods and return what is said of it."""
    headers = {"Host": site.authority, "Content-Type": JSON, **site.write_headers}
    request = Request("POST", "/.pods", headers, json.dumps(asked))
    return dict(json.loads(site.send(request).require(201).body))
