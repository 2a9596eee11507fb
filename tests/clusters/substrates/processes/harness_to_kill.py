"""A harness for the tests to kill: three nodes, each with a daemon in a session of its own, then it waits for its end.

Usage: harness_to_kill.py WORKDIR [fork] [namespaces]. Prints one JSON line when everything runs. With ``fork``, a
forked child that outlives it keeps all of its pipes open. With ``namespaces`` links can be cut, and one is.
"""

import asyncio
import json
import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[4]))

from clusters.model import NodeSpec, ProcessSpec
from clusters.substrates.processes import Processes

DAEMON = (
    "import os, time\n"
    "if os.fork() == 0:\n"
    "    os.setsid()\n"
    "    if os.fork() == 0:\n"
    "        open('ready', 'w').close()\n"
    "        time.sleep(1000)\n"
    "    os._exit(0)\n"
    "time.sleep(1000)\n"
)


def wait_for(files: list[Path]) -> None:
    while not all(file.exists() for file in files):
        time.sleep(0.01)


def fork() -> int:
    child = os.fork()
    if child == 0:
        time.sleep(30)
        os._exit(0)
    return child


async def main() -> None:
    place = await Processes.open(name="doomed", workdir=Path(sys.argv[1]), slots=2, namespaces="namespaces" in sys.argv)
    placements = await place.place([NodeSpec(name=f"n{i}") for i in (1, 2, 3)])
    for placement in placements:
        await place.start(
            ProcessSpec(
                name=placement.node.name,
                argv=(sys.executable, "-I", "-S", "-c", DAEMON),
                env={},
                cwd=placement.home,
                output=placement.logs / "out",
            )
        )
    await asyncio.to_thread(wait_for, [Path(placement.home, "ready") for placement in placements])
    if place.cannot_cut is None:
        await place.cut("n1", "n2")
    forked = fork() if "fork" in sys.argv else 0
    guard, supervisor = place.guards
    told = {"guard": guard, "supervisor": supervisor, "directory": str(place.directory), "forked": forked}
    print(json.dumps({**told, "address": placements[0].address}), flush=True)
    await asyncio.sleep(1000)


asyncio.run(main())
