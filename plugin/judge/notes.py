"""What a reader must know of a trial whatever its verdict is: pure functions of its evidence."""

from dataclasses import replace

from clusters.events import ClocksCompared
from plugin.evidence.events import seen
from plugin.judge.analysis import analysis
from plugin.judge.conditions import host_seconds
from plugin.judge.machine import crowded, lasted_s, stretches
from plugin.judge.stopping import TOLD_AT_LAST_AFTER, machine_taken
from plugin.judge.trial import SECOND, TrialEvidence


def notes(evidence: TrialEvidence) -> tuple[str, ...]:
    """Every note on a trial, each a sentence without a full stop."""
    return tuple(filter(None, [other_work(evidence), shared_machines(evidence)]))


def shared_machines(evidence: TrialEvidence) -> str:
    """Which nodes were on one machine where a substrate has several; "" where none were, or nobody tells."""
    shared = dict[str, str]()
    for _, compared in seen(evidence.events, ClocksCompared):
        on: dict[str, list[str]] = {}
        for node, machine in (compared.machines or {}).items():
            on.setdefault(machine, []).append(node)
        for machine, nodes in on.items():
            if machine and len(nodes) > 1:
                shared[machine] = f"{', '.join(nodes)} on {machine}"
    told = "; ".join(shared.values())
    return told and f"nodes shared a machine, its CPU and its fate: {told}"


def other_work(evidence: TrialEvidence) -> str:
    """That other work had the machine in the part of the trial that is judged, in figures; "" where it did not.

    It is said from where on a running test warns of it: limits of time that were missed would then be inconclusive,
    and those that were kept are kept all the same. A record that cannot be relied on says nothing.
    """
    bare = replace(evidence, probe=None, workloads={}, layout=())  # all else may be large, and the analysis is kept
    if evidence.host_problems or not machine_taken(bare, least_s=TOLD_AT_LAST_AFTER):
        return ""
    found = host_seconds(analysis(bare))
    window = found[0].t - SECOND, found[-1].t
    had_s, used = lasted_s(stretches(found, crowded, window)), sum(s.others or 0.0 for s in found) / len(found)
    had = f"other work had the machine for {had_s:.0f} of {lasted_s([window]):.0f} s ({used:.0f} % of its CPU)"
    return f"{had}: times are a busy machine's"
