"""When a test has seen enough: what a fixture asks of the evidence so far, while the test runs.

Pure functions, and all that a fixture may ask of the judge before the end. A limit of a claim is none of their
business but for a comparison, whose margin is its limit.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from plugin.judge.convergence import State
from plugin.judge.growth import phases
from plugin.judge.machine import lasted_s, nothing_left, stretches
from plugin.judge.trial import SECOND, HostSecond, TrialEvidence

if TYPE_CHECKING:
    from plugin.judge.comparison import Compared

TOLD_AFTER = 30
"""Seconds of the host that must count before anything is said of them: what starts keeps a machine busy for a while
(our own choice)."""

TOLD_AT_LAST_AFTER = 10
"""As many will do before something is disturbed: it is said then or not in time (our own choice)."""

LATELY_S = 60
"""What does not come in time is explained by what the machine lacked in as many seconds before, and still lacks: about
as long as is waited for most things (our own choice)."""

STILL = frozenset({State.NOT_BEGUN, State.STALLED, State.UNEVEN})
"""Where no replica moves any more, so that waiting longer shows nothing new."""


def comparison_decided(compared: Iterable["Compared"]) -> bool:
    """Whether every comparison has come to a decision, or one refutes: then no more pairs are run."""
    from plugin.judge.comparison import Decision

    decisions = [each.decision for each in compared]
    return Decision.REFUTED in decisions or (bool(decisions) and Decision.UNDECIDED not in decisions)


def replicas_balanced_or_still(evidence: TrialEvidence, since_s: float) -> bool:
    """Whether the last change of size is over: replicas lay evenly for long enough, or nothing moves any more.

    Both times are those that the change of size declared (``ScaleBegin``: ``hold_s``, ``stall_s``). ``since_s``: from
    when it is waited, in seconds on the trial's timeline; nothing is given up sooner than ``stall_s`` after it.
    """
    for phase in phases(evidence)[-1:]:
        found, given_up = phase.found, phase.found.state in STILL
        if found.balanced is not None:  # an excursion at the end may be excused, and is waited for all the same
            return phase.last - found.balanced >= phase.hold_s and (not found.left or found.even_s >= phase.hold_s)
        return given_up and phase.last - since_s >= phase.stall_s
    return False


def replicas_at_rest(evidence: TrialEvidence) -> bool:
    """Whether, after the last change of size, no replica moved for the declared quiet period and no range lacks one."""
    return any(phase.at_rest for phase in phases(evidence)[-1:])


def machine_taken(evidence: TrialEvidence, *, least_s: int = TOLD_AFTER) -> str:
    """How other work takes the machine, if limits of time could not count by what was recorded so far; else "".

    Nothing is said of fewer than ``least_s`` seconds that count.
    """
    from plugin.judge.analysis import analysis
    from plugin.judge.conditions import condition, host_seconds

    free = condition(evidence, "machine_free")
    return "" if free.met or len(host_seconds(analysis(evidence))) < least_s else free.why


def too_late_for_the_machine(evidence: TrialEvidence) -> str:
    """Why something came too late, where the machine explains that by what it lacked lately, and lacks still; else "".

    Other work had it, as ``machine_taken`` tells, whatever was disturbed meanwhile. Or nothing was left of it in half
    of the time, whoever used it. A record that cannot be relied on explains nothing.
    """
    from plugin.judge.conditions import TAKEN_S

    def taken(seconds: int, least_s: int) -> str:
        return machine_taken(replace(evidence, events=(), host=evidence.host[-seconds:]), least_s=least_s)

    def exhausted(seconds: int, least_s: int) -> str:
        return machine_exhausted(evidence.host, last_s=seconds, least_s=least_s)

    found = (why(LATELY_S, TOLD_AFTER) for why in (taken, exhausted) if why(TAKEN_S, TAKEN_S))
    return "" if evidence.host_problems else next(filter(None, found), "")


def machine_exhausted(host: Sequence[HostSecond], *, last_s: int, least_s: int) -> str:
    """That in half of the last seconds the machine had nothing left, in figures; "" where not, or too few were told."""
    end = host[-1].t if host else 0
    begin = end - last_s * SECOND
    last = [second for second in host if second.t > begin]
    told_s = min(last_s, lasted_s([(host[0].t - SECOND, end)])) if host else 0
    spent_s = lasted_s(stretches(host, nothing_left, (begin, end)))
    if told_s < least_s or 2 * spent_s < told_s:
        return ""
    cpu, others = (sum(used) / len(last) for used in zip(*((s.cpu, s.others or 0.0) for s in last), strict=True))
    return (
        f"for {spent_s:.0f} of the last {told_s:.0f} s the machine had no CPU, disk or network left ({cpu:.0f} % of "
        f"its CPU in use, {others:.0f} % by other work): use one with more, or a smaller profile"
    )
