"""Client certificates as people have them: made by openssl or by our command, shown by curl."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec

from tests.support.certificates import Holder, holder, key_turtle, rsa_key
from tests.support.client import Pod, create_pod
from tests.support.curl import CurlAnswer, curl, sending
from tests.support.listeners import CERTIFICATE, LISTENERS, client_tls
from tests.support.server import (
    DEADLINE_S,
    ServerProcess,
    run_command,
    server_fixture,
)

PATHS = ("private/doc", "public/doc")
Files = tuple[Path, Path]
"""A certificate and its key."""


server = server_fixture(
    (*LISTENERS["webid-tls"], "--workers", "2", "--invalid-credentials-per-minute", "0"),
    tls=client_tls(),
)
"""Two workers, no identity provider."""


@pytest.fixture
def pod(server: ServerProcess) -> Pod:
    """A pod with a document that only its owner may read, and one that everybody may."""
    pod = create_pod(server)
    with pod.owner() as owner:
        for path in PATHS:
            assert owner.put(pod.root + path, "text").status == 201
    return pod


def ask(pod: Pod, path: str, shown: Files | None, *options: str) -> CurlAnswer:
    """What curl gets, with a certificate or without."""
    own = () if shown is None else ("--cert", str(shown[0]), "--key", str(shown[1]))
    url = f"{pod.server.base_url}{pod.root}{path}"
    return curl("--cacert", str(CERTIFICATE), *own, *options, url)


def state(pod: Pod, *statements: str) -> None:
    """Let the profile say just this."""
    with pod.owner() as owner:
        said = "".join(statements) or "<> a <#x>."
        assert owner.put(pod.root, said, "text/turtle").status == 204


def openssl(folder: Path, name: str) -> Files:
    """A certificate by the recipe that people find: one command."""
    certificate, key = folder / "me.pem", folder / "me.key"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "30"),
            *("-subj", "/CN=me", "-addext", f"subjectAltName=URI:{name}"),
            *("-keyout", str(key), "-out", str(certificate)),
        ],
        check=True,
        capture_output=True,
        timeout=DEADLINE_S,
    )
    return certificate, key


def stated_by_openssl(certificate: Path, who: str = "#me") -> str:
    """The key as openssl prints it, pasted into a profile."""
    printed = subprocess.run(
        ["openssl", "x509", "-in", str(certificate), "-noout", "-modulus"],
        check=True,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
    ).stdout
    modulus = printed.strip().removeprefix("Modulus=")
    return (
        f"@prefix cert: <http://www.w3.org/ns/auth/cert#>.\n"
        f'<{who}> cert:key [ cert:modulus "{modulus}"; cert:exponent 65537 ].\n'
    )


@pytest.mark.needs("curl")
@pytest.mark.parametrize("version", ["1.2", "1.3"])
@pytest.mark.parametrize("http", ["--http1.1", "--http2"])
def test_curl_reads_and_writes_as_the_webid_of_its_certificate(
    pod: Pod, tmp_path: Path, version: str, http: str
) -> None:
    state(pod, key_turtle(rsa_key()))
    shown = holder(pod.web_id).write(tmp_path)
    options = (http, f"--tlsv{version}", "--tls-max", version)
    answer = ask(pod, "private/doc", shown, *options)
    assert (answer.status, answer.body) == (200, b"text")
    put = ("--request", "PUT", "--data", "new", *sending("text/plain"))
    assert ask(pod, "private/new", shown, *options, *put).status == 201
    assert ask(pod, "private/new", shown, *options).body == b"new"


@pytest.mark.needs("curl")
@pytest.mark.needs("openssl")
def test_certificates_that_openssl_makes_are_taken(pod: Pod, tmp_path: Path) -> None:
    """A certificate authority of its own, as openssl makes them; the modulus as it prints
    it."""
    name = pod.web_id.replace("#", "\\#")
    shown = openssl(tmp_path, name)
    state(pod, stated_by_openssl(shown[0]))
    assert ask(pod, "private/doc", shown).status == 200


@pytest.mark.needs("curl")
@pytest.mark.needs("openssl")
def test_the_recipe_that_loses_the_fragment_will_do(pod: Pod, tmp_path: Path) -> None:
    """In the recipe, openssl takes what follows the # for a comment."""
    shown = openssl(tmp_path, pod.web_id)
    parsed = x509.load_pem_x509_certificate(shown[0].read_bytes())
    names = parsed.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert list(names) == [x509.UniformResourceIdentifier(pod.web_id.partition("#")[0])]
    state(pod, stated_by_openssl(shown[0]))
    assert ask(pod, "private/doc", shown).status == 200
    state(pod, stated_by_openssl(shown[0], "#other"))
    assert ask(pod, "private/doc", shown).status == 403, "somebody else of that document"


@pytest.mark.needs("curl")
def test_a_key_is_valid_from_its_statement_to_its_removal(pod: Pod, tmp_path: Path) -> None:
    """By every worker, at once."""
    shown = holder(pod.web_id).write(tmp_path)
    for _ in range(2):
        assert [ask(pod, "private/doc", shown).status for _ in range(4)] == [401] * 4
        state(pod, key_turtle(rsa_key()))
        assert [ask(pod, "private/doc", shown).status for _ in range(4)] == [200] * 4
        state(pod)


BAD: dict[str, Callable[[str], Holder]] = {
    "another key": lambda web_id: holder(web_id, key=rsa_key(1)),
    "expired": lambda web_id: holder(web_id, starts_s=-7200, ends_s=-3600),
    "not valid yet": lambda web_id: holder(web_id, starts_s=3600, ends_s=7200),
    "another WebID": lambda web_id: holder(f"{web_id}e"),
    "plain http elsewhere": lambda _: holder("http://example.org/#me"),
    "EC key": lambda web_id: holder(web_id, key=ec.generate_private_key(ec.SECP256R1())),
}


@pytest.mark.needs("curl")
@pytest.mark.parametrize("case", BAD)
def test_certificates_that_prove_nothing_are_refused(pod: Pod, tmp_path: Path, case: str) -> None:
    """Everywhere."""
    state(pod, key_turtle(rsa_key()))
    files = BAD[case](pod.web_id).write(tmp_path)
    for path in PATHS:
        answer = ask(pod, path, files)
        assert answer.status == 401
        assert b"Client certificate not accepted: " in answer.body
    assert (b"unsupported key type" in ask(pod, PATHS[0], files).body) == (case == "EC key")


@pytest.mark.needs("curl")
def test_a_certificate_without_a_webid_is_the_public(pod: Pod, tmp_path: Path) -> None:
    state(pod, key_turtle(rsa_key()))
    for shown in (None, holder(names=[x509.DNSName("example.org")]).write(tmp_path)):
        assert [ask(pod, path, shown).status for path in PATHS] == [401, 200]


@pytest.mark.needs("curl")
def test_the_first_valid_webid_applies(pod: Pod, tmp_path: Path) -> None:
    state(pod, key_turtle(rsa_key()))
    shown = holder("https://example.invalid/#me", pod.web_id).write(tmp_path)
    assert ask(pod, "private/doc", shown).status == 200


@pytest.mark.needs("curl")
def test_the_header_decides_where_there_is_one(pod: Pod, tmp_path: Path) -> None:
    state(pod, key_turtle(rsa_key()))
    shown = holder(pod.web_id).write(tmp_path)
    assert ask(pod, "private/doc", shown, "--header", "Authorization: Bearer x.y").status == 401
    stranger = create_pod(pod.server)
    bearer = f"Authorization: Bearer {stranger.token}"
    assert ask(pod, "private/doc", shown, "--header", bearer).status == 403


@pytest.mark.needs("curl")
def test_two_commands_make_a_certificate_that_opens_the_pod(pod: Pod, tmp_path: Path) -> None:
    """The statements are added with the owner's token, beside what is there."""
    before = _profile(pod)
    shown = (tmp_path / "client-cert.pem", tmp_path / "client-key.pem")
    environment = {"PODSTEAD_TOKEN": pod.token, "SSL_CERT_FILE": str(CERTIFICATE)}
    done = run_command(
        "cert", "new", "--webid", pod.web_id, environment=environment, folder=tmp_path
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert ask(pod, "private/doc", shown).status == 200
    assert before < _profile(pod)
    # By hand, where there is no token.
    state(pod)
    done = run_command(
        "cert", "new", "--webid", pod.web_id, "--cert", "c.pem", "--key", "k.pem", folder=tmp_path
    )
    state(pod, done.stdout)
    assert ask(pod, "private/doc", (tmp_path / "c.pem", tmp_path / "k.pem")).status == 200
    assert ask(pod, "private/doc", shown).status == 401


@pytest.mark.needs("curl")
def test_a_token_of_somebody_else_changes_nothing(pod: Pod, tmp_path: Path) -> None:
    before = _profile(pod)
    environment = {"SSL_CERT_FILE": str(CERTIFICATE)}
    for token, status in ((create_pod(pod.server).token, 403), ("x.y", 401)):
        done = run_command(
            *("cert", "new", "--webid", pod.web_id),
            *("--cert", f"{status}.pem", "--key", f"{status}.key"),
            environment={**environment, "PODSTEAD_TOKEN": token},
            folder=tmp_path,
        )
        assert done.returncode == 1
        assert f"was not changed: its server responded with {status} (" in done.stderr
        assert "cert:modulus" in done.stdout
    assert _profile(pod) == before


def _profile(pod: Pod) -> frozenset[str]:
    with pod.owner() as owner:
        answer = owner.get(pod.root, Accept="application/n-triples")
        lines = answer.text.splitlines()
    return frozenset(line for line in lines if "modified" not in line and "mtime" not in line)
