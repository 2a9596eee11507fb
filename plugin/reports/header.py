"""The terminal in every session: the header, and an inconclusive test's letter."""

import pytest

from plugin import run as runs
from plugin.counts import number_of
from plugin.evidence.redaction import redacted
from plugin.outcomes import said_of
from plugin.release import release
from plugin.reports.text import typed, wrapped


def header(config: pytest.Config) -> list[str]:
    """What is tested, where, with which seed."""
    run = config.stash.get(runs.KEY, None)
    if run is None:
        return []
    settings, host = run.settings, run.host
    versions = ", ".join(settings.versions) or settings.path or "as found"
    lines = [
        *([f"why the control: {run.why_control}"] if run.why_control else []),
        *([f"testing {run.found}"] if run.found else []),
        f"roachproof {release()}: {settings.engine} ({versions}) on {settings.substrate}, profile {settings.profile}, "
        f"suite {settings.suite}, seed {settings.seed}"
        + (f"; load from {number_of(run.generators, 'generators')}" if run.generators else ""),
        f"host: {number_of(f'{host.cores:g}', 'cores')}, {host.memory_gib:.1f} GiB memory and "
        f"{host.disk_gib:.0f} GiB disk free"
        + ("" if settings.dry_run else f"; evidence: {typed(settings.run_dir, config.rootpath)}"),
    ]
    return [part for line in lines for part in wrapped(redacted(line), "")]


def status_of(report: pytest.TestReport) -> tuple[str, str, tuple[str, dict[str, bool]]] | None:
    """The category, letter and word of a test that was inconclusive."""
    said = said_of(report) if hasattr(report, "user_properties") else None
    if said and report.failed and said["outcome"] == "inconclusive":
        return "inconclusive", "I", ("INCONCLUSIVE", {"yellow": True})
    return None
