"""``--claims`` and ``--dry-run``: what could be decided here, and what a run would do."""

from collections.abc import Iterable, Sequence

import pytest

from clusters.engines import Engine
from clusters.errors import BadInput
from plugin import changes, costs, selection
from plugin import run as runs
from plugin.claims import Claim
from plugin.judge.model import Kind
from plugin.reports.terminal import WIDTH, columns, wrapped
from plugin.reports.text import duration, number
from plugin.run import Run


def print_claims(run: Run) -> None:
    """The catalogue as a table: each claim, its source and suites, and whether it can be evaluated here."""
    settings = run.settings
    chosen = f"engine {settings.engine}, substrate {settings.substrate}, profile {settings.profile}"
    print(f"Claims of the catalogue; {chosen}")
    engines, lines = _targets(run)
    print("\n".join(lines))
    unproven = dict.fromkeys(f"{engine.version}: {said}" for engine in engines if (said := runs.not_run(engine)))
    mark = f" ({'; '.join(unproven)})" if unproven else ""
    possible = f"can be evaluated here{mark}" if engines else "no database at hand for it (see above)"
    rule = "-" * WIDTH
    print(rule)
    against, notes = _changes(run)
    ready = []
    for claim in run.catalogue:
        reason = selection.reason_not_evaluated(claim, claim.nodes_for(settings.suite), run)
        if claim.changes_versions and reason is None and against:
            here = f"bad input: {against}"
        else:
            ready += [claim] * (reason is None)
            told = f"{possible}{notes}" if claim.changes_versions else possible
            here = told if reason is None else f"not evaluated: {reason}"
        estimate = claim.estimate_for(settings.suite)
        cost = f"about {duration(estimate.seconds)}, {estimate.disk_mib:.0f} MiB of disk" if estimate else "-"
        rows = [
            ("", "claim", claim.sentence),
            ("", "source", str(claim.source) if claim.source else "-"),
            ("", "suites", ", ".join(claim.suites)),
            ("", "here", here),
            ("", f"{settings.suite}", cost),
            *([("", "note", claim.note)] if claim.note else []),
        ]
        print(claim.id)
        print("\n".join(columns(rows, (2, 9))))
    print(rule)
    claims = [claim for claim in ready if settings.suite in claim.suites]
    suite = f"suite {settings.suite}: {len(claims)}, about {duration(_seconds(claims, run))}"
    print(f"{len(run.catalogue.claims)} claims, {len(ready)} can be evaluated here; {suite}")


def expected(config: pytest.Config, items: Sequence[pytest.Item]) -> list[str]:
    """How long the claims of a suite will take, by the catalogue's estimates; nothing where none is known."""
    run = config.stash.get(runs.KEY, None)
    if run is None or run.settings.dry_run or config.option.collectonly:
        return []
    ids = {id_ for item in items if selection.needs_engine(item) and (id_ := selection.claim_id(item)[0])}
    claims = [run.catalogue.claim(id_) for id_ in ids]
    seconds = _seconds(claims, run)
    count = f"{len(claims)} claim{'s' * (len(claims) != 1)}"
    return [f"{count} to be tested, about {duration(seconds)} in all"] if seconds else []


def _seconds(claims: Iterable[Claim], run: Run) -> float:
    """How long the claims take on all versions that were asked for; one that is about all of them runs once."""
    return sum(
        e.seconds * (1 if c.takes_versions else len(run.targets))
        for c in claims
        if (e := c.estimate_for(run.settings.suite))
    )


def _targets(run: Run) -> tuple[list[Engine], list[str]]:
    """The engines that are at hand, and a line about each that was asked for."""
    engines, lines = [], []
    for target in run.targets:
        try:
            engine = run.engine(target)
        except BadInput as error:
            lines += [part for text in f"no engine: {error}".splitlines() for part in wrapped(text, "")]
            continue
        engines.append(engine)
        lines += wrapped(f"engine: {runs.named_in_full(engine)}", "")
        if ran := engine.fingerprint.get("run_before"):
            lines += wrapped(f"run before: {ran}")
        lines += [part for note in engine.fingerprint.get("notes", ()) for part in wrapped(f"note: {note}")]
    return engines, lines


def _changes(run: Run) -> tuple[str, str]:
    """What forbids the changes of version that were asked for, and what else is to be said of them."""
    known = [*changes.of_run(run)]
    against = next((f"{words}: {change.against}" for words, change in known if change.against), "")
    return against, "".join(f"; {note}" for note in changes.notes_of(known))


def print_plan(item: pytest.Item, run: Run) -> None:
    """What one test of a claim would start, disturb and check, in order."""
    id_, sabotage = selection.claim_id(item)
    claim = run.catalogue.claim(str(id_))
    skip = item.get_closest_marker("skip")
    print(f"\n{item.nodeid}")
    print("\n".join(wrapped(f"{'sabotage of ' if sabotage else ''}{claim.id}: {claim.sentence}")))
    if skip is not None:
        print("\n".join(wrapped(f"would not run: {skip.kwargs.get('reason', '')}")))
        _print_costs(item, claim, run)
        return
    print("\n".join(wrapped(f"would start: {_started(item, run)}")))
    _print_costs(item, claim, run)
    for number_, step in enumerate(claim.steps, 1):
        print("\n".join(wrapped(f"{number_}. {step}", "    ")))
    for planned in item.iter_markers("plans"):
        print("  to be done:" if run.plan and run.plan.plan else "  drawn by the seed:")
        print("\n".join(f"    {line}" for line in planned.kwargs["lines"](item, run)))
    print("\n".join(wrapped(f"would disturb: {claim.disturbs or 'nothing'}")))
    print("  would check:")
    print("\n".join(_checks(claim, run.profile.name)))
    print(f"  seed: {selection.seed_of(item, run)} (of the run: {run.settings.seed})")


def _print_costs(item: pytest.Item, claim: Claim, run: Run) -> None:
    """What the test takes on this profile, also where this machine does not carry it."""
    for place, line in enumerate(costs.told(claim, run, selection.where(item, run))):
        print("\n".join(wrapped(line, "    ") if place else wrapped(f"would take: {line}")))


def _started(item: pytest.Item, run: Run) -> str:
    if "engine" not in getattr(item, "fixturenames", ()):
        return "no database, the test asks for none"
    nodes = selection.topology_for(item, run).nodes
    count, places = len(nodes), ", ".join(f"{n.name} ({n.region}/{n.zone})" for n in nodes)
    return f"{count} node{'s' * (count != 1)} of {_database(item, run)}: {places}"


def _database(item: pytest.Item, run: Run) -> str:
    """Its name and version, of what is at hand; a plan downloads nothing."""
    sabotaged = selection.sabotaged_engine(item)
    try:
        engine = run.named(sabotaged) if sabotaged else run.engine(selection.target_of(item) or run.targets[0])
    except BadInput:
        return f"{sabotaged or run.settings.engine} (none at hand)"
    return f"{engine.kind.name} {engine.version}"


def _checks(claim: Claim, profile: str) -> Sequence[str]:
    lines = []
    for check in claim.checks_for(profile):
        if check.kind is Kind.REPORT:
            limit = "reported"
        elif check.limit is None:
            limit = "not evaluated at this profile"
        else:
            limit = f"{check.comparison} {number(check.limit)} {check.unit}".rstrip()
        lines.append(f"    {check.metric:<26}{limit:<18}  {check.kind}, {check.mark}")
    return lines
