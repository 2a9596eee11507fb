"""The terminal: the table of claims at the end, in at most 100 columns; ``header`` has what comes before."""

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from clusters.engines import ENGINES, SUBJECT, title
from plugin import run as runs
from plugin.called import called
from plugin.claims import Claim
from plugin.evidence.redaction import not_hidden, redacted_json
from plugin.evidence.store import CLUSTERS, LEFT_RUNNING, as_stored
from plugin.judge.model import Outcome, Verdict
from plugin.options import AUTO
from plugin.outcomes import KEY as SESSION
from plugin.outcomes import Session, TestOutcome, said_of
from plugin.reports import ending, source_tables
from plugin.reports.builds import named
from plugin.reports.result_files import RESULT_FILE, SUMMARY_FILE
from plugin.reports.section import Section
from plugin.reports.text import WIDTH, measured_text, number, shown, typed, word, wrapped
from plugin.required import NOT_DECIDED
from plugin.result import BAD_INPUT, NO_VERDICT, NOT_AS_EXPECTED, Result
from plugin.suites import Suite

if TYPE_CHECKING:
    from plugin.reports.stored_run import StoredTrial

MARKUP: Mapping[str, Mapping[str, bool]] = {
    "pass": {"green": True},
    "refuted": {"red": True, "bold": True},
    "inconclusive": {"yellow": True, "bold": True},
    **{name: {"red": True} for name in (NOT_AS_EXPECTED, BAD_INPUT, *NO_VERDICT)},
    "not evaluated": {},
}


def brief(terminal: Any, session: Session) -> None:
    """Make what pytest prints of claims' tests short: their table of checks stands in ``summary``.

    ``terminal``: pytest's reporter. Whoever reads the reports of tests (JUnit XML, Allure) has done so before.
    """
    came = {outcome.nodeid: outcome.result for outcome in session.outcomes}
    for report in (*terminal.stats.get("failed", ()), *terminal.stats.get("error", ())):
        said = said_of(report)
        if not said or not said["claim"] or report.nodeid not in came:
            continue
        if said["outcome"] in (Outcome.REFUTED, Outcome.INCONCLUSIVE, NOT_AS_EXPECTED):
            result = came[report.nodeid]
            report.longrepr = _line(f"{word(said['outcome'])}: {result.why}")
        elif crash := getattr(report.longrepr, "reprcrash", None):
            crash.message = _line(crash.message)


def _line(text: str) -> str:
    """The first line of a text, as long as a terminal has room for it."""
    return textwrap.shorten(text.strip().partition("\n")[0], WIDTH, placeholder=" …")


def summary(terminal: Any, config: pytest.Config) -> None:
    """Of each claim that did not pass (with ``-v`` of all) the table of checks: what was measured against its limit."""
    session = config.stash[SESSION]
    outcomes = sorted(session.outcomes, key=lambda o: o.nodeid)
    claims = [o for o in outcomes if not o.sabotage]
    sabotages = [o for o in outcomes if o.sabotage]
    stored = session.stored.trials if session.stored else ()
    trials: Mapping[Path | None, StoredTrial] = {trial.directory: trial for trial in stored}
    told = [outcome for outcome in claims if config.get_verbosity() > 0 or outcome.result.outcome != "pass"]
    if told:
        terminal.write_sep("=", "claims")
    printed: set[str] = set()
    for outcome in told:
        _print_outcome(terminal, outcome, trials.get(outcome.trial), origin=outcome.claim not in printed)
        printed.add(outcome.claim)
    if sabotages:
        terminal.write_sep("=", "sabotages (expected to be refuted, or inconclusive; no part of the verdict)")
    for outcome in sabotages:
        _print_outcome(terminal, outcome, trials.get(outcome.trial))


def last_screen(terminal: Any, config: pytest.Config) -> None:
    """What the session came to, after all that pytest prints: a line a claim, the conclusion, where everything is."""
    session, run = config.stash[SESSION], config.stash[runs.KEY]
    claims = sorted((o for o in session.outcomes if not o.sabotage), key=lambda o: o.nodeid)
    if session.outcomes or session.undecided:
        terminal.write_line("")
    for row in ending.ended_of(claims, run.settings.run_dir):
        terminal.write_line(ended_line(row), **MARKUP.get(row.outcome, {}))
    print_undecided(terminal, session.undecided)
    if session.outcomes or session.undecided:
        terminal.write_line(counted([outcome.result.outcome for outcome in claims]))
        print_not_tested(terminal, [ending.not_tested(session.not_tested, run.settings.suite)])
    if told := ending.noted(session.stored.trials if session.stored else ()):
        terminal.write_line("\n".join(wrapped(told, "")))
    if ended := session.conclusion:
        terminal.write_line("\n".join(wrapped(ended.text, "")), bold=True, green=ended.passed, red=session.status == 1)
        terminal.write_line(session.told)
    if session.outcomes:
        evidence = typed(run.settings.run_dir, config.rootpath)
        terminal.write_line(f"evidence: {evidence}")
        if any(outcome.trial for outcome in session.outcomes):
            terminal.write_line(f"judge it again: {called('gate', f'--judge {evidence}')}")
    files = [run.settings.run_dir / name for name in (RESULT_FILE, SUMMARY_FILE)]
    if written := [typed(file, config.rootpath) for file in files if file.exists()]:
        terminal.write_line(f"results: {', '.join(written)}")
    for line in kept(run.settings.run_dir, config.rootpath):
        terminal.write_line(line)
    if session.page:
        if config.get_verbosity() <= 0 and any(one.result.outcome == Outcome.PASS for one in claims):
            terminal.write_line("what passing claims measured, and what was tuned: in the report, or with -v")
        terminal.write_line(session.page)
    if session.outcomes and (told := _next(run, config, session.not_tested)):
        terminal.write_line(told)
    if left := not_hidden():
        terminal.write_line("\n".join(wrapped(left, "")), yellow=True)
    unwritten = [f"{one}; make room for it, or give another place with --run-dir DIR" for one in session.unwritten]
    for message in (*session.refusals, *unwritten):
        terminal.write_line(f"ERROR: {message}", red=True)


def _next(run: runs.Run, config: pytest.Config, not_tested: Sequence[str]) -> str:
    """The next command: for the subject itself after a control that nobody asked for, else for all claims."""
    choice, settings = ENGINES[SUBJECT].choice, run.settings
    if run.control_notice:
        command = called("try", f"{choice.version} X")
        told = f"next: for {title(SUBJECT)} itself run {command}, or {choice.path} FILE"
        return told if settings.engine == AUTO else ""
    if not not_tested and (settings.engine != AUTO or settings.strict_suite):
        return ""
    options = [f"{choice.version} {version}" for version in settings.versions]
    if not options:
        found = run.fingerprints[0] if run.fingerprints else {}
        binary, version = Path(str(found.get("binary", "FILE"))), found.get("version")
        # One of the cache, whose directory is named so, or of a download is found again by its version.
        by_version = not settings.path and binary.parent.name == version
        options = [f"{choice.version} {version}" if by_version else f"{choice.path} {binary}"]
    if settings.catalogues:
        claims, here = config.rootpath / "tests" / "claims", config.invocation_params.dir
        own = [arg for arg in config.args if not (here / arg.partition("::")[0]).is_relative_to(claims)]
        options += ["tests/claims", *own, *(f"--catalogue {typed(file, here)}" for file in settings.catalogues)]
    if settings.suite != Suite.GATE:
        options.append(f"--suite {settings.suite}")
    return f"next: for all claims run {called('gate', ' '.join(options))}"


def print_not_tested(terminal: Any, told: Iterable[str]) -> None:
    """Name what a suite would have tested, too; ``told``: as ``ending`` tells it, nothing where it is nothing."""
    for sentence in filter(None, told):
        terminal.line("\n".join(wrapped(sentence, "")))


def kept(run_dir: Path, root: Path) -> list[str]:
    """What is left of a run's clusters: stores and logs, or one that runs on, with the commands for it."""
    lines = []
    for place in sorted((run_dir / CLUSTERS).glob("*")):
        running = place / LEFT_RUNNING
        what = "left running" if running.exists() else "kept: stores and logs"
        lines += [f"{what}: {typed(place, root)}", *(running.read_text().splitlines() if running.exists() else ())]
    return lines


def ended_line(row: ending.Ended) -> str:
    """What one test of a claim came to: verdict, seconds, claim and test, and the reason, below where it is long."""
    told = f"{word(row.outcome):<14}{row.seconds:>6.0f} s  {row.claim}  {row.test}"
    whole = f"{told}  {row.reason}".rstrip()
    if len(whole) <= WIDTH:
        return whole
    told = told if len(told) <= WIDTH else f"{told[: WIDTH - 2]} …"
    return "\n".join([told, *(wrapped(row.reason, " " * 24, most=6) if row.reason else [])])


def print_undecided(terminal: Any, undecided: Iterable[str]) -> None:
    """Name what was required and nobody decided."""
    for required in undecided:
        terminal.line(f"{NOT_DECIDED}: {required}", yellow=True, bold=True)


def _print_outcome(terminal: Any, outcome: TestOutcome, trial: "StoredTrial | None", *, origin: bool = False) -> None:
    result = outcome.result
    terminal.write_line("")
    terminal.write_line(f"{outcome.claim}  {shown(result)}", **MARKUP.get(result.outcome, {}))
    lines = wrapped(ending.test_named(outcome.nodeid))
    if trial and trial.about:
        lines += wrapped(trial.about)
    terminal.write_line("\n".join(lines + _told(result, trial, origin=origin)))


def _told(result: Result, trial: "StoredTrial | None", *, origin: bool) -> list[str]:
    """What is told of a trial, and why its test ended otherwise than by its verdict, which the table ends with."""
    lines = trial_lines(trial, origin=origin) if trial else []
    if not (trial and trial.verdict and result.why.endswith(str(trial.verdict["why"]))):
        lines += [part for text in result.why.splitlines()[:1] for part in wrapped(text)]
    return lines


def trial_lines(trial: "StoredTrial", *, origin: bool) -> list[str]:
    """A trial's verdict and findings; of a claim's also the source's tables and, with ``origin``, what is claimed."""
    claim, verdict, sections = None if trial.sabotage else trial.claim, trial.verdict, trial.sections.values()
    lines = origin_lines(claim) if claim and origin else []
    if verdict:
        lines += verdict_lines(verdict)
        lines += [line for section in sections for line in section_lines(section)]
        lines += paper_lines(claim, verdict, sections) if claim else []
    return lines


def origin_lines(claim: Claim) -> list[str]:
    """What is claimed, where that comes from, and in at most two lines its note (``--claims -v`` prints all of it)."""
    lines = wrapped(claim.sentence) + (wrapped(f"source: {claim.source}") if claim.source else [])
    if claim.note:
        lines += wrapped(f"note: {claim.note}", most=2)
    return lines


def section_lines(section: Section) -> list[str]:
    """What a workload shows of a trial: what was found in sentences, and more in short."""
    lines = [part for told in section.sentences for part in wrapped(f"{told}.")]
    return [*lines, *(f"    {line}" for line in section.lines(WIDTH - 4))]


def paper_lines(claim: Claim, verdict: Mapping[str, Any], sections: Iterable[Section] = ()) -> list[str]:
    """What the source's tables printed for the trial with these parameters, to be read beside what was measured.

    Of a whole table only the judge's reading, and the rows that have an answer.
    """
    lines = []
    for table in source_tables.beside(claim, verdict, sections=sections):
        if table.long:
            lines += [part for told in table.reading for part in wrapped(f"{told}.")]
            lines += [part for told in source_tables.answered(table) for part in wrapped(told)]
            continue
        for name, *cells in table.rows:
            figures = (f"{head} {cell}" for head, cell in zip(table.head[1:], cells, strict=True) if cell != "-")
            lines += wrapped(f"{table.title}, {name}: {', '.join(figures)}")
    return lines


def verdict_lines(verdict: Mapping[str, Any]) -> list[str]:
    """A stored verdict as lines: what was judged, every check against its limit, and why."""
    context = verdict["context"]
    others = [f"{k} {v}" for k, v in context.items() if k not in ("engine", "version")]
    lines = wrapped(", ".join(filter(None, [named(context), *others])))
    if verdict["tuned"]:
        lines += wrapped("tuned: " + "; ".join(verdict["tuned"]))
    # A name of a user's own may be of any length; a longer row than a terminal is wrapped.
    names = min(max([24, *(len(result["check"]["metric"]) for result in verdict["results"])]), 36) + 2
    lines.append(f"  {'check':<{names}}{'measured':>14}  {'limit':<12}{'kind':<10}{'mark':<5}outcome")
    for result in verdict["results"]:
        check, measured = result["check"], result["measurement"]
        limit = f"{check['comparison']} {number(check['limit'])}" if check["limit"] is not None else "-"
        cells = (
            f"  {check['metric']:<{names}}{measured_text(result):>14}  {limit:<12}{check['kind']:<10}{check['mark']:<5}"
        )
        row = cells + word(result["outcome"])
        lines += [row] if len(row) <= WIDTH else wrapped(" ".join(row.split()))
        if result["outcome"] in (Outcome.REFUTED, Outcome.INCONCLUSIVE):
            lines += wrapped(result["why"] or measured["note"], "      ")
            for example in measured["examples"]:
                lines += textwrap.wrap(example, WIDTH, initial_indent="      - ", subsequent_indent="        ")
        elif check["limit"] and measured["note"]:
            lines += wrapped(measured["note"], "      ")
    lines += wrapped("marks: S printed in the source, D derived from it, R our own choice")
    for condition in verdict["conditions"]:
        if not condition["met"]:
            lines += wrapped(f"evidence: {condition['name']} not met: {condition['why']}")
    return lines + wrapped(verdict["why"])


def as_table(verdict: Verdict) -> str:
    """A verdict as the text of an error or a terminal."""
    title = wrapped(f"claim {verdict.claim}: {word(verdict.outcome)}", "")
    return "\n".join([*title, *verdict_lines(redacted_json(as_stored(verdict)))])


def print_trial(writer: Any, trial: "StoredTrial", *, title: str, in_full: bool) -> None:
    """Write a trial that was judged again, its checks where that is wanted. ``writer``: pytest's terminal writer."""
    sabotage = f"(a sabotage: expected to be {trial.must_be}) {trial.about}"
    writer.line("\n".join(["", *wrapped(title, ""), *(wrapped(sabotage, "") if trial.sabotage else [])]))
    result = trial.result
    writer.line(f"claim {trial.claim_id}: {shown(result)}", **MARKUP.get(result.outcome, {}))
    short = ending.reason(result.outcome, result.why)
    told = _told(result, trial, origin=True) if in_full else wrapped(short) if short else []
    if lines := [*told, *(part for note in trial.notes for part in wrapped(f"note: {note}"))]:
        writer.line("\n".join(lines))


def counted(outcomes: Sequence[str]) -> str:
    """What claims came to, in one line."""
    counts = {outcome: outcomes.count(outcome) for outcome in dict.fromkeys(outcomes)}
    return f"claims: {', '.join(f'{n} {word(o).lower()}' for o, n in counts.items()) or 'none'}"
