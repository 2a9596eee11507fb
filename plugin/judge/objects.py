"""What the judge measures of objects that are made before a version changes, or meanwhile, and looked at in each phase.

A test records ``objects.made`` and, for each phase, ``objects.phase`` and then a look of each check through a node of
each version (``object.looked``). What is made only in a later phase is told before its looks (with the phase, or, by
older evidence, before that begins). What could not be asked is recorded as ``object.unasked``.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from msgspec import UNSET

from plugin.counts import number_of
from plugin.evidence.events import (
    Event,
    ObjectEnded,
    ObjectLooked,
    ObjectNotEvaluated,
    ObjectsMade,
    ObjectsPhase,
    ObjectUnasked,
    StepBegin,
    Wrong,
    seen,
)
from plugin.judge.analysis import Analysis
from plugin.judge.definitions import Answer, Conditions, Measured, Metrics, recorded, some
from plugin.judge.trial import LOOK

SHOWN = 10
"""Differences that are shown as examples."""
NONE = "no objects were made"

OBJECTS_METRICS = Metrics()
"""Every metric of objects by name."""
measures = OBJECTS_METRICS.declare

OBJECTS_CONDITIONS = Conditions()
"""Every condition of objects by name."""
requires = OBJECTS_CONDITIONS.declare


@dataclass(frozen=True, kw_only=True, slots=True)
class Phase:
    """One phase: its begin, the checks whose objects were made by then, and what was looked at in it, in order."""

    begin: ObjectsPhase
    made: Sequence[str]
    looks: Sequence[ObjectLooked]

    def sides(self) -> Sequence[Sequence[str]]:
        """The nodes of each version, where both are named."""
        return [self.begin.old, self.begin.new] if self.begin.old and self.begin.new else []


def phases(events: Sequence[Event]) -> list[Phase]:
    """All phases, in order; a name may come again."""
    found, made = list[tuple[ObjectsPhase, list[str], list[ObjectLooked]]](), list[str]()
    for event in events:
        match event.what:
            case ObjectsMade(checks=checks, phase=phase):
                made += checks
                if found and phase is not UNSET:
                    found[-1][1].extend(checks)
            case ObjectsPhase():
                found.append((event.what, [*made], []))
            case ObjectLooked() if found:
                found[-1][2].append(event.what)
    return [Phase(begin=begin, made=there, looks=looks) for begin, there, looks in found]


def _phases(a: Analysis) -> list[Phase]:
    return recorded(phases(a.evidence.events) or None, NONE)


def _through(look: ObjectLooked) -> str:
    build = f" ({look.build})" if look.build is not UNSET else ""
    return f"{look.check}, {look.phase}, through {look.node}{build}"


def _told(look: ObjectLooked, wrong: Wrong) -> str:
    return f"{_through(look)}: `{wrong.statement}` answered {wrong.answer}, wanted {wrong.wanted}"


def _wrong(found: Sequence[Phase]) -> Iterator[tuple[str, str]]:
    """Each difference: the check and, in words, what was asked, where, and what was answered."""
    before: dict[tuple[str, str, object], tuple[ObjectLooked, str]] = {}
    for phase in found:
        for look in phase.looks:
            for wrong in look.wrong:
                yield look.check, _told(look, wrong)
        yield from _unlike(phase)
        yield from _unlike_before(phase, before)


def _unlike_before(
    phase: Phase, before: dict[tuple[str, str, object], tuple[ObjectLooked, str]]
) -> Iterator[tuple[str, str]]:
    """Statements about what nothing changes that a build answers in another way than it first did, added to ``before``.

    Two builds may tell the same thing in other words.
    """
    for look in phase.looks:
        if look.still is not True or look.answers is UNSET:
            continue
        for statement, answer in look.answers.items():
            then, first = before.setdefault((look.check, statement, look.build), (look, answer))
            if answer != first:
                yield (
                    look.check,
                    f"{_through(look)}: `{statement}` answered {answer}, and {first} in the phase {then.phase}",
                )


def _unlike(phase: Phase) -> Iterator[tuple[str, str]]:
    """Statements that were answered in one way through one node, and in another through another, after one change."""
    first: dict[tuple[str, int, str], tuple[ObjectLooked, str]] = {}
    for look in phase.looks:
        answers: Mapping[str, str] = {} if look.answers is UNSET else look.answers
        for statement, answer in answers.items():
            other, before = first.setdefault((look.check, look.n, statement), (look, answer))
            if answer != before:
                yield (
                    look.check,
                    f"{_through(look)}: `{statement}` answered {answer}, and through {other.node} {before}",
                )


def _unfit(found: Sequence[Phase]) -> dict[str, str]:
    """What was wrong as soon as it was there, by check: no change of version has made it so.

    In the first phase through any node. What was made later has no look before the change to be held against: what is
    wrong of it through all nodes alike shows no difference, be they of two versions or, made after going back or once
    a version was final, of one.
    """
    unfit = {check: f"before anything changed: {told}" for check, told in reversed([*_wrong(found[:1])])}
    for before, phase in pairwise(found):
        for check in set(phase.made) - set(before.made):
            looks = [look for look in phase.looks if look.check == check]
            if looks and all(look.wrong for look in looks):
                unfit[check] = f"through every node, once it was made: {_told(looks[0], looks[0].wrong[0])}"
    return unfit


@measures("objects_differing", "objects", ("integrity", "objects_asked"), safety=True)
def _differing(a: Analysis) -> Measured:
    """Checks of objects that did not hold through some node, or differed between two, once something had changed."""
    found, first = _phases(a), dict[str, str]()
    unfit = _unfit(found)
    for check, told in _wrong(found):
        if check not in unfit:
            first.setdefault(check, told)
    return len(first), some(sorted(first)), tuple(first.values())[:SHOWN]


@measures("objects_looked", "objects", ("integrity",))
def _looked(a: Analysis) -> Measured:
    """Checks of objects that were looked at in some phase; the note says in how many, and which were not evaluated."""
    found = _phases(a)
    looks = [look for phase in found for look in phase.looks]
    left_out = seen(a.evidence.events, ObjectNotEvaluated)
    ended = [event for _, event in seen(a.evidence.events, ObjectEnded)]
    told = [
        f"{number_of(len(looks), 'looks')} in {number_of(len(found), 'phases')} "
        f"({', '.join(phase.begin.phase for phase in found)})"
    ]
    made = [event for _, event in seen(a.evidence.events, ObjectsMade)]
    count = sum(len(event.checks) for event in made)
    told += [
        f"{count} of {number_of(event.of, 'checks')}, drawn by the seed"
        for event in made
        if event.of is not UNSET and event.of > count
    ]
    told += [
        f"{len(phase.made) - len(before.made)} of them made in the phase {phase.begin.phase}"
        for before, phase in pairwise(found)
        if len(phase.made) > len(before.made)
    ]
    if ended:
        crossed = _crossing(a) if a.timeline.faults else sum(event.under_way for event in ended)
        over = "while a node was changed" if a.timeline.faults else "from one phase into the next"
        told.append(f"{crossed} of {number_of(len(ended), 'changes')} of schema were under way {over}")
        if again := sum(event.again is not UNSET for event in ended):
            told.append(f"{again} of them had to be begun again")
    if left_out:
        told.append(f"{len(left_out)} not evaluated")
    examples = tuple(f"not evaluated: {event.check}: {event.why}" for _, event in left_out)
    return len({look.check for look in looks}), "; ".join(told), examples


def _crossing(a: Analysis) -> int:
    """How many changes of schema were under way while a node was given another version."""
    swaps = [fault.begin for fault in a.timeline.faults]

    def crossed(t: int, one: ObjectEnded) -> bool:
        begun = t - round(1e6 * one.seconds)
        answered = t if one.under_way or one.answered_s is UNSET else begun + round(1e6 * one.answered_s)
        known = one.under_way or one.answered_s is not UNSET
        return known and any(begun <= swap <= answered for swap in swaps)

    return sum(crossed(t, one) for t, one in seen(a.evidence.events, ObjectEnded))


@requires(
    "schema_change_crossed",
    "draw by another seed, or let a given plan look before a node is changed and after it; where servers end each "
    "change of schema at once, hold one up by an open transaction (held)",
)
def _crossed(a: Analysis) -> Answer:
    """A change of schema was under way while a node was given another version."""
    ended, through = seen(a.evidence.events, ObjectEnded), _crossing(a)
    if not ended:
        return False, "no change of schema that was begun in one phase ended in another"
    return (
        through > 0,
        f"{through} of {number_of(len(ended), 'changes')} of schema were under way while a node was changed",
    )


@requires("objects_asked", "see why a check of objects was not answered, correct it or wait longer, and run again")
def _asked(a: Analysis) -> Answer:
    """Every check of objects that is for this version was made, held before anything changed, and was looked at later.

    In every phase, through every version, and was changed through each, where clients write through any node and
    nothing is begun that another phase ends; and there was a phase wherever the plan looked at the cluster.
    """
    found = _phases(a)
    looks = sum(begin.kind == LOOK for _, begin in seen(a.evidence.events, StepBegin))
    left_out = {event.check for _, event in seen(a.evidence.events, ObjectNotEvaluated)}
    every = [event for _, event in seen(a.evidence.events, ObjectsMade)]
    made = [check for event in every for check in event.checks if check not in left_out]
    missing = [
        f"{event.check}, {event.phase}{f', through {event.node}' * bool(event.node)}: {event.what}: {event.why}"
        for _, event in seen(a.evidence.events, ObjectUnasked)
    ]
    missing += [told for check, told in _unfit(found).items() if check not in left_out]
    told = {event.check for _, event in seen(a.evidence.events, ObjectUnasked)}
    missing += [
        f"{check}: it was to be made in a later phase, and none came"
        for event in every
        for check in event.later or ()
        if check not in {*made, *told, *left_out}
    ]
    if not made:
        missing.append("no check of objects could be made")
    if len(found) < looks:
        missing.append(
            f"objects were looked at in {len(found)} of the {number_of(looks, 'states')} that the plan looked at"
        )
    begun = {event.check for _, event in seen(a.evidence.events, ObjectEnded)}
    for phase in found:
        for check in (check for check in phase.made if check not in left_out):
            nodes = {look.node for look in phase.looks if look.check == check}
            if check not in told and not _covered(phase, nodes):
                missing.append(
                    f"{check}, {phase.begin.phase}: looked at through {', '.join(sorted(nodes)) or 'no node'}"
                )
            changed = {look.changed for look in phase.looks if look.check == check and look.changed is not UNSET}
            if check not in told | begun and changed & set(phase.begin.nodes) and not _covered_by(phase, changed):
                missing.append(f"{check}, {phase.begin.phase}: changed through {', '.join(sorted(changed))} alone")
    return not missing, some(missing) or f"{number_of(len(made), 'checks')} in {number_of(len(found), 'phases')}"


def _covered_by(phase: Phase, nodes: set[str]) -> bool:
    return all(nodes & set(side) for side in phase.sides())


def _covered(phase: Phase, nodes: set[str]) -> bool:
    """Whether a node of each version was looked through; of two nodes where versions are not told apart."""
    if phase.sides():
        return _covered_by(phase, nodes)
    return len(nodes & set(phase.begin.nodes)) >= min(2, len(phase.begin.nodes))
