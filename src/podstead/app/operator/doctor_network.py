"""Looks at the server from outside: DNS, TLS, proxies, clocks, and the provider."""

import json
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from podstead.app.monitoring.diagnosis import Diagnosis, good, serious, skipped, warning
from podstead.config import Settings
from podstead.core.conditional import parse_http_date
from podstead.core.messages import counted
from podstead.outbound import probing
from podstead.web.authority import Authorities, is_loopback_url
from podstead.web.probe_endpoint import PREFIX, SeenRequest

SOON_DAYS: Final = 14
"""A certificate that is valid for less should have been renewed."""
MAX_CLOCK_DIFFERENCE_S: Final = 60
CLAIMED_ADDRESS: Final = "192.0.2.123"
"""An address for documentation (RFC 5737), which no client has."""

_REMEDIES: Final = {
    probing.CertificateFault.EXPIRED: (
        "Renew the certificate, and see why it was not renewed in time."
    ),
    probing.CertificateFault.NOT_YET_VALID: "Check the clock of this machine.",
    probing.CertificateFault.WRONG_NAME: "Obtain a certificate for the host of the base URL.",
    probing.CertificateFault.SELF_SIGNED: (
        "Obtain a certificate from an authority that browsers know, such as Let's Encrypt."
    ),
    probing.CertificateFault.NO_ISSUER: (
        "Have the server or the proxy send the intermediate certificates as well: use the file "
        "that contains the whole chain, often called fullchain.pem."
    ),
    probing.CertificateFault.OTHER: "Obtain a new certificate.",
}


@dataclass(frozen=True, slots=True)
class ClientChecks:
    """Looks at the server as its clients do."""

    settings: Settings
    probe_key: str | None
    """The key of a probe that the server recognizes; ``None`` if none could be stored."""

    def findings(self) -> Iterator[Diagnosis]:
        """All findings, in the order of a request's way."""
        url = self.settings.base_url
        yield from self._names()
        try:
            reply = probing.probe(f"{url}/")
        except probing.BadCertificate as error:
            yield good("base-url", f"There is a server at {url}.")
            remedy = _REMEDIES[error.fault]
            yield serious("tls", f"Clients refuse the certificate: {error}.", remedy)
            for check in ("proxy", "date", "issuer"):
                yield skipped(check, "The certificate is not accepted.")
            return
        except probing.NotReached as error:
            yield serious(
                "base-url",
                f"{url} cannot be reached from here: {error}.",
                "Start the server; check base-url, the port, the proxy and the firewall. If this "
                "machine cannot reach its own public address, run this command on another one.",
            )
            for check in ("tls", "proxy", "date", "issuer"):
                yield skipped(check, "The server cannot be reached.")
            return
        yield self._tls(reply)
        yield from self._way()
        yield _date(reply)
        yield self._issuer()

    def _names(self) -> Iterator[Diagnosis]:
        urls = {self.settings.base_url, self.settings.issuer}
        for url in sorted(urls):
            host = urlsplit(url).hostname or ""
            try:
                found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
            except OSError as error:
                yield serious(
                    "dns",
                    f"{host} has no address: {error.strerror}.",
                    "Add an A or AAAA record for it, or correct base-url.",
                )
                continue
            addresses = sorted({str(entry[4][0]).partition("%")[0] for entry in found})
            shown = f"{host} has the address {', '.join(addresses)}."
            private = not any(ip_address(each).is_global for each in addresses)
            if private and not is_loopback_url(url):
                yield warning(
                    "dns",
                    shown,
                    "Nobody outside of this network can reach it. If others should, have the name "
                    "lead to a public address.",
                )
            else:
                yield good("dns", shown)

    def _tls(self, reply: probing.ProbeReply) -> Diagnosis:
        days = reply.certificate_days
        if days is None:
            if is_loopback_url(self.settings.base_url):
                return skipped("tls", "The base URL leads to this machine only.")
            return serious(
                "tls",
                "The base URL begins with http://, so passwords and tokens are sent in clear.",
                "Set ssl-cert and ssl-key, or run the server behind a proxy that speaks HTTPS, and "
                "give it a base-url that begins with https://.",
            )
        left = counted(int(days), "day")
        if days < SOON_DAYS:
            return warning(
                "tls",
                f"The certificate is valid for {left} more.",
                "Renew it now, and see why it was not renewed in time.",
            )
        return good("tls", f"Clients accept the certificate, which is valid for {left} more.")

    def _way(self) -> Iterator[Diagnosis]:
        """Whether the address leads here, and what proxies do on the way."""
        url = self.settings.base_url
        if self.probe_key is None:
            yield skipped("proxy", "Nothing can be stored that this server would recognize.")
            return
        try:
            place = f"{url}{PREFIX}{self.probe_key}"
            plain = _seen(place)
            claimed = _seen(place, X_Forwarded_For=CLAIMED_ADDRESS)
        except probing.NotReached as error:
            yield serious("base-url", f"{url} cannot be reached reliably: {error}.", "Try again.")
            return
        if plain is None or claimed is None:
            yield serious(
                "base-url",
                f"Another server answers at {url}, or one with another data root.",
                "Check base-url and root, and where the proxy leads.",
            )
            yield skipped("proxy", "Another server answers.")
            return
        yield good("base-url", f"{url} leads to this server.")
        yield self._proxy(plain, claimed)

    def _proxy(self, plain: SeenRequest, claimed: SeenRequest) -> Diagnosis:
        proxies = Authorities(frozenset(), self.settings.trusted_proxies)
        peer_is_proxy = proxies.trusts(plain.client_address)
        if claimed.client_address == CLAIMED_ADDRESS and plain.forwarded_for is not None:
            return serious(
                "proxy",
                "The proxy passes on the X-Forwarded-For of clients, so that anybody can claim any "
                "address.",
                "Have it set the field to the client's address, or append that.",
            )
        if plain.forwarded_for is not None and plain.client_address not in _hops(plain):
            return serious(
                "proxy",
                f"Requests come from {plain.client_address}, a proxy that is not trusted, so all "
                "clients share its limits.",
                f"Set --trusted-proxy {plain.client_address}.",
            )
        if peer_is_proxy and plain.forwarded_for is None:
            field = "Forwarded" if plain.forwarded else "no address of the client"
            return serious(
                "proxy",
                f"The proxy {plain.client_address} sends {field}; the server reads "
                "X-Forwarded-For.",
                "Have the proxy set X-Forwarded-For to the client's address.",
            )
        return self._harmless(plain)

    def _harmless(self, plain: SeenRequest) -> Diagnosis:
        """What remains if nobody's address is lost or claimed."""
        scheme = urlsplit(self.settings.base_url).scheme
        if plain.forwarded_proto not in (None, scheme):
            return warning(
                "proxy",
                f"X-Forwarded-Proto is {plain.forwarded_proto}, but base-url begins with {scheme}.",
                "Correct base-url, or what the proxy sends.",
            )
        if plain.forwarded_for is not None:
            return good(
                "proxy", f"The proxy passes on the client's address: {plain.client_address}."
            )
        if self.settings.trusted_proxies:
            return warning(
                "proxy",
                "The request came past the proxies that are trusted.",
                "If others should use only the proxy, have base-url lead there, and close the port "
                "of the server.",
            )
        return good("proxy", "There is no proxy.")

    def _issuer(self) -> Diagnosis:
        if not self.settings.idp:
            return skipped("issuer", "The identity provider is off.")
        issuer = self.settings.issuer
        remedy = "Have the whole host of the issuer lead to this server, and check idp-base-url."
        try:
            stated = _json(f"{issuer}/.well-known/openid-configuration")
            keys = _json(str(stated.get("jwks_uri")))
        except probing.NotReached as error:
            return serious("issuer", f"Applications cannot read about {issuer}: {error}.", remedy)
        if str(stated.get("issuer", "")).rstrip("/") != issuer:
            return serious(
                "issuer", f"{issuer} states the issuer {stated.get('issuer')}, another one.", remedy
            )
        if not keys.get("keys"):
            return serious("issuer", f"{issuer} publishes no keys.", remedy)
        return good("issuer", f"Applications can read about {issuer} and its keys.")


def _date(reply: probing.ProbeReply) -> Diagnosis:
    date_s = parse_http_date(reply.fields.get("date", ""))
    if date_s is None:
        return warning("date", "The response has no date.", "Have the proxy pass on Date.")
    difference_s = time.time() - date_s
    shown = f"The date of the response differs by {counted(round(abs(difference_s)), 'second')}"
    if abs(difference_s) > MAX_CLOCK_DIFFERENCE_S:
        return serious(
            "date",
            f"{shown} from the clock here, so tokens may be refused.",
            "Synchronize the clocks of this machine and of the proxy (NTP).",
        )
    return good("date", f"{shown}.")


def _hops(seen: SeenRequest) -> list[str]:
    return [hop.strip() for hop in (seen.forwarded_for or "").split(",")]


def _seen(url: str, **fields: str) -> SeenRequest | None:
    """What the server saw of a request; ``None`` if another server answered. Raises NotReached."""
    reply = probing.probe(
        url, fields={name.replace("_", "-"): value for name, value in fields.items()}
    )
    if reply.status != 200:
        return None
    try:
        return msgspec.json.decode(reply.content, type=SeenRequest)
    except msgspec.DecodeError:
        return None


def _json(url: str) -> dict[str, Any]:
    """Raises NotReached."""
    reply = probing.probe(url, fields={"Accept": "application/json"})
    try:
        document = json.loads(reply.content)
    except ValueError:
        document = None
    if reply.status != 200 or not isinstance(document, dict):
        raise probing.NotReached(f"{url} has the status {reply.status}")
    return document
