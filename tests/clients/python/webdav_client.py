"""A script that copies and moves with webdav4, for the test that started it.

    webdav_client.py BASE TOKEN COMMANDS

COMMANDS is JSON: a list of lists with the name of a method, its paths and its keyword arguments. It
prints as JSON what each of them led to: ``null``, or the name of the error and its status.
"""

from __future__ import annotations

import json
import sys

import httpx  # type: ignore[import-not-found,unused-ignore]
from webdav4.client import Client, ClientError  # type: ignore[import-not-found]

base, token, commands = sys.argv[1:]
headers = {"Authorization": f"Bearer {token}"}
results: list[str | None] = []
with httpx.Client(base_url=base, headers=headers, timeout=60, trust_env=False) as http:
    client = Client(base, http_client=http)
    for method, source, destination, options in json.loads(commands):
        try:
            getattr(client, method)(source, destination, **options)
        except ClientError as error:
            results.append(type(error).__name__)
        else:
            results.append(None)
print(json.dumps(results))  # noqa: T201
