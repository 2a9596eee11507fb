"""How the API server is reached: as kubeconfig says, or as the pod that the harness runs in. Its secrets are told."""

import json
import os
from pathlib import Path

from kubernetes import client, config
from kubernetes.config import ConfigException
from kubernetes.config.kube_config import KUBE_CONFIG_DEFAULT_LOCATION, KubeConfigMerger
from kubernetes.utils import tcp_keepalive_socket_options
from yaml import YAMLError

from clusters import hidden
from clusters.errors import BadInput

OWN = "the cluster that this runs in"
SILENT_S = 30.0
KEPT_ALIVE = tcp_keepalive_socket_options(idle=10, interval=5, count=4)
"""For each connection: load balancers forget one that is silent for minutes, as a log is of a node that runs, and tell
nobody. So it is used every ten seconds, and one that is lost is known after ``SILENT_S``."""


class _Configuration(client.Configuration):  # type: ignore[misc]
    """Tells each token before it is first sent: one that runs out is replaced while the run goes on."""

    _told: str | None = None

    def get_api_key_with_prefix(self, identifier: str, alias: str | None = None) -> str | None:
        key: str | None = super().get_api_key_with_prefix(identifier, alias)
        if key and key != self._told:
            hidden.tell({"token": key.rpartition(" ")[2]})
            self._told = key
        return key


def configuration(context: str | None) -> tuple[client.Configuration, str]:
    """How the API server is reached, and its name in messages. Raises ``BadInput``."""
    found = _Configuration()
    found.socket_options = KEPT_ALIVE
    found.retries = False  # else each attempt is made four times: whoever asks decides for how long, and asks again
    if context is None and in_a_pod() and not _named():
        try:
            config.load_incluster_config(client_configuration=found)
        except (ConfigException, OSError) as error:
            raise BadInput(
                f"substrate kubernetes: the account of the pod that this runs in cannot be used ({error}); let its "
                "token be mounted (automountServiceAccountToken), or name a kubeconfig in KUBECONFIG"
            ) from error
        return found, OWN
    try:
        # Named: the client looks at the environment once, when it is imported.
        file = os.environ.get("KUBECONFIG") or KUBE_CONFIG_DEFAULT_LOCATION
        _tell_secrets(file)
        config.load_kube_config(config_file=file, context=context, client_configuration=found)
        # Where one is named the file need not have a current one.
        name = context or config.list_kube_config_contexts(config_file=file)[1]["name"]
        if found.key_file:  # also where it is another file's, or a program made it
            hidden.tell({"client_key": Path(found.key_file).read_text(errors="surrogateescape")})
    # The client trips over what is no kubeconfig at all.
    except (ConfigException, OSError, ValueError, YAMLError, AttributeError, LookupError, TypeError) as error:
        names = os.environ.get("KUBECONFIG", "~/.kube/config")
        raise BadInput(
            f"substrate kubernetes: {names}: cannot be used ({error}); name a file that kubectl accepts in KUBECONFIG, "
            "and one of its contexts in ROACHPROOF_KUBERNETES_CONTEXT"
        ) from error
    return found, f"Kubernetes context {name}"


def in_a_pod() -> bool:
    """Whether the harness runs in a pod, of whichever cluster."""
    return "KUBERNETES_SERVICE_HOST" in os.environ


def _named() -> bool:
    """Whether a kubeconfig says which cluster is meant, as ``kubectl`` has it."""
    return "KUBECONFIG" in os.environ or Path(KUBE_CONFIG_DEFAULT_LOCATION).expanduser().exists()


def _tell_secrets(files: str) -> None:
    """Tell what is secret of all users: what the client says of a file that it cannot use has them in it."""
    for content in KubeConfigMerger(files).config_files.values():
        hidden.tell({"kubeconfig": json.dumps(content.get("users"), default=str)})
