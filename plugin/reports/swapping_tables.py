"""What reports say of nodes that were given other versions, as facts and tables of words."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from msgspec import UNSET

from plugin.counts import number_of
from plugin.reports.swapping_series import UNKNOWN, DoneStep, Swap, SwappingSeries

UNRECORDED = "not recorded"
MOST_TOLD = 200
"""Characters of what a server or a tool said that a cell has room for; the events have all of it."""
DONE, BEGUN, NOT_DONE = "done", "begun, not done", "not done"


@dataclass(frozen=True, kw_only=True, slots=True)
class Cell:
    """Words of a table, in the style of what they mean: nothing, ``quiet`` or ``bad``."""

    text: str
    style: str = ""


Row = tuple[Cell, ...]

SWAPS = (
    "node", "from → to", "version in force", "drained from", "down from – to", "down for", "whole again",
    "in all", "gap of its clients", "gap of all others", "connections before", "drained", "dropped",
)  # fmt: skip
"""Columns of the table of nodes."""
PLAN = ("step", "what was planned", "began", "ended", "took", "done?", "what came of it")
"""Columns of the plan."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Roll:
    """Nodes that were given the same version one after another, each once; ``whole``: after the last of them.

    ``minutes``: of each, from its drain until the cluster was whole; empty where one never was.
    """

    before: str
    to: str
    nodes: tuple[str, ...]
    begin: float
    whole: float | None
    minutes: tuple[float, ...]


def rolls(swapping: SwappingSeries) -> list[Roll]:
    """The plan's swaps in rolls, those aside that failed as they were meant to: they changed nothing."""
    found: list[list[Swap]] = []
    for swap in swapping.swaps:
        if swap.meant:
            continue
        last = found[-1] if found else []
        same = bool(last) and (last[-1].wanted, last[-1].to) == (swap.wanted, swap.to)
        if same and swap.node not in {each.node for each in last}:
            last.append(swap)
        else:
            found.append([swap])
    return [
        Roll(
            before=" and ".join(dict.fromkeys(swap.before or "?" for swap in swaps)),
            to=swaps[0].wanted or "?",
            nodes=tuple(swap.node for swap in swaps),
            begin=swaps[0].begin,
            whole=swaps[-1].whole,
            minutes=_minutes(swaps),
        )
        for swaps in found
    ]


def _minutes(swaps: Sequence[Swap]) -> tuple[float, ...]:
    lasted = tuple((swap.whole - swap.begin) / 60 for swap in swaps if swap.whole is not None)
    return lasted if len(lasted) == len(swaps) else ()


def moment(t: float | None, zero: int) -> str:
    """A time of the timeline from its second ``zero``, as its charts' axis has it, with tenths of a second."""
    if t is None:
        return "–"
    t -= zero
    if t < 120:
        return f"{t:.1f} s"
    minutes, rest = divmod(round(t * 10), 600)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest / 10:04.1f}" if hours else f"{minutes}:{rest / 10:04.1f}"


def lasted(seconds: float | None) -> str:
    """How long something took."""
    if seconds is None:
        return "–"
    return f"{seconds / 60:.1f} min" if seconds >= 600 else f"{seconds:.1f} s" if seconds >= 1 else f"{seconds:.2f} s"


def _between(begin: float | None, end: float | None) -> float | None:
    return None if begin is None or end is None else end - begin


def told(words: str) -> str:
    """The first and the last line of what something said, as long as there is room."""
    lines = [line.strip() for line in words.splitlines() if line.strip()]
    shown = [*lines[:1], *["…"] * (len(lines) > 2), *lines[1:][-1:]]
    return " ".join(line if len(line) <= MOST_TOLD else f"{line[:MOST_TOLD].rstrip()}…" for line in shown)


def swap_rows(swapping: SwappingSeries) -> list[Row]:
    """A row for each node each time that it was given another version."""
    return [tuple(_swap_cells(swap, swapping.zero)) for swap in swapping.swaps]


def _swap_cells(swap: Swap, zero: int) -> Iterator[Cell]:
    yield Cell(text=swap.node)
    yield _versions(swap)
    yield Cell(text=swap.active or ("–" if swap.up is None else "not told"))
    yield Cell(text=moment(swap.begin, zero))
    back = moment(swap.up, zero) if swap.up is not None else "never recorded"
    yield Cell(text=f"{moment(swap.down, zero)} – {back}", style="bad" if swap.up is None else "")
    yield Cell(text=lasted(_between(swap.down, swap.up)))
    yield Cell(text="never recorded", style="bad") if swap.whole is None else Cell(text=moment(swap.whole, zero))
    yield Cell(text=lasted(_between(swap.begin, swap.whole)))
    for gap in (swap.gap_s, swap.others_gap_s):
        yield _known(None if gap is None else lasted(gap))
    ended = swap.ended
    for count in (ended.held, ended.drained, ended.dropped) if ended else (None, None, None):
        yield _known(count)


def _known(value: object) -> Cell:
    return Cell(text=UNRECORDED, style="quiet") if value is None else Cell(text=str(value))


def _versions(swap: Swap) -> Cell:
    """What it ran and what it was given; and what it runs where that is something else."""
    words = f"{swap.before or '?'} → {swap.wanted or '?'}"
    if swap.failed:
        back = f"; it runs {swap.build} again" if swap.build else "; it never came back"
        meant = f", as it was meant to ({swap.meant})" if swap.meant else ""
        what = "was not drained" if swap.undrained else "did not come up"
        return Cell(text=f"{words}: {what}{meant} ({told(swap.failed)}){back}", style="" if meant else "bad")
    if swap.up is not None and swap.build != swap.wanted:
        return Cell(text=f"{words}: calls itself {swap.build or 'nothing'}", style="bad")
    return Cell(text=words)


def plan_rows(swapping: SwappingSeries) -> list[Row]:
    """Every step that was planned or begun, in order."""
    rows = [tuple(_step_cells(step, swapping.zero)) for step in swapping.steps]
    if swapping.beyond:
        words = f"{number_of(swapping.beyond, 'more steps')}, of which nothing is stored"
        rows.append(tuple(Cell(text=text) for text in ("…", words, "–", "–", "–", NOT_DONE, "")))
    return rows


def _step_cells(step: DoneStep, zero: int) -> Iterator[Cell]:
    yield Cell(text=str(step.number))
    yield Cell(text=step.says)
    yield Cell(text=moment(step.begun, zero))
    yield Cell(text=moment(step.ended, zero))
    yield Cell(text=lasted(_between(step.begun, step.ended)))
    done = done_of(step)
    yield Cell(text=done, style="" if done == DONE else "bad")
    yield Cell(text="; ".join(map(told, step.came)))


def done_of(step: DoneStep) -> str:
    """How far a step came."""
    return NOT_DONE if step.begun is None else BEGUN if step.ended is None else DONE


def facts(swapping: SwappingSeries) -> list[tuple[str, Cell]]:
    """What a release manager asks first: what was changed, how far it came, how long it took, and what runs now."""
    return [*_plan_facts(swapping), *_cost_facts(swapping), *_end_facts(swapping)]


def _plan_facts(swapping: SwappingSeries) -> Iterator[tuple[str, Cell]]:
    plan = swapping.plan
    if plan is None:
        return
    builds = " → ".join(
        target if target == build else f"{target} ({build})" for target, build in plan.builds.items()
    ) or " → ".join(swapping.versions)  # fmt: skip
    yield "versions", Cell(text=builds + (", all the same build: a rolling restart" if plan.equal else ""))
    given = getattr(plan, "given", UNSET)
    origin = f"seed {plan.seed}" if given is UNSET else f"given, SHA-256 {given}"
    done = sum(step.ended is not None for step in swapping.steps)
    all_steps = len(swapping.steps) + swapping.beyond
    open_step = next((step for step in swapping.steps if done_of(step) == BEGUN), None)
    ends = f"; it went no further than step {open_step.number}, {open_step.says}" if open_step else ""
    words = f"{plan.path}, {origin}: {done} of {number_of(all_steps, 'steps')} done{ends}"
    yield "plan", Cell(text=words, style="" if done == all_steps else "bad")
    if swapping.problem:
        yield "stored plan", Cell(text=swapping.problem, style="bad")


def _cost_facts(swapping: SwappingSeries) -> Iterator[tuple[str, Cell]]:
    swaps = swapping.swaps
    if not swaps:
        yield "nodes changed", Cell(text="none")
        return
    ways = "; ".join(f"{', '.join(roll.nodes)} → {roll.to}" for roll in rolls(swapping))
    wrong = [swap for swap in swaps if _versions(swap).style]
    told_wrong = f"; {', '.join(swap.node for swap in wrong)} did not run what was given" if wrong else ""
    meant = (f"; {swap.node} did not come up, as it was meant to ({swap.meant})" for swap in swaps if swap.meant)
    restarts = f"({number_of(len(swaps), 'restarts')})"
    yield (
        "nodes changed",
        Cell(text=f"{ways or 'none'} {restarts}{told_wrong}{''.join(meant)}", style="bad" if wrong else ""),
    )
    ended = max((step.ended for step in swapping.steps if step.ended is not None), default=None)
    each = [swap.whole - swap.begin for swap in swaps if swap.whole is not None]
    parts = []
    if ended is not None and ended > swaps[0].begin:
        parts.append(f"{lasted(ended - swaps[0].begin)} from the first drain to the end of the last step done")
    if each:
        some = (
            "" if len(each) == len(swaps) else f", as it was after {len(each)} of {number_of(len(swaps), 'restarts')}"
        )
        span = f", {lasted(min(each))} to {lasted(max(each))}," if len(each) > 1 else ""
        parts.append(f"{lasted(sum(each) / len(each))} a node{span} until the cluster was whole{some}")
    yield "time", Cell(text="; ".join(parts) or UNRECORDED)
    gaps = [
        f"{lasted(value)} {whose} ({swap.node} at {moment(swap.begin, swapping.zero)})"
        for whose, value, swap in (
            ("for clients of the node restarted", *_longest(swaps, "gap_s")),
            ("for all others", *_longest(swaps, "others_gap_s")),
        )
        if value is not None and swap is not None
    ]
    counted = [swap.ended for swap in swaps if swap.ended]
    drained, dropped = sum(each.drained for each in counted), sum(each.dropped for each in counted)
    words = f"{drained} drained, {dropped} dropped, of the loads' clients" if counted else UNRECORDED
    yield "connections", Cell(text=words)
    yield "longest gap", Cell(text="; ".join(gaps) or UNRECORDED)


def _any_back(swapping: SwappingSeries) -> bool:
    """Whether a node was given a version that comes before the one that it ran."""
    order = {version: place for place, version in enumerate(swapping.versions)}
    known = [swap for swap in swapping.swaps if swap.before in order and swap.wanted in order]
    return any(order[swap.wanted] < order[swap.before] for swap in known)


def _longest(swaps: Sequence[Swap], which: str) -> tuple[float | None, Swap | None]:
    known = [swap for swap in swaps if getattr(swap, which) is not None]
    worst = max(known, key=lambda swap: float(getattr(swap, which)), default=None)
    return (getattr(worst, which), worst) if worst else (None, None)


def _end_facts(swapping: SwappingSeries) -> Iterator[tuple[str, Cell]]:
    alike: dict[tuple[str, str], list[str]] = {}
    for node, build in sorted(swapping.running.items()):
        last = swapping.lanes[node][-1].name if swapping.lanes.get(node) else ""
        runs_it = last in (build, UNKNOWN)
        active = swapping.active.get(node, "") if runs_it else ""
        alike.setdefault((build or "an unknown version" if runs_it else last or "gone", active), []).append(node)
    runs = [
        f"{', '.join(nodes)}: {build}" + (f", {active} in force" if active else "")
        for (build, active), nodes in alike.items()
    ]
    yield "at the end", Cell(text="; ".join(runs) or UNRECORDED)
    if swapping.back:
        yield "way back", Cell(text=told(swapping.back))
    one_build = swapping.plan is not None and swapping.plan.equal
    if swapping.swaps and not one_build and not _any_back(swapping):
        yield "nodes that went back", Cell(text="none: whether nodes can go back was not tried")
    if swapping.preflight is not None:
        against = "; ".join(map(told, swapping.preflight.against))
        if "backup" in swapping.preflight.found:
            yield "backup before", Cell(text=told(swapping.preflight.found["backup"]))
        found = swapping.preflight.found.items()
        of_all = [f"{what}: {told(why)}" for what, why in found if what.startswith(("change ", "replicas", "licence"))]
        allowed = "; ".join(["nothing forbade it", *of_all])
        yield "looked at before", Cell(text=against or allowed, style="bad" if against else "")
