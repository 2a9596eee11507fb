"""Where the page of a session or a replay goes. Nothing here raises: a verdict stands without its report."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from clusters.engines import control_notice, is_control
from clusters.errors import BadInput
from plugin.differences import Differences
from plugin.evidence.run_seal import RUN_FILE
from plugin.evidence.store import TRIAL_FILE, stored_object
from plugin.reports.stored_run import StoredRun, engine_of
from plugin.reports.text import typed
from plugin.run import Run
from plugin.status import Conclusion

PAGE = "report.html"
JUDGED_AGAIN = "judged-again.html"
COMPARISON = "comparison.html"


def page_of_run(stored: StoredRun, run: Run, ended: Conclusion | None) -> str:
    """Write the page of the session that ran here and came to ``ended``.

    Returns what is to be said of it; nothing without a trial.
    """
    return _page([stored], run, stored.directory / PAGE, ended) if stored.trials else ""


def refuse_own_page(directories: Iterable[Path], place: Path | None) -> None:
    """Raise ``BadInput`` where a page of what is judged again would take the place of a run's own."""
    if place is None:
        return
    for directory in directories:
        told = (stored_object(directory / RUN_FILE) or {}).get("settings") or {}
        own = [directory / PAGE, *filter(None, [isinstance(told, Mapping) and told.get("report")])]
        if any(place.resolve() == Path(str(page)).resolve() for page in own):
            raise BadInput(f"--report {place}: is the run's own page, which stays as it is; give another file")


def page_of_replay(stored: Sequence[StoredRun], run: Run, differs: Mapping[Path, Differences]) -> str:
    """Write the page of what was judged again. Returns the line that says where it is, or why there is none.

    It goes beside the run's own page, which stays as it is; beside the directory that was judged where that is a
    trial, whose files are sealed; of several, into the current directory. ``differs``: as ``write_page`` takes it.
    """
    directory = stored[0].directory
    if len(stored) > 1:
        place = Path.cwd() / COMPARISON
    elif (directory / TRIAL_FILE).exists():
        place = directory.parent / f"{directory.name}.html"
    else:
        place = directory / JUDGED_AGAIN
    return _page(stored, run, place, differs=differs)


def _page(
    stored: Sequence[StoredRun],
    run: Run,
    place: Path,
    ended: Conclusion | None = None,
    differs: Mapping[Path, Differences] | None = None,
) -> str:
    place, here = run.settings.report or place, Path.cwd()
    trials = [(trial, each.described) for each in stored for trial in each.trials]
    engines = {trial.context["engine"] for trial, _ in trials if "engine" in trial.context}
    engines = engines or {engine_of(trial, described) for trial, described in trials}
    try:
        from plugin.reports.page import write_page

        place.parent.mkdir(parents=True, exist_ok=True)
        write_page(
            place,
            stored,
            judge=" ".join(f"--judge={typed(each.directory, here)}" for each in stored),
            control=control_notice(sorted(engines)) if all(map(is_control, engines)) else "",
            ended=ended,
            differs=differs,
        )
    except OSError as error:
        why = error.strerror or error
        return f"report: not written: {typed(place, here)}: {why}; choose another place with --report FILE"
    except Exception as error:
        return f"report: not written: {type(error).__name__}: {error}"
    return f"report: {typed(place, here)}"
