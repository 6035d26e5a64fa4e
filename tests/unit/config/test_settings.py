"""Settings come from options, variables, a file and defaults, in this order, and are checked."""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest

from podstead.config import Settings, unknown_variables
from podstead.config.settings import settings_table
from podstead.config.sources import OptionValue
from podstead.config.table import Row, Sources
from podstead.storage.blobs.s3_location import S3Location
from tests.support.settings import read, refusal

Toml = Callable[[str], dict[str, OptionValue]]


@pytest.fixture
def toml(tmp_path: Path) -> Toml:
    """Write a configuration file and give the options that name it."""

    def write(text: str) -> dict[str, OptionValue]:
        path = tmp_path / "podstead.toml"
        path.write_text(text, encoding="utf-8")
        return {"config": str(path)}

    return write


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [
        ("0", 0),
        ("5000000", 5_000_000),
        ("1K", 1024),
        ("500M", 500 << 20),
        ("5G", 5 << 30),
        ("5 GiB", 5 << 30),
        ("5gb", 5 << 30),
        ("2T", 2 << 40),
    ],
)
def test_sizes_have_units(toml: Toml, text: str, size_bytes: int) -> None:
    assert read({"quota_bytes": text}).quota_bytes == size_bytes
    assert read(environment={"PODSTEAD_QUOTA_BYTES": text}).quota_bytes == size_bytes
    assert read(toml(f'quota-bytes = "{text}"')).quota_bytes == size_bytes


@pytest.mark.parametrize("text", ["5X", "G", "5.5G", "-1G", "9" * 17 + "T", "5 G B"])
def test_what_is_no_size_is_refused(text: str) -> None:
    assert "or a size such as 500M or 5G" in refusal({"quota_bytes": text})


def test_variables_that_are_no_settings_are_named_with_what_was_meant() -> None:
    environment = {
        "PODSTEAD_PORTS": "80",
        "PODSTEAD_PROT": "80",
        "PODSTEAD_ZZZ": "1",
        "PODSTEAD_QUOTA_BYTES": "5G",
        "PODSTEAD_TOKEN_SECRET": "…",
        "PODSTEAD_SERVICE_HOST": "10.0.0.1",
        "PODSTEAD_PORT_3000_TCP_ADDR": "10.0.0.1",
        "HOME": "/root",
    }
    assert unknown_variables(environment) == [
        "PODSTEAD_PORTS is not a setting and has no effect. Did you mean PODSTEAD_PORT?",
        "PODSTEAD_PROT is not a setting and has no effect. Did you mean PODSTEAD_PORT?",
        "PODSTEAD_ZZZ is not a setting and has no effect.",
    ]


# --- Sources and their order ----------------------------------------------------------------


def test_nothing_given_means_localhost_port_3000_and_data_here() -> None:
    settings = read()
    assert (settings.host, settings.port) == ("localhost", 3000)
    assert settings.base_url == "http://localhost:3000"
    assert settings.root == Path("/srv/pods/data")
    assert settings == Settings(root=Path("/srv/pods/data"))


def test_options_win_over_variables_over_the_file_over_the_default(toml: Toml) -> None:
    file = toml("port = 4001\nworkers = 2\nquota-bytes = 7\n")
    settings = read({**file, "port": "4003"}, {"PODSTEAD_PORT": "4002", "PODSTEAD_WORKERS": "3"})
    assert settings.port == 4003
    assert settings.workers == 3
    assert settings.quota_bytes == 7
    assert settings.max_rdf_bytes == 4 * 1024 * 1024


def test_the_file_may_be_named_by_a_variable(toml: Toml) -> None:
    file = toml("port = 4001\n")
    assert read(environment={"PODSTEAD_CONFIG": str(file["config"])}).port == 4001


def test_an_empty_variable_is_treated_as_unset() -> None:
    assert read(environment={"PODSTEAD_PORT": "", "PODSTEAD_BASE_URL": " "}).port == 3000


def test_a_variable_that_is_not_a_setting_is_left_alone() -> None:
    """Container platforms set such ones, as PODSTEAD_SERVICE_HOST, on their own."""
    assert read(environment={"PODSTEAD_SERVICE_HOST": "10.0.0.1"}) == read()


def test_a_secret_is_taken_from_the_environment_and_no_option_or_key_of_the_file(
    toml: Toml,
) -> None:
    row = next(row for row in settings_table() if row.name == "token-secret")
    assert row.sources == Sources.VARIABLE
    assert "cannot be set in a file" in refusal(toml("token-secret = 'x'"))


# Those that need other settings, or have a form of their own, have tests of their own.
_TESTED_BELOW = (
    "apps",
    "base-url",
    "bodies",
    "database",
    "idp-base-url",
    "mail",
    "require-two-factor",
    "terms",
    "token-secret-file",
)
PLAIN_ROWS = [
    row for row in settings_table() if row.sources == Sources.ALL and row.name not in _TESTED_BELOW
]


PARTNERS: dict[str, dict[str, OptionValue]] = {
    "ssl-cert": {"ssl_key": "/partner.pem"},
    "ssl-key": {"ssl_cert": "/partner.pem"},
    "webid-tls": {"ssl_key": "/partner.pem", "ssl_cert": "/partner.pem"},
    "redirect-large-reads": {"bodies": "s3://bucket/pods"},
    "sockets-port": {"sockets_url": "https://pods.example"},
    "sockets-url": {"sockets_port": "3001"},
    "client-cert-header": {"webid_tls": True, "trusted_proxies": ("10.0.0.1",)},
}
"""Settings that go together."""


@pytest.mark.parametrize("row", PLAIN_ROWS, ids=lambda row: row.name)
def test_every_setting_can_be_given_in_each_of_its_sources(row: Row[Any], toml: Toml) -> None:
    text = example(row)
    base: dict[str, OptionValue] = {
        "base_url": "https://pods.example",
        **PARTNERS.get(row.name, {}),
    }
    option: OptionValue = (text == "true") if row.is_switch else text
    sources = [
        read({**base, row.field: (text,) if row.repeated else option}),
        read(base, {row.variable: text}),
        read({**base, **toml(f"{row.name} = {toml_value(row, text)}\n")}),
    ]
    values = [settings.value(row) for settings in sources]
    assert values[0] == values[1] == values[2]
    assert values[0] != row.default


def example(row: Row[Any]) -> str:
    """A text that the setting takes and that is not its default."""
    if row.is_switch:
        return str(not row.default).lower()
    if row.kind.toml_type is int and row.unit != "percent":
        return str(1 if row.default is None else int(str(row.default)) + 1)
    return {
        "host": "pods.example",
        "operator-contact": "help@pods.example",
        "admin-listen": "[::1]:9091",
        "access-log": "json",
        "access-log-percent": "10",
        "log-level": "debug",
        "log-format": "json",
        "registration": "closed",
        "nostr-basic": "any",
        "trusted-proxy": "10.1.0.0/16",
        "host-alias": "alias.example:8443",
        "context-origin": "https://contexts.example",
        "accepted-issuer": "https://login.example/realm/",
        "refused-issuer": "https://login.example",
        "allow-private-origin": "http://10.0.0.5:8080",
        "sockets-url": "https://sockets.example",
        "acme-email": "me@pods.example",
        "acme-directory": "https://acme.example/directory",
        "passkey-rp-id": "pods.example",
        "passkey-origin": "https://login.pods.example",
        "client-cert-header": "x-client-cert",
        "client-cert-format": "pem",
        "client-cert-origin": "https://app.example",
    }.get(row.name, f"/elsewhere/{row.name}")


def toml_value(row: Row[Any], text: str) -> str:
    value = f'"{text}"' if row.kind.toml_type is str else text
    return f"[{value}]" if row.repeated else value


# --- Values ---------------------------------------------------------------------------------


def test_repeated_settings_are_repeated_options_separated_words_or_lists(toml: Toml) -> None:
    expected = (ip_network("10.0.0.0/8"), ip_network("::1/128"))
    assert read({"trusted_proxies": ("10.0.0.0/8", "::1")}).trusted_proxies == expected
    for text in ("10.0.0.0/8,::1", "10.0.0.0/8 ::1", " 10.0.0.0/8 , ::1 "):
        assert read(environment={"PODSTEAD_TRUSTED_PROXY": text}).trusted_proxies == expected
    file = toml('trusted-proxy = ["10.0.0.0/8", "::1"]\n')
    assert read(file).trusted_proxies == expected


@pytest.mark.parametrize(
    ("text", "shown"),
    [("127.0.0.1:9090", "127.0.0.1:9090"), ("[::1]:0", "[::1]:0"), ("Metrics:80", "metrics:80")],
)
def test_a_private_address_is_a_host_with_a_port(text: str, shown: str) -> None:
    assert str(read({"admin_listen": text}).admin_listen) == shown
    assert read({"admin_listen": "off"}).admin_listen is None


@pytest.mark.parametrize(
    "text", ["9090", ":9090", "localhost", "::1:9090", "a:70000", "a:-1", "a:"]
)
def test_a_private_address_needs_both(text: str) -> None:
    assert "must be a host name or an IP address with a port" in refusal({"admin_listen": text})


def test_paths_start_from_where_they_are_written(toml: Toml, tmp_path: Path) -> None:
    assert read({"root": "pods"}).root == Path("/srv/pods/pods")
    assert read({"root": "/var/pods"}).root == Path("/var/pods")
    assert read(toml('root = "pods"\n')).root == tmp_path / "pods"


@pytest.mark.parametrize("text", ["1", "65535"])
def test_a_port_within_its_bounds_is_taken(text: str) -> None:
    assert read({"port": text}).port == int(text)


@pytest.mark.parametrize("text", ["-1", "65536", "3000.0", "1e3", "0x10", "1_000", "", "٣", "port"])
def test_a_port_that_is_none_is_refused_by_a_sentence(text: str) -> None:
    assert refusal({"port": text}) == f"--port is '{text}', but must be an integer from 0 to 65535."


def test_the_sentence_names_the_source_in_the_operators_words(toml: Toml) -> None:
    file = toml('port = "4000"\n')
    assert refusal(environment={"PODSTEAD_PORT": "x"}).startswith(
        "PODSTEAD_PORT is 'x', but must be "
    )
    assert refusal(file) == (
        f"port in {file['config']} has the wrong type: it must be an integer from 0 to 65535, "
        "without quotes."
    )


@pytest.mark.parametrize(
    "text",
    [
        "port = true",
        "port = 4000.0",
        "port = [4000]",
        "quiet = 1",
        'quiet = "true"',
        "host = 127",
        'workers = "2"',
        "trusted-proxy = '10.0.0.1'",
        "trusted-proxy = [10]",
        "[server]\nport = 4000",
    ],
)
def test_a_value_of_another_toml_type_is_refused(toml: Toml, text: str) -> None:
    refusal(toml(text))


def test_the_number_of_workers_is_a_number_or_automatic(toml: Toml) -> None:
    assert read().workers is None
    assert read(toml("workers = 2\n")).workers == 2
    assert read(toml('workers = "auto"\n')).workers is None
    # A source that takes precedence can restore the default.
    assert read({**toml("workers = 2\n"), "workers": "auto"}).workers is None
    assert read(environment={"PODSTEAD_WORKERS": "AUTO"}).workers is None


@pytest.mark.parametrize(("text", "value"), [("true", True), ("0", False), ("FALSE", False)])
def test_a_switch_is_true_or_false(text: str, value: bool) -> None:
    assert read(environment={"PODSTEAD_QUIET": text}).quiet is value


def test_a_switch_that_says_neither_is_refused() -> None:
    assert refusal(environment={"PODSTEAD_QUIET": "maybe"}).endswith("must be true or false.")


@pytest.mark.parametrize(
    ("setting", "text"),
    [
        ("host", "localhost:3000"),
        ("host", "[::1]"),
        ("host", "http://localhost"),
        ("host", "127.1"),
        ("host", ""),
        ("host", "a b"),
        ("host_aliases", "https://pods.example"),
        ("host_aliases", "pods.example/"),
        ("context_origins", "example.org"),
        ("context_origins", "https://example.org/context"),
        ("private_origins", "ftp://10.0.0.1"),
        ("trusted_proxies", "10.0.0.1/8"),
        ("trusted_proxies", "proxy.example"),
        ("log_level", "loud"),
        ("root", ""),
        ("workers", "0"),
        ("workers", "65"),
        ("workers", "automatic"),
        ("heartbeat_s", "3601"),
    ],
)
def test_values_that_cannot_be_used_are_refused(setting: str, text: str) -> None:
    row = next(row for row in settings_table() if row.field == setting)
    given: OptionValue = (text,) if row.repeated else text
    assert refusal({setting: given}) == f"{row.option} is '{text}', but {row.kind.expected}."


def test_names_are_lower_cased_and_origins_normalised() -> None:
    settings = read(
        {
            "base_url": "HTTPS://Pods.Example:443/",
            "host_aliases": ("Alias.Example:8443",),
            "context_origins": ("https://Contexts.Example:443/",),
        }
    )
    assert settings.base_url == "https://pods.example"
    assert settings.host_aliases == ("alias.example:8443",)
    assert settings.context_origins == ("https://contexts.example",)


# --- The configuration file -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("portt = 4000", "'portt', which is not a setting. Did you mean 'port'?"),
        ("max_body_bytes = 1", "Did you mean 'max-body-bytes'?"),
        ("prot = 4000", "Did you mean 'root' or 'port'?"),
        ("[server]\nport = 4000", "are top-level keys: remove the line [server]."),
        ("zzzzzz = 1", "'zzzzzz', which is not a setting. Remove it."),
        ("config = 'x'", "'config', which cannot be set in a file. Remove it."),
    ],
)
def test_an_unknown_key_stops_the_start(toml: Toml, text: str, hint: str) -> None:
    assert hint in refusal(toml(text))


def test_a_file_that_is_not_toml_is_refused_with_the_place(toml: Toml) -> None:
    assert "line 2" in refusal(toml("port = 4000\nhost = \n"))


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    missing = tmp_path / "missing.toml"
    assert refusal({"config": str(missing)}) == (
        f"--config: cannot read {missing}: No such file or directory."
    )


def test_a_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "podstead.toml"
    path.write_bytes(b"\xff\xfe")
    assert "not UTF-8" in refusal({"config": str(path)})


# --- The base URL ---------------------------------------------------------------------------


def test_the_base_url_follows_the_port_and_the_certificate() -> None:
    assert read({"port": "8080"}).base_url == "http://localhost:8080"
    assert read({"port": "80"}).base_url == "http://localhost"
    tls: dict[str, OptionValue] = {"ssl_cert": "c.pem", "ssl_key": "k.pem"}
    assert read(tls).base_url == "https://localhost:3000"
    assert read({**tls, "port": "443"}).base_url == "https://localhost"


@pytest.mark.parametrize("host", ["0.0.0.0", "127.0.0.1", "::", "pods.example"])
def test_another_host_needs_a_base_url(host: str) -> None:
    """It is the identity of everything stored, so it is never guessed."""
    assert "base-url is not set" in refusal({"host": host})
    assert read({"host": host, "base_url": "https://pods.example"}).host == host


@pytest.mark.parametrize(
    "text",
    [
        "pods.example",
        "https://pods.example/path",
        "https://pods.example?query",
        "https://pods.example/#fragment",
        "https://user@pods.example",
        "ftp://pods.example",
        "https://",
        "https://pods.example:65536",
        "https://pods.example\\@evil.example",
        "https://pods .example",
    ],
)
def test_a_base_url_is_an_origin(text: str) -> None:
    assert refusal({"base_url": text}).startswith("--base-url is ")


def test_a_port_that_the_system_chooses_is_put_into_the_base_url() -> None:
    assert read({"port": "0"}).listening_on(4567).base_url == "http://localhost:4567"
    own = read({"port": "0", "base_url": "http://127.0.0.1:0"}).listening_on(4567)
    assert own.base_url == "http://127.0.0.1:4567"
    elsewhere = read({"port": "0", "base_url": "https://pods.example"}).listening_on(4567)
    assert elsewhere.base_url == "https://pods.example"
    assert elsewhere.port == 4567


def test_a_base_url_without_its_port_needs_port_0() -> None:
    assert "Specify its port" in refusal({"base_url": "http://localhost:0"})


def test_a_server_that_speaks_https_only_has_no_http_base_url() -> None:
    tls: dict[str, OptionValue] = {"ssl_cert": "c.pem", "ssl_key": "k.pem"}
    assert "https://" in refusal({**tls, "base_url": "http://pods.example"})
    assert read({"base_url": "https://pods.example"}).uses_tls is False


@pytest.mark.parametrize("one", ["ssl_cert", "ssl_key"])
def test_a_certificate_needs_its_key_and_the_other_way_round(one: str) -> None:
    assert refusal({one: "file.pem"}).endswith("Set both or neither.")


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"sockets_url": "https://pods.example"}, "but sockets-port is not set"),
        (
            {
                "sockets_port": "3001",
                "sockets_url": "http://x.example",
                "base_url": "https://x.example",
            },
            "must have the same scheme",
        ),
        ({"sockets_port": "3001", "base_url": "https://pods.example"}, "Set --sockets-url"),
    ],
)
def test_clients_can_reach_the_port_for_sockets(
    given: dict[str, OptionValue], sentence: str
) -> None:
    assert sentence in refusal(given)


def test_reads_are_redirected_to_s3_only() -> None:
    given: dict[str, OptionValue] = {"redirect_large_reads": True}
    for bodies in ({}, {"bodies": "/mnt/bodies"}):
        assert "bodies are not in S3" in refusal({**given, **bodies})
    assert read({**given, "bodies": "s3://bucket/pods"}).redirect_large_reads


@pytest.mark.parametrize(
    ("given", "address"),
    [
        ({}, "http://localhost:3000"),
        ({"sockets_port": "3001"}, "http://localhost:3001"),
        ({"sockets_port": "3001", "base_url": "http://[::1]"}, "http://[::1]:3001"),
        (
            {
                "sockets_port": "3001",
                "base_url": "https://a.example",
                "sockets_url": "https://b.example",
            },
            "https://b.example",
        ),
    ],
)
def test_sockets_have_an_address(given: dict[str, OptionValue], address: str) -> None:
    assert read(given).sockets_base_url == address


def test_the_terms_are_read_with_the_settings(tmp_path: Path) -> None:
    terms = tmp_path / "terms.md"
    terms.write_text("\ufeffBe kind.")
    assert read({"terms": str(terms)}).terms_text == "Be kind."
    assert "No such file" in refusal({"terms": str(tmp_path / "none")})
    for content in (b"", b" \n", b"\xff", b"x" * (256 * 1024 + 1)):
        terms.write_bytes(content)
        assert "terms" in refusal({"terms": str(terms)})


@pytest.mark.parametrize(
    "contact", ["nobody", "javascript:alert(1)", "a@b c", "https://", 'https://a"b', "@", "a@<b>"]
)
def test_a_contact_is_an_email_address_or_a_url(contact: str) -> None:
    assert read({"operator_contact": "https://pods.example/help"}).operator_contact
    assert "operator-contact" in refusal({"operator_contact": contact})


# --- The table itself -----------------------------------------------------------------------


def test_every_setting_has_a_name_a_meaning_and_a_unit_that_its_name_shows() -> None:
    assert len({row.name for row in settings_table()}) == len(settings_table())
    for row in settings_table():
        assert row.meaning.endswith("."), row.name
        if row.name not in {"keep-deleted", "keep-versions"}:  # for how many days, obviously
            assert row.name.endswith(UNIT_SUFFIXES.get(row.unit, "")), row.name


UNIT_SUFFIXES = {"bytes": "-bytes", "seconds": "-s", "days": "-days", "triples": "-triples"}


def test_every_default_is_a_value_that_its_kind_takes() -> None:
    for row in settings_table():
        if row.default not in (None, ()):
            assert (
                row.kind.parse(str(row.default).lower() if row.is_switch else str(row.default))
                == row.default
            )


@pytest.mark.parametrize(
    ("base_url", "provider"),
    [
        ("https://pods.example", "https://login.example"),
        ("https://pods.example", "https://idp.pods.example"),
        ("http://localhost:3000", "http://127.0.0.1:3000"),
        ("http://localhost:3000", "http://idp.localhost:3000"),
    ],
)
def test_the_provider_may_have_an_origin_of_its_own(base_url: str, provider: str) -> None:
    settings = read({"base_url": base_url, "idp": True, "idp_base_url": f"{provider}/"})
    assert (settings.issuer, settings.base_url) == (provider, base_url)
    assert read({"base_url": base_url, "idp": True}).issuer == base_url


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"idp": False}, "idp is off"),
        ({"idp_base_url": "https://pods.example"}, "also serves pods"),
        ({"idp_base_url": "https://pods.example:8443"}, "cookies are shared between ports"),
        ({"host_aliases": ("login.example:8443",)}, "also serves pods"),
        ({"idp_base_url": "http://login.example"}, "the same scheme"),
        ({"idp_base_url": "https://login.example/idp"}, "--idp-base-url is"),
    ],
)
def test_a_provider_that_is_not_parted_from_the_pods_is_refused(
    options: dict[str, OptionValue], said: str
) -> None:
    given: dict[str, OptionValue] = {"base_url": "https://pods.example", "idp": True}
    assert said in refusal({**given, "idp_base_url": "https://login.example", **options})


def test_large_bodies_may_be_in_s3_or_in_a_folder() -> None:
    url = "s3://my-bucket/pods/a?endpoint=https://s3.example:9000&region=eu-1"
    assert read({"bodies": url}).bodies == S3Location(
        "my-bucket", "pods/a", endpoint="https://s3.example:9000", region="eu-1"
    )
    encrypted = read({"bodies": "s3://my-bucket?encryption=aws:kms&kms-key=alias/pods"}).bodies
    assert encrypted == S3Location("my-bucket", "", encryption="aws:kms", kms_key="alias/pods")
    assert encrypted.url == "s3://my-bucket"
    assert read({"bodies": "/mnt/bodies"}).bodies == Path("/mnt/bodies")


@pytest.mark.parametrize(
    "url",
    [
        "s3://",
        "s3://B/x",
        "s3://bucket/../x",
        "s3://bucket/a//b",
        "s3://key:secret@bucket/x",
        "s3://bucket/x?region=",
        "s3://bucket/x?region=a&region=b",
        "s3://bucket/x?secret=a",
        "s3://bucket/x?endpoint=ftp://s3.example",
        "s3://bucket/x?encryption=none",
        "s3://bucket/x#y",
        "https://bucket.s3.example",
        "relative/folder",
    ],
)
def test_another_place_for_large_bodies_is_refused(url: str) -> None:
    assert "must be s3://BUCKET/PREFIX" in refusal({"bodies": url})


def test_the_url_of_the_database_is_not_repeated() -> None:
    url = "postgresql://podstead:secret-word@db.example/podstead?sslmode=verify-full"
    assert read({"database": url}).database == url
    message = refusal({"database": url.replace("postgresql", "mysql")})
    assert "PostgreSQL" in message
    assert "secret-word" not in message
