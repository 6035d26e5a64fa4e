"""The settings for client certificates."""

from __future__ import annotations

import pytest

from podstead.config.settings import settings_table
from podstead.config.sources import OptionValue
from podstead.features.webid_tls import WebIdTlsSettings
from tests.support.settings import read, refusal

PROXY: dict[str, OptionValue] = {"trusted_proxies": ("10.0.0.1",)}


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"webid_tls": True}, "webid-tls is on without ssl-cert and ssl-key"),
        ({"webid_tls": True, **PROXY}, "webid-tls is on without ssl-cert and ssl-key"),
        ({"client_cert_header": "Client-Cert", **PROXY}, "is set without webid-tls"),
        (
            {"webid_tls": True, "client_cert_header": "Client-Cert"},
            "is set without trusted-proxy",
        ),
    ],
)
def test_client_certificates_come_from_somewhere_that_is_believed(
    given: dict[str, OptionValue], sentence: str
) -> None:
    """A-160."""
    assert sentence in refusal(given)
    header: dict[str, OptionValue] = {"webid_tls": True, "client_cert_header": "Client-Cert"}
    assert read({**header, **PROXY}).of(WebIdTlsSettings).client_cert_header == "client-cert"
    files: dict[str, OptionValue] = {"ssl_cert": "c.pem", "ssl_key": "k.pem", "webid_tls": True}
    assert read(files).of(WebIdTlsSettings).webid_tls


@pytest.mark.parametrize(
    ("setting", "text"),
    [
        ("client_cert_header", "Client Cert"),
        ("client_cert_header", ""),
        ("client_cert_header", "Authorization"),
        ("client_cert_format", "der"),
        ("client_cert_origins", "app.example"),
    ],
)
def test_values_that_cannot_be_used_are_refused(setting: str, text: str) -> None:
    row = next(row for row in settings_table() if row.field == setting)
    given: OptionValue = (text,) if row.repeated else text
    assert refusal({setting: given}) == f"{row.option} is '{text}', but {row.kind.expected}."
