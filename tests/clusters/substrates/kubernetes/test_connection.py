"""What the API server is reached with is hidden wherever it stands, whatever it looks like, before it is used."""

import base64
import json
import socket
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import urllib3
from kubernetes import client
from kubernetes.client.rest import RESTClientObject

from clusters import hidden
from clusters.engines import ENGINES
from clusters.errors import BadInput
from clusters.substrates.adopted.description import _root
from clusters.substrates.kubernetes import connection
from clusters.substrates.kubernetes.connection import configuration
from plugin.evidence import redaction
from plugin.evidence.redaction import redacted

PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEwombatwombat0\nmarmotmarmot1\n-----END RSA PRIVATE KEY-----\n"


@pytest.fixture(autouse=True)
def nothing_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redaction, "_GIVEN", {})
    monkeypatch.setattr(hidden, "_HIDING", [redaction.hide_given])


def kubeconfig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, user: Mapping[str, Any], **other: Any) -> None:
    """A kubeconfig of this one user, and of others who are not meant."""
    file = tmp_path / "kubeconfig"
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "lab",
        "contexts": [{"name": "lab", "context": {"cluster": "lab", "user": "me"}}],
        "clusters": [{"name": "lab", "cluster": {"server": "https://127.0.0.1:1"}}],
        "users": [{"name": "me", "user": user}, *({"name": name, "user": one} for name, one in other.items())],
    }
    file.write_text(json.dumps(content))
    monkeypatch.setenv("KUBECONFIG", str(file))


def assert_hidden(*secrets: str) -> None:
    for secret in secrets:
        assert redacted(f"said {secret} twice: ({secret})") == "said … twice: (…)"


@pytest.mark.parametrize(
    ("user", "secrets"),
    [
        ({"token": "plain-words-only"}, ["plain-words-only"]),
        ({"username": "user", "password": "velvet-marmot"}, ["velvet-marmot", "dXNlcjp2ZWx2ZXQtbWFybW90"]),
        (
            {"auth-provider": {"name": "oidc", "config": {"id-token": "a-plain-token", "refresh-token": "a-later-token",
                                                          "client-secret": "the-clients-own"}}},
            ["a-plain-token", "a-later-token", "the-clients-own"],
        ),
        ({"token": "plain-words-only", "exec": {"env": [{"name": "CLOUD_PASSWORD", "value": "otter-bridge"}]}},
         ["otter-bridge"]),
    ],
    ids=["token", "password", "provider", "environment of a program"],
)  # fmt: skip
def test_secrets_of_kubeconfig(
    user: Mapping[str, Any], secrets: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kubeconfig(tmp_path, monkeypatch, user)
    found, _ = configuration(None)
    found.auth_settings()
    assert_hidden(*secrets)
    assert redacted("me of lab") == "me of lab"


def test_a_call_and_a_watch_are_kept_alive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kubeconfig(tmp_path, monkeypatch, {"token": "plain-words-only"})
    found, _ = configuration(None)
    assert (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1) in found.socket_options
    assert RESTClientObject(found).pool_manager.connection_pool_kw["socket_options"] == found.socket_options


def test_a_call_is_one_attempt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else each is made four times, and an API server that hangs is waited for four times as long as was meant."""
    kubeconfig(tmp_path, monkeypatch, {"token": "plain-words-only"})
    file, taken = tmp_path / "kubeconfig", list[socket.socket]()
    with socket.create_server(("127.0.0.1", 0)) as listens:
        there = f"http://127.0.0.1:{listens.getsockname()[1]}"
        file.write_text(file.read_text().replace("https://127.0.0.1:1", there))
        found, _ = configuration(None)

        def take() -> None:
            with suppress(OSError):
                while True:
                    taken.append(listens.accept()[0])
                    taken[-1].close()

        threading.Thread(target=take, daemon=True).start()
        with pytest.raises(urllib3.exceptions.HTTPError):
            client.CoreV1Api(client.ApiClient(found)).list_namespace()
    assert len(taken) == 1


def test_a_key_is_hidden_line_by_line_from_the_file_or_from_kubeconfig(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoded, key, certificate = base64.b64encode(PEM.encode()).decode(), tmp_path / "key.pem", tmp_path / "cert.pem"
    certificate.touch()
    for user in ({"client-key-data": encoded, "client-certificate-data": ""}, {"client-key": str(key)}):
        redaction._GIVEN.clear()
        key.write_text(PEM)
        kubeconfig(tmp_path, monkeypatch, {"client-certificate": str(certificate), **user})
        configuration(None)
        assert_hidden(encoded, "MIIEwombatwombat0", "marmotmarmot1")
        assert redacted(f"reading {key}") == f"reading {key}"


def test_the_token_of_a_program_or_a_file_and_each_that_comes_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = tmp_path / "token"
    token.write_text("first-of-a-file")
    kubeconfig(tmp_path, monkeypatch, {"tokenFile": str(token)})
    found, _ = configuration(None)
    assert found.auth_settings()["BearerToken"]["value"] == "Bearer first-of-a-file"
    assert_hidden("first-of-a-file")
    assert redacted(f"reading {token}") == f"reading {token}"
    told = json.dumps({"kind": "ExecCredential", "apiVersion": "client.authentication.k8s.io/v1",
                       "status": {"token": "first-of-a-program"}})  # fmt: skip
    program = {"apiVersion": "client.authentication.k8s.io/v1", "command": "/bin/echo", "args": [told],
               "interactiveMode": "Never"}  # fmt: skip
    kubeconfig(tmp_path, monkeypatch, {"exec": program})
    found, _ = configuration(None)
    found.auth_settings()
    assert_hidden("first-of-a-program")
    found.refresh_api_key_hook = lambda of: of.api_key.update(BearerToken="Bearer second-of-a-program")
    found.auth_settings()
    assert_hidden("second-of-a-program")


def test_what_is_wrong_with_a_file_is_said_without_the_secrets_of_other_users(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kubeconfig(tmp_path, monkeypatch, {"token": "plain-words-only"}, you={"password": "velvet-marmot"})
    with pytest.raises(BadInput, match="cannot be used"):
        configuration("elsewhere")
    assert_hidden("plain-words-only", "velvet-marmot")


@pytest.mark.parametrize("content", ["{", "a: b: c", "[]", "users: 1", "''"])
def test_what_is_no_kubeconfig_is_bad_input(content: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "kubeconfig").write_text(content)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
    with pytest.raises(BadInput, match="cannot be used"):
        configuration(None)


@pytest.mark.parametrize("current", [{}, {"current-context": "one that was deleted"}], ids=["none", "deleted"])
def test_a_context_that_is_named_needs_no_current_one(
    current: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kubeconfig(tmp_path, monkeypatch, {"token": "plain-words-only"})
    content = json.loads((tmp_path / "kubeconfig").read_text())
    del content["current-context"]
    (tmp_path / "kubeconfig").write_text(json.dumps(content | current))
    found, name = configuration("lab")
    assert (found.host, name) == ("https://127.0.0.1:1", "Kubernetes context lab")
    with pytest.raises(BadInput, match="cannot be used"):
        configuration(None)


def test_in_a_pod_a_kubeconfig_of_its_user_says_which_cluster_is_meant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As for ``kubectl``: another one than the pod's would be disturbed."""
    kubeconfig(tmp_path, monkeypatch, {"token": "plain-words-only"})
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setattr(connection, "KUBE_CONFIG_DEFAULT_LOCATION", str(tmp_path / "kubeconfig"))
    monkeypatch.delenv("KUBECONFIG")
    found, name = configuration(None)
    assert (found.host, name) == ("https://127.0.0.1:1", "Kubernetes context lab")


def test_a_pod_without_a_token_of_its_account_is_bad_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setattr(connection, "KUBE_CONFIG_DEFAULT_LOCATION", str(tmp_path / "none"))
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    with pytest.raises(BadInput, match=r"account of the pod .* cannot be used .*automountServiceAccountToken"):
        configuration(None)


async def test_the_key_of_a_cluster_that_is_there_already() -> None:
    encoded = base64.b64encode(PEM.encode()).decode()

    async def call(*_: object) -> Any:
        return SimpleNamespace(data=dict.fromkeys(("ca.crt", "tls.crt", "tls.key"), encoded))

    api: Any = SimpleNamespace(call=call, core=SimpleNamespace(read_namespaced_secret=None))
    found: Any = SimpleNamespace(secrets=["root"], namespace="team", charted=ENGINES["cockroach"].charted)
    assert (await _root(api, found))[0] == "root"
    assert_hidden(encoded, "MIIEwombatwombat0")
