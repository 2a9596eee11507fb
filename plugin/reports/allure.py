"""A trial as Allure shows it, from stored evidence. ``allure_redacted`` takes out secrets where it is written."""

import hashlib
import re
from collections.abc import Mapping
from typing import Any

from allure_commons.model2 import Label, Parameter, StatusDetails, TestResult, TestStepResult

from clusters.engines import SUBJECT, is_control
from clusters.engines import title as title_of
from plugin.claims import Labels
from plugin.reports.allure_steps import STATUS, steps_of
from plugin.reports.builds import tested_of
from plugin.reports.section import Step
from plugin.reports.series import Resilience
from plugin.reports.source_tables import beside
from plugin.reports.stored_run import StoredTrial, engine_of
from plugin.reports.terminal import verdict_lines
from plugin.reports.text import capital, machine, number, rendered, shown

KEPT = ("host", "thread", "language", "package")
"""Labels of allure-pytest that stay; all others are the catalogue's."""
SABOTAGES = "Sabotages (expected to be refuted, or inconclusive)"


def fill(
    result: TestResult, trial: StoredTrial, *, run: Mapping[str, Any], began_ms: int, among: str = ""
) -> TestResult:
    """Say in a result what a trial's evidence tells, all but its attachments; returns the result.

    ``run`` is its ``run.json``; ``began_ms`` the time at which its timeline began; ``among``: the name of its run,
    where several are shown together.
    """
    came = trial.result
    why = next(iter(came.why.splitlines()), "") if trial.sabotage else came.why
    told = labels(trial, run)
    parameters = {**_parameters(trial, run), **({"run": among} if among else {})}
    result.name = title(trial)
    result.fullName = full_name(str(trial.described.get("test", trial.directory.name)))
    # The same for every version, profile and parameter of one test; and the same for every version.
    result.testCaseId = digest(result.fullName)
    result.historyId = digest(result.fullName, *(parameters[name] for name in sorted(parameters)))
    result.descriptionHtml = _description(trial, run, why)
    result.description = None
    named = [Label(name=name, value=value) for name, value in told if value]
    result.labels = [*named, *(label for label in result.labels if label.name in KEPT)]
    result.titlePath = [value for name, value in told if name in ("epic", "feature", "story") and value]
    result.parameters = [
        *(Parameter(name=name, value=value) for name, value in parameters.items()),
        *(Parameter(name=name, value=value, excluded=True) for name, value in _excluded(trial).items()),
    ]
    result.status = STATUS.get(came.outcome, "broken")
    result.statusDetails = None
    if came.outcome != "pass":
        table = "\n".join(verdict_lines(trial.verdict)) if trial.verdict else None
        result.statusDetails = StatusDetails(message=f"{shown(came)}: {why}", trace=table)
    result.steps = [*map(_step, steps_of(trial, began_ms)), *result.steps]
    result.start = began_ms
    result.stop = began_ms + trial.end // 1000
    return result


def digest(*parts: str) -> str:
    """By what Allure knows a test again."""
    return hashlib.md5("\n".join(parts).encode(), usedforsecurity=False).hexdigest()


def _step(step: Step) -> TestStepResult:
    return TestStepResult(
        name=step.name,
        status=step.status,
        stage="finished",
        start=step.start,
        stop=step.stop,
        parameters=[Parameter(name=name, value=value) for name, value in step.parameters.items()],
        steps=[*map(_step, step.steps)],
    )


def full_name(nodeid: str) -> str:
    """A test's name without its parameters, as allure-pytest forms it."""
    plain, _, _ = nodeid.partition("[")
    path, *inner = plain.split("::")
    module = re.sub(r"\.py$", "", path).replace("/", ".")
    *classes, test = inner or [""]
    return ".".join([module, *classes]) + f"#{test}"


def _words(trial: StoredTrial) -> str:
    test = full_name(str(trial.described.get("test", ""))).rpartition("#")[2]
    return test.removeprefix("test_").replace("_", " ") or trial.directory.name


def title(trial: StoredTrial) -> str:
    """What a list of results shows of a trial."""
    about = [f"{name} {value}" for name, value in (trial.described.get("parameters") or {}).items()]
    tested = tested_of(trial.described)
    whose = f"sabotage of {trial.claim_id}" if trial.sabotage else trial.claim_id
    return f"{whose}: {', '.join([_words(trial), *about])}" + (f" · {tested}" if tested else "")


def labels(trial: StoredTrial, run: Mapping[str, Any]) -> list[tuple[str, str]]:
    """By what Allure sorts and filters."""
    described, context, claim = trial.described, trial.context, trial.claim_id
    settings = run.get("settings") or {}
    own = trial.claim.labels if trial.claim else Labels()
    engine = engine_of(trial, run)
    epic = SABOTAGES if trial.sabotage else f"{own.epic} (control: {engine})" if is_control(engine) else own.epic
    found = {
        "epic": epic,
        "feature": own.feature or claim,
        "story": _words(trial) if trial.sabotage else own.story or _words(trial),
        "severity": str(own.severity),
        "owner": own.owner,
        "parentSuite": epic,
        "suite": claim,
        "subSuite": " ".join(filter(None, [engine, str(context.get("version", ""))])),
        "claim": claim,
        "engine": engine,
        "version": str(context.get("version", "")),
        "profile": str(described.get("profile", settings.get("profile", ""))),
        "substrate": str(context.get("substrate", settings.get("substrate", ""))),
        "framework": "pytest",
    }
    tags = [
        str(described.get("suite", "")),
        "sabotage" if trial.sabotage else "",
        "control" if is_control(engine) else "",
        "tuned" if described.get("tuned") else "",
        shown(trial.result).lower(),
    ]
    return [*found.items(), *(("tag", tag) for tag in tags if tag)]


def _parameters(trial: StoredTrial, run: Mapping[str, Any]) -> dict[str, str]:
    """What tells results of one test apart: no version, as a history runs across them, but its place among several."""
    settings = run.get("settings") or {}
    own = {str(name): str(value) for name, value in (trial.described.get("parameters") or {}).items()}
    # Runs that were stored before engines had options of their own call them by another name.
    targets = settings.get("versions") or settings.get("cockroach_versions") or []
    target = str(trial.described.get("target") or "")
    if len(targets) > 1 and target:
        version, _, times = target.partition("#")
        places = [place for place, name in enumerate(targets, 1) if name == version]
        place = places[min(int(times or 1), len(places)) - 1] if places else 0
        own["place among the versions"] = f"{place} of {len(targets)}"
    profile = str(trial.described.get("profile", settings.get("profile", "")))
    return {**own, "engine": engine_of(trial, run), "profile": profile}


def _excluded(trial: StoredTrial) -> dict[str, str]:
    known = {**trial.context, "seed": trial.described.get("seed", "")}
    return {name: str(known[name]) for name in ("version", "seed") if known.get(name) not in (None, "")}


def _description(trial: StoredTrial, run: Mapping[str, Any], why: str) -> str:
    described, claim, sections = trial.described, trial.claim, trial.sections.values()
    about = [
        tested_of(described) or "no database",
        ", ".join(f"{name} {value}" for name, value in trial.context.items() if name not in ("engine", "version")),
        *(f"{name} {value}" for name, value in trial.builds.items()),
    ]
    on, faults = machine(run.get("host") or {}), trial.series.resilience if trial.series else ()
    rows: list[tuple[str, str]] = []
    if trial.sabotage:
        about_it = trial.about or "the cluster was misconfigured or broken on purpose."
        why_so = "This is no part of the verdict on a version: it shows that the test sees it."
        rows.append(("A sabotage", f"{about_it} The claim must be {trial.must_be}. {why_so}"))
    if is_control(engine := engine_of(trial, run)):
        rows.append(("A control", f"{engine} was tested. This says nothing about {title_of(SUBJECT)}."))
    rows += [
        ("Verdict", why if trial.result.expected else f"{shown(trial.result)}: {why}"),
        ("Note", " ".join(f"{capital(note)}." for note in trial.notes)),
        ("What was found", " ".join(f"{told}." for each in sections for told in each.sentences)),
        ("What was tested", "; ".join(filter(None, about))),
        ("Tuned", "; ".join(map(str, described.get("tuned") or ()))),
        ("On", on),
        ("What was done", claim.disturbs if claim else ""),
        ("What happened", "; ".join(cost(fault, trial.zero) for fault in faults)),
        ("Source", claim.source.whole if claim and claim.source else ""),
        ("What would refute it", claim.refuted_by if claim else ""),
        ("What differs from the source", claim.note if claim else ""),
    ]
    return rendered(
        "description.html",
        sentence=described.get("sentence", ""),
        rows=[(name, text) for name, text in rows if text],
        sections=[each.description for each in sections],
        tables=beside(claim, trial.verdict, machine=on, sections=sections) if claim and trial.verdict else (),
    )


def cost(fault: Resilience, zero: int) -> str:
    """What a fault cost, in a sentence; its times count from the second ``zero``."""
    known = (
        ("recovered in", fault.recovery_s, "s"),
        ("longest gap of any range", fault.gap_s, "s"),
        ("of the victims' own clients", fault.victim_gap_s, "s"),
        ("degraded for", fault.degraded_s, "s"),
        ("writes not made", None if fault.lost is None else round(fault.lost), ""),
    )
    told = [f"{name} {number(value)} {unit}".strip() for name, value, unit in known if value is not None]
    named = f"{fault.fault.replace('_', ' ')} {', '.join(fault.nodes)}"
    when = f"from {fault.begin - zero:.1f} to {fault.end - zero:.1f} s"
    return f"{named} {when}: {', '.join(told) or 'nothing else is known'}"
