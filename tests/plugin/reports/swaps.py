"""A stored run of nodes that are given another version, written by hand: what is planned, and what is done of it."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from plugin.catalogue import load
from plugin.evidence.events import Event
from plugin.evidence.plan import PLAN as PLAN_FILE
from plugin.evidence.plan import PlannedStep, StoredPlan
from plugin.evidence.records import event_line
from plugin.evidence.store import EVENTS, seal
from plugin.judge.trial import TrialEvidence
from plugin.replay import conclude
from plugin.reports.bands import SECOND
from plugin.reports.series import Series, series
from tests.plugin.recorded import recorded
from tests.plugin.reports.samples import run_of

OLD, NEW = "v1.0.7", "v1.1.0-beta.2"
NODES = ("n1", "n2", "n3")
STEPS: tuple[dict[str, Any], ...] = (
    {"type": "keep"},
    {"type": "swap", "node": "n3", "to": "new", "pause_s": 1.0},
    {"type": "swap", "node": "n2", "to": "new", "pause_s": 1.0},
    {"type": "swap", "node": "n1", "to": "new", "pause_s": 1.0},
    {"type": "swap", "node": "n1", "to": "old", "pause_s": 1.0},
    {"type": "swap", "node": "n2", "to": "old", "pause_s": 1.0},
    {"type": "swap", "node": "n3", "to": "old", "pause_s": 1.0},
    {"type": "join", "node": "n4", "version": "new", "refused": False},
    {"type": "finalise", "to": "new"},
    {"type": "join", "node": "n5", "version": "old", "refused": True},
)

PLAN = StoredPlan(
    steps=tuple(
        PlannedStep(kind=step["type"], facts={name: str(value) for name, value in step.items() if name != "type"})
        for step in STEPS
    )
)
"""The same as it is read back."""


def event(t: float, name: str, **data: Any) -> Event:
    return recorded(round(t * SECOND), name, data)


def drawn(steps: int = len(STEPS), **data: Any) -> Event:
    builds = {"old": OLD, "new": NEW}
    return event(0.05, "plan.drawn", **{"path": "final", "seed": 7, "steps": steps, "builds": builds, **data})


def begun(t: float, number: int, says: str = "", **data: Any) -> Event:
    return event(t, "step.begin", number=number, kind=STEPS[number - 1]["type"], says=says, **data)


def swapped(t: float, node: str, build: str, *, step: int = 0, wanted: str = "", **more: Any) -> Iterable[Event]:
    """A node is drained from ``t`` on, down 1 s later, not ready from 2 s to 3 s; the cluster is whole at 4 s."""
    if step:
        yield begun(t - 0.2, step, f"swap {node}")
    yield event(t, "fault.begin", fault="swap", nodes=[node], connections={node: 3}, leases={node: 3})
    others = [other for other in NODES if other != node]
    yield event(t + 1, "processes.seen", running=others, others={node: "exited"})
    yield event(t + 1, "node.drained", node=node)
    yield event(t + 1.1, "fault.bit", node=node, proof="drained, stopped with exit code 0")
    yield event(t + 1.2, "fault.undo", nodes=[node])
    yield event(t + 2, "processes.seen", running=[*others, node], others={})
    told = {"able": "1.1", "active": "1.0", "seconds": 3.0, **more}
    yield event(t + 3, "node.swapped", node=node, wanted=wanted or build, build=build, **told)
    yield event(t + 3, "fault.undone", nodes=[node])
    yield event(t + 4, "recovered", seconds=1.0)
    if step:
        yield event(t + 4.1, "step.end", number=step)


FOUND = {"change v1 → v2": "allowed", "replicas": "all there", "free disk of n1": "9 MiB"}


def done() -> list[Event]:
    """All steps, from 17 s to 54 s."""
    turns = [("n3", NEW), ("n2", NEW), ("n1", NEW), ("n1", OLD), ("n2", OLD), ("n3", OLD)]
    return [
        drawn(),
        event(3, "preflight", found=FOUND, against=[]),
        begun(17, 1, "keep the version in force"),
        event(17.1, "version.kept", active="1.0"), event(17.2, "step.end", number=1),
        *(e for at, (node, build) in enumerate(turns) for e in swapped(18 + 5 * at, node, build, step=2 + at)),
        begun(48, 8, "n4 joins"), event(49, "node.joined", node="n4"), event(49.5, "step.end", number=8),
        begun(50, 9, "make it final"),
        event(52, "version.final", active={"n1": "1.1", "n2": "1.1"}, seconds=2.0), event(52.1, "step.end", number=9),
        begun(53, 10, "n5 must not join", refused=True),
        event(53.5, "join.refused", node="n5", how="it ended with exit code 1"), event(53.6, "step.end", number=10),
    ]  # fmt: skip


def stored(place: Path, events: Sequence[Event], steps: Sequence[Any] | None = STEPS, **described: Any) -> Path:
    """A run with one trial in which this happened too, of this plan; judged. Returns the run's directory."""
    context = {"engine": "cockroach", "version": f"{OLD} → {NEW}", "nodes": "3"}
    trial = {"faults": (), "judged": False, "claim": "hot-swap", "context": context, **described}
    run = run_of(place, trials=[trial])
    (directory,) = (run / "claims" / "survivability").iterdir()
    lines = (directory / EVENTS).read_text().splitlines(keepends=True)
    lines += map(event_line, events)
    (directory / EVENTS).write_text("".join(sorted(lines, key=lambda line: int(json.loads(line)["t"]))))
    if steps is not None:
        (directory / PLAN_FILE).write_text(json.dumps({"path": "final", "seed": 7, "steps": steps}))
    seal(directory)
    conclude(directory, load())
    return run


def heard(events: Iterable[Event], **evidence: Any) -> Series:
    """What reports draw of these events alone."""
    before = [event(0.1, "provision.begin", nodes=list(NODES)), event(2, "provisioned", nodes=list(NODES))]
    told = sorted([*before, *events], key=lambda each: each.t)
    return series(TrialEvidence(claim="hot-swap", profile="laptop", seed=7, buckets=0, events=told, **evidence))
