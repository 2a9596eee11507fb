"""What sends the log of a control's primary to its replicas, frozen: wherever that node runs."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from clusters.cluster import Cluster
from clusters.errors import HarnessError

FREEZE = """
for process in /proc/[0-9]*; do
  case $(tr '\\0' ' ' <$process/cmdline) in *wal[s]ender*) ;; *) continue ;; esac
  case $(readlink $process/cwd) in "$home"|"$home"/*) kill -STOP ${process#/proc/} && echo ${process#/proc/} ;; esac
done 2>/dev/null
exit 0
"""
"""Of processes on one machine those of other nodes are at home elsewhere. The script does not find itself."""


@asynccontextmanager
async def frozen(cluster: Cluster, node: str) -> AsyncIterator[None]:
    """The processes of a node that send its log stand still. Raises ``HarnessError`` when it has none."""
    if not (senders := (await _said(cluster, node, FREEZE)).split()):
        raise HarnessError(f"{node} has no process that sends its log: it is not the primary")
    try:
        yield
    finally:
        with suppress(HarnessError):  # it may be gone, with its pod
            await _said(cluster, node, f"kill -CONT {' '.join(senders)} 2>/dev/null; exit 0")


async def _said(cluster: Cluster, node: str, script: str) -> str:
    env = {"PATH": "/usr/bin:/bin", "home": str(cluster.deployment.process(node).cwd)}
    done = await cluster.substrate.run(["/bin/sh", "-c", script], env=env, timeout=30.0, node=node)
    if done.code:
        raise HarnessError(f"{node}: {done.err.strip()}")
    return done.out
