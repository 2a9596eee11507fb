"""``--claims`` and ``--dry-run``: what could be decided here, and what a run would do."""

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pytest

from clusters.engines import Engine
from clusters.errors import BadInput
from plugin import changes, costs, evaluable, selection
from plugin import run as runs
from plugin.claims import Claim, Status
from plugin.counts import noun, number_of
from plugin.evidence.redaction import redacted, redacted_json
from plugin.judge.model import Kind
from plugin.reports.text import duration, number, wrapped
from plugin.required import undecided
from plugin.run import Run
from plugin.suites import Suite

NARROW = 80
"""Columns of what ``--claims`` prints: what a terminal has that nobody made wider."""


@dataclass(frozen=True, slots=True)
class _Listed:
    """A claim, and why it cannot be evaluated here, or what else is to be said of it here."""

    claim: Claim
    against: str | None
    here: str


def print_claims(run: Run, *, in_full: bool) -> None:
    """The catalogue as a table: how long each claim takes in each suite, and whether it can be evaluated here.

    ``in_full``: with each one's sentence, source, disk and note instead.
    """
    settings, _ = run.settings, run.chosen
    where = f"engine {settings.engine}, substrate {settings.substrate}, profile {settings.profile}"
    print("\n".join(_narrow(f"Claims of the catalogue; {where}")))
    engines, lines = _targets(run)
    print("\n".join(lines))
    listed = _listed(run, engines)
    if in_full:
        _print_in_full(listed, run)
    else:
        _print_table(listed, run)
    ready = [one.claim for one in listed if one.against is None]
    suites = dict.fromkeys(suite for one in listed for suite in one.claim.suites)
    totals = (_total(suite, [claim for claim in ready if suite in claim.suites], run) for suite in suites)
    counts = f"{number_of(len(listed), 'claims')}, {len(ready)} can be evaluated here"
    print("\n".join(_narrow(f"{counts}: {'; '.join(filter(None, totals))}" if ready else counts)))
    if not in_full:
        print("--claims -v tells each one's sentence, source, disk and notes")


def _narrow(text: str, indent: str = "") -> list[str]:
    return wrapped(redacted(text), indent, width=NARROW)


def _total(suite: Suite, claims: Sequence[Claim], run: Run) -> str:
    """How many claims of a suite can be evaluated here, and how long they take; nothing where there are none."""
    seconds = _seconds(claims, run, suite)
    return f"{suite} {len(claims)}{f', about {duration(seconds)}' * bool(seconds)}" if claims else ""


def _listed(run: Run, engines: Sequence[Engine]) -> list[_Listed]:
    """Each claim with what is to be said of it here."""
    unproven = dict.fromkeys(f"{engine.version}: {said}" for engine in engines if (said := runs.not_run(engine)))
    mark = f" ({'; '.join(unproven)})" if unproven else ""
    possible = f"can be evaluated here{mark}" if engines else "no database at hand for it (see above)"
    forbidden, notes = _changes(run)
    listed = []
    for claim in (claim for claim in run.catalogue if claim.id in run.chosen):
        reason = evaluable.reason_not_evaluated(claim, claim.nodes_for(run.settings.suite), run)
        against = f"not evaluated: {reason}" if reason is not None else None
        if claim.changes_versions and reason is None and forbidden:
            against = f"bad input: {forbidden}"
        here = against or f"{possible}{notes if claim.changes_versions else ''}"
        listed.append(_Listed(claim, against, here))
    return listed


def _print_in_full(listed: Iterable[_Listed], run: Run) -> None:
    suite = run.settings.suite
    print("-" * NARROW)
    built, planned = ([one for one in listed if (one.claim.status is Status.READY) is ready] for ready in (True, False))
    for one in [*built, *planned]:
        if planned and one is planned[0]:
            print(f"{'-' * NARROW}\nplanned, not built")
        claim, estimate = one.claim, one.claim.estimate_for(suite)
        cost = f"about {duration(estimate.seconds)}, {estimate.disk_mib:.0f} MiB of disk" if estimate else "-"
        rows = [
            ("", "claim", claim.sentence),
            ("", "source", claim.source.whole if claim.source else "-"),
            ("", "suites", ", ".join(f"{suite} {_time(claim, suite)}" for suite in claim.suites)),
            ("", "here", one.here),
            ("", f"{suite}", cost),
            *([("", "note", claim.note)] if claim.note else []),
        ]
        print(claim.id)
        print("\n".join(_columns(rows, (2, 9))))
    print("-" * NARROW)


def _columns(rows: Iterable[Sequence[str]], widths: Sequence[int]) -> list[str]:
    """Rows as text columns, of which the last is wrapped."""
    lines = []
    start = sum(widths)
    for row in rows:
        cells = "".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=False))
        text = textwrap.wrap(redacted(row[-1]), NARROW - start) or [""]
        lines.append((cells + text[0]).rstrip())
        lines += [" " * start + more for more in text[1:]]
    return lines


def _print_table(listed: Sequence[_Listed], run: Run) -> None:
    """Claims with a test, then those without; what is to be said of some stands below, by its number."""
    suites = list(dict.fromkeys(suite for one in listed for suite in one.claim.suites))
    said = list(dict.fromkeys(one.here for one in listed if one.claim.status is Status.READY))
    names = max(len(one.claim.id) for one in listed) + 2
    for status, title in ((Status.READY, "claim"), (Status.PLANNED, "planned, not built")):
        of_status = [one for one in listed if one.claim.status is status]
        if not of_status:
            continue
        print("-" * NARROW)
        print(f"{title:<{names}}{''.join(f'{suite:<10}' for suite in suites)}here")
        for one in of_status:
            times = "".join(f"{_time(one.claim, suite):<10}" for suite in suites)
            here = "-" if status is Status.PLANNED else f"{'no' if one.against else 'yes'} [{said.index(one.here) + 1}]"
            print(f"{one.claim.id:<{names}}{times}{here}")
    print("-" * NARROW)
    for place, words in enumerate(said, 1):
        print("\n".join(_narrow(f"[{place}] {words}")))


def _time(claim: Claim, suite: Suite) -> str:
    """How long a claim takes in a suite; ``-`` where it is not in it, ``?`` where no time is declared."""
    if suite not in claim.suites:
        return "-"
    estimate = claim.estimate_for(suite)
    return duration(estimate.seconds) if estimate and estimate.seconds else "?"


def expected(config: pytest.Config, items: Sequence[pytest.Item]) -> list[str]:
    """How long the tests of claims will take, by the catalogue's estimates; nothing where none is known."""
    run = config.stash.get(runs.KEY, None)
    if run is None or run.settings.dry_run or config.option.collectonly:
        return []
    return in_all(items, run)


def in_all(items: Sequence[pytest.Item], run: Run) -> list[str]:
    """How long these tests take together, and what of a suite they leave out."""
    needing = [item for item in items if selection.needs_engine(item)]
    claims, seconds = {selection.claim_id(item)[0] for item in needing}, sum(selection.seconds(needing, run).values())
    told = (
        [f"{number_of(len(claims), 'claims')} to be tested, about {duration(seconds)} in all; longer beside other work"]
        if seconds
        else []
    )
    elsewhere = [f"{claim.id} ({', '.join(claim.suites)})" for claim in run.of_other_suites]
    if elsewhere:
        more = f"{number_of(len(elsewhere), 'claims')} of that name not in the suite {run.settings.suite}"
        told += wrapped(f"{more}: {', '.join(elsewhere)}", "")
    return [*told, *left_out(items, run)]


def lacking(items: Iterable[pytest.Item], run: Run) -> list[str]:
    """What ``--dry-run`` says of databases that tests need and that are not at hand: a plan downloads nothing."""
    if not any(selection.needs_engine(item) and not selection.sabotaged_engine(item) for item in items):
        return []
    engines, lines = _targets(run)
    if len(engines) == len(run.targets):
        return []
    return [*lines, "a run downloads what is lacking where it can, and ends with 4 where it cannot"]


def left_out(items: Iterable[pytest.Item], run: Run) -> list[str]:
    """What a suite or ``--claim`` requires and none of these tests decides: ``-k``, ``-m`` or a path left it out."""
    if not run.settings.requires:
        return []
    trials = [
        {
            "claim": selection.claim_id(item)[0],
            "target": "" if run.catalogue.claim(id_).takes_versions and len(run.targets) > 1 else target,
            "parameters": redacted_json(selection.parameters_of(item)),
        }
        for item in items
        for id_, sabotage in (selection.claim_id(item),)
        if id_ and not sabotage
        for target in ([selection.target_of(item)] if selection.target_of(item) else run.targets)
    ]
    missing = undecided(evaluable.required(run), trials)
    by = f"--suite {run.settings.suite}" if run.settings.strict_suite else "--claim"
    requires = f"required by {by} and not chosen here"
    return wrapped(f"{number_of(len(missing), 'trials are')} {requires}: {', '.join(missing)}", "") if missing else []


def _seconds(claims: Iterable[Claim], run: Run, suite: Suite) -> float:
    """How long the claims take on all versions that were asked for; one that is about all of them runs once."""
    return sum(
        e.seconds * (run.changes_of(c) if c.takes_versions else len(run.targets))
        for c in claims
        if (e := c.estimate_for(suite))
    )


def _targets(run: Run) -> tuple[list[Engine], list[str]]:
    """The engines that are at hand, and a line about each that was asked for."""
    engines, lines = [], []
    for target in run.targets:
        try:
            engine = run.engine(target)
        except BadInput as error:
            lines += [part for text in f"no engine: {error}".splitlines() for part in _narrow(text)]
            continue
        engines.append(engine)
        lines += _narrow(f"engine: {runs.named_in_full(engine)}")
        if ran := engine.fingerprint.get("run_before"):
            lines += _narrow(f"run before: {ran}", "  ")
        lines += [part for note in engine.fingerprint.get("notes", ()) for part in _narrow(f"note: {note}", "  ")]
    return engines, lines


def _changes(run: Run) -> tuple[str, str]:
    """What forbids the changes of version that were asked for, and what else is to be said of them."""
    known = [*changes.of_run(run)]
    against = next((f"{words}: {why}" for words, change in known if (why := changes.against(change, run))), "")
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
    print("    (kind of the check; its limit is S printed in the source, D derived from it, R our own choice)")
    print(f"  seed: {selection.seed_of(item, run)} (of the run: {run.settings.seed})")


def _print_costs(item: pytest.Item, claim: Claim, run: Run) -> None:
    """What this one test takes on this profile, also where this machine does not carry it."""
    estimate = claim.estimate.get(run.settings.suite)
    takes_s = run.seconds_of(claim)
    figures = [f"about {duration(takes_s)}, {estimate.disk_mib:.0f} MiB of disk"] if estimate and takes_s else []
    for place, line in enumerate(costs.told(claim, run, selection.where(item, run)) or figures):
        print("\n".join(wrapped(line, "    ") if place else wrapped(f"would take: {line}")))


def _started(item: pytest.Item, run: Run) -> str:
    if "engine" not in getattr(item, "fixturenames", ()):
        return "no database, the test asks for none"
    nodes = selection.topology_for(item, run).nodes
    count, places = len(nodes), ", ".join(f"{n.name} ({n.region}/{n.zone})" for n in nodes)
    return f"{number_of(count, 'nodes')} of {_database(item, run)}: {places}"


def _database(item: pytest.Item, run: Run) -> str:
    """Its name and version, of what is at hand; a plan downloads nothing."""
    sabotaged = selection.sabotaged_engine(item)
    try:
        engine = run.named(sabotaged) if sabotaged else run.engine(selection.target_of(item) or run.targets[0])
    except BadInput:
        return f"{sabotaged or run.settings.engine} (none at hand)"
    return f"{engine.kind.name} {engine.version}"


def _checks(claim: Claim, profile: str) -> Sequence[str]:
    lines, checks = [], claim.checks_for(profile)
    names = max((len(check.metric) for check in checks), default=0) + 1
    for check in checks:
        if check.kind is Kind.REPORT:
            limit = "reported"
        elif check.limit is None:
            limit = "not evaluated at this profile"
        else:
            limit = f"{check.comparison} {number(check.limit)} {noun(check.limit, check.unit)}".rstrip()
        lines.append(f"    {check.metric:<{names}}{limit:<18}  {check.kind}, {check.mark}")
    return lines
