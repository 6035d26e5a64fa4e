"""A script that uses a document by SolidClientCredentials, for the test that started it.

    credentials_client.py ISSUER ID SECRET DOCUMENT

It writes the document and reads it again, and prints what it saw as JSON.
"""

from __future__ import annotations

import json
import sys

import requests
from solid_client_credentials import DpopTokenProvider, SolidClientCredentialsAuth  # type: ignore[import-not-found]

issuer, client_id, secret, document = sys.argv[1:]
provider = DpopTokenProvider(issuer_url=issuer, client_id=client_id, client_secret=secret)
with requests.Session() as session:
    session.auth = SolidClientCredentialsAuth(provider)
    headers = {"Content-Type": "text/plain"}
    written = session.put(document, data="my own words", headers=headers, timeout=60)
    read = session.get(document, timeout=60)
print(json.dumps({"written": written.status_code, "read": read.text}))  # noqa: T201
