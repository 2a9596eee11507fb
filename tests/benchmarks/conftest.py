"""The benchmarks' own fixtures: the machine to themselves as far as it can be had, and a table of figures at the end.

``--record`` writes the table into ``tests/benchmarks/README.md`` when every benchmark was measured; whether its promise
was kept stands there too.
"""

import asyncio
import datetime
import os
import platform
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from clusters.engines import Wanted
from clusters.engines.cockroach.engine import Cockroach, find
from clusters.engines.cockroach.version import Series, Version
from clusters.errors import BadInput
from clusters.substrates.processes import leases
from tests.benchmarks.measuring import Figure

README = Path(__file__).with_name("README.md")
BEGIN, END = "<!-- figures -->", "<!-- end of figures -->"
LICENSED: Series = (23, 1)
"""From here on versions (of 23.1 to 24.2 the late patches) come under the CockroachDB Software License, which has
conditions for disclosing benchmarks."""

FULL = 18
"""Figures of a complete run."""
ALONE_S = 60.0
"""How long to wait for other runs to leave the machine; a shared one makes figures worse, the comparisons stay fair."""

FIGURES: pytest.StashKey[list[Figure]] = pytest.StashKey()
FACTS: pytest.StashKey[dict[str, str]] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--record", action="store_true", help="write the benchmarks' figures into their README")


def pytest_configure(config: pytest.Config) -> None:
    config.stash[FIGURES] = []
    config.stash[FACTS] = {}


@pytest.fixture(scope="session", autouse=True)
def machine(request: pytest.FixtureRequest) -> Iterator[None]:
    """All slots of the machine, so that no other run starts clusters beside a benchmark."""
    if hasattr(request.config, "workerinput"):
        raise pytest.UsageError("benchmarks beside each other measure each other: run them without -n")
    facts = request.config.stash[FACTS]
    cores = len(os.sched_getaffinity(0))
    facts["machine"] = f"{cores} cores, {platform.system()} {platform.release()} {platform.machine()}"
    facts["Python"] = platform.python_version()
    facts["date"] = datetime.datetime.now(datetime.UTC).date().isoformat()
    facts["load when it began"] = f"{os.getloadavg()[0]:.1f}"
    lease = asyncio.run(_slots(cores))
    facts["shared"] = "with other runs" if lease is None else "with no other run of this suite"
    yield
    if lease:
        lease.release()
    facts["load at the end"] = f"{os.getloadavg()[0]:.1f}"


async def _slots(cores: int) -> leases.Lease | None:
    try:
        async with asyncio.timeout(ALONE_S):
            return await leases.lease_slots(cores, of=cores, name="benchmarks", say=print)
    except TimeoutError:
        return None


@pytest.fixture(scope="session")
def cockroach(request: pytest.FixtureRequest) -> Cockroach:
    """CockroachDB, if there is one; a benchmark that needs it is skipped otherwise."""
    path, versions = (request.config.getoption(name) for name in ("--cockroach", "--cockroach-version"))
    named = bool(path or versions)
    try:
        engine = find(Wanted(path=path, version=versions[0] if versions else None, say=print))
    except BadInput as error:
        if named:
            raise
        pytest.skip(f"no CockroachDB to be had: {str(error).splitlines()[0]}")
    request.config.stash[FACTS]["CockroachDB"] = engine.version
    return engine


@pytest.fixture(scope="session")
def figures(request: pytest.FixtureRequest) -> list[Figure]:
    """Where benchmarks put what they measured."""
    return request.config.stash[FIGURES]


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    figures = config.stash.get(FIGURES, [])
    if not figures:
        return
    table = _table(figures, config.stash[FACTS])
    terminalreporter.section("benchmarks")
    terminalreporter.write_line(table)
    for figure in figures:
        terminalreporter.write_line(f"{figure.what}: {figure.raw}")
    if not config.getoption("record", default=False):
        return
    if (withheld := _withheld(config)) is not None:
        terminalreporter.write_line(f"{README.name} is left alone: {withheld}")
        return
    if len(figures) != FULL:
        terminalreporter.write_line(f"{README.name} is left alone: {len(figures)} of {FULL} figures were measured")
        return
    text = README.read_text(encoding="utf-8")
    before, after = text.split(BEGIN)[0], text.split(END)[1]
    README.write_text(f"{before}{BEGIN}\n{table}\n{END}{after}", encoding="utf-8")


def _withheld(config: pytest.Config) -> str | None:
    """Why what was measured may not be published here; ``None`` where it may."""
    version = config.stash[FACTS].get("CockroachDB")
    if version is None or Version.parse(version).series < LICENSED:
        return None
    return (
        f"the licence of {version} has conditions for disclosing benchmarks; record an older one (--cockroach-version)"
    )


def _table(figures: list[Figure], facts: dict[str, str]) -> str:
    lines = [", ".join(f"{name}: {value}" for name, value in facts.items()) + ".", ""]
    lines += ["| what | promised | measured | kept | how |", "|---|---|---|---|---|"]
    lines += [f"| {f.what} | {f.promised} | {f.measured} | {'yes' if f.kept else 'NO'} | {f.how} |" for f in figures]
    return "\n".join(lines)
