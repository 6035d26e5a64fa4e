"""A script that signs somebody in by solid-oidc-client, for the test that started it.

    oidc_client.py ISSUER CALLBACK DOCUMENT

It prints the address that a person is to open, reads the address that they came back to, writes the
document and reads it again, and prints what it saw as JSON.
"""

from __future__ import annotations

import json
import sys
from urllib.parse import parse_qs, urlsplit

import requests
from solid_oidc_client import MemStore, SolidAuthSession, SolidOidcClient  # type: ignore[import-not-found]

issuer, callback, document = sys.argv[1:]
client = SolidOidcClient(MemStore())
client.register_client(issuer, [callback])
print(client.create_login_uri("/notes", callback), flush=True)  # noqa: T201

answered = {name: value for name, [value] in parse_qs(urlsplit(input()).query).items()}
session = client.finish_login(answered["code"], answered["state"], callback)
written = requests.put(
    document,
    data="my own words",
    headers={"Content-Type": "text/plain", **session.get_auth_headers(document, "PUT")},
    timeout=60,
)
restored = SolidAuthSession.deserialize(session.serialize())
read = requests.get(document, headers=restored.get_auth_headers(document, "GET"), timeout=60)
print(  # noqa: T201
    json.dumps(
        {
            "webId": session.get_web_id(),
            "page": client.get_application_redirect_uri(answered["state"]),
            "written": written.status_code,
            "read": read.text,
        }
    )
)
