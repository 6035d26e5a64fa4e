"""``podstead cert new``: a key, its certificate, and what the WebID's document has to state."""

from __future__ import annotations

import json
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import rdflib
from click.testing import CliRunner, Result
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from podstead.app.adapters.provider_keys import KeyFolder
from podstead.app.adapters.system import SystemClock
from podstead.cli.commands import main
from podstead.rdf.patch_parsers import parse_n3_patch
from podstead.storage.keys import KeyFiles
from podstead.storage.root import prepare_root
from tests.support.http_servers import Handler, serving

WEB_ID = "https://pods.example/alice/#me"
CERT = rdflib.Namespace("http://www.w3.org/ns/auth/cert#")


@dataclass
class Made:
    """What one run of the command left."""

    folder: Path
    result: Result = field(default_factory=lambda: CliRunner().invoke(main, ["--version"]))

    def run(self, *arguments: str, web_id: str = WEB_ID, token: str | None = None) -> Result:
        files = ("--cert", str(self.folder / "cert.pem"), "--key", str(self.folder / "key.pem"))
        self.result = CliRunner(env={"PODSTEAD_TOKEN": token}).invoke(
            main, ["cert", "new", "--webid", web_id, *files, *arguments]
        )
        return self.result

    @property
    def certificate(self) -> x509.Certificate:
        return x509.load_pem_x509_certificate((self.folder / "cert.pem").read_bytes())

    @property
    def key(self) -> rsa.RSAPrivateKey:
        key = load_pem_private_key((self.folder / "key.pem").read_bytes(), None)
        assert isinstance(key, rsa.RSAPrivateKey)
        return key

    @property
    def files(self) -> set[str]:
        return {path.name for path in self.folder.iterdir()}


@pytest.fixture
def made(tmp_path: Path) -> Made:
    return Made(tmp_path)


def test_the_certificate_is_for_the_webid_and_has_the_key(made: Made) -> None:
    assert made.run("--days", "30", "--bits", "3072").exit_code == 0
    names = made.certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    assert list(names.value) == [x509.UniformResourceIdentifier(WEB_ID)]
    assert made.certificate.public_key() == made.key.public_key()
    assert made.key.key_size == 3072
    made.certificate.verify_directly_issued_by(made.certificate)
    now = datetime.now(UTC)
    assert made.certificate.not_valid_before_utc < now
    remaining = made.certificate.not_valid_after_utc - now
    assert timedelta(days=29) < remaining <= timedelta(days=30)
    assert made.files == {"cert.pem", "key.pem"}
    for path in made.folder.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("web_id", [WEB_ID, "https://alice.example/", "https://a.example/x?y#z"])
def test_the_statements_printed_are_those_of_the_key(made: Made, web_id: str) -> None:
    """Read by rdflib, alone on standard output."""
    result = made.run(web_id=web_id)
    graph = rdflib.Graph().parse(data=result.stdout, format="turtle")
    (key,) = graph.objects(rdflib.URIRef(web_id), CERT.key)
    assert isinstance(key, rdflib.URIRef)
    assert key.startswith(web_id.partition("#")[0] + "#key-")
    (modulus,), (exponent,) = graph.objects(key, CERT.modulus), graph.objects(key, CERT.exponent)
    numbers = made.key.public_key().public_numbers()
    assert isinstance(modulus, rdflib.Literal)
    assert modulus.datatype == rdflib.XSD.hexBinary
    assert (int(str(modulus), 16), exponent) == (numbers.n, rdflib.Literal(numbers.e))
    assert len(graph) == 4
    assert "PRIVATE" not in result.output


@pytest.mark.parametrize("name", ["cert.pem", "key.pem"])
def test_no_file_is_overwritten(made: Made, name: str) -> None:
    (made.folder / name).write_text("precious")
    result = made.run()
    assert (result.exit_code, result.stdout) == (1, "")
    assert f"{name} already exists" in result.stderr
    assert (made.folder / name).read_text() == "precious"
    assert made.files == {name}


def test_a_missing_folder_is_reported_in_a_sentence(made: Made) -> None:
    result = made.run("--key", str(made.folder / "missing" / "key.pem"))
    assert result.exit_code == 1
    assert "key.pem: No such file or directory." in result.stderr
    assert made.files == set()
    result = made.run("--cert", str(made.folder / "missing" / "cert.pem"))
    assert "cert.pem: No such file or directory." in result.stderr
    assert made.files == set(), "no key is left behind without its certificate"


@pytest.mark.parametrize(
    "web_id",
    [
        "alice",
        "http://pods.example/alice/#me",
        "https://alice@pods.example/#me",
        "https://pods.example/a b",
        'https://pods.example/"> a <',
        "https://pods.example/älice",
        "did:nostr:00",
        "",
    ],
)
def test_an_iri_that_cannot_be_a_webid_is_refused(made: Made, web_id: str) -> None:
    result = made.run(web_id=web_id)
    assert result.exit_code == 2
    assert "cannot be used as a WebID" in result.stderr
    assert made.files == set()


# --- with a token -------------------------------------------------------------------------------


@dataclass
class Document:
    """A WebID's document on a server that answers changes as it is told to."""

    url: str
    status: int = 204
    location: str = ""
    asked: list[tuple[str, str, dict[str, str], bytes]] = field(default_factory=list)


@contextmanager
def served() -> Iterator[Document]:
    page = Document("")

    class Answering(Handler):
        def respond(self) -> None:
            page.asked.append((self.command, self.path, dict(self.headers), self.body()))
            self.answer(page.status, b"", {"Location": page.location} if page.location else {})

    with serving(Answering) as port:
        page.url = f"http://localhost:{port}/alice/"
        yield page


@pytest.fixture
def document() -> Iterator[Document]:
    with served() as page:
        yield page


def test_with_a_token_the_statements_are_added(made: Made, document: Document) -> None:
    result = made.run(web_id=f"{document.url}#me", token="the token")
    assert (result.exit_code, result.stdout) == (0, "")
    assert f"Added the key to {document.url}." in result.stderr
    ((method, path, headers, body),) = document.asked
    assert (method, path) == ("PATCH", "/alice/")
    assert headers["Authorization"] == "Bearer the token"
    assert headers["Content-Type"] == "text/n3"
    (operation,) = parse_n3_patch(body, base_iri=document.url).operations
    added = rdflib.Graph().parse(
        data="\n".join(f"{s} {p} {o} ." for s, p, o in operation.inserts), format="turtle"
    )
    (modulus,) = added.objects(None, CERT.modulus)
    assert int(str(modulus), 16) == made.key.public_key().public_numbers().n
    assert "token" not in json.dumps(body.decode())


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (401, "the server rejected the token"),
        (403, "the token's agent may not change the document"),
        (404, "there is no such document"),
        (405, "the document cannot be changed by PATCH"),
        (409, "the change conflicts with the document"),
        (415, "the server does not support N3 Patch"),
        (500, "see the documentation of that server"),
        (302, "see the documentation of that server"),
    ],
)
def test_a_refusal_is_reported_in_a_sentence_and_the_statements_are_printed(
    made: Made, document: Document, status: int, reason: str
) -> None:
    """The files are there already: what is left can be done by hand."""
    document.status, document.location = status, "/elsewhere"
    result = made.run(web_id=f"{document.url}#me", token="the token")
    assert result.exit_code == 1
    assert f"was not changed: its server responded with {status} ({reason}" in result.stderr
    assert len(document.asked) == 1, "no redirect is followed with a token"
    assert len(rdflib.Graph().parse(data=result.stdout, format="turtle")) == 4
    assert made.files == {"cert.pem", "key.pem"}
    assert "the token\n" not in result.output


def test_an_unreachable_server_is_reported_in_a_sentence(made: Made) -> None:
    with served() as gone:
        pass
    result = made.run(web_id=f"{gone.url}#me", token="the token")
    assert result.exit_code == 1
    assert f"Error: {gone.url} was not changed: its server could not be reached" in result.stderr
    assert "SSL_CERT_FILE" in result.stderr
    assert made.files == {"cert.pem", "key.pem"}


# --- keys --------------------------------------------------------------------------------------
#
# ``podstead keys``: the operator sees the provider's keys and replaces them.


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    KeyFolder(KeyFiles(prepare_root(tmp_path).keys), SystemClock()).maintain()
    return tmp_path


def listed(root: Path) -> dict[str, list[str]]:
    """The states of the listed keys, by algorithm."""
    result = run("keys", "list", "--root", str(root))
    assert result.exit_code == 0, result.output
    head, *lines = result.output.splitlines()
    assert head.split("  ")[0] == "ID"
    states: dict[str, list[str]] = {}
    for line in lines:
        key_id, algorithm, made, signs_from, state = line.split()
        assert re.fullmatch(r"[A-Za-z0-9_-]{43}", key_id)
        assert made <= signs_from
        states.setdefault(algorithm, []).append(state)
    return states


def test_new_keys_are_published_a_day_before_they_sign(root: Path) -> None:
    assert listed(root) == {"ES256": ["signs"], "RS256": ["signs"]}
    result = run("keys", "rotate", "--root", str(root))
    assert result.exit_code == 0, result.output
    assert re.fullmatch(
        r"The new keys will be in use from \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ\.\n", result.output
    )
    assert listed(root) == {"ES256": ["next", "signs"], "RS256": ["next", "signs"]}


def test_stolen_keys_are_replaced_at_once(root: Path) -> None:
    before = set(root.rglob("*.json"))
    result = run("keys", "rotate", "--compromised", "--root", str(root))
    assert (result.exit_code, result.output) == (0, "The new keys are in use.\n")
    assert listed(root) == {"ES256": ["signs"], "RS256": ["signs"]}
    assert before.isdisjoint(root.rglob("*.json"))


def test_a_root_without_a_provider_is_reported(tmp_path: Path) -> None:
    for command in (["list"], ["rotate"]):
        result = run("keys", *command, "--root", str(tmp_path))
        assert result.exit_code == 2
        assert "There are no keys of an identity provider" in result.output
    assert list(tmp_path.iterdir()) == []
