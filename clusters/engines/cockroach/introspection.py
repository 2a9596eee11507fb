"""Turns what a server or ``cockroach node`` answers into typed values. Pure functions."""

import csv
import io
import json
import math
import re
from collections.abc import Iterable, Mapping

from clusters.engines.cockroach.version import Version
from clusters.errors import HarnessError
from clusters.model import RangeInfo
from clusters.sql import Row


def ids(text: str) -> tuple[int, ...]:
    """Node ids from ``1,2,3`` or ``{1,2,3}``."""
    return tuple(int(part) for part in text.strip("{}").split(",") if part.strip())


def parse_sizes(arguments: str) -> dict[str, float]:
    """Cache and SQL memory in MiB from a node's command line, a JSON list. Raises ``HarnessError`` when it is none.

    Only what was given in MiB counts: anything else was not given by us.
    """
    try:
        flags = [str(flag) for flag in json.loads(arguments)]
    except (ValueError, TypeError) as error:
        raise HarnessError(f"a node reports {arguments!r} as its command line: {error}") from error
    found = (re.fullmatch(r"--(cache|max-sql-memory)=(\d+)MiB", flag) for flag in flags)
    names = {"cache": "cache_mib", "max-sql-memory": "sql_memory_mib"}
    return {names[match[1]]: float(match[2]) for match in found if match}


def parse_ranges(rows: Iterable[Row], names: Mapping[int, str]) -> tuple[RangeInfo, ...]:
    """Rows of ``Dialect.table_ranges`` as ranges, each once, ordered by id.

    ``names`` are our names of node ids; a node without one is called ``node 7``. The lease of a range whose holder is
    unknown is the empty string.
    """

    def name(node_id: int) -> str:
        return names.get(node_id, f"node {node_id}") if node_id else ""

    found = {
        int(row["range_id"]): RangeInfo(
            range_id=int(row["range_id"]),
            start=str(row["start_key"] or ""),
            lease=name(int(row["lease_holder"] or 0)),
            replicas=tuple(name(node_id) for node_id in ids(str(row["replicas"] or ""))),
        )
        for row in rows
    }
    return tuple(found[range_id] for range_id in sorted(found))


def parse_memberships(text: str) -> dict[int, str]:
    """What each node is, by id, from the CSV of ``Dialect.node_status``: ``active``, ``decommissioned`` …

    Columns are found by name, as later versions add some. Raises ``HarnessError`` when it is not that list.
    """
    try:
        found = {int(row["id"]): row["membership"] for row in csv.DictReader(io.StringIO(text))}
    except (KeyError, ValueError) as error:
        raise HarnessError(f"`cockroach node` printed no list of nodes: {error} in {text[:300]!r}") from error
    if not found:
        raise HarnessError(f"`cockroach node` printed no list of nodes: no row in {text[:300]!r}")
    return found


_BUILD = re.compile(r"^CockroachDB \S+ (\S+) ")


def parse_build(text: str) -> Version:
    """The version in the answer to ``Dialect.build_tag``, ``CockroachDB CCL v20.2.6 (x86_64 …)``.

    Raises ``HarnessError`` when it is none, as on another database, and ``BadInput`` when the tag is no version.
    """
    if (found := _BUILD.match(text)) is None:
        raise HarnessError(f"the server calls itself {text[:200]!r}, which is not CockroachDB")
    return Version.parse(found[1], origin="the server's version()")


_METRIC = re.compile(
    r"(?P<name>[a-zA-Z_:][a-zA-Z0-9_:]*)"
    r"(?:\{(?P<labels>(?:[^\"}]|\"(?:[^\"\\]|\\.)*\")*)\})?"
    r"[ \t]+(?P<value>\S+)(?:[ \t]+-?\d+)?[ \t]*",
    re.ASCII,
)


def parse_vars(text: str) -> dict[str, float]:
    """Each metric's sum over its labels (stores, tenants), from ``/_status/vars`` in the Prometheus text format.

    What is not a number (NaN) is left out; a metric that has nothing else is absent, so that "unknown" never reads as
    zero. Lines that are no metric are passed over.
    """
    sums: dict[str, float] = {}
    for line in text.splitlines():
        if line.startswith("#") or (found := _METRIC.fullmatch(line)) is None:
            continue
        try:
            value = float(found["value"])
        except ValueError:
            continue
        if not math.isnan(value):
            sums[found["name"]] = sums.get(found["name"], 0.0) + value
    return sums
