"""How are client certificates read and verified in this deployment, if at all? (WebID-TLS)"""

from __future__ import annotations

from typing import TYPE_CHECKING

from podstead.authn.lookups import Lookups
from podstead.authn.web_id_documents import ProfileSources
from podstead.config import Settings
from podstead.core.clock import Clock
from podstead.web.authority import Authorities, is_loopback_url
from podstead.web.certificate_forms import CertificateForm
from podstead.web.client_certificates import ClientCertificates, ProxyField

if TYPE_CHECKING:
    from podstead.authn.web_id_tls import WebIdTls


def certificate_verifier(
    settings: Settings, profiles: ProfileSources, lookups: Lookups
) -> WebIdTls | None:
    """The verifier of client certificates; ``None`` if the server does not accept them."""
    if not settings.webid_tls:
        return None
    from podstead.authn.certificates import CertificateRules
    from podstead.authn.web_id_tls import WebIdTls

    rules = CertificateRules(allow_loopback=is_loopback_url(settings.base_url))
    return WebIdTls(profiles, rules=rules, lookups=lookups)


def client_certificates(
    settings: Settings, authorities: Authorities, clock: Clock
) -> ClientCertificates | None:
    """The reader of client certificates in requests; ``None`` if the server does not accept
    them."""
    if not settings.webid_tls:
        return None
    header = settings.client_cert_header
    form = CertificateForm(settings.client_cert_format)
    return ClientCertificates(
        authorities=authorities,
        clock=clock,
        base_url=settings.base_url,
        proxy_field=None if header is None else ProxyField(header.encode("ascii"), form),
        origins=frozenset(settings.client_cert_origins),
    )
