"""What the control needs around its processes: free ports, files of mode 0600, and the processes' descriptions."""

import errno
import json
import os
import socket
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from clusters.engines.postgres import configuration
from clusters.engines.postgres.binaries import Binaries
from clusters.engines.postgres.configuration import Ports
from clusters.errors import HarnessError
from clusters.model import NodeResources, Placement, ProcessSpec

PREFERRED_PORTS = Ports(sql=5432, rest=8008, etcd_client=2379, etcd_peer=2380)
"""The programs' own defaults. They are free unless somebody listens on all addresses of the machine."""

_ATTEMPTS = 200
"""How many ports above a preferred one are tried."""


def free_ports(addresses: Sequence[str]) -> Ports:
    """For each purpose the first port from its default on that is free on all ``addresses``. Raises ``HarnessError``."""
    taken: set[int] = set()

    def choose(preferred: int) -> int:
        for port in range(preferred, preferred + _ATTEMPTS):
            if port not in taken and all(_is_free(address, port) for address in addresses):
                taken.add(port)
                return port
        raise HarnessError(
            f"no free port from {preferred} to {preferred + _ATTEMPTS - 1} on {', '.join(addresses)}"
        )

    return Ports(
        sql=choose(PREFERRED_PORTS.sql),
        rest=choose(PREFERRED_PORTS.rest),
        etcd_client=choose(PREFERRED_PORTS.etcd_client),
        etcd_peer=choose(PREFERRED_PORTS.etcd_peer),
    )


def _is_free(address: str, port: int) -> bool:
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as probe:
        # As servers do; a listening socket is still in the way, one that lingers after its end is not.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError as error:
            # An address of another network namespace cannot be tried from here and is the node's alone.
            return error.errno != errno.EADDRINUSE
    return True


def write_configuration(placement: Placement, settings: Mapping[str, Any]) -> None:
    """Write the node's Patroni configuration, readable by nobody else (JSON, which Patroni reads as YAML)."""
    path = _configuration_file(placement)
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        json.dump(settings, file, indent=1)


def patroni_process(placement: Placement, binaries: Binaries, resources: NodeResources) -> ProcessSpec:
    """The process that is a node."""
    return ProcessSpec(
        name=placement.node.name,
        # -P: the node's home, where it runs, is no place to import from.
        argv=(sys.executable, "-P", "-m", "patroni", str(_configuration_file(placement))),
        env=_environment(placement.home, binaries),
        cwd=placement.home,
        output=placement.logs / "patroni.log",
        unprivileged=True,
        resources=resources,
    )


def etcd_process(address: str, ports: Ports, binaries: Binaries, home: Path) -> ProcessSpec:
    """The service beside the nodes; its directory ``home`` is made here."""
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    return ProcessSpec(
        name="etcd",
        argv=configuration.etcd_arguments(binaries.etcd, address=address, ports=ports, data=home / "data"),
        env=_environment(home, binaries),
        cwd=home,
        output=home / "etcd.log",
    )


def _configuration_file(placement: Placement) -> Path:
    return placement.home / "patroni.yml"


def _environment(home: Path, binaries: Binaries) -> dict[str, str]:
    """The whole environment: an inherited locale that is not installed here would break ``initdb``."""
    environment = {
        "PATH": f"{binaries.bin_dir}:/usr/local/bin:/usr/bin:/bin",
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "PYTHONUNBUFFERED": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    # Where the wheels lie when they were found on a path of the user's own.
    inherited = {name: os.environ[name] for name in ("PYTHONPATH", "LD_LIBRARY_PATH") if name in os.environ}
    return environment | inherited
