"""The options that answer instead of running tests: ``--claims``, ``--judge`` and ``--dry-run``."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from clusters.errors import BadInput
from plugin import run as runs
from plugin import selection

OF_TESTS = ("--claim", "--keep", "--plan", "--seed", "--sign")
"""Options that say something of tests which run. Those of a suite and an engine are none: tox gives them always."""


def _refuse(get: Callable[[str], Any]) -> None:
    """Raise ``UsageError`` for options that exclude each other, or that would be passed over in silence."""
    given = [name for name in ("--claims", "--judge", "--dry-run") if get(name)]
    if len(given) > 1:
        raise pytest.UsageError(f"{' and '.join(given)} exclude each other: each answers by itself; give one of them")
    others = [name for name in OF_TESTS if get(name) not in (None, [])]
    if get("--judge") and others:
        why = "a stored run is judged as it is, with all of its claims; leave one of them out"
        raise pytest.UsageError(f"--judge and {others[0]} exclude each other: {why}")
    if get("--signed-by") and not get("--judge"):
        way_out = "give that run with --judge, or --sign to sign this one"
        raise pytest.UsageError(f"--signed-by: says who must have signed a stored run; {way_out}")


def answer(config: pytest.Config) -> int | None:
    """Answer ``--claims`` or ``--judge`` and give the exit status; ``None`` goes on to the tests."""
    option: Any = config.option
    get = config.getoption
    if get("--dry-run") and hasattr(option, "numprocesses"):
        option.numprocesses, option.dist, option.tx = None, "no", []
    _refuse(get)
    if not (get("--claims") or get("--judge")):
        return None
    from _pytest.config import create_terminal_writer

    from plugin.evidence.redaction import hide_given
    from plugin.replay import replay
    from plugin.reports import listing

    hide_given(os.environ)
    try:
        run = runs.open_run(config)
        if get("--claims"):
            listing.print_claims(run, in_full=config.get_verbosity() > 0)
            return 0
        home = config.invocation_params.dir
        allure = getattr(option, "allure_report_dir", None)
        return replay(
            [Path(home, name) for name in get("--judge")],
            run,
            writer=create_terminal_writer(config),
            in_full=config.get_verbosity() > 0,
            allure=Path(home, allure) if allure else None,
            clean=bool(getattr(option, "clean_alluredir", False)),
            junit=Path(home, option.xmlpath) if option.xmlpath else None,
            signed_by=Path(home, get("--signed-by")) if get("--signed-by") else None,
        )
    except BadInput as error:
        raise runs.refusal(error) from error


def dry_run(session: pytest.Session) -> bool | None:
    """Print the plan of every collected claim and run nothing."""
    run = runs.of(session.config)
    if not run.settings.dry_run:
        return None
    from plugin.reports import listing

    for item in session.items:
        if selection.claim_id(item)[0] is not None:
            listing.print_plan(item, run)
    if told := [*listing.in_all(session.items, run), *listing.lacking(session.items, run)]:
        print("\n".join(["", *told]))
    return True
