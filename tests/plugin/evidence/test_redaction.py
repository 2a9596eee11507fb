"""What looks like a secret is taken out, in every form that is known; all else stays as it is."""

import base64
import json
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from plugin.evidence import redaction
from plugin.evidence.redaction import HIDDEN, LONG, redacted, redacted_json, redacted_value
from plugin.evidence.store import broken_seals
from tests.plugin.conftest import Gate

SAMPLE = Path(__file__).parents[3] / "docs" / "sample-run.tar.xz"
SECRETS = ("hunter2SECRET", "marmalade", "20261125")
"""One that looks like one, a plain word, digits alone."""
SHOWN = [
    # URLs and DSNs
    "postgresql://root:{}@db:26257/shop",
    "postgresql://root:a@{}@db:26257/shop",
    "postgresql://root:a/{}@db:26257/shop",
    "postgresql://root:a?{}#b@db:26257/shop",
    "postgresql://{}@db/shop",
    "//root:a@{}@db/shop",
    r'{{"dsn":"postgresql:\/\/root:{}@db\/shop"}}',
    "postgresql://root@db:26257/shop?sslmode=verify-full&sslpassword={}",
    "url=postgresql%3A%2F%2Froot%3A{}%40db%2Fshop",
    "root:{}@db",
    "root:{}@tcp(db:3306)/shop",
    "root:{}@10.1.2.3:26257",
    "host=db user=root password={} dbname=shop",
    "Server=db;Password={};Database=shop",
    "password%3D{}%26host%3Ddb",
    # SQL
    "ALTER USER root WITH PASSWORD '{}'",
    "ALTER USER root WITH PASSWORD E'{}'",
    "ALTER USER root PASSWORD $$ {} $$",
    "ALTER USER root PASSWORD $x$it's {}$x$",
    "CREATE USER root IDENTIFIED BY 'it''s {}'",
    "CREATE USER root IDENTIFIED BY {}",
    "create user if not exists root identified by {} account lock",
    "ALTER ROLE root identified by {};",
    "IDENTIFIED BY {}",
    "ALTER USER root PASSWORD '{} cut off here",
    # Sentences
    "passphrase {}",
    "passphrase 'two words, {}'",
    "passphrase correct horse {} staple",
    "the passphrase is correct horse {}",
    "passphrase correct\\horse {}",
    "the password {} is wrong",
    "the password is {}, that of root",
    "password {}",
    "passwd {}",
    "the passphrase is: {}",
    "--password {}",
    "wrong password ({}) of root",
    # Names
    '{{"password": "{}"}}',
    '{{"password": "a\\"{}"}}',
    '{{"log": "{{\\"token\\": \\"{}\\"}}"}}',
    '{{"log": "{{\\"token\\": \\"a\\\\\\"{}\\"}}"}}',
    "{{'password': b'{}'}}",
    "Settings(password=SecretStr('{}'), host='db')",
    "PGPASSWORD={} psql",
    "DB_PASS={}",
    "pass={}",
    "auth={}",
    "AZURE_ACCOUNT_KEY={}==",
    "AccountName=x;AccountKey={}==;EndpointSuffix=y",
    "AWS_SECRET_ACCESS_KEY={}",
    "client.password: {}",
    'os.environ["PASSWORD"] = "{}"',
    "password=hun,ter;{}",
    "password=hun}}ter{}",
    'password="{} cut off he',
    "assert password == '{}'",
    "passphrase := {}",
    "passphrase: correct horse {} staple",
    "ROACH_LICENSE={}",
    "enterprise.license = '{}'",
    # Headers
    "Authorization: Basic {}==",
    "Authorization: AWS4-HMAC-SHA256 Credential=x, Signature={}",
    "Bearer {}x1",
    "Cookie: a=1; session={}; b=2",
    'Authorization: Bearer {0} {{"api_key": "{0}"}}',
    "Proxy-Authorization: Basic {}",
    "X-Cockroach-API-Session: {}",
    # Commands
    "cockroach start --token {} --store=x",
    "['cockroach', '--token', '{}']",
    "curl -s -u root:{} http://db:8080/health",
    "cockroach sql -u root:{}",
    "-u root:{}",
    "-uroot:{}",
    "['curl', '-uroot:{}']",
    "['curl', '-u', 'root:{}']",
    '"--user", "root:{}"',
    "curl -uroot:{} http://db:8080/health",
    "mysql -h db -uroot -p{} shop",
    "sshpass -p {} ssh db",
    # XML
    "<password>{}</password>",
    "<db:client-secret kind='x'><![CDATA[{}]]></db:client-secret>",
]  # fmt: skip
"""Where a secret may stand."""
FORMS = [
    "crl-0-EJL04ukFGAEiI1Rlc3Qga2V5",
    "crl-1-xyz",
    "md5" + "0123456789abcdef" * 2,
    "CRDB-BCRYPT$2a$10$vcmoIBvgeHjgScVHWRMWI.Z3v03WMixAw2bBS6qZihljSUuwi88Yq",
    "SCRAM-SHA-256$4096:c2FsdHNhbHQ=$c3RvcmVk:c2VydmVy",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJyb290In0.c2lnbmF0dXJl",
    "AKIAIOSFODNN7EXAMPLE",
    "ghp_0123456789abcdefghijABCDEFGHIJ",
]
"""Secrets known by their form."""
PLAIN = [
    "n1: 5432@db is up",
    "bob@example.org and mailto:bob@example.org",
    "image cockroachdb/cockroach:v21.1.0@sha256:0123456789abcdef",
    "npm:left-pad@1.3.0",
    "http://localhost:8080/health and https://github.com/@scope/package",
    "I261121 12:50:51.424134 750 kv/kvserver/replica_command.go:397 ⋮ [n1,s1,r12/1:‹/{Min-System/NodeLiveness}›] "
    "change replicas: [(n1,s1):1, (n2,s2):2, next=3, gen=4]",
    'syntax error at or near "token"',
    "tokens: 5, tokens_found=3, password_length: 12",
    '{"tokens": 5, "token_count": 7}',
    "password: null, token=None, password_encryption = scram-sha-256",
    "def connect(password: str, token: str | None) -> None: ...",
    "claims: 3 pass, 1 fail; pass=3 fail=0; outcome: pass",
    "basic authentication; bearer of the name",
    "password authentication failed; password required! passphrase needed; licence: none, license = Apache-2.0",
    "['docker', '-u', '1000:1000'], '-u1000:1000' and -u1000:1000; -uid:7, -unit:ms, -url:x",
    "a range is identified by its start key; IDENTIFIED BY $1",
    "ALTER USER root WITH PASSWORD $1",
    "the password is not set, a password for root is needed; password (required) and passwords 5",
    "password --host db; the password user=rep; password | None; if password is None",
    "CREATE USER root WITH PASSWORD NULL; the password was wrong. Password must be set; password of root",
    "compass: north; author=bob; bypass=yes",
    "test_x.py::test_y[postgresql://…@db/shop] and at:postgresql://…@db",
    "-p 26257; psql -p 5432 -U root",
    "<table><tr><td>password</td></tr></table>",
]
"""What only resembles one."""


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize("form", SHOWN, ids=range(len(SHOWN)))
def test_a_secret_is_hidden_wherever_it_stands(form: str, secret: str) -> None:
    shown = redacted(form.format(secret))
    assert secret not in shown
    assert HIDDEN in shown
    assert redacted(shown) == shown
    assert secret not in redacted(f"E   OSError: ({form.format(secret)}) refused\n and more of it")


@pytest.mark.parametrize("secret", FORMS)
def test_a_secret_is_known_by_its_form(secret: str) -> None:
    shown = redacted(f"found {secret}, that was it")
    assert secret[-8:] not in shown
    assert shown.endswith(f"{HIDDEN}, that was it")


@pytest.mark.parametrize("text", PLAIN, ids=range(len(PLAIN)))
def test_what_only_resembles_a_secret_stays(text: str) -> None:
    assert redacted(text) == text


def test_a_private_key_whole_in_one_line_or_cut_off() -> None:
    body = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC"
    key = f"-----BEGIN RSA PRIVATE KEY-----\n{body}\n{body}\n-----END RSA PRIVATE KEY-----"
    for text in (key, key.replace("\n", "\\n"), key[:80]):
        assert body[:12] not in redacted(f"{text} (the key)")
    assert redacted(f"{key} (the key)").endswith("(the key)")


def test_what_stands_around_a_secret_stays() -> None:
    assert redacted("user=rep password=x host=n2") == "user=rep password=… host=n2"
    assert redacted('{"password": "x", "tokens": 5}') == '{"password": "…", "tokens": 5}'
    assert redacted('{"password": 12345678, "n": 5}') == '{"password": "…", "n": 5}'
    assert redacted("WITH PASSWORD 'x', LOGIN") == "WITH PASSWORD '…', LOGIN"
    assert redacted("(postgresql://a:b@h/db?x=y) refused") == "(postgresql://…@h/db?… refused"
    assert redacted("f(password='x', host='h')") == "f(password='…', host='h')"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ({"password": 12345678}, {"password": HIDDEN}),
        ({"tokens": ["x", 5, None]}, {"tokens": [HIDDEN, HIDDEN, None]}),
        ({"tokens": 5, "tokens_found": 3}, {"tokens": 5, "tokens_found": 3}),
        ({"tokens_found": {"n1": 3}}, {"tokens_found": {"n1": 3}}),
        ({"tokens_found": ["x"]}, {"tokens_found": [HIDDEN]}),
        ({"credentials": {"user": "a", "on": True}}, {"credentials": {"user": HIDDEN, "on": True}}),
        ({"client.password": "x", "db password": "y"}, {"client.password": HIDDEN, "db password": HIDDEN}),
        ({"password_encryption": "scram-sha-256"}, {"password_encryption": "scram-sha-256"}),
        ({"pass": "x", "auth": "y"}, {"pass": HIDDEN, "auth": HIDDEN}),
        ({"pass": 12, "fail": 1}, {"pass": 12, "fail": 1}),
        ({"name": "DB_PASSWORD", "value": "x"}, {"name": "DB_PASSWORD", "value": HIDDEN}),
        ({"metric": "tokens", "value": 5}, {"metric": "tokens", "value": 5}),
        ({"password": None, "token": True, "secret": ""}, {"password": None, "token": True, "secret": ""}),
        (["cockroach", "--token", "x", "--port", "1"], ["cockroach", "--token", HIDDEN, "--port", "1"]),
        (["curl", "-u", "a:b", "h"], ["curl", "-u", HIDDEN, "h"]),
        (["psql", "-U", "root", "-p", "5432"], ["psql", "-U", "root", "-p", "5432"]),
        (["/usr/bin/mysql", "-px", "db"], ["/usr/bin/mysql", "-p…", "db"]),
        ({"postgresql://a:b@h": 1}, {"postgresql://…@h": 1}),
        ({"//a:b@h": 1, "//a:c@h": 2}, {"//…@h": 1, "//…@h (1)": 2}),
        (OSError("password=x"), "password=…"),
    ],
    ids=str,
)  # fmt: skip
def test_what_stands_under_a_secrets_name(value: Any, shown: Any) -> None:
    assert redacted_json(value) == shown
    assert redacted_json(shown) == shown


def test_a_value_by_its_name() -> None:
    assert redacted_value("password", "x") == HIDDEN
    assert redacted_value("limit", "== 3 rows") == "== 3 rows"
    assert redacted_value("dsn", "//a:b@h") == "//…@h"


ALPHABET = "ab:@/=\"'\\ ?&,;{}[]()<>-_.\n…$%3D#"
WORDS = st.sampled_from([
    "password", "token", "PASSWORD ", "://", "//", "a:b@", "--secret ", "Bearer ", "cookie: ", "tokens", "$$", '\\"',
    '": "', "%3D", "-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----", "<token>", "</", "curl -u ", "mysql -p",
    "IDENTIFIED BY ", "passphrase ", "-uroot:",
    "pass=", "auth", "12345678", "…", "crl-0-abcdefgh", "E'", "secret(", "https", "postgres",
])  # fmt: skip
TEXT = st.lists(WORDS | st.text(ALPHABET, max_size=4) | st.text(max_size=4), max_size=14).map("".join)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT | WORDS, inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=600, deadline=None)
@given(TEXT)
def test_redacting_twice_changes_nothing(text: str) -> None:
    shown = redacted(text)
    assert redacted(shown) == shown


@settings(max_examples=300, deadline=None)
@given(VALUES)
def test_json_keeps_its_shape(value: Any) -> None:
    def shape(of: Any) -> Any:
        if isinstance(of, dict):
            return [shape(item) for item in of.values()]
        return [shape(item) for item in of] if isinstance(of, list) else "value"

    shown = redacted_json(value)
    assert json.loads(json.dumps(shown)) == shown
    assert shape(shown) == shape(value)
    assert redacted_json(shown) == shown


@settings(max_examples=300, deadline=None)
@given(st.text("abcXYZ019@/:?#%&=+.,;!$^*()_~-", min_size=1, max_size=30))
def test_no_password_of_a_url_is_left(password: str) -> None:
    shown = redacted(f"cannot connect to postgresql://root:{password}@db.example:26257/shop, gave up")
    assert shown == "cannot connect to postgresql://…@db.example:26257/shop, gave up"


@settings(max_examples=300, deadline=None)
@given(st.text(min_size=1, max_size=40), st.sampled_from(["password", "API_KEY", "refreshToken"]))
def test_no_secret_of_json_is_left(secret: str, name: str) -> None:
    assume(HIDDEN not in secret)
    text = json.dumps({"before": 1, name: secret, "after": [True]})
    for shown in (redacted(text), json.dumps(redacted_json(json.loads(text)), ensure_ascii=False)):
        assert json.loads(shown) == {"before": 1, name: HIDDEN, "after": [True]}
    twice = json.loads(redacted(json.dumps({"log": text})))["log"]
    assert json.loads(twice) == {"before": 1, name: HIDDEN, "after": [True]}


def logs_and_events() -> Iterator[tuple[str, str]]:
    with tarfile.open(SAMPLE) as archive:
        for member in archive:
            file = archive.extractfile(member) if member.isfile() else None
            if file and not member.name.endswith(".tsv"):
                yield member.name, file.read().decode("utf-8", "replace")


def test_a_real_run_stays_as_it_is() -> None:
    """A stored run of v21.1 holds no secret, and not a character of it is taken for one."""
    seen = 0
    for name, text in logs_and_events():
        for line in text.splitlines():
            seen += 1
            assert redacted(line) == line, name
            if name.endswith(".jsonl") and not line.startswith("#"):
                value = json.loads(line)
                assert redacted_json(value) == value, name
    assert seen > 1000


@pytest.mark.parametrize(
    "part",
    [
        "a-",
        "token",
        "token ",
        "token=",
        "password='",
        'password="',
        'password=\\"',
        'token="\\"token=',
        "a://",
        "//a:@",
        "a:b@",
        "a:",
        "a.",
        "PASSWORD $$",
        "PASSWORD $a$ PASSWORD $b$ ",
        "PASSWORD '",
        "-----BEGIN PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEYPRIVATE KEY",
        "PRIVATE KEY",
        "--token-",
        " --a-",
        "curl ",
        "mysql ",
        "<token ",
        "<token>",
        "basic ",
        "cookie:",
        "[,;&",
        "password={",
        "%3A%2F%2F",
        "\\",
        "\\/\\/",
        '"token\\',
        "'--token' ,",
        "eyJaaaaaaaa.",
        "crl-0-",
        "$6$",
        "(",
        "pass ",
        "password ",
        "password \\",
        "password=a,",
        "password=secret(",
        "A",
        "@",
        "-",
        " ",
        "\t",
        "…",
        "session_",
        "identified ",
        "IDENTIFIED BY ",
        "user a ",
        "user a identified ",
        "passphrase ",
        "passphrase a\\",
        "-u",
        "-ua ",
        "-ua:",
        "Bearer a",
    ],
)
def test_the_time_grows_with_the_length(part: str) -> None:
    """Nobody who writes what is reported can make a report take for ever: 300 kB of anything take seconds at most."""

    def seconds(size: int) -> float:
        text = (part * (size // len(part) + 1))[:size]
        began = time.process_time()
        redacted(text)
        redacted(f"token {text}")
        redacted(f"x//:@{text}</ curl mysql PRIVATE KEY $")
        return time.process_time() - began

    assert seconds(100_000) < 4


@pytest.fixture
def nothing_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redaction, "_GIVEN", {})
    monkeypatch.setattr(redaction, "_LEFT", {})


@pytest.mark.usefixtures("nothing_given")
def test_what_a_run_was_given_as_a_secret_is_taken_out_wherever_it_stands() -> None:
    redaction.hide_given(
        {
            "CI_JOB_TOKEN": "plain-words-only",
            "ROACHPROOF_COCKROACH_LICENSE": "what ever it/looks like",
            "DATABASE_URL": "postgresql://app:p%40ssw0rd-long@db/shop",
            "AZURE_ACCOUNT_KEY": 'quo"ted-secret',
        }
    )
    for told in ("it said plain-words-only twice: plain-words-only", "x what ever it/looks like y", "(p@ssw0rd-long)",
                 "what%20ever%20it%2Flooks%20like", json.dumps({"a": 'quo"ted-secret'})):  # fmt: skip
        assert not any(part in redacted(told) for part in ("plain-words", "ever", "ssw0rd-long", "ted-secret"))
    assert redacted_json({"x": ["plain-words-only"]}) == {"x": [HIDDEN]}


@pytest.mark.usefixtures("nothing_given")
@pytest.mark.parametrize(
    ("name", "value", "secret"),
    [
        ("PGPASSWORD", "sunshine", "sunshine"),
        ("PGPASSWORD", "Wombat", "Wombat"),
        ("PGPASSWORD", "koa1", "koa1"),
        ("DB_PASSWORD", "otterbridge", "otterbridge"),
        ("ROACHPROOF_COCKROACH_LICENSE", "velvetmarmot", "velvetmarmot"),
        ("CI_TOKEN", "4711081504711", "4711081504711"),
        ("DATABASE_URL", "postgresql://app:hunter2@db/shop", "hunter2"),
        ("DATABASE_URL", "host=db user=app password=hunter2 dbname=shop", "hunter2"),
        ("DATABASE_URL", "postgresql://db/shop?user=app&password=hunter2&sslmode=require", "hunter2"),
    ],
)
def test_a_short_or_plain_word_that_was_given_is_taken_out_as_a_word(name: str, value: str, secret: str) -> None:
    redaction.hide_given({name: value})
    assert redacted(f"said {secret}, ({secret}) and user_{secret}") == "said …, (…) and user_…"
    assert redacted_json({"x": [secret], secret: 1}) == {"x": [HIDDEN], HIDDEN: 1}
    assert redacted(f"un{secret}ed") == f"un{secret}ed"


@pytest.mark.usefixtures("nothing_given")
@pytest.mark.parametrize(
    ("name", "value", "secrets"),
    [
        ("DATABASE_URL", "postgresql://app:pa/ss-w0rd@db/shop", ["pa/ss-w0rd"]),
        ("DATABASE_URL", "postgresql://app:p@ss-w0rd-x@db/shop", ["p@ss-w0rd-x", "p%40ss-w0rd-x"]),
        ("DATABASE_URL", "postgresql://db/shop?sslmode=require&sslpassword=w0mbat-key", ["w0mbat-key"]),
        ("DATABASE_URL", r"host=db password='it\'s w0mbat' dbname=shop", ["it's w0mbat"]),
        ("REGISTRY", "https://wholly-harmless-words@registry/v2", ["wholly-harmless-words"]),
        ("ARTEFACTS", "https://store/x?sig=w0mbat-sig%3D&access_token=w0mbat-token", ["w0mbat-sig=", "w0mbat-token"]),
        ("DEPLOY_TOKEN", "w0mbat-token\n", ["w0mbat-token"]),
        ("MYSQLPASS", "w0mbat-pass", ["w0mbat-pass"]),
        ("GITHUB_PAT", "w0mbat-pat-x", ["w0mbat-pat-x"]),
        ("DD_APP_KEY", "w0mbat-app-key", ["w0mbat-app-key"]),
        ("DB_PASSWORD", "w0mbat-in-base64", ["dzBtYmF0LWluLWJhc2U2NA=="]),
        ("DATABASE_URL", "postgresql://app:w0mbat%40x/y@db/shop", ["dzBtYmF0QHgveQ==", "dzBtYmF0JTQweC95"]),
        ("DATABASE_URL", "app:w0mbat-x@db:26257/shop", ["w0mbat-x"]),
        ("DATABASE_URL", "app:w0mb@t-x@tcp(db:3306)/shop?timeout=5s", ["w0mb@t-x"]),
        ("DATABASE", "app:w0mbat-x@10.1.2.3", ["w0mbat-x"]),
        ("BASIC_AUTH", "root:w0mbat-pw", ["w0mbat-pw", "root:w0mbat-pw"]),
        ("SECRET_DSN", "postgresql://app:w0mbat-x@db/shop", ["w0mbat-x"]),
        ("DEPLOY_KEY", "first-line-of-it-1\nsecond-line-of-it", ["first-line-of-it-1", "second-line-of-it"]),
        ("CLOUD_CREDENTIALS", '{"user": "app", "password": "w0mbat-json"}', ["w0mbat-json"]),
        ("CLOUD", '{"auths": [{"token": "w0mbat-deep"}]}', ["w0mbat-deep"]),
        ("CLOUD", '[{"name": "DB_PASSWORD", "value": "w0mbat-entry"}]', ["w0mbat-entry"]),
        ("CLOUD", '{"database": "postgresql://app:w0mbat-dsn@db/shop"}', ["w0mbat-dsn"]),
        ("client.root.key", "w0mbat-key", ["w0mbat-key"]),
    ],
)
def test_a_secret_in_whatever_form_it_was_given(name: str, value: str, secrets: list[str]) -> None:
    redaction.hide_given({name: value})
    for secret in secrets:
        assert redacted(f"said {secret} twice: ({secret})") == "said … twice: (…)"


@pytest.mark.usefixtures("nothing_given")
@pytest.mark.parametrize("user", ["", "u", "up", "app", "root"])
@pytest.mark.parametrize(("name", "value"), [("PGPASSWORD", "w0m/bat?>"), ("URL", "postgresql://x:w0m%2Fbat%3F%3E@db")])
def test_base64_of_a_user_and_a_given_password_tells_neither(name: str, value: str, user: str) -> None:
    """Whatever stands before and behind the password, of which no part can be read any more."""
    redaction.hide_given({name: value})
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        for behind in ("", "}", "}}"):
            told = encode(f"{user}:w0m/bat?>{behind}".encode()).decode()
            shown = redacted(f"said {told}")
            assert HIDDEN in shown
            left = shown.removeprefix("said ").partition(HIDDEN)
            assert len(left[0]) <= len(f"{user}:") * 4 / 3 + 1
            assert len(left[2]) <= 4 + 4


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.text("abc", min_size=LONG, max_size=24), min_size=1, max_size=3),
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 12)), min_size=1, max_size=4),
    st.permutations(range(5)),
)
def test_nothing_is_left_of_secrets_that_begin_or_overlap_each_other(
    secrets: list[str], longer: list[tuple[int, int]], order: list[int]
) -> None:
    """Whichever was given first."""
    every = [*secrets, *(f"{secrets[which % len(secrets)]}{'cab' * more}" for which, more in longer)]
    every = sorted(every, key=lambda secret: order[len(secret) % 5])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(redaction, "_GIVEN", {})
        patch.setattr(redaction, "_LEFT", {})
        redaction.hide_given({f"TOKEN_{at}_KEY": secret for at, secret in enumerate(every)})
        assert set(redacted(" 1 ".join(every))) <= {*f" 1{HIDDEN}"}


@pytest.mark.usefixtures("nothing_given")
def test_of_two_secrets_that_overlap_nothing_is_left() -> None:
    redaction.hide_given({"A_TOKEN": "wholly-harmless-words", "B_TOKEN": "harmless-words-of-mine"})
    assert redacted("(wholly-harmless-words-of-mine)") == "(…)"
    assert redacted("wholly-harmless-wordsharmless-words-of-mine") == "……"


@pytest.mark.usefixtures("nothing_given")
def test_what_is_called_as_a_file_beside_it_is_a_secret_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("w0mbat-docs", "events"):
        (tmp_path / name).mkdir()
    redaction.hide_given({"DB_PASSWORD": "w0mbat-docs", "PGPASSWORD": "events"})
    assert redacted("said w0mbat-docs") == "said …"
    assert redaction.not_hidden().startswith("not hidden: PGPASSWORD (")


@pytest.mark.usefixtures("nothing_given")
def test_what_stands_beside_a_secret_in_json_is_none() -> None:
    told = {"user": "wombat-app", "password": "w0mbat-json", "client-key": "/usr", "tokenFile": "a/file"}
    redaction.hide_given({"CLOUD_CREDENTIALS": json.dumps(told)})
    assert redacted("wombat-app /usr a/file") == "wombat-app /usr a/file"


@pytest.mark.usefixtures("nothing_given")
@pytest.mark.parametrize("secret", ["abc", "100", "20261125", "events", "survivability", "hot-swap", "Refuted"])
def test_what_evidence_is_made_of_stays(secret: str) -> None:
    """Too short, a number as they are measured, or a word of the suite itself: without it nothing could be read."""
    redaction.hide_given({"PGPASSWORD": secret})
    assert redacted(f"said {secret}") == f"said {secret}"
    assert redacted(f"password={secret}") != f"password={secret}", "where its name stands it is hidden all the same"
    assert redaction.not_hidden() == "not hidden: PGPASSWORD (too short, or a word of the suite's own)"


@pytest.mark.usefixtures("nothing_given")
def test_only_what_stays_is_named() -> None:
    redaction.hide_given(
        {"DEPLOY_TOKEN": "w0mbat-token", "PWD": "/usr", "API_KEY": "null", "PASSWORD": "", "HOME": "abc"}
    )
    assert redaction.not_hidden() == ""
    redaction.hide_given({"DATABASE_URL": "postgresql://root:postgres@db/x", "PIN_PASSWORD": "123\n"})
    redaction.hide_given({"DATABASE_URL": "postgresql://root:postgres@db/x"})
    assert redaction.not_hidden() == "not hidden: DATABASE_URL, PIN_PASSWORD (too short, or a word of the suite's own)"


def test_a_user_is_told_once_what_was_given_and_stays(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_PASSWORD", "events")
    monkeypatch.setenv("SHOP_TOKEN", "wholly-harmless-words")
    told = [line for line in gate(*gate.tests("passes"), "-n", "2").lines if line.startswith("not hidden")]
    assert told == ["not hidden: SHOP_PASSWORD (too short, or a word of the suite's own)"]


@pytest.mark.usefixtures("nothing_given")
def test_a_directory_is_no_secret_though_its_name_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """And the suite's own words are not read for it: each session of pytest has a PWD, and most an OLDPWD."""
    monkeypatch.setattr(redaction, "_own_words", lambda: pytest.fail("read"))
    redaction.hide_given({"PWD": "/usr", "OLDPWD": "/tmp"})
    assert redacted("/usr %2Ftmp") == "/usr %2Ftmp"


@pytest.mark.usefixtures("nothing_given")
def test_what_may_stand_anywhere_by_chance_stays() -> None:
    redaction.hide_given(
        {"TOKEN": "short", "PASSWORD": "", "SECRET_FILE": "/run/secrets/db", "TOKEN_TYPE": "some-words",
         "HOME": "/home/someone", "API_KEY": "null", "MONKEYS": "some-words", "PGPASSWORD": "cockroach",
         "DB_PASSWORD": "Survivability", "SESSION_KEY": "20261125", "DATABASE_URL": "postgresql://root:postgres@db/x"}
    )  # fmt: skip
    told = "short /run/secrets/db some-words /home/someone null cockroach Survivability 20261125 postgres"
    assert redacted(told) == told


def test_a_given_secret_is_in_no_file_of_a_run(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the environment, or read by whatever reaches a cluster; nodes' own logs, too, and the seal fits them."""
    monkeypatch.setenv("DEPLOY_TOKEN", "wholly-harmless-words")
    (gate.path / "test_claims.py").write_text(
        "import pytest\n"
        "from clusters import hidden\n"
        "@pytest.mark.claim('answer')\n"
        "async def test_it(judge, trial):\n"
        "    hidden.tell({'token': 'more-harmless-words'})\n"
        "    told = 'it said wholly-harmless-words, more-harmless-words'\n"
        "    judge.measure('answer', 41, note=told)\n"
        "    for log in ('logs/n1/cockroach.log', 'ledger.log'):\n"
        "        (trial.store.directory / log).parent.mkdir(parents=True, exist_ok=True)\n"
        "        (trial.store.directory / log).write_text(told)\n"
        "    (trial.store.directory / 'logs/n1/newest.log').symlink_to('cockroach.log')\n"
        "    assert judge.decide()\n"
    )
    ran = gate("--run-dir", "out", "--junit-xml", "out/junit.xml", "--alluredir", "out/allure")
    assert ran.status == 1
    assert "harmless-words" not in ran.text
    left = [path for path in gate.run_dir.rglob("*") if path.is_file()]
    assert {"cockroach.log", "ledger.log", "report.html", "junit.xml", "events.jsonl"} <= {path.name for path in left}
    assert not [path for path in left if b"harmless-words" in path.read_bytes()]
    assert not [path for path in left if path.is_symlink()], "it would seem to be missing from many a copy of the run"
    assert broken_seals(next(path.parent for path in left if path.name == "ledger.log")) == ()
