"""What sources show of a change of version, beside what was measured."""

from collections.abc import Mapping

from plugin.reports.section import Beside, Setups
from plugin.reports.swapping_series import SwappingSeries
from plugin.reports.swapping_tables import moment, rolls
from plugin.reports.text import number


def rolled(printed: Mapping[int, float], work: str, swapping: SwappingSeries, setups: Setups) -> Beside:
    """Time in all and a node beside what was printed: by nodes, the minutes of a rolling upgrade."""
    rows = [(f"{work} printed", str(n), "-", number(m), number(m / n)) for n, m in printed.items()]
    best = {n: m / n for n, m in printed.items()}
    for roll in rolls(swapping):
        mean = sum(roll.minutes) / len(roll.minutes) if roll.minutes else None
        all_minutes = number((roll.whole - roll.begin) / 60) if roll.whole is not None else "-"
        rows.append(("measured here", str(len(roll.nodes)), f"{roll.before} → {roll.to}", all_minutes, number(mean)))
    every = [minutes for roll in rolls(swapping) for minutes in roll.minutes]
    if every:
        mean = sum(every) / len(every)
        first, last = swapping.swaps[0].begin, swapping.swaps[-1].whole
        all_minutes = number((last - first) / 60) if last is not None else "-"
        rows.append(("measured here, all", str(len(every)), "every restart", all_minutes, number(mean)))
        rows += [(f"ratio to {n} nodes", "-", "-", "-", number(mean / minutes)) for n, minutes in best.items()]
    return Beside(
        title="rolling upgrade",
        work=work,
        head=("", "nodes", "versions", "minutes in all", "minutes a node"),
        rows=tuple(rows),
        note=(
            "The guide's minutes are of its whole upgrade, divided by its nodes; here a node's are from its drain "
            "until the cluster was whole again, and those in all have the pauses between nodes, too. The guide does "
            "not say from which version to which it went."
        ),
        setups=setups,
        long=True,
    )


def moments(printed: Mapping[str, object], title: str, work: str, swapping: SwappingSeries, setups: Setups) -> Beside:
    """What a picture of the console showed in the middle of a change, beside the same moment here.

    That is when the node is down that comes after as many changed ones; of a change back where there is one.
    """
    head = ("", "from", "to", "nodes", "changed", "down", "not yet changed")
    counts = [int(str(printed.get(name, 0))) for name in ("nodes", "changed", "down")]
    theirs = (str(printed["from"]), str(printed["to"]), *map(str, counts), str(counts[0] - counts[1] - counts[2]))
    rows = [(f"{work} printed", *theirs)]
    order = list(swapping.versions)
    fitting = [roll for roll in rolls(swapping) if len(roll.nodes) > counts[1]]
    back = [r for r in fitting if r.before in order and r.to in order and order.index(r.to) < order.index(r.before)]
    told_states = ""
    if chosen := next(iter(back or fitting), None):
        node = chosen.nodes[counts[1]]
        at = next(s for s in swapping.swaps if s.node == node and s.begin >= chosen.begin)
        every = {name: _at(swapping, name, at.down or at.begin) for name in swapping.lanes}
        states = {name: state for name, state in every.items() if state}
        changed, old = (sum(state == version for state in states.values()) for version in (chosen.to, chosen.before))
        here = (str(len(states)), str(changed), str(len(states) - changed - old), str(old))
        rows.append(("measured here", chosen.before, chosen.to, *here))
        found = ", ".join(f"{name} {state}" for name, state in states.items())
        told_states = f" Here at {moment(at.down or at.begin, swapping.zero)}: {found}."
    return Beside(
        title=title, work=work, head=head, rows=tuple(rows), setups=setups, long=True,
        note="The figure is a picture of the console; its nodes are counted by the text (3.3, 5.3)." + told_states,
    )  # fmt: skip


def _at(swapping: SwappingSeries, node: str, t: float) -> str:
    return next((band.name for band in swapping.lanes[node] if band.begin <= t < band.end), "")
