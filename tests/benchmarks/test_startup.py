"""How long three CockroachDB nodes take until they answer SQL over TLS: ours against a shell script's."""

import asyncio
import functools
import os
import shlex
import signal
import ssl
import time
from contextlib import suppress
from pathlib import Path
from statistics import median

from clusters.cluster import Cluster
from clusters.engines.cockroach.access import HTTP_PORT, SQL_PORT
from clusters.engines.cockroach.engine import Cockroach
from clusters.errors import HarnessError
from clusters.model import NodeResources
from clusters.substrates.processes import Processes, leases
from clusters.topology import of as topology_of
from tests.benchmarks.measuring import Figure, spread

MOST_TIMES = 1.5
PAIRS = 5
READY_S = 60.0
RESOURCES = NodeResources(cache_mib=384, sql_memory_mib=256)

SCRIPT = """\
#!/bin/sh
# Three secure nodes, as one starts them by hand; they end with this script, and it ends with whoever started it.
export COCKROACH_SKIP_ENABLING_DIAGNOSTIC_REPORTING=1 COCKROACH_SKIP_UPDATE_CHECK=1
crdb={binary}
pids=
trap 'kill -9 $pids 2>/dev/null' EXIT
mkdir certs
$crdb cert create-ca --certs-dir=certs --ca-key=ca.key || exit 1
$crdb cert create-node {addresses} localhost --certs-dir=certs --ca-key=ca.key || exit 1
$crdb cert create-client root --certs-dir=certs --ca-key=ca.key || exit 1
for address in {addresses}; do
    $crdb start --certs-dir=certs --store=$address/store --log-dir=$address/logs \\
        --listen-addr=$address:{sql} --advertise-addr=$address:{sql} --http-addr=$address:{http} \\
        --join={join} --locality=region=region-1,zone=zone-1 \\
        --cache={cache}MiB --max-sql-memory={memory}MiB >$address.txt 2>&1 </dev/null &
    pids="$pids $!"
done
tries=0
until $crdb init --certs-dir=certs --host={first}:{sql} >init.txt 2>&1; do
    tries=$((tries + 1))
    [ $tries -lt 100 ] || exit 1
    sleep 0.05
done
echo initialised
read -r _
"""


async def by_harness(engine: Cockroach, home: Path) -> tuple[float, set[str]]:
    """Seconds from nothing until every node answers, certificates and all; and the flags that nodes were given."""
    began = time.monotonic()
    substrate = await Processes.open(name="bench", workdir=home, capacity=0, say=print)
    try:
        cluster = await Cluster.provision(
            engine=engine,
            substrate=substrate,
            topology=topology_of(nodes=3),
            resources=RESOURCES,
            tuned=False,
        )
        seconds = time.monotonic() - began
        for node in cluster.nodes:
            health = await cluster.deployment.accepting(node)
            if not health.ok:
                raise HarnessError(f"{node} was said to be ready and is not: {health.why}")
        return seconds, _flags(cluster.deployment.process("n1").argv)
    finally:
        await substrate.close()


def _flags(words: tuple[str, ...] | list[str]) -> set[str]:
    return {word.partition("=")[0] for word in words if word.startswith("--")}


async def by_hand(engine: Cockroach, home: Path) -> tuple[float, set[str]]:
    """The same by a shell script."""
    with leases.lease_subnet() as subnet:
        addresses = [subnet.address(number) for number in (1, 2, 3)]
        script = _write_script(engine, addresses, home)
        began = time.monotonic()
        process = await asyncio.create_subprocess_exec(
            "sh",
            "start.sh",
            cwd=home,
            env={"PATH": "/usr/bin:/bin", "HOME": str(home), "LANG": "C.UTF-8"},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        try:
            assert process.stdout is not None
            async with asyncio.timeout(READY_S):
                said = await process.stdout.readline()
            if said != b"initialised\n":
                raise HarnessError(f"the script did not start its nodes: {said!r}\n{_last_words(home)}")
            tls = ssl.create_default_context(cafile=str(home / "certs/ca.crt"))
            tls.load_cert_chain(home / "certs/client.root.crt", home / "certs/client.root.key")
            async with asyncio.timeout(READY_S), asyncio.TaskGroup() as group:
                for address in addresses:
                    group.create_task(answers(address, tls))
            return time.monotonic() - began, script
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
            await _gone(addresses)


def _write_script(engine: Cockroach, addresses: list[str], home: Path) -> set[str]:
    """Write ``start.sh``; returns the flags that nodes are given in it."""
    home.mkdir()
    script = SCRIPT.format(
        binary=shlex.quote(str(engine.binary.path)),
        addresses=" ".join(addresses),
        first=addresses[0],
        join=",".join(f"{address}:{SQL_PORT}" for address in addresses),
        sql=SQL_PORT,
        http=HTTP_PORT,
        cache=RESOURCES.cache_mib,
        memory=RESOURCES.sql_memory_mib,
    )
    (home / "start.sh").write_text(script)
    return _flags(script.split("$crdb start", 1)[1].split(">", 1)[0].split())


def _last_words(home: Path) -> str:
    return "\n".join(file.read_text()[-500:] for file in home.glob("*.txt"))


async def answers(address: str, tls: ssl.SSLContext) -> None:
    """Wait until ``SELECT 1`` comes back."""
    import asyncpg

    while True:
        try:
            connection = await asyncpg.connect(host=address, port=SQL_PORT, user="root", ssl=tls, timeout=2.0)
        except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError):
            await asyncio.sleep(0.02)
            continue
        try:
            assert await connection.fetchval("SELECT 1") == 1
        finally:
            connection.terminate()
        return


async def _gone(addresses: list[str]) -> None:
    """Wait until nothing listens any more, before the addresses are given back."""
    async with asyncio.timeout(10.0):
        for address in addresses:
            while True:
                try:
                    _, writer = await asyncio.open_connection(address, SQL_PORT)
                except OSError:
                    break
                writer.close()
                await asyncio.sleep(0.02)


async def test_three_nodes_start_as_fast_as_by_hand(
    cockroach: Cockroach, tmp_path: Path, figures: list[Figure]
) -> None:
    """Three nodes are ready for SQL, TLS included, in no more than 1.5 × the time a shell script takes."""
    ours: list[float] = []
    theirs: list[float] = []
    flags: list[set[str]] = []

    async def measure(hand: bool, number: int) -> None:
        start = by_hand if hand else by_harness
        seconds, used = await start(cockroach, tmp_path / f"hand-{number}" if hand else tmp_path)
        (theirs if hand else ours).append(seconds)
        flags.append(used)

    for number in range(PAIRS):
        for hand in (False, True) if number % 2 else (True, False):
            await measure(hand, number)
    assert functools.reduce(set.union, flags) == functools.reduce(set.intersection, flags), (
        "the script's nodes are not given the flags that ours are given"
    )
    ratios = [our / their for our, their in zip(ours, theirs, strict=True)]
    figures.append(
        Figure(
            what="three CockroachDB nodes ready for SQL, TLS included, against a shell script",
            promised=f"≤ {MOST_TIMES} ×",
            measured=f"{spread(ratios)} ×; {spread(ours, 1)} s against {spread(theirs, 1)} s",
            kept=median(ratios) <= MOST_TIMES,
            raw=f"ours {[round(s, 3) for s in ours]}, by hand {[round(s, 3) for s in theirs]}",
            how=f"{PAIRS} pairs, in turns; wall time from nothing (no certificates) until `SELECT 1` came "
            "back from all three",
        )
    )
    assert len(ratios) == PAIRS
    assert median(ratios) <= MOST_TIMES
