"""Judging: the one function that a live run and ``--judge`` go through, and the replay of a stored run."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from msgspec import ValidationError, convert

from clusters.engines import control_notice
from clusters.errors import BadInput
from clusters.events import NodeDeath
from plugin.catalogue import Catalogue
from plugin.counts import number_of
from plugin.differences import changed, differences
from plugin.evidence.events import seen
from plugin.evidence.load import describe_trial, load_trial
from plugin.evidence.run_seal import runs_below, share_of_run
from plugin.evidence.store import TRIAL_FILE, seal, store_verdict, stored_verdict, trials_in
from plugin.judge.analysis import analysis
from plugin.judge.decide import decide
from plugin.judge.model import Check, Outcome, Verdict
from plugin.profiles import profile_named
from plugin.release import release
from plugin.reports import ending, terminal
from plugin.reports.text import wrapped
from plugin.required import required_of
from plugin.result import BAD_INPUT, HARNESS, NOT_AS_EXPECTED
from plugin.run import Run
from plugin.status import Status, exit_status, status_told


def judge_trial(directory: Path, catalogue: Catalogue) -> Verdict:
    """The verdict on a trial's evidence, by today's limits. Raises ``BadInput`` for what is no trial.

    A claim that no catalogue at hand has (a user's, judged without ``--catalogue``) is judged by the checks that were
    stored with it.
    """
    trial = describe_trial(directory)
    evidence = load_trial(directory, trial)
    claim = catalogue.claims.get(evidence.claim)
    evidence = replace(evidence, paper=claim.paper if claim else {})
    if claim:
        profile_named(evidence.profile)  # one that is unknown would leave limits by profile out
    try:
        checks = claim.checks_for(evidence.profile) if claim else convert(trial["checks"], tuple[Check, ...])
    except (ValidationError, KeyError) as error:
        why = f"its checks cannot be read ({error}); name the claim's catalogue with --catalogue FILE"
        raise BadInput(f"{directory / TRIAL_FILE}: {why}") from error
    if seen(evidence.events, NodeDeath):
        named = {check.metric for check in checks}
        every = (check.resolve(evidence.profile) for check in catalogue.every_claim)
        checks = (*checks, *(check for check in every if check.metric not in named))
    needs = claim.needs if claim else tuple(trial["needs"])
    verdict = decide(evidence, checks, needs=needs, tuned=tuple(trial["tuned"]))
    analysis.cache_clear()  # of a trial of hours it takes hundreds of MiB
    return verdict


def conclude(directory: Path, catalogue: Catalogue) -> Verdict:
    """Seal a trial's evidence, judge it, and store the verdict beside it."""
    seal(directory)
    verdict = judge_trial(directory, catalogue)
    store_verdict(directory, verdict)
    return verdict


def trials_below(directory: Path) -> list[Path]:
    """The trials of a stored run, or the one trial that ``directory`` is. Raises ``BadInput`` when there are none."""
    if not directory.is_dir():
        raise BadInput(f"--judge {directory}: no such directory; give a run directory or one trial of it")
    if not (trials := trials_in(directory)):
        raise BadInput(
            f"--judge {directory}: holds no evidence (no {TRIAL_FILE}); give a run directory or one trial of it"
        )
    return trials


def replay(
    directories: Sequence[Path],
    run: Run,
    *,
    writer: Any,
    in_full: bool = False,
    allure: Path | None = None,
    clean: bool = False,
    junit: Path | None = None,
    signed_by: Path | None = None,
) -> int:
    """Judge stored runs again, print each verdict and what changed, write their page, and give the exit status.

    ``writer``: pytest's terminal writer; ``in_full``: with the checks of what passed as it did, too, which are shown of
    a single trial anyway; ``allure``: where Allure's results are wanted, ``clean`` without those of
    before; ``junit``: where JUnit XML is wanted; ``signed_by``: the public key of who must have signed the runs.
    """
    from plugin.reports.page_file import page_of_replay, refuse_own_page
    from plugin.reports.stored_run import engine_of, stored_run

    chosen = list(dict.fromkeys(run for each in directories for run in runs_below(each)))
    refuse_own_page(chosen, run.settings.report)
    verdicts: dict[Path, Verdict] = {}
    failed: dict[Path, str] = {}
    unreadable = []
    for directory in dict.fromkeys(trial for each in chosen for trial in trials_below(each)):
        try:
            verdicts[directory] = judge_trial(directory, run.catalogue)
        except BadInput as error:
            unreadable.append(str(error))
        except Exception as error:  # a defect of the judge's hides no other verdict
            failed[directory] = f"the judge failed ({type(error).__name__}: {error}); please report it with the trial"
    if unreadable and not verdicts and not failed:
        raise BadInput("; ".join(unreadable))
    stored = [stored_run(directory, run.catalogue, verdicts, failed, signed_by) for directory in chosen]
    trials = {trial.directory: (each, trial) for each in stored for trial in each.trials if trial.directory in verdicts}
    notice = control_notice(engine_of(one, home.described) for home, one in trials.values() if not one.sabotage)
    if notice:
        writer.line(notice)
    outcomes, differs = [], {trial: differences(stored_verdict(trial), verdicts[trial]) for trial in trials}
    sabotaged = [trial.result.outcome for _, trial in trials.values() if trial.sabotage]
    for directory, (home, trial) in trials.items():
        below = directory.name if directory == home.directory else str(directory.relative_to(home.directory))
        title = below if len(chosen) == 1 or directory == home.directory else f"{home.directory.name}/{below}"
        found = differs[directory]
        short = trial.result.outcome == Outcome.PASS and not found.changed and len(trials) > 1 and not in_full
        terminal.print_trial(writer, trial, title=title, in_full=not short)
        changes = [f"  differs: {change}" for change in found.changed] or ["  same verdict as stored"]
        if found.added:
            changes += wrapped(f"{number_of(len(found.added), 'checks are')} new: {', '.join(found.added)}")
        writer.line("\n".join(changes))
        if not trial.sabotage:
            outcomes.append(trial.result.outcome)
    writer.line("")
    for share in filter(None, map(share_of_run, chosen)):
        writer.line(share)
    if outcomes:
        writer.line(terminal.counted(outcomes))
    writer.line(page_of_replay(stored, run, differs))
    if allure is not None:
        from plugin.reports.allure_results import write_replay

        writer.line(write_replay(allure, stored, clean=clean))
    if junit is not None:
        from plugin.reports.junit import write_junit

        writer.line(write_junit(junit, stored))
    terminal.print_undecided(writer, [one for each in stored for one in each.undecided])
    terminal.print_not_tested(writer, ending.left_out(stored))
    for directory, verdict in verdicts.items():
        if defects := dict.fromkeys(map(str, verdict.failures)):
            failed[directory] = f"{'; '.join(defects)}; please report it with the trial"
    problems = [f"{each.directory}: {problem}" for each in stored for problem in each.problems]
    for message in (*unreadable, *problems, *(f"{directory}: {why}" for directory, why in failed.items())):
        writer.line(f"ERROR: {message}", red=True)
    left = any(o not in (Outcome.PASS, Outcome.NOT_EVALUATED) for o in outcomes) or Outcome.PASS not in outcomes
    status = exit_status(
        0,
        bad_input=(bool(unreadable) and Outcome.REFUTED not in outcomes) or BAD_INPUT in outcomes,
        refuted=Outcome.REFUTED in outcomes,
        harness=bool(failed) or HARNESS in outcomes,
        inconclusive=left or bool(problems) or NOT_AS_EXPECTED in sabotaged,
        undecided=[one for each in stored for one in each.undecided],
        claims_collected=True,
        gate=False,
    )
    if ended := ending.concluded(stored, control=bool(notice)):
        writer.line("\n".join(wrapped(ended.text, "")), bold=True, green=ended.passed, red=status == Status.REFUTED)
    if told := changed(differs.values()):
        writer.line(f"judged again with today's limits: {told}")
    writer.line(f"judged by Roachproof {release()}")
    counts = {name: outcomes.count(name) for name in (Outcome.REFUTED, Outcome.INCONCLUSIVE, HARNESS)}
    counts["undecided"] = sum(len(each.undecided) for each in stored)
    whole = any(required_of(each.described) for each in stored) and not any(each.not_tested for each in stored)
    writer.line(status_told(status, counts, whole=whole))
    if notice:
        writer.line(f"\n{notice}")
    return status
