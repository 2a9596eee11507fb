"""What Patroni and etcd are told: pure functions from names, addresses and secrets to configuration.

Only what differs from the defaults of Patroni and PostgreSQL is set, each with its reason.
"""

import ipaddress
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import PurePath
from typing import Any

from clusters.engines.postgres.rest import USER
from clusters.model import NodeResources, Placement

SCOPE = "roachproof"
"""Patroni's name of the cluster; also the application's user and database."""

REWINDER = "rewinder"
"""The user by which Patroni brings a former primary in line (pg_rewind): no superuser."""

TTL_S = 20
"""Seconds after which a silent leader has lost its lease: the least that Patroni accepts. Default 30."""

PACE: Mapping[str, int] = {"ttl": TTL_S, "loop_wait": 1, "retry_timeout": 3}
"""Patroni's clock in seconds, each at the least it accepts (``loop_wait + 2 * retry_timeout <= ttl``)."""

PARAMETERS: Mapping[str, str | int] = {
    # Room for a claim's writers, readers and probes. Default 100.
    "max_connections": 200,
    # How long a silent replication connection is believed in. Default 60 s.
    "wal_sender_timeout": "3s",
    "wal_receiver_timeout": "3s",
    # The nodes share a machine, and a socket's path has an end (107 bytes) that a run directory's may pass.
    "unix_socket_directories": "",
    # Not in /dev/shm, where the segments of a killed node would outlive it.
    "dynamic_shared_memory_type": "mmap",
}
"""PostgreSQL's own settings."""


_SHARED: Mapping[str, Any] = {
    # A PostgreSQL that died on a living node is not waited for: another takes over at once. Default 300 s.
    "primary_start_timeout": 0,
    # Without etcd the primary goes on as long as all members agree. etcd is outside the fault model.
    "failsafe_mode": True,
}
_REWIND: Mapping[str, Any] = {
    "use_pg_rewind": True,
    # A former primary that pg_rewind cannot repair starts again from a copy, as an operator would do.
    "remove_data_directory_on_rewind_failure": True,
    "remove_data_directory_on_diverged_timelines": True,
}


class Replication(StrEnum):
    """When a write is acknowledged."""

    QUORUM = "quorum"
    """When a majority of the nodes has it; never by one of several nodes alone."""
    ASYNCHRONOUS = "asynchronous"
    """When the primary alone has it: a sabotage."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Secrets:
    """The cluster's passwords, random for each cluster. They live in files of mode 0600 and in memory only."""

    superuser: str = field(default_factory=lambda: secrets.token_urlsafe(24), repr=False)
    replication: str = field(default_factory=lambda: secrets.token_urlsafe(24), repr=False)
    rewind: str = field(default_factory=lambda: secrets.token_urlsafe(24), repr=False)
    application: str = field(default_factory=lambda: secrets.token_urlsafe(24), repr=False)
    rest: str = field(default_factory=lambda: secrets.token_urlsafe(24), repr=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class Ports:
    """The same on every node: each node has an address of its own."""

    sql: int
    rest: int
    etcd_client: int
    etcd_peer: int


def synchronous(replication: Replication, nodes: int) -> dict[str, Any]:
    """Patroni's keys that make a majority of ``nodes`` have a write before it is acknowledged.

    The primary counts for one, so ``nodes // 2`` others make a majority. Strict: when they are missing, writes wait
    (the default is to go on alone and lose it with the primary). One node alone has nobody to wait for.
    """
    on = replication is Replication.QUORUM and nodes > 1
    return {
        "synchronous_mode": "quorum" if on else False,
        "synchronous_mode_strict": on,
        "synchronous_node_count": max(1, nodes // 2),
    }


def patroni(
    placement: Placement,
    *,
    nodes: int,
    etcd: str,
    ports: Ports,
    passwords: Secrets,
    bin_dir: PurePath,
    resources: NodeResources,
    replication: Replication,
) -> dict[str, Any]:
    """The configuration file of one node's Patroni (``bootstrap`` counts only for the node that makes the cluster)."""
    return {
        "scope": SCOPE,
        "name": placement.node.name,
        "etcd3": {"hosts": [etcd]},
        "restapi": {
            "listen": f"{placement.address}:{ports.rest}",
            "connect_address": f"{placement.address}:{ports.rest}",
            "authentication": {"username": USER, "password": passwords.rest},
        },
        "bootstrap": {
            "dcs": {
                **PACE,
                **_SHARED,
                **synchronous(replication, nodes),
                "postgresql": {**_REWIND, "use_slots": True, "parameters": dict(PARAMETERS)},
            },
            "initdb": [{"encoding": "UTF8"}, {"locale": "C.UTF-8"}, "data-checksums"],
        },
        "postgresql": {
            # Of this node, whatever all have: local parameters go before those of the whole cluster.
            "parameters": {"shared_buffers": f"{resources.cache_mib}MB"},
            "listen": f"{placement.address}:{ports.sql}",
            "connect_address": f"{placement.address}:{ports.sql}",
            "bin_dir": str(bin_dir),
            "data_dir": str(placement.store / "pgdata"),
            "pgpass": str(placement.home / "pgpass"),
            "pg_hba": [
                f"host replication replicator {_clients(placement)} scram-sha-256",
                f"host all all {_clients(placement)} scram-sha-256",
            ],
            "authentication": {
                "superuser": {"username": "postgres", "password": passwords.superuser},
                "replication": {"username": "replicator", "password": passwords.replication},
                "rewind": {"username": REWINDER, "password": passwords.rewind},
            },
            "basebackup": [{"checkpoint": "fast"}],
        },
    }


def _clients(placement: Placement) -> str:
    """From where clients and other nodes come, as PostgreSQL is told."""
    if placement.client_address != placement.address or placement.binds_to:
        return "all"  # who comes another way, or to a name, may come from anywhere
    # A loopback address as the target still gets 127.0.0.1 as the source.
    return "127.0.0.0/8" if ipaddress.ip_address(placement.address).is_loopback else "samenet"


def tuned(replication: Replication, nodes: int) -> tuple[str, ...]:
    """Everything above that differs from the defaults of Patroni and PostgreSQL, ``name = value``, for verdicts.

    Without what only says where things are, and without the cache, which is the profile's.
    """
    settings: dict[str, Any] = {
        **PACE,
        **_SHARED,
        **synchronous(replication, nodes),
        **_REWIND,
        "basebackup.checkpoint": "fast",
        **{name: value for name, value in PARAMETERS.items() if value},
    }
    defaults = {"synchronous_mode": False, "synchronous_mode_strict": False, "synchronous_node_count": 1}
    return tuple(f"{name} = {_word(value)}" for name, value in settings.items() if defaults.get(name) != value)


def etcd_arguments(etcd: PurePath, placement: Placement, ports: Ports) -> tuple[str, ...]:
    """How etcd is started: a single member that syncs every write to its disk, as is its default."""
    client, peer = f"http://{placement.address}:{ports.etcd_client}", f"http://{placement.address}:{ports.etcd_peer}"
    listen = f"http://{placement.binds_to or placement.address}"
    return (
        str(etcd),
        "--name=etcd",
        f"--data-dir={placement.store}",
        f"--listen-client-urls={listen}:{ports.etcd_client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={listen}:{ports.etcd_peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=etcd={peer}",
        "--initial-cluster-state=new",
        # etcd 3.5.0 to 3.5.2 could lose consistency in a crash: look for it at every start.
        "--experimental-initial-corrupt-check=true",
        # A member alone elects itself: no reason to wait a second for others.
        "--heartbeat-interval=10",
        "--election-timeout=100",
        "--log-level=warn",
    )


def _word(value: object) -> str:
    return ("on" if value else "off") if isinstance(value, bool) else str(value)
