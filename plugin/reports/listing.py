"""``--claims`` and ``--dry-run``: what could be decided here, and what a run would do."""

from collections.abc import Sequence

import pytest

from clusters.errors import BadInput
from clusters.model import Topology
from plugin import selection
from plugin.claims import Claim
from plugin.reports.terminal import WIDTH, columns, number, wrapped
from plugin.run import Run, named_in_full


def print_claims(run: Run) -> None:
    """The catalogue as a table: each claim, its source and suites, and whether it can be evaluated here."""
    settings = run.settings
    print(
        f"Claims of the catalogue; engine {settings.engine}, substrate {settings.substrate}, profile {settings.profile}"
    )
    for line in _target_lines(run):
        print(line)
    rule = "-" * WIDTH
    print(rule)
    for claim in run.catalogue.claims.values():
        reason = selection.reason_not_evaluated(claim, claim.nodes, run)
        here = "can be evaluated here" if reason is None else f"not evaluated: {reason}"
        estimate = claim.estimate_for(settings.suite)
        cost = (
            f"about {_duration(estimate.seconds)}, {estimate.disk_mib:.0f} MiB of disk" if estimate else "-"
        )
        rows = [
            ("", "claim", claim.sentence),
            ("", "source", str(claim.source) if claim.source else "-"),
            ("", "suites", ", ".join(claim.suites)),
            ("", "here", here),
            ("", f"{settings.suite}", cost),
        ]
        print(claim.id)
        print("\n".join(columns(rows, (2, 9))))
    print(rule)
    ready = [
        c for c in run.catalogue.claims.values() if selection.reason_not_evaluated(c, c.nodes, run) is None
    ]
    chosen = [c for c in ready if settings.suite in c.suites]
    seconds = sum(e.seconds for c in chosen if (e := c.estimate_for(settings.suite)))
    print(
        f"{len(run.catalogue.claims)} claims, {len(ready)} can be evaluated here; suite {settings.suite}: {len(chosen)}, about {_duration(seconds)}"
    )


def _target_lines(run: Run) -> list[str]:
    lines = []
    for target in run.targets:
        try:
            engine = run.engine(target)
        except BadInput as error:
            lines += wrapped(f"no engine: {error}", "")
            continue
        lines += wrapped(f"engine: {named_in_full(engine)}", "")
    return lines


def _duration(seconds: float) -> str:
    return (
        f"{seconds:.0f} s"
        if seconds < 120
        else f"{seconds / 60:.0f} min"
        if seconds < 7200
        else f"{seconds / 3600:.1f} h"
    )


def print_plan(item: pytest.Item, claim: Claim, topology: Topology, run: Run, *, sabotage: bool) -> None:
    """What one test would start, disturb and check, in order."""
    skip = item.get_closest_marker("skip")
    print(f"\n{item.nodeid}")
    print("\n".join(wrapped(f"{'sabotage of ' if sabotage else ''}{claim.id}: {claim.sentence}")))
    if skip is not None:
        print("\n".join(wrapped(f"would not run: {skip.kwargs.get('reason', '')}")))
        return
    places = ", ".join(f"{n.name} ({n.region}/{n.zone})" for n in topology.nodes)
    print("\n".join(wrapped(f"would start: {len(topology.nodes)} nodes of {run.settings.engine}: {places}")))
    for number_, step in enumerate(claim.steps, 1):
        print("\n".join(wrapped(f"{number_}. {step}", "    ")))
    print("\n".join(wrapped(f"would disturb: {claim.disturbs or 'nothing'}")))
    print("  would check:")
    print("\n".join(_checks(claim, run.profile.name)))
    print(f"  seed of the run: {run.settings.seed}")


def _checks(claim: Claim, profile: str) -> Sequence[str]:
    return [
        f"    {check.metric:<26}"
        + (
            f"{check.comparison} {number(check.limit)} {check.unit}".ljust(18)
            if check.limit is not None
            else "reported".ljust(18)
        )
        + f"{check.kind}, {check.mark}"
        for check in claim.checks_for(profile)
    ]
