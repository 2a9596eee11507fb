"""CockroachDB as charts and operators deploy it."""

from pathlib import PurePath

from clusters.engines.charted import Charted
from clusters.engines.cockroach.pace import FAST_PACE


def _is_it(image: str, command: str) -> bool:
    return "cockroach" in f"{image} {command}" and "start" in command


def _against(command: str) -> str:
    if "--insecure" in command.split():
        return "runs with --insecure, and nodes are talked to over TLS alone; adopt a cluster that has certificates"
    return ""


CHARTED = Charted(
    user="root",
    container="db",
    is_it=_is_it,
    custom="CrdbCluster",
    custom_label="crdb.cockroachlabs.com/cluster",
    store=PurePath("/cockroach/cockroach-data"),
    against=_against,
    # As the chart names it, as the operator does, and as the chart does by default where somebody else made it.
    secrets=lambda name, owner: (f"{name}-client-secret", f"{owner}-root", "cockroachdb-root"),
    certificate={
        "ca.crt": ("ca.crt",),
        "client.root.crt": ("tls.crt", "client.root.crt"),
        "client.root.key": ("tls.key", "client.root.key"),
    },
    drain="cockroach node drain",
    fast=FAST_PACE,
)
