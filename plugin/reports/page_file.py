"""Where the page of a session or of a replay goes, and what is said of it.

Nothing here raises: a verdict stands without its report.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from clusters.engines import SUBJECT, control_notice
from plugin.evidence.store import TRIAL_FILE
from plugin.judge.model import Verdict
from plugin.run import Run

PAGE = "report.html"
COMPARISON = "comparison.html"


def page_of_run(run: Run) -> str:
    """Write the page of the session that ran here.

    Returns the line that says where it is; nothing where no trial began.
    """
    directory = run.settings.run_dir
    if next(directory.glob(f"claims/*/*/{TRIAL_FILE}"), None) is None:
        return ""
    return page([directory], run, place=run.settings.report or directory / PAGE)


def page_of_replay(directories: Sequence[Path], run: Run, verdicts: Mapping[Path, Verdict]) -> str:
    """Write the page of what was judged again, with these verdicts. Returns the line that says where it is."""
    return page(directories, run, place=run.settings.report or _place(directories), verdicts=verdicts)


def _place(directories: Sequence[Path]) -> Path:
    """In the directory that was judged; beside it where it is a trial, whose files are sealed; of several, where one is."""
    if len(directories) > 1:
        return Path.cwd() / COMPARISON
    (directory,) = directories
    if (directory / TRIAL_FILE).exists():
        return directory.parent / f"{directory.name}.html"
    return directory / PAGE


def page(directories: Sequence[Path], run: Run, *, place: Path, verdicts: Mapping[Path, Verdict] | None = None) -> str:
    """Write one page of these stored runs. Returns one line: where it is, or why there is none."""
    try:
        from plugin.reports.page import write_page
        from plugin.reports.stored_run import stored_run

        stored = [stored_run(directory, run.catalogue, verdicts) for directory in directories]
        contexts = [trial.described.get("context") or {} for each in stored for trial in each.trials]
        engines = {context["engine"] for context in contexts if "engine" in context}
        place.parent.mkdir(parents=True, exist_ok=True)
        write_page(
            place,
            stored,
            judge=" ".join(f"--judge={_short(directory)}" for directory in directories),
            control="" if SUBJECT in engines else control_notice(sorted(engines)),
        )
    except OSError as error:
        return (
            f"report: not written: {_short(place)}: {error.strerror or error}; choose another place with --report FILE"
        )
    except Exception as error:
        return f"report: not written: {type(error).__name__}: {error}"
    return f"report: {_short(place)}"


def _short(path: Path) -> str:
    """As it can be typed from here."""
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)
