"""What the control needs around its processes: free ports, files of mode 0600, and the processes' descriptions."""

import errno
import os
import socket
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path, PurePath
from typing import Self

from clusters.engines.postgres import configuration
from clusters.engines.postgres.binaries import VERSION_S, WAY_OUT, Binaries, version_in
from clusters.engines.postgres.configuration import Ports
from clusters.engines.postgres.version import numbers
from clusters.errors import BadInput, CommandTimedOut, HarnessError, TimedOut
from clusters.model import NodeResources, Placement, ProcessSpec
from clusters.substrates import Nodes

PREFERRED_PORTS = Ports(sql=5432, rest=8008, etcd_client=2379, etcd_peer=2380)
"""The programs' own defaults. They are free unless somebody listens on all addresses of the machine."""

_ATTEMPTS = 200
"""How many ports above a preferred one are tried."""


def free_ports(addresses: Sequence[str]) -> Ports:
    """For each purpose the first port from its default on that is free on all ``addresses``.

    Raises ``HarnessError``.
    """
    taken: set[int] = set()

    def choose(preferred: int) -> int:
        for port in range(preferred, preferred + _ATTEMPTS):
            if port not in taken and all(_is_free(address, port) for address in addresses):
                taken.add(port)
                return port
        raise HarnessError(f"no free port from {preferred} to {preferred + _ATTEMPTS - 1} on {', '.join(addresses)}")

    return Ports(**{purpose: choose(preferred) for purpose, preferred in asdict(PREFERRED_PORTS).items()})


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


@dataclass(frozen=True, kw_only=True, slots=True)
class Programs:
    """Where the nodes have the control's programs."""

    bin_dir: PurePath
    etcd: PurePath
    python: PurePath
    """An interpreter that has Patroni among its packages."""

    @classmethod
    async def present(cls, binaries: Binaries, nodes: Nodes) -> Self:
        """Have them there. Python is taken with the whole environment it stands in, which holds its packages."""
        environment, python = Path(sys.prefix), Path(sys.executable)
        return cls(
            bin_dir=await bin_dir(binaries.bin_dir, nodes),
            etcd=await nodes.present(binaries.etcd),
            python=await nodes.present(environment) / python.relative_to(environment)
            if python.is_relative_to(environment)
            else await nodes.present(python),
        )


async def bin_dir(programs: Path, nodes: Nodes) -> PurePath:
    """Where the nodes have PostgreSQL's programs, with the tree that they stand in."""
    return await nodes.present(programs.parent) / programs.name


async def check(placement: Placement, programs: Programs, version: str, nodes: Nodes) -> None:
    """Raise ``BadInput`` where PostgreSQL's programs do not say, in the node, that they are of this version.

    ``TimedOut`` where they say nothing.
    """
    name, postgres = placement.node.name, programs.bin_dir / "postgres"
    try:
        done = await nodes.run(
            (str(postgres), "--version"),
            env=_environment(placement.home, programs),
            timeout=VERSION_S,
            node=name,
            unprivileged=True,
        )
    except CommandTimedOut as error:
        raise TimedOut(str(error)) from error
    said = (done.out + done.err).strip()[:200] or "nothing"
    found = version_in(done.out)
    if done.code or found is None:
        raise BadInput(
            f"{name}: {postgres} is no PostgreSQL {version}: with --version it ended with exit code {done.code} and "
            f"said {said}; {WAY_OUT}"
        )
    if numbers(found) != numbers(version):
        raise BadInput(f"{name}: {postgres} is not PostgreSQL {version}, but says {said}; {WAY_OUT}")


def configuration_file(placement: Placement) -> PurePath:
    """Where Patroni's configuration is."""
    return placement.home / "patroni.yml"


PATRONI = """\
from functools import partialmethod
from patroni.__main__ import main
from patroni.dcs.etcd import DnsCachingResolver
begin = DnsCachingResolver.__init__
DnsCachingResolver.__init__ = partialmethod(begin, cache_time=1.0, cache_fail_time=0.0)
main()
"""
"""Patroni that asks for addresses anew. With etcd it keeps them for ten minutes, and has no setting for that: a member
that goes on in another pod took part in no election and no switchover for so long."""


def patroni_process(placement: Placement, programs: Programs, resources: NodeResources) -> ProcessSpec:
    """The process that is a node."""
    return ProcessSpec(
        name=placement.node.name,
        # -P: the node's home, where it runs, is no place to import from.
        argv=(str(programs.python), "-P", "-c", PATRONI, str(configuration_file(placement))),
        env=_environment(placement.home, programs),
        cwd=placement.home,
        output=placement.logs / "patroni.log",
        unprivileged=True,
        resources=resources,
    )


def etcd_process(placement: Placement, ports: Ports, programs: Programs) -> ProcessSpec:
    """The service beside the nodes."""
    return ProcessSpec(
        name=placement.node.name,
        argv=configuration.etcd_arguments(programs.etcd, placement, ports),
        env=_environment(placement.home, programs),
        cwd=placement.home,
        output=placement.logs / "etcd.log",
    )


def _environment(home: PurePath, programs: Programs) -> dict[str, str]:
    """The whole environment: an inherited locale that is not installed here would break ``initdb``."""
    environment = {
        "PATH": f"{programs.bin_dir}:/usr/local/bin:/usr/bin:/bin",
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "PYTHONUNBUFFERED": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    # Where the wheels lie when they were found on a path of the user's own.
    inherited = {name: os.environ[name] for name in ("PYTHONPATH", "LD_LIBRARY_PATH") if name in os.environ}
    return environment | inherited
