"""What came of TPC-C's consistency conditions, as the test recorded each look at them: ``tpcc.checked {after, violated, unread, examples}``.

``after`` names the runs since the look before, none just after loading. ``complaint`` is what the database's own check says against what ours finds. ``violated`` counts the rows that violate a condition, by its name, 0 for one that holds; ``unread`` says why one could not be read.
"""

from collections.abc import Mapping, Sequence

from plugin.evidence.records import Event
from plugin.judge.analysis import Analysis
from plugin.judge.known import Answer, ConditionInfo, Measured, MetricInfo, nothing, some

AFTER_LOADING, AFTER_RUNS = 12, 11
"""3.3.2.1 to 3.3.2.12; 3.3.2.11 holds only until the first transaction."""


def looks_of(a: Analysis) -> Sequence[Event]:
    """Every look that was taken."""
    return [event for event in a.evidence.events if event.name == "tpcc.checked"]


def _where(event: Event) -> str:
    return f"after {', '.join(map(str, event.data.get('after') or ())) or 'loading'}"


def _inconsistent(a: Analysis) -> Measured:
    looks = looks_of(a)
    if not looks:
        return nothing("the consistency conditions were not looked at")
    counted = [
        (_where(event), name, int(count))
        for event in looks
        for name, count in dict(event.data.get("violated") or {}).items()
        if count
    ]
    examples = tuple(str(one) for event in looks for one in event.data.get("examples") or ())
    told = "; ".join(f"{where}: {name} {count} times" for where, name, count in counted)
    return float(sum(count for *_, count in counted)), told or f"{len(looks)} looks", examples[:5]


def _checked(a: Analysis) -> Answer:
    looks, problems = looks_of(a), []
    for event in looks:
        problems += [
            f"{_where(event)}: {n}: {why}" for n, why in dict(event.data.get("unread") or {}).items()
        ]
        if event.data.get("complaint"):
            problems.append(f"{_where(event)}: the built-in check says {event.data['complaint']}")
        read = len(dict(event.data.get("violated") or {}))
        if read < (needed := AFTER_RUNS if event.data.get("after") else AFTER_LOADING):
            problems.append(f"{_where(event)}: {read} of {needed} conditions or more were read")
    begun = {str(e.data.get("run")) for e in a.evidence.events if e.name == "run.begin"}
    seen = {str(run) for event in looks for run in event.data.get("after") or ()}
    if missing := sorted(begun - seen):
        problems.append(f"not looked at after {', '.join(missing)}")
    if not looks:
        problems = ["the consistency conditions were not looked at"]
    return not problems, some(problems) or f"{len(looks)} looks, every condition read"


CONSISTENCY_METRICS: Mapping[str, MetricInfo] = {
    "inconsistent": MetricInfo(
        unit="rows", needs=("integrity", "consistency_checked"), measure=_inconsistent, safety=True,
        description="rows or groups of rows that violate TPC-C's consistency conditions 3.3.2.1 to 3.3.2.12, at all looks together"),
}  # fmt: skip
"""The metric of consistency."""

CONSISTENCY_CONDITIONS: Mapping[str, ConditionInfo] = {
    "consistency_checked": ConditionInfo(
        check=_checked,
        description="TPC-C's consistency conditions were all read after every run",
        advice="see why a condition could not be read: a time-out, a node that was not there",
    ),
}
"""Whether it was looked at."""
