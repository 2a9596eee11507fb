"""The states that a cluster goes through while its version is changed: what its nodes run, and whether for good."""

from collections.abc import Sequence
from dataclasses import dataclass

from clusters.events import NodeSwapped, Provisioned
from plugin.evidence.events import NodeJoined, PlanDrawn, StepBegin
from plugin.judge.definitions import recorded
from plugin.judge.swapping import FINALISE
from plugin.judge.trial import TrialEvidence, Window, timeline


@dataclass(frozen=True, kw_only=True, slots=True)
class State:
    """A stretch in which the nodes run the same versions: ``name`` says which, in the order of the plan."""

    name: str
    window: Window

    @property
    def seconds(self) -> float:
        """How long it lasts."""
        return (self.window[1] - self.window[0]) / 1e6


def states(evidence: TrialEvidence) -> Sequence[State]:
    """One after another, from the begin of the baseline until writing ended, whatever is done to nodes meanwhile.

    Raises ``NotRecorded``.
    """
    line = timeline(evidence.events)
    begin, _ = recorded(line.baseline, "there is no baseline")
    until = recorded(line.writing_end, "writing has no end")
    versions, builds, final = list[tuple[str, str]](), dict[str, str](), False
    found, since, name = list[State](), begin, ""
    for event in evidence.events:
        match event.what:
            case PlanDrawn(builds=by_version):
                versions = list(by_version.items())
            case Provisioned(nodes=nodes):
                builds = dict.fromkeys(nodes, versions[0][1] if versions else "")
            case NodeSwapped(node=node, build=build):
                builds[node], final = build, False
            case NodeJoined(node=node, build=str(build)):
                builds[node] = build
            case StepBegin(kind=kind) if kind == FINALISE:
                final, versions = True, versions[1:] + versions[:1]  # from here on it goes on from the next one
            case _:
                continue
        now = _named(versions, set(builds.values()), final)
        if now != name and event.t > since:
            found += [State(name=name, window=(since, min(event.t, until)))] if since < until else []
            since = event.t
        name = now
    recorded(versions or None, "no plan was drawn")
    return [*found, State(name=name, window=(since, until))] if since < until else found


def _named(versions: list[tuple[str, str]], there: set[str], final: bool) -> str:
    """Of a chain a build may come again under another name: it has the name of the versions that are next in turn."""
    names: dict[str, str] = {}
    for version, build in versions:
        names.setdefault(build, version)
    told = [names[build] for build in names if build in there]
    told += sorted(build or "an unknown build" for build in there - set(names))
    return " + ".join(told) + (", made final" if final else "")
