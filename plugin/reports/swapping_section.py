"""What every report shows of nodes that were given other versions: facts, nodes, the plan, and the sources beside."""

import re
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from plugin.claims import Claim
from plugin.counts import number_of
from plugin.reports.section import Attached, Beside, Section, Setups, Step, csv_file, csv_text
from plugin.reports.swapping_series import DoneStep, SwappingSeries
from plugin.reports.swapping_sources import moments, rolled
from plugin.reports.swapping_tables import BEGUN, DONE, PLAN, SWAPS, Row, done_of, facts, plan_rows, swap_rows, told
from plugin.reports.text import rendered

NODES_NOTE = (
    "A node is drained first, down once its process is gone, until it takes clients again; then the cluster is waited "
    "for until it is whole. The version in force is what the node itself says. Gap: the longest stretch without a "
    "success of any range, asked through the node that was restarted and through all others. Connections are those of "
    "every load: how many the node had just before, and how many ended until the cluster was whole, between two "
    "operations (drained) and in one (dropped)."
)
HERE = "set-up here"
PLAN_NOTE = (
    "The plan was stored before anything ran; what came of a step is what was recorded while it was done. Before "
    "a look at a mixed cluster the load has it for itself for a while, so that its latency can be told."
)


def swapping_section(swapping: SwappingSeries) -> Section:
    """What is shown of them."""
    return Section(
        html=partial(_html, swapping),
        description=rendered("swapping_described.html", **_parts(swapping)),
        attached=partial(_attached, swapping),
        steps=partial(_steps, swapping),
        beside=partial(_beside, swapping),
    )


def _parts(swapping: SwappingSeries) -> dict[str, Any]:
    tables = []
    if swapping.swaps:
        title = "Each node, each time it was given a version"
        rows = swap_rows(swapping)
        tables.append({"title": title, "style": "swaps", "head": SWAPS, "rows": rows, "note": NODES_NOTE})
    if swapping.steps or swapping.beyond:
        rows = plan_rows(swapping)
        tables.append(
            {"title": "The plan, and what was done", "style": "plan", "head": PLAN, "rows": rows, "note": PLAN_NOTE}
        )
    found = [*swapping.preflight.found.items()] if swapping.preflight else []
    return {"facts": facts(swapping), "found": found, "tables": tables}


def _html(swapping: SwappingSeries, trial: int) -> str:
    return rendered("swapping.html", trial=trial, **_parts(swapping))


def _attached(swapping: SwappingSeries, title: str) -> Iterator[Attached]:
    def table(head: tuple[str, ...], rows: list[Row]) -> str:
        return csv_text([head, *([cell.text for cell in row] for row in rows)])

    if swapping.swaps:
        yield csv_file("Nodes and their versions", table(SWAPS, swap_rows(swapping)))
    if swapping.steps or swapping.beyond:
        yield csv_file("The plan, and what was done", table(PLAN, plan_rows(swapping)))


def _steps(swapping: SwappingSeries, began_ms: int) -> list[Step]:
    """The plan as one step, and each of its steps below it."""
    if not swapping.steps:
        return []
    at = began_ms + int(1000 * next((step.begun for step in swapping.steps if step.begun is not None), 0.0))
    below = tuple(_step(step, began_ms, at) for step in swapping.steps)
    done = sum(done_of(step) == DONE for step in swapping.steps)
    of = len(below) + swapping.beyond
    return [
        Step(
            name=f"The plan: {done} of {number_of(of, 'steps')} done",
            status="passed" if done == of else "broken",
            start=at,
            stop=max(step.stop for step in below),
            steps=below,
        )
    ]


def _step(step: DoneStep, began_ms: int, at: int) -> Step:
    """Of a step that was not begun nobody knows a time: it stands where the plan begins."""
    done = done_of(step)
    begin = at if step.begun is None else began_ms + int(1000 * step.begun)
    facts = {f"came of it {n}": told(words) for n, words in enumerate(step.came, 1)}
    return Step(
        name=f"{step.number}. {step.says}" + ("" if done == DONE else f" – {done}"),
        status={DONE: "passed", BEGUN: "broken"}.get(done, "skipped"),
        start=begin,
        stop=begin if step.ended is None else began_ms + int(1000 * step.ended),
        parameters=facts,
    )


def _whose(work: str, printed: Mapping[str, Any], setups: Setups) -> Setups:
    """The set-ups of another work than the claim's source, and that here."""
    own = ((f"set-up of the {work}", str(printed["setup"])),) if "setup" in printed else ()
    return (*own, *(setup for setup in setups if setup[0] == HERE))


def _beside(swapping: SwappingSeries, claim: Claim, titles: Mapping[str, str], setups: Setups) -> Iterator[Beside]:
    """What the claim's sources show of a change of version, known by what they say of it."""
    for name, printed in claim.paper.items():
        if not isinstance(printed, Mapping) or not swapping.swaps:
            continue
        restarted = swapping.plan is not None and swapping.plan.equal  # of one build none is changed
        if {"from", "to", "nodes", "changed", "down"} <= printed.keys() and not restarted:
            yield moments(printed, titles.get(name, name), claim.work, swapping, setups)
        minutes = {key: re.fullmatch(r"minutes_(\d+)_nodes", key) for key in printed}
        known = {int(found[1]): float(printed[key]) for key, found in minutes.items() if found}
        if known:
            yield rolled(known, titles.get(name, name), swapping, _whose(titles.get(name, name), printed, setups))
