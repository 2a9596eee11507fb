"""TPC-C runs as Allure's steps: what was declared, then each block with its runs, what each did and what it came to."""

from collections.abc import Iterator, Sequence

from plugin.evidence.records import Event
from plugin.reports.allure_steps import MOST_EVENTS, Step, event_step
from plugin.reports.tpcc import Run, Tpcc
from plugin.reports.tpcc_words import arm_in_words, figures


def run_steps(found: Tpcc, events: Sequence[Event], began_ms: int) -> list[Step]:
    """The steps of an arm of TPC-C runs, in the order they were run."""
    steps = []
    declared = [event for event in events if event.name == "comparison.declared"]
    if declared or found.compares:
        at = began_ms + (declared[0].t // 1000 if declared else 0)
        name = f"Declared before the first run: {found.looks}" if declared else f"Declared: {found.looks}"
        right = len(declared) == 1 and "looks at" in found.looks
        steps.append(Step(name=name, status="passed" if right else "broken", start=at, stop=at))
    if not found.compares:
        return [*steps, *(_run(run, events, began_ms, cell=True) for run in found.runs)]
    blocks: dict[int, list[Run]] = {}
    for run in found.runs:
        blocks.setdefault(run.block, []).append(run)
    return [*steps, *(_block(block, runs, found, events, began_ms) for block, runs in blocks.items())]


def _block(block: int, runs: Sequence[Run], found: Tpcc, events: Sequence[Event], began_ms: int) -> Step:
    several = len({(run.cell, run.driver) for run in found.runs if run.driver}) > 1
    inside = tuple(_grouped(runs, found, events, began_ms, several=several))
    status = "broken" if any(step.status == "broken" for step in inside) else "passed"
    return Step(
        name=f"Block {block + 1}: {', '.join(dict.fromkeys(run.arm for run in runs))}",
        status=status,
        start=min(step.start for step in inside),
        stop=max(step.stop for step in inside),
        steps=inside,
    )


def _grouped(
    runs: Sequence[Run], found: Tpcc, events: Sequence[Event], began_ms: int, *, several: bool
) -> Iterator[Step]:
    """The runs of a block, the two of an A/A pair in a step of their own."""
    paired: set[str] = set()
    for run in runs:
        if run.name in paired:
            continue
        again = [
            each
            for each in runs
            if each.repeats
            and each.arm.startswith(f"{run.arm} (")
            and (each.cell, each.driver) == (run.cell, run.driver)
        ]
        if not again:
            yield _run(run, events, began_ms, cell=several)
            continue
        pair = tuple(_run(each, events, began_ms, cell=several) for each in (run, *again))
        paired |= {each.name for each in again}
        noise = [
            f", ratio of {of.figure} {one.mean:.3f}"
            for of in found.comparisons
            for one in of.ratios
            if one.noise and one.first == run.arm and one.cell == run.cell
        ]
        yield Step(
            name=f"A/A pair: {arm_in_words(run.arm)} twice" + "".join(noise),
            status="broken" if any(step.status == "broken" for step in pair) else "passed",
            start=min(step.start for step in pair),
            stop=max(step.stop for step in pair),
            steps=pair,
        )


def _run(run: Run, events: Sequence[Event], began_ms: int, *, cell: bool) -> Step:
    def at(seconds: float) -> int:
        return began_ms + int(seconds * 1000)

    stretches = [
        ("Connect", run.begin, run.ramp if run.ramp is not None else run.end),
        ("Ramp", run.ramp, run.measured),
        (f"Measured: {figures(run)}", run.measured, run.until),
        ("Stop", run.until, run.end),
    ]
    steps = tuple(
        Step(
            name=f"{name} ({end - begin:.0f} s)",
            status="passed",
            start=at(begin),
            stop=at(end),
            steps=_events(events, begin, end, began_ms),
        )
        for name, begin, end in stretches
        if begin is not None and end is not None and end >= begin
    )
    where = ", ".join(filter(None, [run.arm, f"{run.cell}, {run.driver}" if cell else ""]))
    facts = {
        "arm": run.arm, "cell": run.cell, "block": str(run.block + 1), "driver": run.driver,
        "warehouses": str(run.warehouses), "problem": run.problem,
    }  # fmt: skip
    return Step(
        name=f"{run.name}: {where}: {run.problem or figures(run)}",
        status="broken" if run.problem else "passed",
        start=at(run.begin),
        stop=at(run.end),
        parameters={name: value for name, value in facts.items() if value},
        steps=steps,
    )


def _events(events: Sequence[Event], begin: float, end: float, began_ms: int) -> tuple[Step, ...]:
    inside = [
        event
        for event in events
        if begin <= event.t / 1e6 < end and event.name not in ("run.begin", "run.end")
    ]
    return tuple(event_step(event, began_ms) for event in inside[:MOST_EVENTS])
