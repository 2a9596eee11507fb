"""Where the replicas of a cluster lay, sample by sample, as a line of ``layout.jsonl`` and back."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from plugin.evidence.records import MalformedRecord

LAYOUT = "layout.jsonl"


@dataclass(frozen=True, kw_only=True, slots=True)
class LayoutSample:
    """One sample, at ``t`` microseconds.

    ``replicas``: how many each node has. ``homeless``: ranges none of whose replicas is on a node of the cluster.
    ``moves``: replicas added and removed since the first sample, as far as samples show. ``leases`` of each node, and
    how many ranges are ``unavailable`` and ``underreplicated``, come from the servers' metrics, which are asked less
    often and are some seconds old: ``None`` where they were not asked or nobody answered. ``silent`` are the nodes that
    did not answer when they were asked: the sums are those of the others, and ``leases`` is unknown then. ``lost``: why
    there is a hole instead of a sample; where the replicas were is not known then.
    """

    t: int
    replicas: Mapping[str, int] = field(default_factory=dict)
    ranges: int = 0
    homeless: int | None = None
    moves: int | None = None
    leases: Mapping[str, int] | None = None
    unavailable: int | None = None
    underreplicated: int | None = None
    silent: tuple[str, ...] = ()
    source: str = ""
    lost: str = ""


def layout_line(sample: LayoutSample) -> str:
    """The sample as its line; what is not known is left out."""
    told: dict[str, Any] = {"t": sample.t}
    if sample.lost:
        told |= {"lost": sample.lost}
    else:
        told |= {"replicas": dict(sample.replicas), "ranges": sample.ranges, "source": sample.source}
    known = {
        "moves": sample.moves,
        "homeless": sample.homeless,
        "leases": sample.leases and dict(sample.leases),
        "unavailable": sample.unavailable,
        "underreplicated": sample.underreplicated,
        "silent": list(sample.silent) or None,
    }
    return json.dumps(told | {name: value for name, value in known.items() if value is not None}) + "\n"


def read_layout(lines: Iterable[str]) -> Iterator[LayoutSample]:
    """All samples; a last line that was cut off is dropped. Raises ``MalformedRecord``."""
    for number, line in enumerate(lines, 1):
        if not line.endswith("\n"):
            return
        try:
            data = json.loads(line)
            sample = LayoutSample(
                t=_whole(data["t"]),
                replicas=_counts(data.get("replicas", {})),
                ranges=_whole(data.get("ranges", 0)),
                moves=_maybe(data, "moves"),
                homeless=_maybe(data, "homeless"),
                leases=_counts(data["leases"]) if "leases" in data else None,
                unavailable=_maybe(data, "unavailable"),
                underreplicated=_maybe(data, "underreplicated"),
                silent=tuple(map(str, data.get("silent", ()))),
                source=str(data.get("source", "")),
                lost=str(data.get("lost", "")),
            )
            if not sample.lost and "replicas" not in data:
                raise ValueError("neither replicas nor why they are lost")
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise MalformedRecord(f"line {number}: {line!r} is no sample ({error})") from error
        yield sample


def _whole(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError(f"{value!r} is no count")
    return value


def _maybe(data: Mapping[str, Any], name: str) -> int | None:
    return _whole(data[name]) if name in data else None


def _counts(value: Mapping[str, Any]) -> dict[str, int]:
    return {str(node): _whole(count) for node, count in value.items()}
