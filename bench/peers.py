"""The servers with which ours is compared, and the list of all that are measured."""

from __future__ import annotations

import base64
import json
import os
import time
from pathlib import Path
from typing import Any, ClassVar, Final
from urllib.parse import urlsplit

from bench.certificates import ClientCertificate, ServerCertificate
from bench.installation import npm_package, system_command
from bench.messages import ADDRESS, JSON_LD, OCTETS, Request
from bench.servers import (
    CERT,
    JSON,
    POD,
    WITHOUT_TLS,
    Feature,
    Podstead,
    PodsteadWithCertificates,
    PodsteadWithSocketsPort,
    PodsteadWithTls,
    PodsteadWithTwoWorkers,
    Server,
    created_pod,
    pod_with_token,
)
from bench.site import LOOPBACK, Headers, ProvenSite, Site, StaticSite, Stored, TlsClient

NODE: Final = {"NODE_ENV": "production"}
_ATTEMPTS: Final = 50


class Jss(Server):
    """javascript-solid-server, one process, simple tokens, without content negotiation."""

    column = "jss"
    package = ("javascript-solid-server", "0.0.81")
    features = WITHOUT_TLS - {
        Feature.CONVERSION,
        Feature.PROOFS,
        Feature.LEGACY_SOCKETS,
        Feature.CHANNELS,
    }

    @property
    def mode(self) -> str:
        """What is asked of the launcher."""
        return "plain"

    def command(self) -> tuple[list[str], Headers]:
        launcher = Path(__file__).with_name("jss.mjs")
        package = npm_package(*self.package)
        root = self.folder / "data"
        command = ["node", str(launcher), str(package), str(self.port), str(root), self.mode]
        return command, {**NODE, "TOKEN_SECRET": "only for the benchmark"}

    def open_site(self) -> Site:
        # It takes 60 writes a minute from one address, and has no setting for that.
        return pod_with_token(self.port, {"X-Forwarded-For": ADDRESS})


class JssWithConneg(Jss):
    """The same with `--conneg`, asked only where a conversion is needed."""

    features = Jss.features | {Feature.CONVERSION}

    @property
    def mode(self) -> str:
        """With content negotiation."""
        return "conneg"


class JssWithQuota(Jss):
    """The same with its storage quota on, as it is shipped, but one that no round fills.

    Concurrent writes corrupt its record of what is used, and answers of 500 follow. They are left
    out, and what is written before a round is written until it is accepted.
    """

    column = "jss-quota"
    asked_only_for = frozenset({Feature.WRITES})
    is_excused = True

    @property
    def mode(self) -> str:
        """With a quota."""
        return "quota"

    def open_site(self) -> Site:
        site = super().open_site()
        site.attempts = _ATTEMPTS
        return site


class JssWithQuotaAndConneg(JssWithQuota):
    """The same with `--conneg`."""

    features = JssWithConneg.features

    @property
    def mode(self) -> str:
        """With a quota and content negotiation."""
        return "quota-conneg"


class JssWithNotifications(Jss):
    """The same with `--notifications`, asked only where somebody watches."""

    features = frozenset({Feature.CREDENTIALS, Feature.WRITES, Feature.LEGACY_SOCKETS})

    @property
    def mode(self) -> str:
        """With notifications."""
        return "notifications"


class JssWithProvider(Jss):
    """The same, trusting the benchmark's provider; only its tokens open the pod."""

    features = frozenset({Feature.CREDENTIALS, Feature.PROOFS})

    @property
    def mode(self) -> str:
        """With the provider."""
        return self.provider.issuer

    def open_site(self) -> Site:
        account = {"email": "alice@example.org", "password": "only for the benchmark"}
        site = Site(self.port)
        made = created_pod(site, {"name": POD, **account})
        application = self.provider.application(str(made["webId"]))
        limits = {"X-Forwarded-For": ADDRESS}
        pod = urlsplit(made["podUri"]).path
        return ProvenSite(self.port, pod, write_headers=limits, application=application)


class JssWithCertificates(Jss):
    """The same over TLS, which asks for client certificates.

    It fetches the profile over the network, from itself, so it must trust its own certificate.
    """

    features = frozenset({Feature.TLS, Feature.CREDENTIALS, Feature.CERTIFICATES})

    @property
    def mode(self) -> str:
        """With a certificate, in this folder."""
        return f"tls:{self.folder}"

    def command(self) -> tuple[list[str], Headers]:
        files = ServerCertificate(self.folder)
        files.make()
        command, environment = super().command()
        return command, {**environment, "NODE_EXTRA_CA_CERTS": str(files.certificate)}

    def open_site(self) -> Site:
        trusted = ServerCertificate(self.folder).certificate
        site = pod_with_token(self.port, {"X-Forwarded-For": ADDRESS}, TlsClient(trusted))
        owner = ClientCertificate(site.url("profile/card#me"))
        # It came as a page with the same statements inside, which takes longer to read.
        profile = {"@context": {"cert": CERT}, "@id": "#me", "cert:key": owner.statement}
        site.store([Stored("profile/card", JSON_LD, json.dumps(profile).encode())])
        site.certificate = owner.write(self.folder)
        return site


class Css(Server):
    """@solid/community-server, one worker, its configuration for storage in files with WAC."""

    column = "css"
    package = ("@solid/community-server", "7.2.0")
    features = WITHOUT_TLS - {Feature.PROOFS, Feature.SIGNATURES, Feature.LEGACY_SOCKETS}

    def command(self) -> tuple[list[str], Headers]:
        package = npm_package(*self.package)
        preload = Path(__file__).with_name("loopback.cjs")
        where = ["--port", str(self.port), "--rootFilePath", str(self.folder / "data")]
        how = ["--config", "@css:config/file.json", "--loggingLevel", "warn"]
        base = ["--baseUrl", f"http://localhost:{self.port}/"]
        program = str(package / "bin" / "server.js")
        return ["node", "--require", str(preload), program, *where, *how, *base], NODE

    def open_site(self) -> Site:
        site = Site(self.port, f"/{POD}/", CssAccount(self.port).headers)
        owner = f"<#owner> a acl:Authorization; acl:agent <{site.url('profile/card#me')}>"
        acl = (
            "@prefix acl: <http://www.w3.org/ns/auth/acl#>.\n"
            f"{owner}; acl:mode acl:Read, acl:Write, acl:Control; "
            "acl:accessTo <./>; acl:default <./>.\n"
            "<#public> a acl:Authorization; acl:agentClass "
            "<http://xmlns.com/foaf/0.1/Agent>; acl:mode acl:Read; "
            "acl:accessTo <./>; acl:default <./>.\n"
        )
        site.store([Stored("public/.acl", "text/turtle", acl.encode())])
        return site


class Nginx(Server):
    """nginx with one worker and no access log, serving the bytes as files."""

    column = "nginx"
    features = frozenset()

    def command(self) -> tuple[list[str], Headers]:
        configuration = self.folder / "nginx.conf"
        (self.folder / "data").mkdir()
        configuration.write_text(self._configuration(), encoding="utf-8")
        program = str(system_command("nginx"))
        return [program, "-p", str(self.folder), "-c", str(configuration)], {}

    def open_site(self) -> Site:
        return StaticSite(self.port, root=self.folder / "data")

    def _configuration(self) -> str:
        temporary = "".join(
            f"  {kind}_temp_path {self.folder}/{kind};\n"
            for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        # As root its worker would change to an account that may not read the checkout.
        account = "user root;\n" if os.geteuid() == 0 else ""
        return (
            f"{account}daemon off;\nworker_processes 1;\n"
            f"pid {self.folder}/nginx.pid;\nerror_log {self.folder}/error.log;\n"
            "events { worker_connections 512; }\n"
            f"http {{\n{temporary}"
            "  access_log off;\n  sendfile on;\n  tcp_nopush on;\n"
            "  keepalive_requests 1000000000;\n"
            f"  types {{ application/ld+json jsonld; {OCTETS} bin; }}\n"
            f"  server {{ listen {LOOPBACK}:{self.port}; root {self.folder}/data; }}\n"
            "}\n"
        )


class CssAccount:
    """An account with a pod on a fresh community server, and its access tokens.

    Client credentials, the server's way for scripts. The token is a Bearer token, so a request
    costs no proof of possession, as it costs none on the other servers.
    """

    # Tokens live for 600 s.
    RENEWED_AFTER_S: ClassVar[float] = 240.0

    def __init__(self, port: int) -> None:
        """Make the account, the pod and the client credentials."""
        self._site = Site(port)
        self._token = ""
        self._token_from_s = -self.RENEWED_AFTER_S
        made = self._call("POST", "/.account/account/", {}, {})
        account = {"Authorization": f"CSS-Account-Token {made['authorization']}"}
        controls = self._call("GET", "/.account/", None, account)["controls"]
        login = {"email": "alice@example.org", "password": "only for the benchmark"}
        self._call("POST", urlsplit(controls["password"]["create"]).path, login, account)
        pod = self._call("POST", urlsplit(controls["account"]["pod"]).path, {"name": POD}, account)
        client = {"name": "bench", "webId": pod["webId"]}
        path = urlsplit(controls["account"]["clientCredentials"]).path
        made = self._call("POST", path, client, account)
        pair = f"{made['id']}:{made['secret']}"
        self._client = f"Basic {base64.b64encode(pair.encode()).decode()}"

    def headers(self) -> Headers:
        """Return the header with a token that is still valid for some minutes."""
        if time.monotonic() - self._token_from_s >= self.RENEWED_AFTER_S:
            form = "grant_type=client_credentials&scope=webid"
            typed = {
                "Content-Type": "application/x-www-form-urlencoded",
                "Authorization": self._client,
            }
            request = Request("POST", "/.oidc/token", {"Host": self._site.authority, **typed}, form)
            answer = self._site.send(request).require(200)
            self._token = str(json.loads(answer.body)["access_token"])
            self._token_from_s = time.monotonic()
        return {"Authorization": f"Bearer {self._token}"}

    def _call(self, method: str, path: str, body: object, headers: Headers) -> dict[str, Any]:
        together = {"Host": self._site.authority, "Accept": JSON, **headers}
        if body is not None:
            together["Content-Type"] = JSON
        text = "" if body is None else json.dumps(body)
        answer = self._site.send(Request(method, path, together, text)).require(200, 201)
        return dict(json.loads(answer.body))


SERVERS: Final[tuple[type[Server], ...]] = (
    Podstead,
    PodsteadWithTwoWorkers,
    PodsteadWithSocketsPort,
    PodsteadWithTls,
    PodsteadWithCertificates,
    Jss,
    JssWithConneg,
    JssWithQuota,
    JssWithQuotaAndConneg,
    JssWithNotifications,
    JssWithProvider,
    JssWithCertificates,
    Css,
    Nginx,
)
