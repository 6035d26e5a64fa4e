"""Record what Node Solid Server writes and answers, for ``tests/clients/moving``.

    python -m tests.servers.node.record PACKAGE FOLDER

PACKAGE is an installed ``solid-server``. Its 1,100 packages take half a gigabyte, so tests use the
record. FOLDER is where the record goes, outside of the repository. The package of 6.0.0 on npm
lacks the templates whose names begin with a dot; the archive ``solid-server-6.0.0.tgz`` in it has
them.
"""

from __future__ import annotations

import base64
import http.client
import json
import shutil
import ssl
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlencode, urlsplit

from tests.support.node import NODE
from tests.support.waiting import wait_until

PORT = 8443
PASSWORD = "password123"
NOTE = b'<#note> <http://purl.org/dc/terms/title> "Caf\xc3\xa9"; <#maker> </profile/card#me>.'
PNG = bytes.fromhex("89504e470d0a1a0a0000000d49484452") + bytes(range(256))
DOCUMENTS = {
    "notes/plain.txt": ("text/plain", b"plain"),
    "notes/a%20b.txt": ("text/plain", b"a space"),
    "notes/%C3%BCn%C3%AFcode.ttl": ("text/turtle", NOTE),
    "notes/100%25%20sure.txt": ("text/plain", b"percent"),
    "notes/one%2Ftwo.txt": ("text/plain", b"a slash"),
    "notes/a.dot.ted": ("text/turtle", NOTE),
    "notes/without-extension": ("text/turtle", b"<#a> <#b> ( 1 [ <#c> <#d> ] )."),
    "notes/page.html": ("text/turtle", NOTE),
    "notes/data.jsonld": ("application/ld+json", b'{"@id": "#x", "http://e.example/y": "z"}'),
    "notes/picture": ("image/png", PNG),
    "shared/with-bob.ttl": ("text/turtle", NOTE),
    "public/for-all.txt": ("text/plain", b"hello"),
}
RULES = """@prefix acl: <http://www.w3.org/ns/auth/acl#>.
<#alice> a acl:Authorization; acl:agent </profile/card#me>;
    acl:accessTo <./>; acl:default <./>; acl:mode acl:Read, acl:Write, acl:Control.
<#bob> a acl:Authorization; acl:agent <https://bob.localhost:8443/profile/card#me>;
    acl:accessTo <./>; acl:default <./>; acl:mode acl:Read.
"""
CREATED = ("profile/card", "settings/prefs.ttl", "settings/publicTypeIndex.ttl")
ACLS = (".acl", "shared/.acl", "profile/.acl", "private/.acl", "inbox/.acl", "public/.acl")


class Site:
    """The server, as people with a session use it."""

    def __init__(self) -> None:
        self._tls = ssl._create_unverified_context()
        self._cookies = {"public": ""}

    def ask(
        self,
        method: str,
        url: str,
        body: bytes | None = None,
        *,
        who: str = "public",
        **fields: str,
    ) -> tuple[int, http.client.HTTPMessage, bytes]:
        place = urlsplit(url)
        connection = http.client.HTTPSConnection("127.0.0.1", PORT, context=self._tls)
        headers = {name.replace("_", "-"): value for name, value in fields.items()}
        headers |= {"Host": place.netloc, "Cookie": self._cookies[who]}
        connection.request(method, place.path, body, headers)
        response = connection.getresponse()
        return response.status, response.headers, response.read()

    def create(self, name: str) -> None:
        base = f"https://localhost:{PORT}/"
        form = {"username": name, "password": PASSWORD, "email": f"{name}@example.com"}
        account = urlencode({**form, "name": name, "acceptToc": "true"}).encode()
        kind = "application/x-www-form-urlencoded"
        status, _, _ = self.ask("POST", f"{base}api/accounts/new", account, Content_Type=kind)
        assert status == 302
        login = urlencode({"username": name, "password": PASSWORD}).encode()
        _, headers, _ = self.ask("POST", f"{base}login/password", login, Content_Type=kind)
        self._cookies[name] = headers["Set-Cookie"].partition(";")[0]


def record(site: Site) -> list[dict[str, object]]:
    site.create("alice")
    site.create("bob")
    pod = f"https://alice.localhost:{PORT}/"
    for name, (content_type, body) in {
        **DOCUMENTS,
        "shared/.acl": ("text/turtle", RULES.encode()),
        "notes/picture.meta": ("text/turtle", b'<picture> <#caption> "A picture".'),
    }.items():
        status, _, answer = site.ask(
            "PUT", pod + name, body, who="alice", Content_Type=content_type
        )
        assert status in {201, 204}, (name, status, answer)
    answers: list[dict[str, object]] = []
    rdf = [name for name, (kind, _) in DOCUMENTS.items() if kind == "text/turtle"]
    for name in (*DOCUMENTS, *CREATED, *ACLS, "", "notes/", "shared/"):
        turtle = name in {*rdf, *CREATED, *ACLS} or name.endswith("/")
        accept = "text/turtle" if turtle or not name else "*/*"
        given = {
            who: site.ask("GET", pod + name, who=who, Accept=accept)
            for who in ("alice", "bob", "public")
        }
        status, headers, body = given["alice"]
        assert status == 200, (name, status)
        answers.append(
            {
                "name": name,
                "type": headers["Content-Type"],
                "wac_allow": headers["WAC-Allow"],
                "body": base64.b64encode(body).decode(),
                "statuses": {who: each[0] for who, each in given.items()},
            }
        )
    return answers


def main(package: Path, folder: Path) -> None:
    work = folder / "server"
    shutil.rmtree(work, ignore_errors=True)
    for name in ("data", "config", ".db"):
        (work / name).mkdir(parents=True)
    keys = work.with_name("keys")
    keys.mkdir(exist_ok=True)
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj",
         "/CN=localhost", "-keyout", keys / "key.pem", "-out", keys / "certificate.pem"],
        check=True,
    )  # fmt: skip
    options = {
        "--root": work / "data", "--db-path": work / ".db", "--config-path": work / "config",
        "--port": str(PORT), "--server-uri": f"https://localhost:{PORT}",
        "--ssl-key": keys / "key.pem", "--ssl-cert": keys / "certificate.pem",
    }  # fmt: skip
    pairs = [str(each) for option in options.items() for each in option]
    server = subprocess.Popen(
        [NODE, package / "bin/solid", "start", *pairs, "--multiuser", "--no-reject-unauthorized",
         "--disable-password-checks", "--no-live", "--suppress-data-browser"],
        cwd=work, stdout=(folder / "log").open("wb"), stderr=subprocess.STDOUT,
    )  # fmt: skip
    site = Site()

    def answers() -> bool:
        try:
            return site.ask("GET", f"https://localhost:{PORT}/")[0] == 200
        except OSError:
            return False

    try:
        wait_until(answers, "the start of Node Solid Server")
        recorded = record(site)
    finally:
        server.kill()
        server.wait()
    for unneeded in (work / "config", keys, work / ".db/oidc/op", work / ".db/oidc/rp"):
        shutil.rmtree(unneeded, ignore_errors=True)
    (folder / "answers.json").write_text(json.dumps(recorded, indent=1) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve())
